//! Objects of one kind by namespace and name, and by the uids under which others look for them.
//!
//! Invariant: an object is found by exactly the uids that it says now ([`uids`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::object::{Excess, Fields, Object};

use super::budget::{Beside, Budget, Usage};

/// An object, or why it cannot be read.
pub(super) type Item = Result<Arc<Object>, String>;
/// Objects of one namespace.
pub(super) type Named = BTreeMap<String, Item>;

/// Uids under which objects of a kind are looked for: a WorkloadDeployment under its own, an Instance under those that it
/// may be of. Decisions see which of them count.
pub(crate) fn uids(kind: Option<Kind>, object: &Object) -> impl Iterator<Item = &str> {
    let own = (kind == Some(kind::WORKLOAD_DEPLOYMENT)).then(|| object.uid());
    let of = (kind == Some(kind::INSTANCE)).then(|| {
        let owners = object.metadata.owner_references.iter().flatten();
        let owners = owners.map(|one| one.uid.as_str());
        owners.chain(object.label(labels::WORKLOAD_DEPLOYMENT_UID))
    });
    own.into_iter()
        .chain(of.into_iter().flatten())
        .filter(|uid| !uid.is_empty())
}

/// What a list and the watch after it have brought.
#[derive(Debug, Default)]
pub(super) struct Items {
    kind: Option<Kind>,
    budget: Budget,
    named: BTreeMap<String, Named>,
    by_uid: BTreeMap<String, BTreeSet<(String, String)>>,
    /// By payer.
    usages: BTreeMap<String, Usage>,
    /// By payer, the bytes of each namespace, where namespaces share.
    shares: BTreeMap<String, BTreeMap<String, usize>>,
    /// Whether the budget is told of changes: a list counts when it has ended.
    counts: bool,
    /// How many have too much of something.
    excessive: usize,
    /// Those of them for which there is no room, by payer.
    crowded: BTreeMap<String, usize>,
    /// By payer, the fewest bytes that one of these needed.
    lacking: BTreeMap<String, usize>,
}

impl Items {
    /// Nothing yet. Without a kind, objects are found by name only.
    pub(super) fn of(kind: Option<Kind>, budget: &Budget) -> Self {
        Self {
            kind,
            budget: budget.clone(),
            ..Self::default()
        }
    }

    /// What is kept for a payer, without the one of this address.
    pub(super) fn beside(&self, namespace: &str, name: &str, payer: &str) -> Beside {
        let one = self.get(namespace, name).and_then(|one| one.as_ref().ok());
        let own = one.and_then(|one| self.budget.cost(self.kind, one));
        let own = own.filter(|(paid_by, _)| *paid_by == payer).map(|(_, usage)| usage);
        let own = own.unwrap_or_default();
        let usage = self.usages.get(payer).copied().unwrap_or_default().less(own);
        let Some(shares) = self.shares.get(payer) else {
            return Beside {
                usage,
                sharers: usize::from(self.budget.is_shared()),
                ..Beside::default()
            };
        };
        let share = shares.get(namespace);
        Beside {
            usage,
            share: share.map_or(0, |bytes| bytes.saturating_sub(own.bytes)),
            sharers: shares.len() + usize::from(share.is_none()),
        }
    }

    /// From now on these are what is kept of the kind.
    pub(super) fn begin_to_count(&mut self) {
        self.counts = true;
        self.budget.set_all(self.kind, &self.usages);
    }

    /// How many have too much of something.
    pub(super) fn excessive(&self) -> usize {
        self.excessive
    }

    /// Whether there is no room for some.
    pub(super) fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// Whether there is room now for any that had none.
    pub(super) fn has_room(&self) -> bool {
        self.crowded.keys().any(|payer| {
            let lacking = self.lacking.get(payer);
            lacking.is_some_and(|bytes| self.budget.has_room(payer, *bytes))
        })
    }

    /// There was no room for so many bytes of an object. Says whether that is the first of its payer.
    pub(super) fn lacks(&mut self, object: &Object, bytes: usize) -> bool {
        let Some((payer, _)) = self.budget.cost(self.kind, object) else {
            return false;
        };
        let least = self.lacking.get(payer).map_or(bytes, |least| bytes.min(*least));
        self.lacking.insert(payer.to_owned(), least).is_none()
    }

    fn count(&mut self, item: &Item, is_there: bool) {
        let Ok(object) = item else { return };
        let excess = object.excess();
        if excess.is_some() {
            self.excessive = step(self.excessive, is_there);
        }
        let Some((payer, cost)) = self.budget.cost(self.kind, object) else {
            return;
        };
        let before = self.usages.get(payer).copied().unwrap_or_default();
        let now = if is_there { before.plus(cost) } else { before.less(cost) };
        put(&mut self.usages, payer, now);
        if self.counts {
            self.budget.set(self.kind, payer, now);
        }
        if self.budget.is_shared() {
            let shares = self.shares.entry(payer.to_owned()).or_default();
            let before = shares.get(object.namespace()).copied().unwrap_or_default();
            let now = if is_there {
                before + cost.bytes
            } else {
                before.saturating_sub(cost.bytes)
            };
            put(shares, object.namespace(), now);
            if shares.is_empty() {
                self.shares.remove(payer);
            }
        }
        if excess.is_some_and(Excess::is_of_room) {
            let before = self.crowded.get(payer).copied().unwrap_or_default();
            put(&mut self.crowded, payer, step(before, is_there));
        }
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        self.kind
    }

    pub(super) fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Item> {
        self.named.get(namespace)?.get(name)
    }

    pub(super) fn within(&self, namespace: &str) -> Option<&Named> {
        self.named.get(namespace)
    }

    pub(super) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.named.keys().map(String::as_str)
    }

    /// Namespace, name and item of everything.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, &Item)> {
        self.named.iter().flat_map(|(namespace, named)| {
            named
                .iter()
                .map(move |(name, item)| (namespace.as_str(), name.as_str(), item))
        })
    }

    /// Namespace and name of what says a uid.
    pub(super) fn saying(&self, uid: &str) -> impl Iterator<Item = (&str, &str)> {
        let found = self.by_uid.get(uid).into_iter().flatten();
        found.map(|(namespace, name)| (namespace.as_str(), name.as_str()))
    }

    pub(super) fn insert(&mut self, namespace: &str, name: &str, item: Item) -> Option<Item> {
        let now = item.as_ref().ok().cloned();
        self.count(&item, true);
        let before = self
            .named
            .entry(namespace.to_owned())
            .or_default()
            .insert(name.to_owned(), item);
        if let Some(before) = &before {
            self.count(before, false);
        }
        self.forget(namespace, name, before.as_ref());
        for uid in now.iter().flat_map(|now| uids(self.kind, now)) {
            let address = (namespace.to_owned(), name.to_owned());
            self.by_uid.entry(uid.to_owned()).or_default().insert(address);
        }
        before
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) -> Option<Item> {
        let named = self.named.get_mut(namespace)?;
        let before = named.remove(name)?;
        if named.is_empty() {
            self.named.remove(namespace);
        }
        self.count(&before, false);
        self.forget(namespace, name, Some(&before));
        Some(before)
    }

    pub(super) fn into_named(self) -> BTreeMap<String, Named> {
        self.named
    }

    fn forget(&mut self, namespace: &str, name: &str, before: Option<&Item>) {
        let Some(Ok(before)) = before else { return };
        let address = (namespace.to_owned(), name.to_owned());
        for uid in uids(self.kind, before) {
            if let Some(found) = self.by_uid.get_mut(uid) {
                found.remove(&address);
                if found.is_empty() {
                    self.by_uid.remove(uid);
                }
            }
        }
    }
}

fn step(number: usize, is_there: bool) -> usize {
    if is_there { number + 1 } else { number.saturating_sub(1) }
}

/// What is nothing is not kept.
fn put<T: Default + PartialEq>(map: &mut BTreeMap<String, T>, key: &str, value: T) {
    if value == T::default() {
        map.remove(key);
    } else if let Some(found) = map.get_mut(key) {
        *found = value;
    } else {
        map.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(name: &str, owner: Option<&str>, label: Option<&str>) -> Arc<Object> {
        let owner =
            owner.map(|uid| json!([{ "apiVersion": "v1", "kind": "WorkloadDeployment", "name": "web", "uid": uid }]));
        let label = label.map(|uid| json!({ "compute.datumapis.com/workload-deployment-uid": uid }));
        let metadata = json!({ "name": name, "namespace": "n", "ownerReferences": owner, "labels": label });
        Arc::new(serde_json::from_value(json!({ "metadata": metadata })).unwrap())
    }

    fn saying(items: &Items, uid: &str) -> Vec<String> {
        items.saying(uid).map(|(_, name)| name.to_owned()).collect()
    }

    #[test]
    fn instances_are_found_by_what_they_say_now() {
        let mut items = Items::of(Some(kind::INSTANCE), &Budget::default());
        items.insert("n", "web-0", Ok(instance("web-0", Some("a"), Some("a"))));
        items.insert("n", "web-1", Ok(instance("web-1", Some("b"), Some("a"))));
        items.insert("n", "bare", Ok(instance("bare", None, None)));
        items.insert("n", "odd", Err("unreadable".to_owned()));
        assert_eq!(saying(&items, "a"), ["web-0", "web-1"]);
        assert_eq!(saying(&items, "b"), ["web-1"]);
        assert!(saying(&items, "").is_empty());

        // The label goes, then the object cannot be read, then it is gone.
        items.insert("n", "web-1", Ok(instance("web-1", Some("b"), None)));
        items.insert("n", "web-0", Err("unreadable".to_owned()));
        assert!(saying(&items, "a").is_empty());
        items.remove("n", "web-1");
        items.remove("n", "odd");
        assert!(items.by_uid.is_empty(), "{:?}", items.by_uid);
    }

    #[test]
    fn other_kinds_are_found_by_name_only() {
        let mut items = Items::of(Some(kind::RESOURCE_CLAIM), &Budget::default());
        items.insert("n", "web-0", Ok(instance("web-0", Some("a"), Some("a"))));
        assert!(items.by_uid.is_empty());
    }
}
