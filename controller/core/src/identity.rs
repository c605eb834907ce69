//! Whose a hub namespace is: the labels of the Namespace say it, never an object in it, which a tenant may write.
//!
//! Why: `docs/decisions/04-hub-namespace-identity.md`.

use std::collections::BTreeMap;

use popcell_api::{annotations, labels};

use crate::names;
use crate::object::{Fields, Object};

/// A project that is engaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Project<'a> {
    /// Its id; `single` in that mode, empty is none.
    pub id: &'a str,
    /// The uid of the Project object; only in mode `milo`.
    pub uid: Option<&'a str>,
    /// The uid of [`SYSTEM_NAMESPACE`] on its API server; only in mode `single`, and `None` until it was read.
    pub server: Option<&'a str>,
}

/// The Namespace whose uid tells API servers apart, whatever they are called: each has its own.
pub const SYSTEM_NAMESPACE: &str = "kube-system";

/// The object of a project that a hub object stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The project id.
    pub project: &'a str,
    /// The namespace in the project.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

/// Project and namespace that a hub Namespace is for; `None` where its labels do not say.
pub fn of_namespace(hub_namespace: &Object) -> Option<(&str, &str)> {
    let project = names::project_of_label(hub_namespace.label(labels::UPSTREAM_CLUSTER_NAME)?)?;
    let namespace = hub_namespace.label(labels::UPSTREAM_NAMESPACE)?;
    (!namespace.is_empty()).then_some((project, namespace))
}

/// Maps a hub WorkloadDeployment to the one in the project.
///
/// # Errors
/// Why the event is dropped; no user or operator could act on it.
pub fn of_deployment<'a>(
    deployment: &'a Object,
    hub_namespace: Option<&'a Object>,
) -> Result<Origin<'a>, &'static str> {
    if deployment.label(labels::UPSTREAM_NAMESPACE).is_none() {
        return Err("the WorkloadDeployment has no upstream namespace");
    }
    let hub_namespace = hub_namespace.ok_or("the hub namespace is gone")?;
    let (project, namespace) =
        of_namespace(hub_namespace).ok_or("the labels of the hub namespace name no project and namespace")?;
    Ok(Origin {
        project,
        namespace,
        name: deployment.name(),
    })
}

/// Whether a hub Namespace belongs to this project and namespace. One of an earlier Project of the same id does not.
pub fn belongs(hub_namespace: &Object, project: Project<'_>, namespace: &str) -> bool {
    of_namespace(hub_namespace) == Some((project.id, namespace)) && same_project(hub_namespace, project)
}

/// Whether a hub Namespace belongs to this project, for whichever namespace of it.
pub fn is_of(hub_namespace: &Object, project: Project<'_>) -> bool {
    of_namespace(hub_namespace).is_some_and(|(id, _)| id == project.id) && same_project(hub_namespace, project)
}

/// Whether a hub Namespace says that it is for another project or namespace; saying nothing is no contradiction.
pub(crate) fn contradicts(hub_namespace: &Object, project: Project<'_>, namespace: &str) -> bool {
    let says = |key: &str| hub_namespace.label(key).filter(|value| !value.is_empty());
    says(labels::UPSTREAM_CLUSTER_NAME).is_some_and(|label| names::project_of_label(label) != Some(project.id))
        || says(labels::UPSTREAM_NAMESPACE).is_some_and(|label| label != namespace)
        || !same_project(hub_namespace, project)
}

/// Whether a hub Namespace is not another Project's, by the uid of the Project or of its server.
pub fn same_project(hub_namespace: &Object, project: Project<'_>) -> bool {
    let stamped = hub_namespace.annotation(annotations::UPSTREAM_PROJECT_UID);
    agrees(stamped, project.uid) && !is_of_another_server(hub_namespace, project)
}

/// Whether a hub Namespace says that its project is on another API server than this one: then what this server does not
/// have proves nothing.
pub fn is_of_another_server(hub_namespace: &Object, project: Project<'_>) -> bool {
    !agrees(server_of(hub_namespace), project.server)
}

/// The API server that a hub Namespace says its project is on; `None` where it does not say.
pub fn server_of(hub_namespace: &Object) -> Option<&str> {
    hub_namespace.annotation(annotations::UPSTREAM_SERVER_UID)
}

fn agrees(stamped: Option<&str>, uid: Option<&str>) -> bool {
    match (stamped, uid) {
        (Some(stamped), Some(uid)) => stamped == uid,
        _ => true,
    }
}

/// Whether a hub Namespace is the one of the project's Namespace as it lives now.
pub fn is_current(hub_namespace: &Object, project_namespace: Option<&Object>) -> bool {
    project_namespace.is_some_and(|one| hub_namespace.name() == names::hub_namespace(one.uid()))
}

/// Annotations of a hub Namespace that say which Project or server its project is.
pub(crate) fn namespace_annotations(project: Project<'_>) -> impl Iterator<Item = (&'static str, &str)> {
    let project_uid = project.uid.map(|uid| (annotations::UPSTREAM_PROJECT_UID, uid));
    let server_uid = project.server.map(|uid| (annotations::UPSTREAM_SERVER_UID, uid));
    project_uid.into_iter().chain(server_uid)
}

/// Labels of a hub Namespace.
pub(crate) fn namespace_labels(project: Project<'_>, namespace: &str) -> BTreeMap<String, String> {
    [
        (labels::UPSTREAM_CLUSTER_NAME, names::project_label(project.id)),
        (labels::UPSTREAM_NAMESPACE, namespace.to_owned()),
        (labels::MANAGED_BY, labels::MANAGED_BY_POPCELL.to_owned()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use serde_json::json;

    fn namespace(labels: serde_json::Value) -> Object {
        object(json!({ "metadata": { "name": "ns-1", "labels": labels } }))
    }

    fn deployment(labels: serde_json::Value) -> Object {
        object(json!({ "metadata": { "name": "web", "namespace": "ns-1", "labels": labels } }))
    }

    #[test]
    fn a_hub_deployment_is_mapped_to_its_project() {
        let wd = deployment(json!({ "meta.datumapis.com/upstream-namespace": "default" }));
        for (label, project) in [
            ("cluster-org_project", "project"),
            ("cluster-_test-project-abc", "test-project-abc"),
            ("cluster-datum-cloud", "datum-cloud"),
        ] {
            let ns = namespace(json!({ "meta.datumapis.com/upstream-cluster-name": label,
                "meta.datumapis.com/upstream-namespace": "default" }));
            let origin = of_deployment(&wd, Some(&ns)).unwrap();
            assert_eq!(
                (origin.project, origin.namespace, origin.name),
                (project, "default", "web")
            );
        }
    }

    #[test]
    fn a_hub_deployment_that_names_no_project_is_dropped() {
        let good = json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-p",
            "meta.datumapis.com/upstream-namespace": "default" });
        let nameless = json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-",
            "meta.datumapis.com/upstream-namespace": "default" });
        let wd = deployment(json!({ "meta.datumapis.com/upstream-namespace": "default" }));
        assert!(of_deployment(&deployment(json!({})), Some(&namespace(good))).is_err());
        assert!(of_deployment(&wd, None).is_err());
        assert!(of_deployment(&wd, Some(&namespace(json!({})))).is_err());
        assert!(of_deployment(&wd, Some(&namespace(nameless))).is_err());
    }

    #[test]
    fn the_hub_namespace_says_whose_an_object_is_whatever_the_object_says() {
        let ns = namespace(json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-p",
            "meta.datumapis.com/upstream-namespace": "default" }));
        let liar = deployment(json!({ "meta.datumapis.com/upstream-namespace": "victim",
            "meta.datumapis.com/upstream-cluster-name": "cluster-victim" }));
        let origin = of_deployment(&liar, Some(&ns)).unwrap();
        assert_eq!((origin.project, origin.namespace), ("p", "default"));
    }

    #[test]
    fn a_project_recreated_under_its_name_does_not_own_the_old_hub_namespace() {
        let mut ns = namespace(json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-p",
            "meta.datumapis.com/upstream-namespace": "default" }));
        ns.metadata.annotations =
            Some([("compute.datumapis.com/upstream-project-uid".to_owned(), "u1".to_owned())].into());
        let project = |uid| Project {
            id: "p",
            uid,
            server: None,
        };
        assert!(belongs(&ns, project(Some("u1")), "default") && belongs(&ns, project(None), "default"));
        assert!(is_of(&ns, project(Some("u1"))) && !is_of(&ns, project(Some("u2"))));
        assert!(!belongs(&ns, project(Some("u2")), "default") && !belongs(&ns, project(Some("u1")), "other"));
    }

    #[test]
    fn a_namespace_of_another_server_is_not_this_projects() {
        let mut ns = namespace(json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-single",
            "meta.datumapis.com/upstream-namespace": "default" }));
        let on = |server| Project {
            id: "single",
            uid: None,
            server,
        };
        // Stamped by no version yet: it contradicts nothing.
        assert!(belongs(&ns, on(Some("s1")), "default") && !is_of_another_server(&ns, on(Some("s1"))));
        ns.metadata.annotations =
            Some([("compute.datumapis.com/upstream-server-uid".to_owned(), "s1".to_owned())].into());
        assert_eq!(server_of(&ns), Some("s1"));
        assert!(belongs(&ns, on(Some("s1")), "default") && belongs(&ns, on(None), "default"));
        assert!(!belongs(&ns, on(Some("s2")), "default") && contradicts(&ns, on(Some("s2")), "default"));
        assert!(is_of_another_server(&ns, on(Some("s2"))) && !is_of_another_server(&ns, on(None)));
    }
}
