//! Copies that another client made, or that carry half of our stamps.

use super::*;

/// A copy as somebody made it, with the labels and the source uid that are given.
fn made(labels: Value, source_uid: Option<&str>) -> Object {
    let mut one = object(
        json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": { "name": "web-0", "namespace": "ns-n1", "uid": "theirs", "resourceVersion": "1", "generation": 1,
            "labels": labels },
        "spec": { "of": "others" }, "status": { "of": "others" } }),
    );
    if let Some(uid) = source_uid {
        one.metadata.annotations = Some([(annotations::SOURCE_UID.to_owned(), uid.to_owned())].into());
    }
    one
}

fn with(labels: Value, source_uid: Option<&str>) -> FakeServers {
    let mut servers = servers();
    servers.put(&Plane::Hub, kind::INSTANCE, made(labels, source_uid));
    servers
}

#[test]
fn a_copy_of_others_is_never_changed() {
    let cluster = "compute.datumapis.com/source-cluster";
    let marker = "compute.datumapis.com/managed-by";
    let uid = "compute.datumapis.com/workload-deployment-uid";
    for (labels, source_uid) in [
        // Another cell of the same city.
        (json!({ cluster: "ord-01", marker: "popcell" }), Some("uid-ord")),
        (
            json!({ cluster: "ord-01", marker: "popcell", uid: "cell-wd" }),
            Some("uid-ord"),
        ),
        // An earlier cell of our name.
        (json!({ cluster: "dfw-01", marker: "popcell" }), Some("uid-old")),
        (
            json!({ cluster: "dfw-01", marker: "popcell", uid: "cell-wd" }),
            Some("uid-old"),
        ),
        // Nobody says whose.
        (json!(null), None),
        (json!({ cluster: "dfw-01" }), None),
        (json!({ uid: "another-cells-wd" }), None),
        // Another program's marker.
        (
            json!({ cluster: "dfw-01", marker: "other", uid: "cell-wd" }),
            Some("uid-dfw"),
        ),
    ] {
        let mut servers = with(labels.clone(), source_uid);
        let plan = reconcile(&servers, "web-0");
        assert!(
            plan.is_unchanged() && matches!(plan.notes[..], [Note::Foreign(_)]),
            "{labels}: {plan:?}"
        );
        // What is of others is not watched.
        assert_eq!(plan.requeue, Some(crate::remote::NAME_CONFLICT_RETRY));
        // Neither as a slot nor as a leftover.
        servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
        assert_eq!(reconcile(&servers, "web-0"), Plan::default(), "{labels}");
        servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
        assert_eq!(reconcile(&servers, "web-0"), Plan::default(), "{labels}");
    }
}

#[test]
fn a_copy_whose_identity_agrees_is_stamped_once_and_then_ours() {
    let uid = "compute.datumapis.com/workload-deployment-uid";
    let cluster = "compute.datumapis.com/source-cluster";
    let marker = "compute.datumapis.com/managed-by";
    for (labels, source_uid) in [
        // Upstream's.
        (json!({ uid: "cell-wd" }), None),
        (json!({ uid: "cell-wd", cluster: "dfw-01" }), None),
        // Ours, with a label or the annotation taken off.
        (json!({ cluster: "dfw-01" }), Some("uid-dfw")),
        (json!({ marker: "popcell" }), Some("uid-dfw")),
        (json!({ marker: "popcell", cluster: "dfw-01", uid: "cell-wd" }), None),
    ] {
        let mut kept = with(labels.clone(), source_uid);
        settle(&mut kept, "web-0");
        let copy = copy_of(&kept, "web-0").unwrap();
        assert_eq!((copy.uid(), copy.marked()), ("theirs", true), "{labels}");
        assert_eq!(crate::removed_cells::of(copy), Some(DFW), "{labels}");
        assert_eq!(copy.data["spec"], instance("web-0").data["spec"]);

        // Left over: nothing without stamp is deleted.
        let mut left = with(labels.clone(), source_uid);
        left.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
        left.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
        let first = reconcile(&left, "web-0");
        assert!(matches!(first.actions[..], [Action::Patch(_)]), "{labels}: {first:?}");
        settle(&mut left, "web-0");
        assert!(copy_of(&left, "web-0").is_none(), "{labels}");
    }
}

#[test]
fn a_copy_that_is_being_deleted_is_waited_for() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["somebody".to_owned()]);
    });
    servers.delete(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    let mut unwanted = servers.clone();
    let plan = reconcile(&servers, "web-0");
    assert!(
        plan.is_unchanged() && matches!(plan.notes[..], [Note::WaitsFor(_)]),
        "{plan:?}"
    );
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = None
    });
    settle(&mut servers, "web-0");
    assert!(!copy_of(&servers, "web-0").unwrap().deleting());

    // Nobody waits for what is not wanted.
    unwanted.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    unwanted.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(reconcile(&unwanted, "web-0"), Plan::default());
}
