//! Whether a store is what its server has: compared with a list, where a key waits for what its watch should have
//! delivered.

use std::collections::BTreeSet;
use std::time::Duration;

use popcell_core::object::{Fields, Listed, Object};

use super::{Change, Item, Store};
use crate::planes::overlay::number;

type Address = (String, String);

/// What a list and a store do not agree on.
#[derive(Debug, Default)]
pub(crate) struct Drift {
    news: Vec<(Address, u64)>,
    left: Vec<Address>,
    at: u64,
}

impl Drift {
    pub(crate) fn is_empty(&self) -> bool {
        self.news.is_empty() && self.left.is_empty()
    }
}

fn stored_at(item: Option<&Item>) -> Option<u64> {
    number(item?.as_ref().ok()?.resource_version())
}

fn address(object: &Object) -> Address {
    (object.namespace().to_owned(), object.name().to_owned())
}

/// What is there. Of one that cannot be read nothing more is said: whether the watch has delivered it is unknown.
struct Present<'a> {
    names: BTreeSet<(&'a str, &'a str)>,
    /// One that does not say its name may be any.
    any: bool,
}

impl<'a> Present<'a> {
    fn of(listed: &'a Listed) -> Self {
        let readable = listed.objects.iter().map(|one| (one.namespace(), one.name()));
        let unreadable = listed.unreadable.iter();
        Self {
            names: readable
                .chain(unreadable.map(|one| (one.namespace.as_str(), one.name.as_str())))
                .collect(),
            any: listed.unreadable.iter().any(|one| one.name.is_empty()),
        }
    }

    fn has(&self, namespace: &str, name: &str) -> bool {
        self.any || self.names.contains(&(namespace, name))
    }
}

impl Store {
    /// How long the watch has brought nothing; `None` while the store is unknown.
    pub(crate) fn quiet_for(&self) -> Option<Duration> {
        let state = self.read();
        let last_heard = state.last_heard.filter(|_| state.known)?;
        Some(last_heard.elapsed())
    }

    /// What a list has and the watch has not brought, or lacks and the watch has not taken away;
    /// nothing while the store is unknown. The watch may only be later than the list, or earlier: see
    /// [`Store::still_misses`]. Versions that are no numbers say nothing.
    pub(crate) fn missed(&self, listed: &Listed) -> Drift {
        let state = self.read();
        if !state.known {
            return Drift::default();
        }
        let news = listed.objects.iter().filter_map(|one| {
            let version = number(one.resource_version())?;
            let stored = state.items.get(one.namespace(), one.name());
            (stored_at(stored) < Some(version)).then(|| (address(one), version))
        });
        let present = Present::of(listed);
        let at = number(&listed.version).unwrap_or_default();
        let left = state.items.iter().filter_map(|(namespace, name, item)| {
            let is_older = stored_at(Some(item)).is_some_and(|of| of <= at);
            (is_older && !present.has(namespace, name)).then(|| (namespace.to_owned(), name.to_owned()))
        });
        Drift {
            news: news.collect(),
            left: left.collect(),
            at,
        }
    }

    /// Whether any of it is missed still, and a later list says so too.
    pub(crate) fn still_misses(&self, missed: &Drift, listed: &Listed) -> bool {
        let (state, present) = (self.read(), Present::of(listed));
        let stored = |(namespace, name): &Address| stored_at(state.items.get(namespace, name));
        let is_listed = |(namespace, name): &Address| present.has(namespace, name);
        let mut news = missed.news.iter();
        let mut left = missed.left.iter();
        state.known
            && (news.any(|(one, version)| is_listed(one) && stored(one) < Some(*version))
                || left.any(|one| !is_listed(one) && stored(one).is_some_and(|of| of <= missed.at)))
    }

    /// The watch has lost something: it restarts, with a list.
    pub(crate) fn suspect(&self) {
        let mut state = self.write();
        if state.known {
            state.suspected = true;
            self.set_due(&mut state);
        }
    }

    /// The watch restarts because of what we know: that is no failure.
    pub(crate) fn restart(&self) -> Option<Change> {
        self.lose_to(None)
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::RESOURCE_CLAIM;
    use serde_json::{Value, json};

    use super::*;
    use crate::planes::budget::Budget;
    use crate::planes::testing::{list, put, remove};

    fn claim(name: &str, version: u64) -> Value {
        json!({ "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": version.to_string() } })
    }

    fn listed(claims: &[Value], version: &str) -> Listed {
        let list = json!({ "metadata": { "resourceVersion": version }, "items": claims });
        popcell_core::object::List::read(list.to_string().as_bytes())
            .unwrap()
            .into()
    }

    #[test]
    fn one_that_cannot_be_read_is_neither_lost_nor_gone_and_the_others_are_compared() {
        let store = store();
        let broken = |name: Value| json!({ "metadata": { "namespace": "n", "name": name, "resourceVersion": "9", "labels": "x" } });
        for (claims, is_lost) in [
            (vec![claim("a", 1), broken(json!("b"))], false),
            (vec![claim("a", 1), claim("b", 2), broken(json!("c"))], false),
            (vec![broken(json!(null))], false),
            (vec![claim("a", 3), broken(json!("b"))], true),
            (vec![broken(json!("b"))], true),
        ] {
            let listed = listed(&claims, "9");
            let missed = store.missed(&listed);
            assert_eq!(!missed.is_empty(), is_lost, "{claims:?}");
            assert_eq!(store.still_misses(&missed, &listed), is_lost, "{claims:?}");
        }
    }

    /// A watch that has brought `a` and `b`.
    fn store() -> Store {
        let store = Store::of(RESOURCE_CLAIM, Budget::default());
        list(&store, vec![claim("a", 1), claim("b", 2)]);
        store
    }

    #[test]
    fn a_difference_that_a_later_list_confirms_is_a_lost_event() {
        let store = store();
        for (claims, is_lost) in [
            (vec![claim("a", 1), claim("b", 2)], false),
            (vec![claim("a", 3), claim("b", 2)], true),
            (vec![claim("a", 1), claim("b", 2), claim("c", 3)], true),
            (vec![claim("a", 1)], true),
        ] {
            let listed = listed(&claims, "3");
            let missed = store.missed(&listed);
            assert_eq!(!missed.is_empty(), is_lost, "{claims:?}");
            assert_eq!(store.still_misses(&missed, &listed), is_lost, "{claims:?}");
        }
    }

    #[test]
    fn a_watch_that_is_only_late_or_early_has_lost_nothing() {
        let store = store();
        // Late: the change and the end arrive after the list that has them.
        let missed = store.missed(&listed(&[claim("a", 3)], "4"));
        put(&store, claim("a", 3));
        remove(&store, claim("b", 4));
        assert!(!store.still_misses(&missed, &listed(&[claim("a", 3)], "5")));
        // Early: what was made and what ended after the list was read; another change is on its way meanwhile.
        put(&store, claim("c", 6));
        remove(&store, claim("a", 7));
        let missed = store.missed(&listed(&[claim("a", 3)], "5"));
        assert!(!missed.is_empty(), "the list has what is gone");
        assert!(!store.still_misses(&missed, &listed(&[claim("c", 8)], "8")));
        // Nothing is missed of what is not known.
        store.lose("broken".to_owned());
        assert!(store.missed(&listed(&[claim("x", 9)], "9")).is_empty());
    }

    #[test]
    fn a_failure_during_a_watch_restart_is_reported() {
        let store = store();
        assert_eq!((store.restart(), store.trouble()), (Some(Change::Lost), None));
        assert_eq!(store.lose("away".to_owned()), Some(Change::Lost));
        assert_eq!(store.lose("away".to_owned()), None);
        assert_eq!(store.trouble().as_deref(), Some("away"));
    }
}
