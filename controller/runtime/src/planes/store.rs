//! What is known of one kind on one plane.
//!
//! Invariants: what is kept is text, and whoever reads it gets a view of its own, decoded as far as that is looked at;
//! `known` from the end of a full list until the watch breaks, not longer; what is reported as changed is in the
//! store before it is reported; an object that cannot be read is [`Observed::Unknown`], never absent; nothing is read that is
//! older than our own last write ([`WriteOverlay`]).

mod drift_check;

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kube::runtime::watcher::Event;
use popcell_api::kind::Kind;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep_until};
use tracing::warn;

use super::budget::Budget;
use super::change::{Change, change, compare};
use super::items::{Item, Items, uids};
use super::overlay::WriteOverlay;
pub(super) use super::overlay::number;
use crate::sync::{read, write};
use popcell_core::object::Raw;

#[derive(Debug, Default)]
struct State {
    items: Items,
    listing: Items,
    overlay: WriteOverlay,
    known: bool,
    trouble: Option<String>,
    /// When the watch has brought anything last.
    last_heard: Option<Instant>,
    /// The watch has lost something: it must restart.
    suspected: bool,
    /// It restarts, and nobody was told of trouble: there was none yet.
    untold: bool,
    /// When it is seen whether there is room for objects that had none.
    again: Option<Instant>,
    /// When the watch must have brought what we wrote, or restarts.
    due: Option<Instant>,
}

impl State {
    fn of(kind: Option<Kind>, budget: &Budget) -> Self {
        Self {
            items: Items::of(kind, budget),
            listing: Items::of(kind, budget),
            ..Self::default()
        }
    }

    /// Looks for room later where there is none for some.
    fn set_again(&mut self, budget: &Budget) {
        self.again = match self.again {
            _ if !self.items.is_crowded() || !self.known => None,
            None => Some(Instant::now() + budget.again()),
            again => again,
        };
    }

    /// A readable object as it is.
    fn at<'a>(&'a self, namespace: &str, name: &str) -> Option<&'a Arc<Object>> {
        let item = self.items.get(namespace, name);
        self.overlay
            .over(namespace, name, item.and_then(|item| item.as_ref().ok()))
    }

    /// Readable objects of a namespace whose names begin so, by name, as they are.
    fn within<'a>(&'a self, namespace: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        let stored = self.items.within(namespace).into_iter();
        let stored = stored.flat_map(move |named| named.range::<str, _>((Bound::Included(prefix), Bound::Unbounded)));
        let stored = stored
            .map(|(name, _)| name.as_str())
            .take_while(move |name| name.starts_with(prefix));
        let mut overlay = self
            .overlay
            .names(namespace)
            .filter(|name| name.starts_with(prefix))
            .peekable();
        let names: Box<dyn Iterator<Item = &str>> = if overlay.peek().is_none() {
            Box::new(stored)
        } else {
            Box::new(stored.chain(overlay).collect::<BTreeSet<_>>().into_iter())
        };
        names.filter_map(move |name| self.at(namespace, name))
    }

    /// Namespaces that have anything.
    fn namespaces(&self) -> BTreeSet<&str> {
        self.items.namespaces().chain(self.overlay.namespaces()).collect()
    }

    /// Readable objects that say a uid, as they are.
    fn saying<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Arc<Object>> {
        let overlay = self.overlay.namespaces();
        let overlay = overlay.flat_map(|namespace| self.overlay.names(namespace).map(move |name| (namespace, name)));
        let addresses: BTreeSet<_> = self.items.saying(uid).chain(overlay).collect();
        let found = addresses
            .into_iter()
            .filter_map(|(namespace, name)| self.at(namespace, name));
        found.filter(move |one| uids(self.items.kind(), one).any(|said| said == uid))
    }

    fn advance(&mut self, version: &str) {
        let Self { items, overlay, .. } = self;
        overlay.advance(version, &|namespace, name, uid| holds(items, namespace, name, uid));
    }
}

/// Objects of one kind on one plane, as a watch brings them.
#[derive(Debug)]
pub struct Store {
    state: RwLock<State>,
    budget: Budget,
    /// Notified when the first object comes and when the last goes.
    occupancy: Notify,
    /// Notified when something else is due.
    due: Notify,
}

/// Why a watch is to restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// It has lost something.
    Lost,
    /// There was no room for some objects, and there is now.
    Again,
    /// It does not bring what we wrote.
    Behind,
}

impl Default for Store {
    fn default() -> Self {
        Self::with(None, Budget::default())
    }
}

impl Store {
    /// Nothing is known yet of objects of a kind, of which so much is kept.
    pub(crate) fn of(kind: Kind, budget: Budget) -> Self {
        Self::with(Some(kind), budget)
    }

    fn with(kind: Option<Kind>, budget: Budget) -> Self {
        Self {
            state: RwLock::new(State::of(kind, &budget)),
            budget,
            occupancy: Notify::new(),
            due: Notify::new(),
        }
    }

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
        match (state.at(namespace, name), state.items.get(namespace, name)) {
            (None, Some(Err(_))) => Observed::Unknown,
            (object, _) => Observed::Known(object.map(view)),
        }
    }

    /// An object that was read from the server, unless a later answer to a write of ours says otherwise.
    pub fn newer(&self, read: &Arc<Object>) -> Option<Arc<Object>> {
        self.read().overlay.newer(read).map(view)
    }

    /// Readable objects of a namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Observed<Vec<Arc<Object>>> {
        self.starting(namespace, "")
    }

    /// Those of them whose names begin so. Its time goes by how many those are, not by how many there are.
    pub fn starting(&self, namespace: &str, prefix: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| state.within(namespace, prefix).map(view).collect())
    }

    /// The same in all namespaces. Its time goes by how many those are, and the namespaces.
    pub fn starting_anywhere(&self, prefix: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| {
            let namespaces = state.namespaces().into_iter();
            namespaces
                .flat_map(|namespace| state.within(namespace, prefix))
                .map(view)
                .collect()
        })
    }

    /// Readable objects of a name, by namespace. Its time goes by the number of namespaces.
    pub fn named(&self, name: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| {
            let namespaces = state.namespaces().into_iter();
            namespaces
                .filter_map(|namespace| state.at(namespace, name).map(view))
                .collect()
        })
    }

    /// Readable objects that are of the owner with this uid, or say that they are; WorkloadDeployments: the one that has it.
    /// Its time goes by how many those are. Only WorkloadDeployments and Instances are found so.
    pub fn saying(&self, uid: &str) -> Observed<Vec<Arc<Object>>> {
        self.select(|state| state.saying(uid).map(view).collect())
    }

    /// Whether the watch has brought no object that is there, readable or not.
    pub fn is_empty(&self) -> bool {
        self.read().items.is_empty()
    }

    /// Readable objects, by namespace and name.
    pub fn all(&self) -> Observed<Vec<Arc<Object>>> {
        self.starting_anywhere("")
    }

    /// How many objects have too much of something.
    pub fn excessive(&self) -> usize {
        self.read().items.excessive()
    }

    /// Looks for room later, where there is none yet.
    fn put_off(&self) {
        let mut state = self.write();
        let now = Instant::now();
        if state.again.is_some_and(|again| again <= now) {
            state.again = Some(now + self.budget.again());
            self.set_due(&mut state);
        }
    }

    /// Namespace, name and error of what cannot be read.
    pub fn unreadable(&self) -> Vec<(String, String, String)> {
        let state = self.read();
        let unreadable = |(namespace, name, item): (&str, &str, &Item)| {
            Some((namespace.to_owned(), name.to_owned(), item.as_ref().err()?.clone()))
        };
        state.items.iter().filter_map(unreadable).collect()
    }

    /// Why an object that is there cannot be read; `None` where it can, or is not there.
    pub fn why_unreadable(&self, namespace: &str, name: &str) -> Option<String> {
        let state = self.read();
        let item = state.items.get(namespace, name)?;
        item.as_ref()
            .err()
            .filter(|_| state.at(namespace, name).is_none())
            .cloned()
    }

    /// Whether there is any object, readable or not.
    pub(crate) fn is_occupied(&self) -> bool {
        !self.read().items.is_empty()
    }

    /// Ends when the first object has come or the last has gone, from now on and not from when it is awaited.
    pub(crate) fn occupancy_changes(&self) -> Notified<'_> {
        self.occupancy.notified()
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
    pub(crate) fn wrote(&self, object: &Object, seen: bool) {
        let mut state = self.write();
        let mut object = object.as_text();
        // No more is kept of it than of what the watch brings, and it is decided on alike.
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let beside = |payer: &str| state.items.beside(&namespace, &name, payer);
        // What cannot be kept is the watch's to bring.
        if self.budget.fit(state.items.kind(), &mut object, beside).is_ok() {
            state.overlay.is(Arc::new(object), seen);
            self.set_due(&mut state);
        }
    }

    /// A server answered that an object which was there at this version is gone.
    pub(crate) fn deleted(&self, namespace: &str, name: &str, uid: &str, version: &str) {
        let mut state = self.write();
        let State { items, overlay, .. } = &mut *state;
        overlay.gone((namespace, name), (uid, version), holds(items, namespace, name, uid));
        self.set_due(&mut state);
    }

    /// Waits until the watch is to restart: why.
    pub(crate) async fn overdue(&self) -> Overdue {
        loop {
            // One waits for it: what becomes due before this is reported at once.
            let changed = self.due.notified();
            let at = self.read().due;
            let late = async {
                match at {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = late => {}
                () = changed => continue,
            }
            if let Some(overdue) = self.why_overdue() {
                return overdue;
            }
            self.put_off();
        }
    }

    fn why_overdue(&self) -> Option<Overdue> {
        let (state, now) = (self.read(), Instant::now());
        if state.suspected {
            return Some(Overdue::Lost);
        }
        if state.again.is_some_and(|again| again <= now) && state.items.has_room() {
            return Some(Overdue::Again);
        }
        let is_behind = state.overlay.due().is_some_and(|due| due <= now);
        is_behind.then_some(Overdue::Behind)
    }

    /// How many answers to writes the watch has not brought.
    #[cfg(test)]
    pub(crate) fn overlay(&self) -> usize {
        self.read().overlay.len()
    }

    fn set_due(&self, state: &mut State) {
        let due = if state.suspected {
            state.last_heard
        } else {
            state.overlay.due().into_iter().chain(state.again).min()
        };
        if std::mem::replace(&mut state.due, due) != due {
            self.due.notify_one();
        }
    }

    /// Takes in what a watch yields, and says what it changed.
    pub(crate) fn take(&self, event: Event<Raw>) -> Vec<Change> {
        let mut state = self.write();
        let was_empty = state.items.is_empty();
        state.last_heard = Some(Instant::now());
        let changes = match event {
            Event::Init => {
                state.listing = Items::of(state.items.kind(), &self.budget);
                state.overlay.begin();
                Vec::new()
            }
            Event::InitApply(raw) => {
                state.overlay.list(raw.version());
                insert(&self.budget, &mut state.listing, raw);
                Vec::new()
            }
            Event::InitDone => {
                let empty = Items::of(state.items.kind(), &self.budget);
                let mut listed = std::mem::replace(&mut state.listing, empty);
                listed.begin_to_count();
                let before = std::mem::replace(&mut state.items, listed);
                let State { items, overlay, .. } = &mut *state;
                overlay.end(&|namespace, name, uid| holds(items, namespace, name, uid));
                (state.known, state.trouble, state.untold, state.again) = (true, None, false, None);
                let mut changes = compare(before.into_named(), &state.items);
                changes.push(Change::Listed);
                changes
            }
            Event::Apply(raw) => {
                let (namespace, name) = (raw.namespace().to_owned(), raw.name().to_owned());
                let version = raw.version().to_owned();
                let before = insert(&self.budget, &mut state.items, raw);
                state.advance(&version);
                let now = state.items.get(&namespace, &name);
                now.and_then(|now| change(&namespace, &name, before, now))
                    .into_iter()
                    .collect()
            }
            Event::Delete(raw) => {
                let version = raw.version().to_owned();
                let gone = remove(&mut state.items, raw);
                state.advance(&version);
                gone.into_iter().collect()
            }
        };
        state.set_again(&self.budget);
        self.set_due(&mut state);
        if state.items.is_empty() != was_empty {
            self.occupancy.notify_waiters();
        }
        changes
    }

    /// The watch broke. What was in the store stays readable for those who have a use for what was.
    pub(crate) fn lose(&self, trouble: String) -> Option<Change> {
        self.lose_to(Some(trouble))
    }

    fn lose_to(&self, trouble: Option<String>) -> Option<Change> {
        let mut state = self.write();
        let is_told = state.known || state.untold;
        state.untold = is_told && trouble.is_none();
        (state.known, state.trouble, state.suspected, state.again) = (false, trouble, false, None);
        state.overlay.lose();
        self.set_due(&mut state);
        is_told.then_some(Change::Lost)
    }

    /// The watch ended.
    pub(crate) fn clear(&self) -> Change {
        let mut state = self.write();
        *state = State {
            due: state.due,
            ..State::of(state.items.kind(), &self.budget)
        };
        state.items.begin_to_count();
        self.set_due(&mut state);
        self.occupancy.notify_waiters();
        Change::Cleared
    }

    // A panic between lock and unlock leaves at worst one event out, and the next list brings it.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        read(&self.state)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        write(&self.state)
    }
}

/// What is given away of what is kept: it shares the text, and nothing that is decoded from it.
pub(super) fn view(kept: &Arc<Object>) -> Arc<Object> {
    Arc::new(Object::clone(kept))
}

fn holds(items: &Items, namespace: &str, name: &str, uid: &str) -> bool {
    matches!(items.get(namespace, name), Some(Ok(object)) if object.uid() == uid)
}

fn reported(object: &Object) -> String {
    object
        .excess()
        .map_or_else(String::new, |excess| format!("it {excess}"))
}

/// What is without a name has no place: servers do not send such objects.
fn insert(budget: &Budget, items: &mut Items, mut raw: Raw) -> Option<Item> {
    let (namespace, name) = (raw.namespace().to_owned(), raw.name().to_owned());
    if name.is_empty() {
        return None;
    }
    if let Ok(object) = &mut raw.object {
        match budget.fit(items.kind(), object, |payer| items.beside(&namespace, &name, payer)) {
            Ok(None) => {}
            Ok(Some(lacking)) => {
                if items.lacks(object, lacking) {
                    // Which plane and kind, the span of the watch says.
                    warn!(
                        namespace,
                        name,
                        "there is no room for this object, and perhaps for more: {}",
                        reported(object)
                    );
                }
            }
            Err(error) => raw.object = Err(error.to_string()),
        }
    }
    items.insert(&namespace, &name, raw.object.map(Arc::from))
}

fn remove(items: &mut Items, raw: Raw) -> Option<Change> {
    let before = items.remove(raw.namespace(), raw.name())?;
    Some(Change::Gone {
        namespace: raw.namespace().to_owned(),
        name: raw.name().to_owned(),
        // The event carries the object as it was last, finalizers gone and all.
        last: raw.object.map(Arc::from).or(before).ok().as_ref().map(view),
    })
}
