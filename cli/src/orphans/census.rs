//! How many of the projects that hub namespaces name the discovery server knows. Pure.
//!
//! In mode `milo` nothing says which server lists the Projects but a kubeconfig, and that of another installation, or of one
//! that was restored from an old backup, answers NotFound to each project that lives. Only their number shows it.

use std::collections::BTreeSet;

use itertools::Itertools as _;
use popcell_api::{annotations, kind};
use popcell_core::{
    deletion_guard, identity,
    object::{Fields as _, Object},
};

use crate::exit::Failure;

/// So many of the missing are named.
const NAMED: usize = 5;

/// What all hub namespaces of ours say, whichever of them are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// Projects that hub namespaces name.
    named: usize,
    /// Ids of those of them that discovery does not know, or knows with another uid.
    missing: Vec<String>,
}

impl Census {
    /// Counts as the controller's deletion guard does: without projects whose deletion it has seen.
    pub(super) fn of<'a>(
        hub_namespaces: impl IntoIterator<Item = &'a Object>,
        uid_of: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let (mut named, mut missing) = (BTreeSet::new(), BTreeSet::new());
        for namespace in hub_namespaces {
            let Some((id, _)) = identity::of_namespace(namespace) else {
                continue;
            };
            if namespace.annotation(annotations::PROJECT_DELETED).is_some() {
                continue;
            }
            let project = (id, namespace.annotation(annotations::UPSTREAM_PROJECT_UID));
            named.insert(project);
            let is_there = uid_of(id).is_some_and(|uid| {
                let found = identity::Project {
                    id,
                    uid: Some(&uid),
                    server: None,
                };
                identity::same_project(namespace, found)
            });
            if !is_there {
                missing.insert(project);
            }
        }
        Self {
            named: named.len(),
            missing: missing.into_iter().map(|(id, _)| id.to_owned()).collect(),
        }
    }

    /// Why the server cannot be the one that lists the projects of this hub; `None` where it knows half of them or more, or
    /// where exactly so many are agreed to be gone.
    pub(super) fn wrong(&self, server: &str, agreed: Option<usize>) -> Option<String> {
        let (named, missing) = (self.named, self.missing.len());
        if agreed == Some(missing) || !deletion_guard::is_mass(kind::PROJECT, named, missing) {
            return None;
        }
        Some(format!(
            "{server} lists {known} of the {named} projects that namespaces of ours on the hub name, so nothing is noted or deleted \
             on its word: it may be the discovery server of another installation, or one that was restored from an older backup. \
             Missing: {names}. Give the kubeconfig of the server that lists the Projects in --discovery-kubeconfig; if these \
             {missing} projects were deleted, confirm that with --projects-gone={missing}",
            known = named.saturating_sub(missing),
            names = self.names(),
        ))
    }

    /// Who says how many projects they have deleted is refused where more or fewer are missing: another one may be missing by
    /// mistake.
    pub(super) fn check(&self, agreed: Option<usize>) -> Result<(), Failure> {
        let missing = self.missing.len();
        match agreed {
            Some(agreed) if agreed != missing => Err(Failure::Usage(format!(
                "--projects-gone={agreed} was given, and of {} projects {missing} are missing ({}): nothing was noted or deleted; if \
                 all of them were deleted, confirm that with --projects-gone={missing}",
                self.named,
                self.names()
            ))),
            _ => Ok(()),
        }
    }

    fn names(&self) -> String {
        if self.missing.is_empty() {
            return "none".to_owned();
        }
        let rest = self.missing.len().saturating_sub(NAMED);
        let more = (rest > 0).then(|| format!("{rest} more"));
        self.missing.iter().take(NAMED).chain(&more).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{exit::Exit, orphans::subject::tests::object};

    /// The hub namespace of a project with uid `u-ID`.
    fn namespace(id: &str, annotations: &[(&str, &str)]) -> Object {
        let mut metadata = json!({ "name": format!("ns-{id}"), "labels": {
            "compute.datumapis.com/managed-by": "popcell",
            "meta.datumapis.com/upstream-cluster-name": format!("cluster-{id}"),
            "meta.datumapis.com/upstream-namespace": "default" },
            "annotations": { "compute.datumapis.com/upstream-project-uid": format!("u-{id}") } });
        for (key, value) in annotations {
            metadata["annotations"][*key] = json!(value);
        }
        object(&metadata)
    }

    /// Ten projects, of which the server lists so many.
    fn ten(known: usize) -> Census {
        let namespaces: Vec<Object> = (0..10).map(|number| namespace(&format!("p{number}"), &[])).collect();
        Census::of(&namespaces, |id| {
            (0..known)
                .any(|number| id == format!("p{number}"))
                .then(|| format!("u-{id}"))
        })
    }

    #[test]
    fn a_discovery_server_that_knows_less_than_half_of_the_projects_is_the_wrong_one() {
        for (known, wrong) in [(0, true), (4, true), (5, false), (10, false)] {
            assert_eq!(ten(known).wrong("https://milo", None).is_some(), wrong, "{known}");
        }
        assert_eq!(Census::of(&[], |_| None).wrong("https://milo", None), None);
        let said = ten(4).wrong("https://milo", None).unwrap();
        assert!(said.starts_with("https://milo lists 4 of the 10 projects"), "{said}");
        assert!(
            said.contains("p4, p5, p6, p7, p8, 1 more") && said.ends_with("--projects-gone=6"),
            "{said}"
        );
    }

    #[test]
    fn one_of_the_same_name_and_another_uid_is_not_the_project() {
        let namespaces = [namespace("p", &[])];
        let wrong = |uid: &str| {
            Census::of(&namespaces, |_| Some(uid.to_owned()))
                .wrong("s", None)
                .is_some()
        };
        assert!(wrong("another") && !wrong("u-p"));
    }

    #[test]
    fn projects_whose_deletion_was_seen_do_not_count() {
        let deleted = [("compute.datumapis.com/project-deleted", "true")];
        let namespaces = [namespace("p", &deleted), namespace("q", &deleted), namespace("r", &[])];
        let census = Census::of(&namespaces, |id| (id == "r").then(|| "u-r".to_owned()));
        assert_eq!(census.wrong("s", None), None);
        // Without the one that is left nobody can tell: but what was seen is no guess.
        assert_eq!(Census::of(&namespaces[..2], |_| None).wrong("s", None), None);
    }

    #[test]
    fn who_deleted_most_projects_says_how_many() {
        assert!(ten(4).check(Some(6)).is_ok() && ten(4).check(None).is_ok() && ten(10).check(Some(0)).is_ok());
        assert_eq!(ten(4).wrong("s", Some(6)), None);
        for (known, agreed) in [(4, 5), (4, 7), (4, 0), (10, 1)] {
            let Err(failure) = ten(known).check(Some(agreed)) else {
                panic!("{known} {agreed}");
            };
            assert_eq!(failure.exit(), Exit::Usage);
        }
        let Err(failure) = ten(4).check(Some(5)) else { panic!() };
        assert!(failure.to_string().ends_with("--projects-gone=6"), "{failure}");
    }
}
