//! Versions that go back: a server whose etcd was restored from a backup, or another server behind the same address.
//!
//! API servers promise that the resourceVersions of one kind are ordered numbers (KEP-5504), and that a generation only grows
//! while an object lives. What breaks either is not the server that it was: it is relisted, and what depends on it is not
//! deleted ([`crate::deletion_guard::DeletionGuards::rewound`]).

use std::time::Duration;

use popcell_api::annotations::{
    RESOURCE_TEMPLATE_GENERATION, RESOURCE_TEMPLATE_UID, UPSTREAM_GENERATION, UPSTREAM_UID,
};

use crate::object::{Fields, Object};

/// How long the word of a hub that was set back is not followed: by then the management plane has corrected it, or means it.
pub const SET_BACK: Duration = Duration::from_mins(10);

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

/// Whether what a cell receives is what it received earlier already: the same object of the hub, which has gone back itself and
/// to an earlier generation of the project's object. Then the hub was restored, and Karmada carries what it has before the
/// management plane has corrected it.
///
/// A project that was set back is another thing: the hub's object goes on to what the project says.
pub fn is_repeated(before: &Object, now: &Object) -> bool {
    let same = |key| before.annotation(key).is_some() && before.annotation(key) == now.annotation(key);
    let lower = |key| {
        number(before, key)
            .zip(number(now, key))
            .is_some_and(|(before, now)| now < before)
    };
    same(RESOURCE_TEMPLATE_UID)
        && same(UPSTREAM_UID)
        && lower(RESOURCE_TEMPLATE_GENERATION)
        && lower(UPSTREAM_GENERATION)
}

/// Whether a cell receives again what it had received before [`is_repeated`], or something newer, or of another object.
pub fn has_caught_up(before: &Object, now: &Object) -> bool {
    before.annotation(UPSTREAM_UID) != now.annotation(UPSTREAM_UID)
        || number(now, UPSTREAM_GENERATION) >= number(before, UPSTREAM_GENERATION)
}

fn number(object: &Object, key: &str) -> Option<u64> {
    object.annotation(key)?.parse().ok()
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
    fn a_cell_accepts_a_spec_again_where_the_hub_itself_went_back() {
        let reported = |template: &str, generation: &str, upstream: &str, version: &str| {
            object(json!({ "metadata": { "name": "a", "annotations": {
                "resourcetemplate.karmada.io/uid": template, "resourcetemplate.karmada.io/generation": generation,
                "compute.datumapis.com/upstream-uid": upstream,
                "compute.datumapis.com/upstream-generation": version } } }))
        };
        let before = reported("t", "7", "u", "3");
        for (what, now, repeated, caught_up) in [
            ("the next one", reported("t", "8", "u", "4"), false, true),
            ("the same", reported("t", "7", "u", "3"), false, true),
            ("a hub that was restored", reported("t", "5", "u", "2"), true, false),
            ("corrected", reported("t", "6", "u", "3"), false, true),
            (
                "a project that was restored",
                reported("t", "8", "u", "2"),
                false,
                false,
            ),
            ("a recreated object", reported("s", "1", "u", "2"), false, false),
            (
                "another object of the project",
                reported("t", "5", "w", "1"),
                false,
                true,
            ),
            ("what says nothing", reported("t", "5", "u", "x"), false, false),
        ] {
            assert_eq!(is_repeated(&before, &now), repeated, "{what}");
            assert_eq!(has_caught_up(&before, &now), caught_up, "{what}");
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
            // Another one of its name restarts.
            (at("w", "101", 1), false),
        ] {
            assert_eq!(is_older(&before, &now), older, "{now:?}");
        }
        let nobody = at("", "100", 5);
        assert!(!is_older(&nobody, &at("", "99", 1)));
    }
}
