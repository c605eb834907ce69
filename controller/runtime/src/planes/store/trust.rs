//! Whether a store is what its server has: compared with a list, where somebody waits for what its watch should have brought.

use std::collections::BTreeSet;
use std::time::Duration;

use popcell_core::object::{Fields, Object};

use super::{Change, Item, Store};

impl Store {
    /// How long the watch has brought nothing; `None` while the store is unknown.
    pub(crate) fn quiet_for(&self) -> Option<Duration> {
        let state = self.read();
        let heard = state.heard.filter(|_| state.known)?;
        Some(heard.elapsed())
    }

    /// Whether a list that was read at `version` has what the watch has not brought, or lacks what it has not taken away.
    /// True for a moment also where the watch is only later than the list, or earlier. Versions that are no numbers say
    /// nothing, nor does a store that is unknown.
    pub(crate) fn differs(&self, listed: &[Object], version: &str) -> bool {
        let number = |version: &str| version.parse::<u64>().ok();
        let state = self.read();
        let stored = |one: &Object| match state.items.get(one.namespace(), one.name()) {
            Some(Ok(stored)) => number(stored.resource_version()),
            _ => None,
        };
        let missed = |one: &Object| number(one.resource_version()).is_some_and(|version| stored(one) < Some(version));
        if !state.known {
            return false;
        }
        let names: BTreeSet<_> = listed.iter().map(|one| (one.namespace(), one.name())).collect();
        let is_left = |(namespace, name, item): (&str, &str, &Item)| {
            let of = item.as_ref().ok().and_then(|stored| number(stored.resource_version()));
            of.is_some_and(|of| number(version).is_some_and(|version| of <= version))
                && !names.contains(&(namespace, name))
        };
        listed.iter().any(missed) || state.items.iter().any(is_left)
    }

    /// The watch has lost something: it begins anew, with a list.
    pub(crate) fn distrust(&self) {
        let mut state = self.write();
        state.distrusted = true;
        self.set_due(&state);
    }

    /// Whether it must ([`Store::distrust`]).
    pub(crate) fn is_distrusted(&self) -> bool {
        self.read().distrusted
    }

    /// The watch begins anew because of what we know: nobody is in trouble.
    pub(crate) fn begin_anew(&self) -> Option<Change> {
        self.lose_to(None)
    }
}
