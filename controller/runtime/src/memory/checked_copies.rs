//! Copies of ConfigMaps and Secrets that were read whole and hold what they say: until one is written again, its metadata are enough.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use popcell_api::kind::Kind;
use popcell_core::object::{Fields, Object};

use crate::sync::lock;

/// A kind, and name and resourceVersion of one of its objects.
type Version = (&'static str, String, String);

/// As they were when they were read, by their namespace.
#[derive(Debug, Default)]
pub struct CheckedCopies(Mutex<BTreeMap<String, BTreeSet<Version>>>);

impl CheckedCopies {
    /// Whether a copy is as it was when it was read.
    pub(crate) fn contains(&self, kind: Kind, copy: &Object) -> bool {
        let checked = lock(&self.0);
        let within = checked.get(copy.namespace());
        within.is_some_and(|within| within.contains(&version(kind, copy)))
    }

    /// A copy was read, and holds what it says.
    pub(crate) fn insert(&self, kind: Kind, copy: &Object) {
        let mut checked = lock(&self.0);
        let within = checked.entry(copy.namespace().to_owned()).or_default();
        within.insert(version(kind, copy));
    }

    /// Forgets what a namespace has no more.
    pub(crate) fn retain<'a>(&self, namespace: &str, there: impl IntoIterator<Item = (Kind, &'a Object)>) {
        let mut checked = lock(&self.0);
        let Some(within) = checked.get_mut(namespace) else {
            return;
        };
        let there: BTreeSet<Version> = there.into_iter().map(|(kind, copy)| version(kind, copy)).collect();
        within.retain(|one| there.contains(one));
        if within.is_empty() {
            checked.remove(namespace);
        }
    }
}

fn version(kind: Kind, copy: &Object) -> Version {
    (kind.plural, copy.name().to_owned(), copy.resource_version().to_owned())
}

#[cfg(test)]
mod tests {
    use popcell_core::plan::{CONFIG_MAP, SECRET};
    use serde_json::json;

    use super::*;

    fn copy(name: &str, version: &str) -> Object {
        let value = json!({ "metadata": { "name": name, "namespace": "n", "resourceVersion": version } });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_copy_counts_until_it_is_written_again_and_no_longer_than_it_is_there() {
        let checked = CheckedCopies::default();
        let (a, b) = (copy("a", "1"), copy("b", "2"));
        checked.insert(SECRET, &a);
        checked.insert(SECRET, &b);
        assert!(checked.contains(SECRET, &a) && checked.contains(SECRET, &b));
        assert!(!checked.contains(SECRET, &copy("a", "3")) && !checked.contains(CONFIG_MAP, &a));
        checked.retain("n", [(SECRET, &a), (CONFIG_MAP, &b)]);
        assert!(checked.contains(SECRET, &a) && !checked.contains(SECRET, &b));
        checked.retain("n", []);
        assert!(lock(&checked.0).is_empty());
    }
}
