//! What is known of one kind on one plane.
//!
//! Invariants: `known` from the end of a full list until the watch breaks, not longer; what is told as changed is in the
//! store before it is told; an object that cannot be read is [`Observed::Unknown`], never absent; nothing is read that is
//! older than our own last write ([`Ahead`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::runtime::watcher::Event;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::ahead::Ahead;
use super::raw::Raw;

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
    /// The store is known from now on: whoever met Unknown looks again. Told after the changes that the list brought.
    Listed,
    /// The store is unknown from now on. What was in it is compared with the next list.
    Lost,
    /// Nobody watches any more: the store is unknown and empty, whatever it knew. Nothing is told of what was in it.
    Cleared,
}

/// An object, or why it cannot be read.
type Item = Result<Arc<Object>, String>;
/// By namespace and name.
type Items = BTreeMap<String, BTreeMap<String, Item>>;

#[derive(Debug, Default)]
struct State {
    items: Items,
    listing: Items,
    ahead: Ahead,
    known: bool,
    trouble: Option<String>,
}

impl State {
    /// Readable objects of a namespace, by name, as they are.
    fn within<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        let items = self.items.get(namespace);
        let mut names: BTreeSet<&str> = self.ahead.names(namespace).collect();
        names.extend(items.into_iter().flat_map(BTreeMap::keys).map(String::as_str));
        names.into_iter().filter_map(move |name| {
            let item = items.and_then(|items| items.get(name));
            self.ahead
                .over(namespace, name, item.and_then(|item| item.as_ref().ok()))
        })
    }

    fn pass(&mut self, version: &str) {
        let Self { items, ahead, .. } = self;
        ahead.pass(version, &|namespace, name, uid| holds(items, namespace, name, uid));
    }
}

/// Objects of one kind on one plane, as a watch brings them.
#[derive(Debug, Default)]
pub struct Store {
    state: RwLock<State>,
    occupied: watch::Sender<bool>,
    due: watch::Sender<Option<Instant>>,
}

impl Store {
    /// Whether the store was fully listed since the last reconnect.
    pub fn is_known(&self) -> bool {
        self.read().known
    }

    /// Why the store is unknown; `None` too while the first list has not failed yet.
    pub fn trouble(&self) -> Option<String> {
        self.read().trouble.clone()
    }

    /// An object. Unknown as well where this one cannot be read.
    pub fn get(&self, namespace: &str, name: &str) -> Observed<Option<Arc<Object>>> {
        let state = self.read();
        if !state.known {
            return Observed::Unknown;
        }
        let found = state.items.get(namespace).and_then(|named| named.get(name));
        let object = state
            .ahead
            .over(namespace, name, found.and_then(|item| item.as_ref().ok()));
        match (object, found) {
            (None, Some(Err(_))) => Observed::Unknown,
            (object, _) => Observed::Known(object.cloned()),
        }
    }

    /// An object that was read from the server, unless a later answer to a write of ours says otherwise.
    pub fn newer(&self, read: &Arc<Object>) -> Option<Arc<Object>> {
        self.read().ahead.newer(read).cloned()
    }

    /// Readable objects of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| state.within(namespace).cloned().collect())
    }

    /// Readable objects, by namespace and name.
    pub fn all(&self) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| {
            let mut namespaces: BTreeSet<&str> = state.items.keys().map(String::as_str).collect();
            namespaces.extend(state.ahead.namespaces());
            let within = namespaces.into_iter().flat_map(|namespace| state.within(namespace));
            within.cloned().collect()
        })
    }

    /// Namespace, name and error of what cannot be read.
    pub fn unreadable(&self) -> Vec<(String, String, String)> {
        let state = self.read();
        let named = state
            .items
            .iter()
            .flat_map(|(namespace, named)| named.iter().map(move |(name, item)| (namespace, name, item)));
        named
            .filter_map(|(namespace, name, item)| Some((namespace.clone(), name.clone(), item.as_ref().err()?.clone())))
            .collect()
    }

    /// Follows whether there is any object, readable or not.
    pub(crate) fn occupied(&self) -> watch::Receiver<bool> {
        self.occupied.subscribe()
    }

    fn select(&self, pick: impl FnOnce(&State) -> Vec<Arc<Object>>) -> Observed<Vec<Arc<Object>>> {
        let state = self.read();
        if state.known {
            Observed::Known(pick(&state))
        } else {
            Observed::Unknown
        }
    }

    /// A server answered to a write of ours that an object is so; `seen` where the watch does not filter it out.
    pub(crate) fn wrote(&self, object: Arc<Object>, seen: bool) {
        let mut state = self.write();
        state.ahead.is(object, seen);
        self.set_due(&state);
    }

    /// A server answered that an object which was there at this version is gone.
    pub(crate) fn deleted(&self, namespace: &str, name: &str, uid: &str, version: &str) {
        let mut state = self.write();
        let State { items, ahead, .. } = &mut *state;
        ahead.gone((namespace, name), (uid, version), holds(items, namespace, name, uid));
        self.set_due(&state);
    }

    /// Waits until the watch should have brought what we wrote long ago.
    pub(crate) async fn overdue(&self) {
        let mut due = self.due.subscribe();
        loop {
            let at = *due.borrow_and_update();
            let late = async {
                match at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = late => return,
                // The sender is this store's, which outlives its borrower.
                _ = due.changed() => {}
            }
        }
    }

    /// How many answers to writes the watch has not brought.
    #[cfg(test)]
    pub(crate) fn ahead(&self) -> usize {
        self.read().ahead.len()
    }

    fn set_due(&self, state: &State) {
        let due = state.ahead.due();
        self.due.send_if_modified(|was| std::mem::replace(was, due) != due);
    }

    /// Takes in what a watch yields, and says what it changed.
    pub(crate) fn take<const METADATA: bool>(&self, event: Event<Raw<METADATA>>) -> Vec<Change> {
        let mut state = self.write();
        let changes = match event {
            Event::Init => {
                state.listing.clear();
                state.ahead.begin();
                Vec::new()
            }
            Event::InitApply(raw) => {
                state.ahead.list(raw.version());
                insert(&mut state.listing, raw);
                Vec::new()
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut state.listing);
                let before = std::mem::replace(&mut state.items, listed);
                let State { items, ahead, .. } = &mut *state;
                ahead.end(&|namespace, name, uid| holds(items, namespace, name, uid));
                (state.known, state.trouble) = (true, None);
                let mut changes = compare(before, &state.items);
                changes.push(Change::Listed);
                changes
            }
            Event::Apply(raw) => {
                let (namespace, name) = (raw.namespace().to_owned(), raw.name().to_owned());
                let version = raw.version().to_owned();
                let before = insert(&mut state.items, raw);
                state.pass(&version);
                let now = state.items.get(&namespace).and_then(|named| named.get(&name));
                now.and_then(|now| change(&namespace, &name, before, now))
                    .into_iter()
                    .collect()
            }
            Event::Delete(raw) => {
                let version = raw.version().to_owned();
                let gone = remove(&mut state.items, raw);
                state.pass(&version);
                gone.into_iter().collect()
            }
        };
        let occupied = !state.items.is_empty();
        self.set_due(&state);
        drop(state);
        self.occupy(occupied);
        changes
    }

    /// The watch broke. What was in the store stays readable for those who have a use for what was.
    pub(crate) fn lose(&self, trouble: String) -> Option<Change> {
        let mut state = self.write();
        state.trouble = Some(trouble);
        state.ahead.lose();
        self.set_due(&state);
        std::mem::take(&mut state.known).then_some(Change::Lost)
    }

    /// Nobody watches any more.
    pub(crate) fn clear(&self) -> Change {
        let mut state = self.write();
        *state = State::default();
        self.set_due(&state);
        drop(state);
        self.occupy(false);
        Change::Cleared
    }

    fn occupy(&self, occupied: bool) {
        self.occupied
            .send_if_modified(|was| std::mem::replace(was, occupied) != occupied);
    }

    // A panic between lock and unlock leaves at worst one event out, and the next list brings it.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn holds(items: &Items, namespace: &str, name: &str, uid: &str) -> bool {
    let item = items.get(namespace).and_then(|named| named.get(name));
    matches!(item, Some(Ok(object)) if object.uid() == uid)
}

/// What is without a name has no place: servers do not send such objects.
fn insert<const METADATA: bool>(items: &mut Items, raw: Raw<METADATA>) -> Option<Item> {
    let (namespace, name) = (raw.namespace().to_owned(), raw.name().to_owned());
    if name.is_empty() {
        return None;
    }
    let item = raw.object.map(Arc::from);
    items.entry(namespace).or_default().insert(name, item)
}

fn remove<const METADATA: bool>(items: &mut Items, raw: Raw<METADATA>) -> Option<Change> {
    let named = items.get_mut(raw.namespace())?;
    let before = named.remove(raw.name())?;
    if named.is_empty() {
        items.remove(raw.namespace());
    }
    Some(Change::Gone {
        namespace: raw.namespace().to_owned(),
        name: raw.name().to_owned(),
        // The event carries the object as it was last, finalizers gone and all.
        last: raw.object.map(Arc::from).or(before).ok(),
    })
}

fn compare(mut before: Items, now: &Items) -> Vec<Change> {
    let mut changes = Vec::new();
    for (namespace, named) in now {
        let mut old = before.remove(namespace).unwrap_or_default();
        for (name, item) in named {
            changes.extend(change(namespace, name, old.remove(name), item));
        }
        before.insert(namespace.clone(), old);
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

fn change(namespace: &str, name: &str, before: Option<Item>, now: &Item) -> Option<Change> {
    match (before, now) {
        (Some(Ok(before)), Ok(now)) if same(&before, now) => None,
        (before, Ok(now)) => Some(Change::Applied {
            before: before.and_then(Result::ok),
            now: Arc::clone(now),
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
