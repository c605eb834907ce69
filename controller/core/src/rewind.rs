//! Versions that go back: a server whose etcd was restored from a backup, or another server behind the same address.
//!
//! API servers promise that the resourceVersions of one kind are ordered numbers (KEP-5504), and that a generation only grows
//! while an object lives. What breaks either is not the server that it was: it is listed anew, and what rests on it is not
//! deleted ([`crate::brake::Brakes::rewound`]).

use crate::object::{Fields, Object};

/// The newest version of one kind that a server is known to have reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest(u64);

impl Newest {
    /// A list of this version has ended, or a watch has brought this version: a bookmark's, or that of an object that came,
    /// changed or went. Says whether that is older than what was known; then the server went back, and what it has now is
    /// what counts.
    ///
    /// A version that is no number (`None`) says nothing.
    #[must_use]
    pub fn went_back(&mut self, version: Option<u64>) -> bool {
        let Some(version) = version else {
            return false;
        };
        let back = version < self.0;
        self.0 = version;
        back
    }
}

/// Whether a watch or list brought an object that is older than it was: of the same uid, and of a lower generation or
/// resourceVersion.
pub fn is_older(before: &Object, now: &Object) -> bool {
    let version = |one: &Object| one.resource_version().parse::<u64>().ok();
    let lower = |before: Option<u64>, now: Option<u64>| before.zip(now).is_some_and(|(before, now)| now < before);
    let generation = |one: &Object| one.generation().and_then(|one| u64::try_from(one).ok());
    before.uid() == now.uid()
        && !now.uid().is_empty()
        && (lower(version(before), version(now)) || lower(generation(before), generation(now)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    #[test]
    fn a_list_or_event_that_is_older_than_what_was_known_is_noticed_once() {
        let mut newest = Newest::default();
        for (version, back) in [
            (Some(100), false),
            (Some(100), false),
            (Some(131), false),
            // Nothing that can be compared.
            (None, false),
            // Restored: and from there it goes on.
            (Some(90), true),
            (Some(90), false),
            (Some(95), false),
            (Some(94), true),
        ] {
            assert_eq!(newest.went_back(version), back, "{version:?}");
        }
    }

    #[test]
    fn an_object_is_older_by_version_or_generation_while_it_is_the_same() {
        let at = |uid: &str, version: &str, generation: i64| {
            object(
                json!({ "metadata": { "name": "a", "uid": uid, "resourceVersion": version, "generation": generation } }),
            )
        };
        let before = at("u", "100", 5);
        for (now, older) in [
            (at("u", "101", 6), false),
            (at("u", "100", 5), false),
            (at("u", "101", 4), true),
            (at("u", "99", 5), true),
            (at("u", "v7", 5), false),
            // Another one of its name begins anew.
            (at("w", "101", 1), false),
        ] {
            assert_eq!(is_older(&before, &now), older, "{now:?}");
        }
        let nobody = at("", "100", 5);
        assert!(!is_older(&nobody, &at("", "99", 1)));
    }
}
