//! Changes of stores, as subscribers get them.

use std::collections::BTreeMap;
use std::sync::Arc;

use popcell_core::object::{Fields, Object};

use super::items::{Item, Items, Named};
use super::store::view;

/// What happened to a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// An object is new or differs.
    Applied {
        /// As it was before.
        before: Option<Arc<Object>>,
        /// As it is.
        now: Arc<Object>,
    },
    /// An object is not there any more; under a filter this may only mean that it does not match any more.
    Gone {
        /// Its namespace; empty for objects of the cluster.
        namespace: String,
        /// Its name.
        name: String,
        /// As it was last; `None` where it could not be read.
        last: Option<Arc<Object>>,
    },
    /// An object cannot be read any more.
    Unreadable {
        /// Its namespace; empty for objects of the cluster.
        namespace: String,
        /// Its name.
        name: String,
        /// Why.
        error: String,
    },
    /// The store is known from now on: whoever met Unknown is requeued. Told after the changes that the list brought.
    Listed,
    /// The store is unknown from now on. What was in it is compared with the next list.
    Lost,
    /// The watch ended: the store is unknown and empty, whatever it knew. Nothing is told of what was in it.
    Cleared,
}

/// What a list changed.
pub(super) fn compare(mut before: BTreeMap<String, Named>, now: &Items) -> Vec<Change> {
    let mut changes = Vec::new();
    for (namespace, name, item) in now.iter() {
        let old = before.get_mut(namespace).and_then(|named| named.remove(name));
        changes.extend(change(namespace, name, old, item));
    }
    for (namespace, named) in before {
        changes.extend(named.into_iter().map(|(name, item)| Change::Gone {
            namespace: namespace.clone(),
            name,
            last: item.ok(),
        }));
    }
    changes
}

/// What became of one object; `None` where it is the same.
pub(super) fn change(namespace: &str, name: &str, before: Option<Item>, now: &Item) -> Option<Change> {
    match (before, now) {
        (Some(Ok(before)), Ok(now)) if same(&before, now) => None,
        (before, Ok(now)) => Some(Change::Applied {
            before: before.and_then(Result::ok).as_ref().map(view),
            now: view(now),
        }),
        (Some(Err(before)), Err(error)) if before == *error => None,
        (_, Err(error)) => Some(Change::Unreadable {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            error: error.clone(),
        }),
    }
}

fn same(before: &Object, now: &Object) -> bool {
    before.uid() == now.uid() && before.resource_version() == now.resource_version()
}
