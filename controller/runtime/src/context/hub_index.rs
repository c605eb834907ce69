//! Hub Namespaces by whose they are, so that an event of a project finds them without a search.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};

use popcell_core::identity;
use popcell_core::object::{Fields, Object};

use crate::planes::Change;
use crate::sync::{read, write};

type Owner = (String, String);

/// Names of hub Namespaces by project and namespace. One Namespace of a project has several where it was recreated.
#[derive(Debug, Default)]
pub struct HubIndex {
    names: RwLock<BTreeMap<Owner, BTreeSet<String>>>,
    is_listed: AtomicBool,
}

impl HubIndex {
    /// Takes in an event of hub Namespaces.
    pub fn note(&self, change: &Change) {
        let (before, now) = match change {
            Change::Applied { before, now } => (before.as_deref(), Some(now.as_ref())),
            Change::Gone { last, .. } => (last.as_deref(), None),
            Change::Listed => return self.is_listed.store(true, Ordering::Release),
            Change::Unreadable { .. } | Change::Lost | Change::Cleared => return,
        };
        let mut names = write(&self.names);
        if let Some((owner, name)) = before.and_then(owned) {
            let left = names.get_mut(&owner).is_some_and(|all| {
                all.remove(&name);
                all.is_empty()
            });
            if left {
                names.remove(&owner);
            }
        }
        if let Some((owner, name)) = now.and_then(owned) {
            names.entry(owner).or_default().insert(name);
        }
    }

    /// Whether all Namespaces of the hub were taken in: while the events of the first list come, some are not there yet.
    pub fn is_listed(&self) -> bool {
        self.is_listed.load(Ordering::Acquire)
    }

    /// Hub Namespaces of a project's namespace.
    pub fn of(&self, project: &str, namespace: &str) -> Vec<String> {
        let names = read(&self.names);
        let found = names.get(&(project.to_owned(), namespace.to_owned()));
        found.into_iter().flatten().cloned().collect()
    }

    /// Hub Namespaces of a project.
    pub fn of_project(&self, project: &str) -> Vec<String> {
        let names = read(&self.names);
        let from = names.range((project.to_owned(), String::new())..);
        from.take_while(|((one, _), _)| one == project)
            .flat_map(|(_, names)| names.iter().cloned())
            .collect()
    }
}

fn owned(namespace: &Object) -> Option<(Owner, String)> {
    let (project, within) = identity::of_namespace(namespace)?;
    Some(((project.to_owned(), within.to_owned()), namespace.name().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn namespace(name: &str, project: &str, within: &str) -> Arc<Object> {
        let labels = json!({ "meta.datumapis.com/upstream-cluster-name": format!("cluster-{project}"),
            "meta.datumapis.com/upstream-namespace": within });
        Arc::new(serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap())
    }

    #[test]
    fn namespaces_are_found_by_whose_they_are_now() {
        let index = HubIndex::default();
        let add = |before: Option<&Arc<Object>>, now: &Arc<Object>| {
            index.note(&Change::Applied {
                before: before.cloned(),
                now: Arc::clone(now),
            });
        };
        let (first, second, other) = (
            namespace("ns-1", "p", "a"),
            namespace("ns-2", "p", "a"),
            namespace("ns-3", "p", "b"),
        );
        for one in [&first, &second, &other, &namespace("ns-4", "p2", "a")] {
            add(None, one);
        }
        assert_eq!(index.of("p", "a"), ["ns-1", "ns-2"]);
        assert_eq!(index.of_project("p"), ["ns-1", "ns-2", "ns-3"]);
        add(Some(&first), &namespace("ns-1", "p", "b"));
        assert_eq!(index.of("p", "b"), ["ns-1", "ns-3"]);
        index.note(&Change::Gone {
            namespace: String::new(),
            name: "ns-2".to_owned(),
            last: Some(second),
        });
        assert!(index.of("p", "a").is_empty());
        assert!(!index.is_listed());
        index.note(&Change::Listed);
        assert!(index.is_listed());
    }
}
