use super::*;
use crate::federation::tests as federation;
use crate::plan::NAMESPACE;
use crate::testing::{FakeServers, object};

fn reconcile(servers: &FakeServers, name: &str) -> Plan {
    let project = Plane::Project("p".to_owned());
    decide(&Observation {
        namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1"),
        namespace_name: "ns-n1",
        name,
        policy: servers.get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", name),
        hub_deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
        project_deployments: Observed::Known(&servers.list(&project, kind::WORKLOAD_DEPLOYMENT)),
    })
}

fn settle(servers: &mut FakeServers, names: &[&str]) {
    for _ in 0..3 {
        for name in names {
            servers.settle(|servers| federation::reconcile(servers, name));
        }
        for policy in ["city-dfw", "city-ord"] {
            servers.settle(|servers| reconcile(servers, policy));
        }
    }
}

fn policies(servers: &FakeServers) -> Vec<&str> {
    servers
        .list(&Plane::Hub, kind::PROPAGATION_POLICY)
        .iter()
        .map(|one| one.name())
        .collect()
}

fn finalise(servers: &mut FakeServers, name: &str) {
    servers.delete(
        &Plane::Project("p".to_owned()),
        kind::WORKLOAD_DEPLOYMENT,
        "default",
        name,
    );
    settle(servers, &[name]);
}

fn change(servers: &mut FakeServers, name: &str, change: impl FnOnce(&mut Object)) {
    servers.change(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", name, change);
}

/// As Karmada's webhook and CRD fill it in (v1.18.2; the e2e suite sees the same on a real one).
fn defaulted(policy: &mut Object) {
    let spec = policy.data["spec"].as_object_mut().unwrap();
    spec.insert("priority".to_owned(), json!(0));
    spec.insert("preemption".to_owned(), json!("Never"));
    spec.insert("schedulerName".to_owned(), json!("default-scheduler"));
    spec["resourceSelectors"][0]["namespace"] = json!("ns-n1");
    policy.metadata.finalizers = Some(vec!["karmada.io/propagation-policy-controller".to_owned()]);
    let labels = policy.metadata.labels.as_mut().unwrap();
    labels.insert(labels::PROPAGATION_POLICY_PERMANENT_ID.to_owned(), "id".to_owned());
}

#[test]
fn the_policy_of_a_city_has_its_whole_spec() {
    let mut servers = federation::servers(&[("web", "DFW")]);
    settle(&mut servers, &["web"]);
    let policy = servers
        .get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw")
        .unwrap();
    assert!(policy.marked());
    let by_city = json!({ "matchLabels": { "topology.datum.net/city-code": "DFW" } });
    assert_eq!(
        policy.at("/spec"),
        Some(&json!({
            "resourceSelectors": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
                "labelSelector": by_city }],
            "conflictResolution": "Abort",
            "propagateDeps": true,
            "placement": {
                "clusterAffinity": { "labelSelector": by_city },
                "clusterTolerations": [{ "operator": "Exists", "effect": "NoExecute" }],
                "spreadConstraints": [{ "spreadByField": "cluster", "minGroups": 1, "maxGroups": 1 }],
            },
        }))
    );
}

#[test]
fn a_policy_stays_while_any_deployment_names_its_city() {
    let mut servers = federation::servers(&[("alpha", "DFW"), ("beta", "DFW"), ("gamma", "ORD")]);
    settle(&mut servers, &["alpha", "gamma"]);
    assert_eq!(policies(&servers), ["city-dfw", "city-ord"]);
    // beta was never federated, and counts all the same.
    finalise(&mut servers, "alpha");
    assert_eq!(policies(&servers), ["city-dfw", "city-ord"]);
    settle(&mut servers, &["beta"]);
    finalise(&mut servers, "beta");
    assert_eq!(policies(&servers), ["city-ord"]);
    finalise(&mut servers, "gamma");
    assert!(policies(&servers).is_empty());
}

#[test]
fn a_policy_is_deleted_only_after_an_empty_live_list_and_never_while_the_project_is_unreachable() {
    let mut servers = federation::servers(&[("web", "DFW")]);
    settle(&mut servers, &["web"]);
    let policy = servers.get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw");
    let seen = |deployments| Observation {
        namespace: None,
        namespace_name: "ns-n1",
        name: "city-dfw",
        policy,
        hub_deployments: &[],
        project_deployments: deployments,
    };
    assert!(decide(&seen(Observed::Unknown)).is_unchanged());
    let plan = decide(&seen(Observed::Known(&[])));
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(
        delete.proofs,
        [Proof::NoneLeft {
            plane: Plane::Hub,
            kind: kind::WORKLOAD_DEPLOYMENT,
            namespace: "ns-n1".to_owned(),
            selector: "topology.datum.net/city-code=DFW".to_owned(),
        }]
    );
    // A selector that was edited by hand proves nothing of the city: then none at all may be left.
    let mut edited = policy.unwrap().clone();
    edited.data["spec"]["resourceSelectors"][0]["labelSelector"] = json!({ "matchLabels": {
        "topology.datum.net/city-code": "nowhere" } });
    let edited = decide(&Observation {
        policy: Some(&edited),
        ..seen(Observed::Known(&[]))
    });
    assert!(matches!(&edited.actions[..], [Action::Delete(one)]
        if matches!(&one.proofs[..], [Proof::NoneLeft { selector, .. }] if selector.is_empty())));
    // The store was stale: the hub still has one, so nothing is deleted.
    let before = servers.clone();
    servers.apply(&plan);
    assert_eq!(policies(&servers), policies(&before));
}

#[test]
fn defaults_of_karmada_are_no_difference_and_an_edit_by_hand_heals() {
    let mut servers = federation::servers(&[("web", "DFW")]);
    settle(&mut servers, &["web"]);
    change(&mut servers, "city-dfw", defaulted);
    assert!(reconcile(&servers, "city-dfw").is_unchanged());
    for (path, value) in [
        ("/spec/placement/clusterTolerations", json!([])),
        ("/spec/placement/spreadConstraints/0/maxGroups", json!(2)),
        (
            "/spec/resourceSelectors/0/labelSelector/matchLabels",
            json!({ "a": "b" }),
        ),
        ("/spec/priority", json!(5)),
        ("/spec/conflictResolution", json!("Overwrite")),
    ] {
        change(&mut servers, "city-dfw", |one| {
            *one.data.pointer_mut(path).unwrap() = value.clone()
        });
        servers.settle(|servers| reconcile(servers, "city-dfw"));
        let policy = servers
            .get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw")
            .unwrap();
        let (said, _) = without_defaults(policy.at("/spec").unwrap(), "ns-n1");
        assert_eq!(said, spec("DFW"), "{path}");
        // Karmada's own keys are not ours to write.
        assert_eq!(policy.label(labels::PROPAGATION_POLICY_PERMANENT_ID), Some("id"));
        assert_eq!(policy.text("/spec/schedulerName"), Some("default-scheduler"));
        change(&mut servers, "city-dfw", defaulted);
    }
}

#[test]
fn a_policy_that_is_terminating_is_absent_and_made_again_once_it_is_gone() {
    let mut servers = federation::servers(&[("web", "DFW")]);
    settle(&mut servers, &["web"]);
    change(&mut servers, "city-dfw", defaulted);
    servers.delete(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw");
    let plan = reconcile(&servers, "city-dfw");
    assert!(plan.is_unchanged() && matches!(plan.notes[..], [Note::WaitsFor(_)]));
    servers.remove(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw");
    servers.settle(|servers| reconcile(servers, "city-dfw"));
    assert_eq!(policies(&servers), ["city-dfw"]);
}

#[test]
fn a_policy_of_upstreams_operator_is_adopted_and_a_foreign_one_is_kept() {
    let mut servers = federation::servers(&[("web", "DFW")]);
    settle(&mut servers, &["web"]);
    let uid = servers
        .get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw")
        .unwrap()
        .uid()
        .to_owned();
    change(&mut servers, "city-dfw", |one| {
        one.metadata.labels = None;
        one.data["spec"]["placement"]
            .as_object_mut()
            .unwrap()
            .remove("clusterTolerations");
    });
    servers.settle(|servers| reconcile(servers, "city-dfw"));
    let policy = servers
        .get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw")
        .unwrap();
    assert_eq!((policy.uid(), policy.marked()), (uid.as_str(), true));
    assert_eq!(policy.at("/spec"), Some(&spec("DFW")));

    change(&mut servers, "city-dfw", |one| {
        one.metadata.labels = None;
        one.data["spec"]["resourceSelectors"] = json!([{ "apiVersion": "v1", "kind": "ConfigMap" }]);
    });
    let plan = reconcile(&servers, "city-dfw");
    assert!(plan.is_unchanged() && matches!(plan.notes[..], [Note::Foreign(_)]));
}

#[test]
fn the_spelling_of_a_city_that_is_in_use_holds_the_policy_name() {
    let wd = |name: &str, city: &str, created: &str| {
        object(json!({ "metadata": { "name": name, "creationTimestamp": created }, "spec": { "cityCode": city } }))
    };
    let (old, new) = (
        wd("a", "dfw", "2026-01-01T00:00:00Z"),
        wd("b", "DFW", "2026-01-02T00:00:00Z"),
    );
    let policy = |city: &str| object(json!({ "metadata": { "name": "city-dfw" }, "spec": spec(city) }));
    let spell = |policy: Option<&Object>, users: &[&Object]| {
        spelling("city-dfw", policy, users.iter().copied()).map(str::to_owned)
    };
    assert_eq!(spell(None, &[&new, &old]).as_deref(), Some("dfw"));
    assert_eq!(spell(Some(&policy("DFW")), &[&new, &old]).as_deref(), Some("DFW"));
    assert_eq!(spell(Some(&policy("Dfw")), &[&new, &old]).as_deref(), Some("dfw"));
    // One that is terminating holds nothing.
    let mut going = policy("DFW");
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(spell(Some(&going), &[&new, &old]).as_deref(), Some("dfw"));
    assert_eq!(spell(None, &[&wd("c", "ORD", "2026-01-01T00:00:00Z")]), None);
}
