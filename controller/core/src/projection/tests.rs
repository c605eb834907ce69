use super::*;
use crate::plan::NAMESPACE;
use crate::spec_echoes::SpecEchoes;
use crate::testing::{FakeServers, object};

fn plane() -> Plane {
    Plane::Project("p".to_owned())
}

fn copy(name: &str, labels: Value) -> Object {
    let mut all = json!({ "compute.datumapis.com/workload-deployment-name": "web",
        "meta.datumapis.com/upstream-cluster-name": "cluster-p",
        "compute.datumapis.com/workload-deployment-uid": "uid-in-the-cell",
        "compute.datumapis.com/source-cluster": "dfw-01",
        "resourcetemplate.karmada.io/claimed-by": "popcell" });
    for (key, value) in labels.as_object().unwrap() {
        all[key] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    object(
        json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": { "name": name, "namespace": "ns-n1", "uid": format!("copy-{name}"), "resourceVersion": "1",
            "generation": 3, "labels": all },
        "spec": { "runtime": { "of": "cell" } },
        "status": { "networkInterfaces": [{ "assignments": { "networkIP": "10.0.0.1" } }], "conditions": [
            { "type": "Ready", "status": "False", "reason": "Pending", "message": "m", "observedGeneration": 3 },
            { "type": "Available", "status": "False", "reason": "Pending", "message": "m", "observedGeneration": 2 },
            { "type": "Programmed", "status": "Unknown", "reason": "Pending", "message": "m" },
            { "type": "Running", "status": "True", "reason": "Running", "message": "m" }] } }),
    )
}

fn servers(copies: &[&str]) -> FakeServers {
    let mut servers = FakeServers::default();
    servers.put(
        &plane(),
        NAMESPACE,
        object(json!({ "metadata": { "name": "default", "uid": "n1" } })),
    );
    servers.put(
        &Plane::Hub,
        NAMESPACE,
        object(json!({ "metadata": { "name": "ns-n1", "labels": {
            "meta.datumapis.com/upstream-cluster-name": "cluster-org_p",
            "meta.datumapis.com/upstream-namespace": "default" } } })),
    );
    servers.put(
        &plane(),
        kind::WORKLOAD_DEPLOYMENT,
        object(json!({ "metadata": { "name": "web", "namespace": "default", "uid": "wd" }, "spec": { "cityCode": "DFW" } })),
    );
    servers.put(
        &Plane::Hub,
        kind::WORKLOAD_DEPLOYMENT,
        object(
            json!({ "metadata": { "name": "web", "namespace": "ns-n1", "uid": "hub-wd" },
            "spec": { "scaleSettings": { "minReplicas": 3 } } }),
        ),
    );
    for (name, city) in [("dfw-01", "DFW"), ("ord-01", "ORD")] {
        let labels = json!({ "topology.datum.net/city-code": city });
        servers.put(
            &Plane::Hub,
            kind::CLUSTER,
            object(json!({ "metadata": { "name": name, "labels": labels } })),
        );
    }
    for name in copies {
        servers.put(&Plane::Hub, kind::INSTANCE, copy(name, json!({})));
    }
    servers
}

fn with<T>(servers: &FakeServers, use_it: impl FnOnce(&Observation<'_>) -> T) -> T {
    use_it(&Observation {
        project: Project {
            id: "p",
            uid: None,
            server: None,
        },
        namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
        hub_namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
        deployments: Observed::Known(&servers.list(&plane(), kind::WORKLOAD_DEPLOYMENT)),
        clusters: Observed::Known(&servers.list(&Plane::Hub, kind::CLUSTER)),
        spec_echoes: &SpecEchoes::default(),
    })
}

fn reconcile(servers: &FakeServers, name: &str) -> Plan {
    let Some(copy) = servers.get(&Plane::Hub, kind::INSTANCE, "ns-n1", name) else {
        return Plan::default();
    };
    with(servers, |seen| {
        show(seen, copy, carried(servers), shown(servers, name), None)
    })
}

fn carried(servers: &FakeServers) -> Observed<Option<&Object>> {
    Observed::Known(servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web"))
}

fn shown<'w>(servers: &'w FakeServers, name: &str) -> Option<&'w Object> {
    servers.get(&plane(), kind::INSTANCE, "default", name)
}

fn sweeping(servers: &FakeServers) -> Plan {
    let copies = servers.list(&Plane::Hub, kind::INSTANCE);
    with(servers, |seen| {
        sweep(seen, Observed::Known(&copies), &servers.list(&plane(), kind::INSTANCE))
    })
}

#[test]
fn a_copy_is_shown_under_the_deployment_of_that_name() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    let one = shown(&servers, "web-0").unwrap();
    let owners = one.metadata.owner_references.as_ref().unwrap();
    assert_eq!(
        (owners.len(), owners[0].uid.as_str(), owners[0].controller),
        (1, "wd", None)
    );
    assert!(one.marked());
    assert_eq!(one.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-p"));
    assert_eq!(one.label(labels::CLAIMED_BY), None);
    assert_eq!(one.at("/spec"), Some(&json!({ "runtime": { "of": "cell" } })));
    assert_eq!(
        one.text("/status/networkInterfaces/0/assignments/networkIP"),
        Some("10.0.0.1")
    );
    // Generations of conditions that are current, older, and none.
    let of = |type_| {
        conditions::find(one.at("/status").unwrap(), type_)
            .unwrap()
            .get("observedGeneration")
            .cloned()
    };
    assert_eq!(
        (of("Ready"), of("Available"), of("Programmed")),
        (Some(json!(1)), Some(json!(0)), None)
    );

    // What Available was called before means nothing.
    assert!(conditions::of(one, "Running").is_none());

    // Nothing without an owner.
    servers.remove(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    servers.remove(&plane(), kind::INSTANCE, "default", "web-0");
    assert!(reconcile(&servers, "web-0").is_unchanged());
}

#[test]
fn a_users_edit_of_a_projection_is_reverted() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    servers.change(&plane(), kind::INSTANCE, "default", "web-0", |one| {
        one.data["spec"] = json!({ "runtime": { "of": "user" } });
        one.metadata.generation = Some(2);
        one.metadata
            .labels
            .as_mut()
            .unwrap()
            .remove(labels::WORKLOAD_DEPLOYMENT_NAME);
        one.data["status"]["conditions"][0]["status"] = json!("True");
    });
    servers.settle(|servers| reconcile(servers, "web-0"));
    let one = shown(&servers, "web-0").unwrap();
    assert_eq!(one.text("/spec/runtime/of"), Some("cell"));
    assert_eq!(one.label(labels::WORKLOAD_DEPLOYMENT_NAME), Some("web"));
    assert_eq!(one.text("/status/conditions/0/status"), Some("False"));
    assert_eq!(one.int("/status/conditions/0/observedGeneration"), one.generation());
}

#[test]
fn a_projection_without_copy_is_deleted_and_others_stay() {
    let mut servers = servers(&["web-0", "web-1", "web-2"]);
    for name in ["web-0", "web-1", "web-2"] {
        servers.settle(|servers| reconcile(servers, name));
    }
    let foreign =
        object(json!({ "metadata": { "name": "mine", "namespace": "default", "uid": "m", "resourceVersion": "1" } }));
    servers.put(&plane(), kind::INSTANCE, foreign);
    assert!(sweeping(&servers).is_unchanged());
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-2");
    let plan = sweeping(&servers);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(matches!(&delete.proofs[..], [Proof::Gone { uid: None, .. }]));
    servers.settle(sweeping);
    let left: Vec<_> = servers
        .list(&plane(), kind::INSTANCE)
        .iter()
        .map(|one| one.name().to_owned())
        .collect();
    assert_eq!(left, ["mine", "web-0", "web-1"]);
    // An unknown hub sweeps nothing.
    let mine = servers.list(&plane(), kind::INSTANCE);
    assert!(with(&servers, |seen| sweep(seen, Observed::Unknown, &mine)).is_unchanged());
}

/// How the deletion guard takes the only delete of a sweep.
fn guard_of(servers: &FakeServers) -> DeletionGuard {
    match sweeping(servers).actions.as_slice() {
        [Action::Delete(delete)] => delete.deletion_guard.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_guard_lets_go_what_a_user_did_and_holds_what_the_hub_has_lost() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    let slots = |servers: &mut FakeServers, replicas: i64| {
        servers.change(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web", |one| {
            one.data["spec"]["scaleSettings"] = json!({ "minReplicas": replicas });
        });
    };
    slots(&mut servers, 1);
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(guard_of(&servers), DeletionGuard::Applies, "its slot is asked for");
    let source = Target::namespaced(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let uid = "wd".to_owned();
    let unless = |proof| DeletionGuard::Unless(vec![proof]);
    let mut scaled = servers.clone();
    slots(&mut scaled, 0);
    let lives = Proof::Lives {
        source: source.clone(),
        uid: uid.clone(),
    };
    assert_eq!(guard_of(&scaled), unless(lives));
    let mut deleted = servers.clone();
    deleted.remove(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let gone = Proof::Gone { source, uid: Some(uid) };
    assert_eq!(guard_of(&deleted), unless(gone));
}

#[test]
fn a_copy_that_exists_after_all_does_not_hold_up_other_deletes() {
    let mut servers = servers(&["web-0", "web-1"]);
    for name in ["web-0", "web-1"] {
        servers.settle(|servers| reconcile(servers, name));
    }
    // As a store that lags shows it: neither copy is there.
    let plan = with(&servers, |seen| {
        sweep(seen, Observed::Known(&[]), &servers.list(&plane(), kind::INSTANCE))
    });
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-1");
    servers.apply(&plan);
    assert!(shown(&servers, "web-0").is_some() && shown(&servers, "web-1").is_none());
}

#[test]
fn a_copy_from_a_cell_of_another_city_is_not_shown() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    let label = |source: Value| json!({ "compute.datumapis.com/source-cluster": source });
    servers.put(&Plane::Hub, kind::INSTANCE, copy("web-0", label(json!("ord-01"))));
    servers.put(&Plane::Hub, kind::INSTANCE, copy("web-1", label(json!("nobody"))));
    assert!(reconcile(&servers, "web-1").is_unchanged());
    servers.settle(sweeping);
    assert!(shown(&servers, "web-0").is_none());
    // One that names no source is shown.
    servers.put(&Plane::Hub, kind::INSTANCE, copy("web-2", label(json!(null))));
    servers.settle(|servers| reconcile(servers, "web-2"));
    assert!(shown(&servers, "web-2").is_some());
}

#[test]
fn only_copies_in_the_current_hub_namespace_are_shown() {
    let mut servers = servers(&["web-0"]);
    servers.put(
        &plane(),
        NAMESPACE,
        object(json!({ "metadata": { "name": "default", "uid": "n2" } })),
    );
    assert!(reconcile(&servers, "web-0").is_unchanged());
    assert!(sweeping(&servers).is_unchanged());
    servers.remove(&plane(), NAMESPACE, "", "default");
    assert!(reconcile(&servers, "web-0").is_unchanged());
}

#[test]
fn an_unmarked_projection_of_our_owner_is_adopted_and_a_foreign_one_is_kept() {
    let unmarked = |owners: Value| {
        object(
            json!({ "metadata": { "name": "web-0", "namespace": "default", "uid": "i", "resourceVersion": "1",
            "generation": 1, "ownerReferences": owners }, "spec": {} }),
        )
    };
    let owner = json!([{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": "web",
        "uid": "wd" }]);
    let mut ours = servers(&["web-0"]);
    ours.put(&plane(), kind::INSTANCE, unmarked(owner));
    ours.settle(|servers| reconcile(servers, "web-0"));
    let one = shown(&ours, "web-0").unwrap();
    assert_eq!((one.uid(), one.marked()), ("i", true));

    let mut foreign = servers(&["web-0"]);
    foreign.put(&plane(), kind::INSTANCE, unmarked(json!([])));
    let plan = reconcile(&foreign, "web-0");
    assert!(plan.is_unchanged() && matches!(plan.notes[..], [Note::Foreign(_)]));
    assert!(sweeping(&foreign).is_unchanged());
}

#[test]
fn warnings_are_repeated_in_the_project_at_transitions_only() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    for (type_, reason) in [
        ("Ready", "InstanceCrashing"),
        ("Ready", "ConfigurationError"),
        ("Ready", "NetworkFailedToCreate"),
        ("QuotaGranted", "QuotaNoBudget"),
        ("Ready", "ImageUnavailable"),
    ] {
        servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
            let list = one.data["status"]["conditions"].as_array_mut().unwrap();
            let told = json!({ "type": type_, "status": "False", "reason": reason, "message": "é".repeat(2000) });
            conditions::put(list, told);
        });
        let plan = reconcile(&servers, "web-0");
        let told: Vec<&str> = plan.events.iter().map(|event| event.reason.as_str()).collect();
        assert_eq!(told, [reason]);
        assert!(plan.events[0].note.len() <= 1024);
        servers.apply(&plan);
        assert!(reconcile(&servers, "web-0").is_unchanged());
    }

    // One that a user deleted comes back with the way to restart.
    servers.remove(&plane(), kind::INSTANCE, "default", "web-0");
    let copy = servers.get(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0").unwrap();
    let plan = with(&servers, |seen| show(seen, copy, carried(&servers), None, Some("old")));
    assert!(plan.events[0].note.contains("restartedAt"));
    // Also where it was made again before anybody knew that it had gone, and not while it is there.
    servers.settle(|servers| reconcile(servers, "web-0"));
    let (copy, again) = (
        servers.get(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0").unwrap(),
        shown(&servers, "web-0").unwrap(),
    );
    let reported = |uid: &str| {
        with(&servers, |seen| {
            show(seen, copy, carried(&servers), Some(again), Some(uid))
        })
        .events
        .len()
    };
    assert_eq!((reported("old"), reported(again.uid())), (1, 0));
}

#[test]
fn a_copy_that_exceeds_a_limit_is_not_shown_and_nothing_is_swept_for_it() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    let before = shown(&servers, "web-0").cloned();
    assert!(before.is_some());
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0", |one| {
        *one = crate::testing::deepened(one, "spec", 200);
    });
    servers.settle(|servers| reconcile(servers, "web-0"));
    assert_eq!(shown(&servers, "web-0"), before.as_ref());
    assert!(sweeping(&servers).is_unchanged());
}

/// It was unjoined, or the hub was restored from a backup older than its join: it may come back.
#[test]
fn what_is_shown_of_a_cell_whose_cluster_is_absent_stays_until_its_copy_goes() {
    let mut servers = servers(&["web-0"]);
    servers.settle(|servers| reconcile(servers, "web-0"));
    servers.remove(&Plane::Hub, kind::CLUSTER, "", "dfw-01");
    assert!(sweeping(&servers).is_unchanged());
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(sweeping(&servers).actions.len(), 1);
}

/// What is shown of these copies of a cell, after as many reconciles as anything changes.
fn names_shown(servers: &mut FakeServers, copies: &[&str]) -> Vec<String> {
    for name in copies {
        servers.settle(|servers| reconcile(servers, name));
    }
    servers.settle(sweeping);
    let shown = servers.list(&plane(), kind::INSTANCE);
    shown.iter().map(|one| one.name().to_owned()).collect()
}

fn ask_for(servers: &mut FakeServers, replicas: i64) {
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.data["spec"]["scaleSettings"] = json!({ "minReplicas": replicas });
    });
}

#[test]
fn a_cell_fills_no_project_with_copies_that_no_slot_is_asked_for() {
    let thieves = [
        "web-0", "web-2", "web-3", "web-999", "web-1000", "web-00", "web-x", "web", "other-0",
    ];
    let mut servers = servers(&thieves);
    assert_eq!(names_shown(&mut servers, &thieves), ["web-0", "web-2"]);
    // What was let in under such a name before goes; what only exceeds the scale may run still.
    for name in ["web-x", "web-3"] {
        let before = json!({ "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1",
            "labels": { "compute.datumapis.com/managed-by": "popcell" } } });
        servers.put(&plane(), kind::INSTANCE, object(before));
    }
    assert_eq!(names_shown(&mut servers, &thieves), ["web-0", "web-2", "web-3"]);
}

#[test]
fn what_an_autoscaler_in_the_cell_runs_is_shown_up_to_the_most() {
    let all = ["web-0", "web-1", "web-4", "web-5"];
    let mut servers = servers(&all);
    let kind = kind::WORKLOAD_DEPLOYMENT;
    servers.change(&Plane::Hub, kind, "ns-n1", "web", |one| {
        one.data["spec"]["scaleSettings"] = json!({ "minReplicas": 1, "maxReplicas": 5 });
    });
    assert_eq!(names_shown(&mut servers, &all), ["web-0", "web-1", "web-4"]);
}

#[test]
fn what_runs_above_the_scale_is_shown_until_it_has_stopped() {
    let all = ["web-0", "web-1", "web-2"];
    let mut servers = servers(&all);
    assert_eq!(names_shown(&mut servers, &all).len(), 3);
    ask_for(&mut servers, 1);
    servers.change(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-2", |one| {
        one.data["status"]["conditions"][0]["reason"] = json!("Stopping");
    });
    assert_eq!(names_shown(&mut servers, &all).len(), 3);
    let last = shown(&servers, "web-2").unwrap();
    assert_eq!(last.text("/status/conditions/0/reason"), Some("Stopping"));
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-2");
    assert_eq!(names_shown(&mut servers, &all), ["web-0", "web-1"]);
    // Asked for again, it is shown again.
    servers.put(&Plane::Hub, kind::INSTANCE, copy("web-2", json!({})));
    assert_eq!(names_shown(&mut servers, &all).len(), 2);
    ask_for(&mut servers, 3);
    assert_eq!(names_shown(&mut servers, &all).len(), 3);
    // Nobody knows what the hub asks for: nothing comes.
    let one = servers.get(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-2").unwrap();
    let plan = with(&servers, |seen| show(seen, one, Observed::Unknown, None, None));
    assert!(
        plan.is_unchanged() && matches!(plan.notes[..], [Note::Unknown(_)]),
        "{plan:?}"
    );
}

#[test]
fn of_the_labels_of_a_copy_only_those_that_cells_set_are_shown() {
    let mut labels = json!({ "compute.datumapis.com/instance-index": "0", "compute.datumapis.com/other": "x" });
    for number in 0..1000 {
        labels[format!("thief.example.com/{number}")] = json!("x".repeat(63));
    }
    let mut servers = servers(&[]);
    servers.put(&Plane::Hub, kind::INSTANCE, copy("web-0", labels));
    servers.settle(|servers| reconcile(servers, "web-0"));
    let one = shown(&servers, "web-0").unwrap();
    let keys: Vec<&str> = one
        .metadata
        .labels
        .as_ref()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        keys,
        [
            "compute.datumapis.com/instance-index",
            "compute.datumapis.com/managed-by",
            "compute.datumapis.com/source-cluster",
            "compute.datumapis.com/workload-deployment-name",
            "compute.datumapis.com/workload-deployment-uid",
            "meta.datumapis.com/upstream-cluster-name",
        ]
    );
}
