//! Claims that another client made, or that carry half of our stamps.

use super::*;

fn made(labels: Value, source_uid: Option<&str>, spec: Value) -> FakeServers {
    let mut claim = object(
        json!({ "metadata": { "name": "instance-web-0", "namespace": "default", "uid": "theirs",
        "resourceVersion": "1", "labels": labels }, "spec": spec }),
    );
    if let Some(uid) = source_uid {
        claim.metadata.annotations = Some([(annotations::SOURCE_UID.to_owned(), uid.to_owned())].into());
    }
    let mut servers = servers();
    servers.put(&project(), kind::RESOURCE_CLAIM, claim);
    servers
}

const CLUSTER: &str = "compute.datumapis.com/source-cluster";
const INSTANCE_NAMESPACE: &str = "compute.datumapis.com/instance-namespace";

#[test]
fn a_claim_of_others_is_never_adopted_or_changed() {
    for (labels, source_uid) in [
        (json!(null), None),
        (json!({ CLUSTER: "dfw-01" }), None),
        (json!({ INSTANCE_NAMESPACE: "ns-n1" }), None),
        (json!({ CLUSTER: "ord-01", INSTANCE_NAMESPACE: "ns-n1" }), None),
        (
            json!({ CLUSTER: "ord-01", INSTANCE_NAMESPACE: "ns-n1" }),
            Some("uid-ord"),
        ),
        // An earlier cell of our name, and another namespace of this one.
        (
            json!({ CLUSTER: "dfw-01", INSTANCE_NAMESPACE: "ns-n1" }),
            Some("uid-old"),
        ),
        (
            json!({ CLUSTER: "dfw-01", INSTANCE_NAMESPACE: "ns-n2" }),
            Some("uid-dfw"),
        ),
    ] {
        let mut servers = made(labels.clone(), source_uid, json!({}));
        let plan = reconcile(&servers);
        assert!(
            plan.is_unchanged() && matches!(plan.notes[..], [Note::Foreign(_), ..]),
            "{labels}: {plan:?}"
        );
        // What is of others is not watched.
        assert_eq!(plan.requeue, Some(crate::remote::NAME_CONFLICT_RETRY));
        see(&servers, |seen| {
            assert!(matches!(quota(seen, None, None), Quota::Foreign(_)), "{labels}")
        });
        end_instance(&mut servers);
        assert_eq!(reconcile(&servers), Plan::default(), "{labels}");
        servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
        assert_eq!(reconcile(&servers), Plan::default(), "{labels}");
    }
}

#[test]
fn a_claim_whose_identity_agrees_is_stamped_once_and_then_ours() {
    let spec = {
        let mut first = servers();
        settle(&mut first);
        held(&first).unwrap().data["spec"].clone()
    };
    for (labels, source_uid) in [
        // Upstream's.
        (json!({ CLUSTER: "dfw-01", INSTANCE_NAMESPACE: "ns-n1" }), None),
        // Ours, with a label taken off.
        (json!({ INSTANCE_NAMESPACE: "ns-n1" }), Some("uid-dfw")),
        (json!({ CLUSTER: "dfw-01" }), Some("uid-dfw")),
        (json!(null), Some("uid-dfw")),
    ] {
        let mut kept = made(labels.clone(), source_uid, spec.clone());
        settle(&mut kept);
        let claim = held(&kept).unwrap();
        assert_eq!(
            (claim.uid(), crate::removed_cells::of(claim)),
            ("theirs", Some(DFW)),
            "{labels}"
        );
        assert_eq!(instance_of(claim), Some(("ns-n1", "web-0")));
        assert_eq!(claim.data, json!({ "spec": spec }));

        let mut left = made(labels.clone(), source_uid, spec.clone());
        left.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
        end_instance(&mut left);
        let first = reconcile(&left);
        // Once it is ours, its project is to be known.
        let [record, Action::Patch(_)] = first.actions.as_slice() else {
            panic!("{labels}: {first:?}");
        };
        assert_eq!(record.target().kind, crate::plan::CONFIG_MAP);
        settle(&mut left);
        assert!(held(&left).is_none(), "{labels}");
    }
}

/// A claim without stamps, which asks for what the Instance asks for, after a change.
fn bare(change: impl FnOnce(&mut Object)) -> FakeServers {
    let mut first = servers();
    settle(&mut first);
    let spec = held(&first).unwrap().data["spec"].clone();
    let mut kept = made(json!(null), None, spec);
    kept.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |claim| {
        claim.data["status"] = json!({ "conditions": [{ "type": "Granted", "status": "True" }] });
        change(claim);
    });
    kept
}

#[test]
fn a_grant_that_lost_its_stamps_is_ours_by_name_namespace_consumer_and_amounts() {
    for gates in [&["Quota"][..], &[]] {
        let mut kept = bare(|_| ());
        kept.put(&Plane::Cell, kind::INSTANCE, instance(gates));
        see(&kept, |seen| {
            assert!(matches!(quota(seen, None, None), Quota::Claim(_)), "{gates:?}")
        });
        settle(&mut kept);
        let claim = held(&kept).unwrap();
        assert_eq!((claim.uid(), crate::removed_cells::of(claim)), ("theirs", Some(DFW)));
        assert_eq!(instance_of(claim), Some(("ns-n1", "web-0")));
    }
    // So it is while the slot waits for its next Instance.
    let mut slot = bare(|_| ());
    end_instance(&mut slot);
    settle(&mut slot);
    assert_eq!(crate::removed_cells::of(held(&slot).unwrap()), Some(DFW));
}

#[test]
fn a_claim_without_stamps_that_differs_in_anything_is_of_another_owner_and_names_it() {
    type Change = fn(&mut Object);
    let changes: [(&str, Change); 7] = [
        ("not granted", |claim| claim.data["status"] = json!(null)),
        ("denied", |claim| {
            claim.data["status"]["conditions"][0]["status"] = json!("False")
        }),
        ("another amount", |claim| {
            claim.data["spec"]["requests"][1]["amount"] = json!(7)
        }),
        ("an amount less", |claim| {
            claim.data["spec"]["requests"].as_array_mut().unwrap().pop();
        }),
        ("another consumer", |claim| {
            claim.data["spec"]["consumerRef"]["name"] = json!("q")
        }),
        ("another kind of consumer", |claim| {
            claim.data["spec"]["consumerRef"]["kind"] = json!("Org")
        }),
        ("another cell", |claim| {
            claim.metadata.labels = Some([(CLUSTER.to_owned(), "ord-01".to_owned())].into());
        }),
    ];
    for (what, change) in changes {
        let mut servers = bare(change);
        servers.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |claim| {
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.insert("app.kubernetes.io/managed-by".to_owned(), "Helm".to_owned());
        });
        let plan = reconcile(&servers);
        let [Note::Foreign(target), Note::Maker(maker)] = plan.notes.as_slice() else {
            panic!("{what}: {plan:?}");
        };
        assert_eq!(target.name, "instance-web-0");
        assert!(plan.is_unchanged() && maker.contains("Helm"), "{what}: {maker}");
        see(&servers, |seen| {
            assert!(matches!(quota(seen, None, None), Quota::Foreign(_)), "{what}")
        });
    }
    // Without Instance and slot nothing says what it should ask for.
    let mut nothing = bare(|_| ());
    end_instance(&mut nothing);
    nothing.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    assert_eq!(reconcile(&nothing), Plan::default());
}

#[test]
fn a_claim_without_references_does_no_harm() {
    let ours = json!({ CLUSTER: "dfw-01", INSTANCE_NAMESPACE: "ns-n1" });
    for spec in [
        json!(null),
        json!({}),
        json!({ "consumerRef": null, "resourceRef": null, "requests": null }),
        json!({ "consumerRef": {}, "resourceRef": {}, "requests": [null, {}, 7] }),
        json!({ "consumerRef": "p", "requests": "x" }),
    ] {
        // It can never be granted: one for an Instance that waits is recreated, one for an Instance that runs stays.
        let mut waits = made(ours.clone(), Some("uid-dfw"), spec.clone());
        settle(&mut waits);
        assert_ne!(held(&waits).unwrap().uid(), "theirs");
        let mut runs = made(ours.clone(), Some("uid-dfw"), spec);
        runs.put(&Plane::Cell, kind::INSTANCE, instance(&[]));
        assert_eq!(reconcile(&runs), Plan::default());
    }
}

#[test]
fn claims_of_other_kinds_do_not_collide() {
    let mut servers = servers();
    let other = json!({ "metadata": { "name": "web-0", "namespace": "default", "uid": "o", "resourceVersion": "1" } });
    servers.put(&project(), kind::RESOURCE_CLAIM, object(other.clone()));
    settle(&mut servers);
    assert!(held(&servers).is_some());
    let unrelated = servers
        .get(&project(), kind::RESOURCE_CLAIM, "default", "web-0")
        .unwrap();
    assert_eq!(serde_json::to_value(&unrelated.metadata).unwrap(), other["metadata"]);
    assert_eq!(instance_of(unrelated), None);
}

#[test]
fn a_claim_names_who_made_it_as_far_as_its_metadata_says() {
    let entry = |manager: &str, time: &str, subresource: &str| {
        json!({ "manager": manager, "operation": "Update",
        "apiVersion": "v1", "time": time, "subresource": subresource })
    };
    for (metadata, expected) in [
        (json!({}), None),
        (
            json!({ "labels": { "compute.datumapis.com/source-cluster": "ord-01" } }),
            Some("cell ord-01"),
        ),
        (
            json!({ "labels": { "compute.datumapis.com/source-cluster": "dfw-01" },
                "annotations": { "compute.datumapis.com/source-uid": "old" } }),
            Some("cell dfw-01 of uid old"),
        ),
        (
            json!({ "labels": { "app.kubernetes.io/managed-by": "Helm" }, "managedFields": [
                entry("quota-system", "2026-01-01T00:00:00Z", "status"),
                entry("kubectl-edit", "2026-01-03T00:00:00Z", ""),
                entry("kubectl-create", "2026-01-02T00:00:00Z", "")] }),
            Some("managed by Helm, written by kubectl-create at 2026-01-02T00:00:00Z"),
        ),
        (
            json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u" }] }),
            Some("owned by Pod p"),
        ),
    ] {
        let made = maker(&serde_json::from_value(metadata.clone()).unwrap());
        assert_eq!(made.as_deref(), expected, "{metadata}");
    }
}
