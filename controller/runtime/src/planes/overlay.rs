//! Answers to our own writes that a watch has not brought yet: no reconciler decides on a store that is older than our own
//! last write.
//!
//! Invariants: an answer lies over its store until the watch is known to have passed it, however long that takes, and not
//! longer. The watch has passed it when it has brought anything of a resourceVersion that is not lower, for it brings what
//! happens to a kind in order, and API servers promise that the versions of one kind are ordered numbers (KEP-5504, stable
//! in 1.35); or when a full list has ended that began after the answer, whatever the versions say: those of a server that
//! was restored go back. No answer can hide the truth forever: one that is not passed within [`PATIENCE`] makes its watch
//! restart ([`WriteOverlay::due`]), with such a list.
//!
//! Memory: an answer is kept while its kind is listed or watched only, and for [`PATIENCE`] and one list at most, so there
//! are never more than one for each object that we wrote in that time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use popcell_core::object::{Fields, Object};
use tokio::time::Instant;

/// Watches are behind for milliseconds. One that is so far behind what we know is not late but broken.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);
/// The same for answers that came during a list. Whether the list has seen them is not told: where it has, and the object
/// was gone again, no watch will bring it.
pub(super) const DOUBT: Duration = Duration::from_secs(5);

/// Longer than any answer takes: requests are given up before.
const LATEST: Duration = Duration::from_secs(10);

/// What is so, as the answer to a write says.
#[derive(Clone, Debug)]
enum Stated {
    /// The object.
    Is(Arc<Object>),
    /// The object of this uid is there, and the watch's filter hides it.
    Hidden(String),
    /// There is no object of this uid any more.
    Gone(String),
}

impl Stated {
    fn uid(&self) -> &str {
        match self {
            Self::Is(object) => object.uid(),
            Self::Hidden(uid) | Self::Gone(uid) => uid,
        }
    }
}

#[derive(Debug)]
struct WriteAnswer {
    stated: Stated,
    /// A watch that has passed this version has passed the answer.
    since: u64,
    /// When the watch must have passed the first answer that it has not passed, and the version of that.
    due: (Instant, u64),
}

/// Whether a store has an object of this namespace, name and uid.
pub(super) type Holds<'a> = dyn Fn(&str, &str, &str) -> bool + 'a;

/// Answers about one kind on one plane, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct WriteOverlay {
    answers: BTreeMap<String, BTreeMap<String, WriteAnswer>>,
    /// How far the watch has come.
    passed: u64,
    /// How far the list has come that is being read.
    listed: u64,
    /// How far the server is by its answers, and when it said so.
    last_heard: Option<(u64, Instant)>,
    /// The same when the last list began.
    began: Option<(u64, Instant)>,
    /// Whether a list has begun since the watch broke. Before, there is nothing to remember: that list will tell.
    begun: bool,
    listing: bool,
}

impl WriteOverlay {
    /// A list begins, and decides on what was answered before. It is the first, or one after [`WriteOverlay::lose`]:
    /// a store is not read until it has ended.
    pub(super) fn begin(&mut self) {
        (self.begun, self.listing) = (true, true);
        self.listed = 0;
        self.answers.clear();
        self.began = self.last_heard;
    }

    /// A list brings an object of this version.
    pub(super) fn list(&mut self, version: &str) {
        self.listed = self.listed.max(number(version).unwrap_or_default());
    }

    /// A list has ended. `holds` says whether the store has an object of this namespace, name and uid now.
    pub(super) fn end(&mut self, holds: &Holds<'_>) {
        self.listing = false;
        self.passed = self.listed;
        self.settle(holds);
    }

    /// The watch has brought an event of this version. `holds` as for [`WriteOverlay::end`].
    pub(super) fn advance(&mut self, version: &str, holds: &Holds<'_>) {
        self.passed = self.passed.max(number(version).unwrap_or_default());
        self.settle(holds);
    }

    /// The watch broke, or ended: the next list begins after every answer so far.
    pub(super) fn lose(&mut self) {
        *self = Self {
            last_heard: self.last_heard,
            began: self.began,
            ..Self::default()
        };
    }

    /// A server answered that an object is so now; `seen` by the watch, or hidden by its filter.
    pub(super) fn is(&mut self, object: Arc<Object>, seen: bool) {
        let Some(since) = number(object.resource_version()) else {
            // Nothing tells when the watch has passed it: what the watch brings counts.
            return;
        };
        self.hear(since);
        if self.is_listed(since) || since <= self.passed && !self.listing {
            return;
        }
        let (namespace, name) = (object.namespace().to_owned(), object.name().to_owned());
        let late = self.get(&namespace, &name).is_some_and(|before| match &before.stated {
            // A uid does not come back: this answer was overtaken by the one to the delete.
            Stated::Gone(uid) if uid == object.uid() => true,
            _ => before.since >= since,
        });
        if !late {
            let stated = if seen {
                Stated::Is(object)
            } else {
                Stated::Hidden(object.uid().to_owned())
            };
            self.put(namespace, name, stated, since);
        }
    }

    /// The object of this uid, which was there at this version, is gone. `holds` says whether the store still has it.
    pub(super) fn gone(&mut self, (namespace, name): (&str, &str), (uid, version): (&str, &str), holds: bool) {
        let since = number(version).unwrap_or_default();
        self.hear(since);
        let passed = since <= self.passed && !self.listing && !holds;
        let before = self.get(namespace, name);
        let is_same = before.is_some_and(|before| before.stated.uid() == uid);
        let is_newer = before.is_some_and(|before| before.since > since);
        if is_newer && !is_same {
            return;
        }
        if !passed {
            self.put(
                namespace.to_owned(),
                name.to_owned(),
                Stated::Gone(uid.to_owned()),
                since,
            );
        } else if is_same {
            self.drop(namespace, name);
        }
    }

    /// An object as it is, given what the store has.
    pub(super) fn over<'a>(
        &'a self,
        namespace: &str,
        name: &str,
        stored: Option<&'a Arc<Object>>,
    ) -> Option<&'a Arc<Object>> {
        match self.get(namespace, name) {
            Some(answer) => answer.over(stored),
            None => stored,
        }
    }

    /// The same of an object that was read from the server, and perhaps before the answer.
    pub(super) fn newer<'a>(&'a self, read: &'a Arc<Object>) -> Option<&'a Arc<Object>> {
        match self.get(read.namespace(), read.name()) {
            Some(answer) if number(read.resource_version()).is_some_and(|version| version < answer.since) => {
                answer.over(Some(read))
            }
            _ => Some(read),
        }
    }

    /// Names of a namespace of which there are answers.
    pub(super) fn names(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.answers
            .get(namespace)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
    }

    /// Namespaces of which there are answers.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.answers.keys().map(String::as_str)
    }

    /// When the watch must restart, if it brings nothing until then.
    pub(super) fn due(&self) -> Option<Instant> {
        self.answers
            .values()
            .flat_map(BTreeMap::values)
            .map(|answer| answer.due.0)
            .min()
    }

    /// How many answers the watch has not passed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.answers.values().map(BTreeMap::len).sum()
    }

    /// A server that was restored counts again: what it said long ago does not count.
    fn hear(&mut self, version: u64) {
        let is_news = |(heard, at): (u64, Instant)| version > heard || at.elapsed() >= LATEST;
        if self.last_heard.is_none_or(is_news) {
            self.last_heard = Some((version, Instant::now()));
        }
    }

    /// Whether the list has seen what an answer of this version says, which was overtaken by one that came before the list
    /// began.
    fn is_listed(&self, version: u64) -> bool {
        self.began
            .is_some_and(|(heard, at)| version <= heard && at.elapsed() < LATEST)
    }

    fn get(&self, namespace: &str, name: &str) -> Option<&WriteAnswer> {
        self.answers.get(namespace)?.get(name)
    }

    fn put(&mut self, namespace: String, name: String, stated: Stated, since: u64) {
        if !self.begun {
            return;
        }
        let patience = if self.listing { DOUBT } else { PATIENCE };
        let due = (Instant::now() + patience, since);
        let named = self.answers.entry(namespace).or_default();
        // What the watch owes it owes since the first.
        let due = named.get(&name).map_or(due, |before| before.due);
        named.insert(name, WriteAnswer { stated, since, due });
    }

    fn drop(&mut self, namespace: &str, name: &str) {
        if let Some(named) = self.answers.get_mut(namespace) {
            named.remove(name);
            if named.is_empty() {
                self.answers.remove(namespace);
            }
        }
    }

    fn settle(&mut self, holds: &Holds<'_>) {
        let passed = self.passed;
        for (namespace, named) in &mut self.answers {
            named.retain(|name, answer| match &answer.stated {
                // Of which version the deletion is, is not told.
                Stated::Gone(uid) => answer.since > passed || holds(namespace, name, uid),
                Stated::Is(_) | Stated::Hidden(_) => answer.since > passed,
            });
            // Of several answers about one object the watch has passed the first.
            let first = named
                .values_mut()
                .filter(|answer| answer.since > passed && answer.due.1 <= passed);
            first.for_each(|answer| answer.due = (Instant::now() + PATIENCE, answer.since));
        }
        self.answers.retain(|_, named| !named.is_empty());
    }
}

impl WriteAnswer {
    fn over<'a>(&'a self, stored: Option<&'a Arc<Object>>) -> Option<&'a Arc<Object>> {
        let older =
            |stored: &&Arc<Object>| number(stored.resource_version()).is_some_and(|version| version <= self.since);
        match &self.stated {
            Stated::Is(object) => Some(object),
            Stated::Hidden(_) => stored.filter(|stored| !older(stored)),
            Stated::Gone(uid) => stored.filter(|stored| stored.uid() != uid && !older(stored)),
        }
    }
}

/// Versions of one kind on one server are ordered numbers; `None` where a server has others.
pub(super) fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}
