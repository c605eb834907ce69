use super::*;
use crate::plan::{DeletionGuard, NAMESPACE};
use crate::spec_echoes::SpecEchoes;
use crate::testing::{FakeServers, now, object};

mod foreign;
mod outages;

const DFW: Source<'static> = Source {
    name: "dfw-01",
    id: "uid-dfw",
};

fn deployment(replicas: i64) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": "ns-n1", "uid": "cell-wd", "resourceVersion": "1",
        "annotations": { "resourcetemplate.karmada.io/uid": "hub-wd" } },
        "spec": { "workloadRef": { "name": "shop", "uid": "w1" }, "placementName": "us", "cityCode": "DFW",
            "scaleSettings": { "minReplicas": replicas } } }),
    )
}

fn instance(name: &str) -> Object {
    object(
        json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": { "name": name, "namespace": "ns-n1", "uid": format!("cell-{name}"), "resourceVersion": "1",
            "generation": 2, "labels": { "compute.datumapis.com/workload-deployment-uid": "cell-wd",
                "compute.datumapis.com/instance-index": "0", "of-the-template": "x" } },
        "spec": { "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" } } },
        "status": { "networkInterfaces": [{ "assignments": { "networkIP": "10.0.0.1" } }], "conditions": [
            condition("Ready", "True", 2), condition("Available", "True", 1) ] } }),
    )
}

fn condition(type_: &str, status: &str, generation: i64) -> Value {
    json!({ "type": type_, "status": status, "reason": "Available", "message": "m", "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z" })
}

/// A cell with one WorkloadDeployment of one slot and its Instance, and a hub that knows of it.
fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(1));
    servers.put(&Plane::Cell, kind::INSTANCE, instance("web-0"));
    let labels = json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-org_p",
        "meta.datumapis.com/upstream-namespace": "default" });
    let namespace = json!({ "metadata": { "name": "ns-n1", "labels": labels } });
    servers.put(&Plane::Hub, NAMESPACE, object(namespace));
    let hub = json!({ "metadata": { "name": "web", "namespace": "ns-n1", "uid": "hub-wd", "resourceVersion": "1" } });
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object(hub));
    servers
}

fn see<T>(servers: &FakeServers, name: &str, look: impl FnOnce(&Observation<'_>) -> T) -> T {
    let deployments = servers.list(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT);
    let instance = servers.get(&Plane::Cell, kind::INSTANCE, "ns-n1", name);
    let owner = hub_deployment(name, instance, &deployments);
    let lives = owner.is_some_and(|(name, uid)| {
        let found = servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name);
        found.is_some_and(|found| found.uid() == uid)
    });
    look(&Observation {
        identity: &Identity::Matches,
        source: DFW,
        namespace: "ns-n1",
        name,
        instance,
        deployments: &deployments,
        hub_namespace: Observed::Known(servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1")),
        copy: Observed::Known(copy_of(servers, name)),
        hub_deployment_lives: Observed::Known(lives),
        spec_echoes: &SpecEchoes::default(),
        now: now(),
    })
}

fn reconcile(servers: &FakeServers, name: &str) -> Plan {
    see(servers, name, decide)
}

fn settle(servers: &mut FakeServers, name: &str) {
    servers.settle(|servers| reconcile(servers, name));
}

fn copy_of<'w>(servers: &'w FakeServers, name: &str) -> Option<&'w Object> {
    servers.get(&Plane::Hub, kind::INSTANCE, "ns-n1", name)
}

fn ready(servers: &FakeServers, name: &str) -> Value {
    let copy = copy_of(servers, name).unwrap();
    conditions::find(copy.at("/status").unwrap(), "Ready").unwrap().clone()
}

#[test]
fn a_copy_exists_after_the_first_reconcile_whatever_the_instance_waits_for() {
    let mut servers = servers();
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data.as_object_mut().unwrap().remove("status");
    });
    let plan = reconcile(&servers, "web-0");
    assert!(matches!(plan.actions[..], [Action::Create { .. }]), "{plan:?}");
    servers.apply(&plan);
    assert!(copy_of(&servers, "web-0").is_some());
    assert!(reconcile(&servers, "web-0").is_unchanged());
}

#[test]
fn keys_of_disks_that_are_reserved_stay_in_the_cell() {
    let mut servers = servers();
    let disk = |labels: Value| json!([{ "name": "d", "disk": { "template": { "metadata": { "labels": labels } } } }]);
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["volumes"] = disk(json!({ "app": "a", "karmada.io/x": "b" }));
    });
    settle(&mut servers, "web-0");
    let carried = |servers: &FakeServers| copy_of(servers, "web-0").unwrap().at("/spec/volumes").cloned();
    assert_eq!(carried(&servers), Some(disk(json!({ "app": "a" }))));
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["volumes"] = disk(json!({ "app": "a", "karmada.io/x": "b" }));
    });
    settle(&mut servers, "web-0");
    assert_eq!(carried(&servers), Some(disk(json!({ "app": "a" }))));
}

#[test]
fn a_copy_says_whose_it_is_and_carries_all_of_spec_and_status() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let copy = copy_of(&servers, "web-0").unwrap();
    let labels: BTreeMap<&str, &str> = [
        ("compute.datumapis.com/managed-by", "popcell"),
        ("resourcetemplate.karmada.io/claimed-by", "popcell"),
        ("compute.datumapis.com/source-cluster", "dfw-01"),
        ("meta.datumapis.com/upstream-cluster-name", "cluster-org_p"),
        ("meta.datumapis.com/upstream-namespace", "default"),
        ("compute.datumapis.com/workload-deployment-uid", "cell-wd"),
        ("compute.datumapis.com/instance-index", "0"),
        // The Instance was made by upstream and lacks these: its WorkloadDeployment says them.
        ("compute.datumapis.com/workload-deployment-name", "web"),
        ("compute.datumapis.com/workload-uid", "w1"),
        ("compute.datumapis.com/workload-name", "shop"),
        ("compute.datumapis.com/placement-name", "us"),
        ("compute.datumapis.com/city-code", "DFW"),
    ]
    .into();
    let found = copy.metadata.labels.iter().flatten();
    let found: BTreeMap<&str, &str> = found.map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(found, labels);
    assert_eq!(copy.annotation(annotations::SOURCE_UID), Some("uid-dfw"));
    let owners = serde_json::to_value(&copy.metadata.owner_references).unwrap();
    let owner = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": "web",
        "uid": "hub-wd" });
    assert_eq!(owners, json!([owner]));
    assert_eq!(copy.data["spec"], instance("web-0").data["spec"]);
    // A condition that was current is current on the copy, and one that was not is not.
    let ip = copy.text("/status/networkInterfaces/0/assignments/networkIP");
    assert_eq!(ip, Some("10.0.0.1"));
    let generation = |index: usize| copy.int(&format!("/status/conditions/{index}/observedGeneration"));
    assert_eq!(
        (copy.generation(), generation(0), generation(1)),
        (Some(1), Some(1), Some(0))
    );
}

#[test]
fn the_old_condition_running_stays_in_its_cell() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let types = |servers: &FakeServers| {
        let conditions = copy_of(servers, "web-0").unwrap().items("/status/conditions");
        conditions
            .iter()
            .map(|one| conditions::text(one, "type").to_owned())
            .collect::<Vec<_>>()
    };
    let before = types(&servers);
    let running = |one: &mut Object| {
        let list = one.data["status"]["conditions"].as_array_mut().unwrap();
        list.push(condition("Running", "True", 1));
    };
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", running);
    assert_eq!(reconcile(&servers, "web-0"), Plan::default());
    // One that an earlier version copied goes.
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", running);
    settle(&mut servers, "web-0");
    assert_eq!(types(&servers), before);
}

#[test]
fn a_status_is_copied_only_over_the_spec_that_it_describes() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["runtime"]["sandbox"] = json!({});
        one.metadata.generation = Some(3);
        one.data["status"]["conditions"] = json!([condition("Ready", "False", 3), condition("Available", "True", 3)]);
    });
    let plan = reconcile(&servers, "web-0");
    assert!(
        matches!(plan.actions[..], [Action::Patch(_)]) && plan.status.is_none(),
        "{plan:?}"
    );
    servers.apply(&plan);
    settle(&mut servers, "web-0");
    let copy = copy_of(&servers, "web-0").unwrap();
    assert_eq!(copy.generation(), Some(2));
    assert_eq!(ready(&servers, "web-0"), condition("Ready", "False", 2));
}

#[test]
fn a_second_reconcile_writes_nothing_whatever_the_order_of_conditions() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let before = copy_of(&servers, "web-0").cloned();
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["status"]["conditions"].as_array_mut().unwrap().reverse();
    });
    assert_ne!(copy_of(&servers, "web-0").cloned(), before);
    assert_eq!(reconcile(&servers, "web-0"), Plan::default());
}

#[test]
fn labels_of_others_stay_and_ours_follow_the_instance() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let put = |one: &mut Object, key: &str, value: &str| {
        let labels = one.metadata.labels.get_or_insert_default();
        labels.insert(key.to_owned(), value.to_owned());
    };
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        put(one, "karmada.io/managed", "x")
    });
    assert!(reconcile(&servers, "web-0").is_unchanged());
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        put(one, labels::INSTANCE_INDEX, "7")
    });
    settle(&mut servers, "web-0");
    let copy = copy_of(&servers, "web-0").unwrap();
    assert_eq!(copy.label("karmada.io/managed"), Some("x"));
    assert_eq!(copy.label(labels::INSTANCE_INDEX), Some("7"));
}

#[test]
fn in_a_hub_namespace_without_labels_no_copy_is_created_and_none_blanked() {
    let mut settled = servers();
    settle(&mut settled, "web-0");
    for labels in [
        json!(null),
        json!({ "meta.datumapis.com/upstream-namespace": "default" }),
        json!({ "meta.datumapis.com/upstream-cluster-name": "", "meta.datumapis.com/upstream-namespace": "" }),
    ] {
        let namespace = object(json!({ "metadata": { "name": "ns-n1", "labels": labels } }));
        let mut fresh = servers();
        fresh.put(&Plane::Hub, NAMESPACE, namespace.clone());
        let plan = reconcile(&fresh, "web-0");
        assert!(plan.is_unchanged(), "{plan:?}");
        assert!(matches!(plan.notes[..], [Note::Dropped(why)] if why.contains("upstream-cluster-name")));

        let mut one = settled.clone();
        one.put(&Plane::Hub, NAMESPACE, namespace);
        assert!(reconcile(&one, "web-0").is_unchanged());
        let copy = copy_of(&one, "web-0").unwrap();
        assert_eq!(copy.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-org_p"));
    }
    // Cells never make the namespace.
    let mut fresh = servers();
    fresh.remove(&Plane::Hub, NAMESPACE, "", "ns-n1");
    assert!(reconcile(&fresh, "web-0").is_unchanged());
}

#[test]
fn a_copy_deleted_by_hand_comes_back_the_same() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let before = copy_of(&servers, "web-0").cloned().unwrap();
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    settle(&mut servers, "web-0");
    let after = copy_of(&servers, "web-0").unwrap();
    assert_ne!(after.uid(), before.uid());
    assert_eq!(
        (&after.metadata.labels, &after.data),
        (&before.metadata.labels, &before.data)
    );
}

#[test]
fn an_instance_of_no_deployment_is_copied_without_owner() {
    let mut servers = servers();
    let mut bare = instance("alone");
    bare.metadata.labels = None;
    servers.put(&Plane::Cell, kind::INSTANCE, bare);
    settle(&mut servers, "alone");
    let copy = copy_of(&servers, "alone").unwrap();
    assert_eq!(copy.metadata.owner_references, None);
    assert_eq!(copy.label(labels::UPSTREAM_NAMESPACE), Some("default"));
    assert_eq!(copy.label(labels::WORKLOAD_DEPLOYMENT_UID), None);
    servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "alone");
    settle(&mut servers, "alone");
    assert!(copy_of(&servers, "alone").is_none());
}

#[test]
fn an_instance_of_a_deployment_that_karmada_did_not_bring_is_copied_without_owner() {
    let mut servers = servers();
    servers.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.metadata.annotations = None;
    });
    settle(&mut servers, "web-0");
    let copy = copy_of(&servers, "web-0").unwrap();
    assert_eq!(copy.metadata.owner_references, None);
    assert_eq!(copy.label(labels::WORKLOAD_DEPLOYMENT_NAME), Some("web"));
}

#[test]
fn a_slot_without_instance_keeps_its_copy_unready_and_creates_none() {
    let mut servers = servers();
    settle(&mut servers, "web-0");
    let before = copy_of(&servers, "web-0").cloned().unwrap();
    servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    settle(&mut servers, "web-0");
    let copy = copy_of(&servers, "web-0").unwrap();
    assert_eq!((copy.uid(), &copy.data["spec"]), (before.uid(), &before.data["spec"]));
    let expected = json!({ "type": "Ready", "status": "False", "reason": "Pending",
        "message": "Instance is being recreated", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:10:00Z" });
    assert_eq!(ready(&servers, "web-0"), expected);
    assert_eq!(
        copy.text("/status/networkInterfaces/0/assignments/networkIP"),
        Some("10.0.0.1")
    );

    servers.put(&Plane::Cell, kind::INSTANCE, instance("web-0"));
    settle(&mut servers, "web-0");
    assert_eq!(ready(&servers, "web-0")["status"], "True");
    assert_eq!(copy_of(&servers, "web-0").unwrap().uid(), before.uid());

    servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(reconcile(&servers, "web-0"), Plan::default());
}

#[test]
fn a_copy_that_nothing_needs_is_deleted_with_proof() {
    type Change = fn(&mut FakeServers);
    let ends: [(&str, Change); 3] = [
        ("scaled down", |servers| {
            servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0))
        }),
        ("deployment going", |servers| {
            servers.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
                one.metadata.finalizers = Some(vec!["f".to_owned()]);
            });
            servers.delete(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
        }),
        ("deployment gone", |servers| {
            servers.remove(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web")
        }),
    ];
    for (what, end) in ends {
        let mut servers = servers();
        settle(&mut servers, "web-0");
        end(&mut servers);
        // While the Instance is there, so is its copy.
        assert!(reconcile(&servers, "web-0").actions.is_empty(), "{what}");
        servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
        let plan = reconcile(&servers, "web-0");
        let [Action::Delete(delete)] = plan.actions.as_slice() else {
            panic!("{what}: {plan:?}");
        };
        let source = Target::namespaced(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
        assert_eq!(delete.proofs, [Proof::Gone { source, uid: None }], "{what}");
        let plane = if what == "scaled down" { Plane::Cell } else { Plane::Hub };
        let source = Target::namespaced(&plane, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
        match &delete.deletion_guard {
            // A user scaled it down.
            DeletionGuard::Unless(proof) if plane == Plane::Cell => {
                assert!(matches!(&proof[0], Proof::Lives { source: found, .. } if found == &source));
            }
            // A user deleted it, if it is gone from the hub too.
            DeletionGuard::Unless(proof) => {
                assert!(
                    matches!(&proof[0], Proof::Gone { source: found, .. } if found == &source),
                    "{what}"
                );
            }
            other => panic!("{what}: {other:?}"),
        }

        // An Instance of that name that was recreated meanwhile wins.
        let mut anew = servers.clone();
        anew.put(&Plane::Cell, kind::INSTANCE, instance("web-0"));
        anew.apply(&plan);
        assert!(copy_of(&anew, "web-0").is_some(), "{what}");

        settle(&mut servers, "web-0");
        assert!(copy_of(&servers, "web-0").is_none(), "{what}");
    }
}

#[test]
fn an_instance_that_exceeds_a_limit_is_not_copied_and_its_copy_stays() {
    let mut servers = servers();
    let deep = crate::testing::deepened(&instance("web-0"), "status", 200);
    servers.put(&Plane::Cell, kind::INSTANCE, deep.clone());
    settle(&mut servers, "web-0");
    assert!(copy_of(&servers, "web-0").is_none());
    assert!(matches!(
        reconcile(&servers, "web-0").notes.as_slice(),
        [Note::Excess(..)]
    ));

    servers.put(&Plane::Cell, kind::INSTANCE, instance("web-0"));
    settle(&mut servers, "web-0");
    let before = copy_of(&servers, "web-0").cloned();
    servers.put(&Plane::Cell, kind::INSTANCE, deep);
    settle(&mut servers, "web-0");
    assert_eq!(copy_of(&servers, "web-0"), before.as_ref());
}
