use serde_json::{Value, json};

use super::*;
use popcell_core::plan::Plane;

pub(in crate::orphans) const NOON: &str = "2026-01-01T12:00:00Z";

pub(in crate::orphans) fn noon() -> Timestamp {
    NOON.parse().unwrap()
}

pub(in crate::orphans) fn object(metadata: &Value) -> Object {
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn marked(name: &str) -> Object {
    object(&json!({
        "name": name, "namespace": "ns-n1", "uid": format!("hub-{name}"), "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T10:00:00Z", "labels": { "compute.datumapis.com/managed-by": "popcell" },
        "annotations": { "compute.datumapis.com/upstream-uid": format!("uid-{name}") },
    }))
}

/// The hub namespace of Namespace `default`, uid `n1`, with one of each.
pub(in crate::orphans) fn subject(project: Project) -> Subject {
    Subject {
        namespace: object(&json!({
            "name": "ns-n1", "uid": "hub-ns", "resourceVersion": "7", "creationTimestamp": "2026-01-01T09:00:00Z",
            "annotations": { "compute.datumapis.com/upstream-project-uid": "u1" },
            "labels": {
                "compute.datumapis.com/managed-by": "popcell",
                "meta.datumapis.com/upstream-cluster-name": "cluster-p",
                "meta.datumapis.com/upstream-namespace": "default",
            },
        })),
        deployments: vec![marked("web")],
        copies: vec![marked("web-0")],
        policies: vec![marked("city-dfw")],
        unreadable: Vec::new(),
        project,
    }
}

/// A project that answers, with these WorkloadDeployments in its Namespace of this uid.
pub(in crate::orphans) fn engaged(namespace: Option<&str>, deployments: &[&str]) -> Project {
    Project::Engaged {
        uid: Some("u1".to_owned()),
        server: None,
        namespace: namespace.map(|uid| Box::new(object(&json!({ "name": "default", "uid": uid })))),
        deployments: deployments
            .iter()
            .map(|name| object(&json!({ "name": name })))
            .collect(),
    }
}

/// The same in mode `single`: what the hub namespace is stamped with, and which server answers, without any Namespace.
pub(in crate::orphans) fn single(stamped: Option<&str>, server: &str) -> Subject {
    let mut one = subject(Project::Engaged {
        uid: None,
        server: Some(server.to_owned()),
        namespace: None,
        deployments: Vec::new(),
    });
    let stamp = |uid: &str| [("compute.datumapis.com/upstream-server-uid".to_owned(), uid.to_owned())].into();
    one.namespace.metadata.annotations = stamped.map(stamp);
    one
}

fn kinds(targets: &[Target]) -> Vec<&'static str> {
    targets.iter().map(|target| target.kind.kind).collect()
}

#[test]
fn what_stands_behind_a_namespace_is_distinguished() {
    let standing = |project| subject(project).standing();
    assert_eq!(standing(engaged(Some("n1"), &[])), Standing::Current);
    assert_eq!(standing(engaged(Some("n2"), &[])), Standing::Outlived);
    assert_eq!(standing(engaged(None, &[])), Standing::Outlived);
    assert_eq!(standing(Project::Gone), Standing::Gone);
    assert_eq!(standing(Project::Unknown(String::new())), Standing::Unknown);
    let mut other = engaged(Some("n1"), &[]);
    if let Project::Engaged { uid, .. } = &mut other {
        *uid = Some("u2".to_owned());
    }
    assert_eq!(standing(other), Standing::Gone);
}

#[test]
fn in_mode_single_only_the_server_that_had_it_makes_an_orphan() {
    for (stamped, standing, to_delete) in [
        (Some("s1"), Standing::Outlived, 4),
        (Some("s2"), Standing::Elsewhere, 0),
        (None, Standing::Unproven, 0),
    ] {
        let one = single(stamped, "s1");
        assert_eq!(one.standing(), standing, "{stamped:?}");
        assert_eq!(one.foresee(noon()).to_delete.len(), to_delete, "{stamped:?}");
        assert_eq!(
            one.plan(Duration::ZERO, noon()).actions.is_empty(),
            to_delete == 0,
            "{stamped:?}"
        );
    }
    // It lives there, whatever was stamped or not.
    let mut current = single(None, "s1");
    if let Project::Engaged { namespace, .. } = &mut current.project {
        *namespace = Some(Box::new(object(&json!({ "name": "default", "uid": "n1" }))));
    }
    assert_eq!(current.standing(), Standing::Current);
    assert_eq!(kinds(&current.foresee(noon()).to_delete), ["WorkloadDeployment"]);
}

#[test]
fn in_a_current_namespace_only_what_the_project_no_longer_has_goes() {
    assert_eq!(
        subject(engaged(Some("n1"), &["web"])).foresee(noon()),
        Foreseen::default()
    );
    let foreseen = subject(engaged(Some("n1"), &["other"])).foresee(noon());
    assert_eq!(kinds(&foreseen.to_delete), ["WorkloadDeployment"]);
    assert!(foreseen.stays.is_empty());
}

#[test]
fn an_outlived_namespace_goes_with_all_that_is_ours() {
    let foreseen = subject(engaged(None, &[])).foresee(noon());
    assert_eq!(
        kinds(&foreseen.to_delete),
        ["WorkloadDeployment", "Instance", "PropagationPolicy", "Namespace"]
    );
    let mut foreign = subject(engaged(None, &[]));
    foreign
        .copies
        .push(object(&json!({ "name": "theirs", "namespace": "ns-n1" })));
    assert!(!kinds(&foreign.foresee(noon()).to_delete).contains(&"Namespace"));
}

#[test]
fn all_hub_objects_of_a_project_that_is_gone_are_foreseen_as_deleted_within_its_grace_too() {
    let all = ["WorkloadDeployment", "Instance", "PropagationPolicy", "Namespace"];
    let fresh = subject(Project::Gone);
    assert_eq!(kinds(&fresh.foresee(noon()).to_delete), all);
    // Within the grace the real plan deletes nothing.
    let plan = fresh.plan(popcell_core::orphans::PROJECT_GRACE, noon());
    assert!(
        matches!(plan.actions.as_slice(), [Action::Patch(_)]),
        "{:?}",
        plan.actions
    );
    let mut unproven = subject(Project::Gone);
    unproven.namespace.metadata.annotations = None;
    let foreseen = unproven.foresee(noon());
    assert!(foreseen.to_delete.is_empty());
    assert_eq!(kinds(&foreseen.stays), ["Namespace"]);
}

#[test]
fn nothing_is_foreseen_of_unknown_projects() {
    assert_eq!(
        subject(Project::Unknown(String::new())).foresee(noon()),
        Foreseen::default()
    );
}

#[test]
fn what_is_on_its_way_out_is_waited_for() {
    let mut going = subject(engaged(None, &[]));
    assert!(!going.is_moving());
    going.deployments[0].metadata.deletion_timestamp = Some(serde_json::from_value(json!(NOON)).unwrap());
    assert!(going.is_moving());
    // It blocks the plan of now, and nothing of what comes.
    assert_eq!(going.plan(Duration::ZERO, noon()).actions, []);
    assert_eq!(
        kinds(&going.foresee(noon()).to_delete),
        ["Instance", "PropagationPolicy", "Namespace"]
    );
}

#[test]
fn a_policy_is_deleted_under_the_proof_of_an_empty_live_list() {
    let mut bare = subject(engaged(Some("n2"), &[]));
    bare.deployments.clear();
    bare.copies.clear();
    let actions = bare.plan(Duration::ZERO, noon()).actions;
    let [Action::Delete(delete)] = actions.as_slice() else {
        panic!("{actions:?}");
    };
    assert_eq!(delete.target.kind, kind::PROPAGATION_POLICY);
    assert!(matches!(
        &delete.proofs[..],
        [popcell_core::plan::Proof::NoneLeft { plane: Plane::Hub, .. }]
    ));
}
