use serde_json::Value;

use super::*;
use crate::plan::CONFIG_MAP;
use crate::plan::DeletionGuard;
use crate::testing::{FakeServers, object};

mod foreign;
mod homes;
mod sizes;

const DFW: Source<'static> = Source {
    name: "dfw-01",
    id: "uid-dfw",
};
const PROGRAM: &str = "popcell-system";

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

/// What an Instance, or the template of one, says of its size.
fn spec(instance_type: &str) -> Value {
    json!({ "runtime": { "resources": { "instanceType": instance_type } } })
}

fn deployment(replicas: i64) -> Object {
    object(
        json!({ "metadata": { "name": "web", "namespace": "ns-n1", "uid": "cell-wd", "resourceVersion": "1" },
        "spec": { "scaleSettings": { "minReplicas": replicas },
            "template": { "spec": spec("datumcloud/d1-standard-2") } } }),
    )
}

fn instance(gates: &[&str]) -> Object {
    let gates: Vec<_> = gates.iter().map(|name| json!({ "name": name })).collect();
    let mut spec = spec("datumcloud/d1-standard-2");
    spec["controller"] = json!({ "schedulingGates": gates });
    object(
        json!({ "metadata": { "name": "web-0", "namespace": "ns-n1", "uid": "cell-web-0", "resourceVersion": "1",
        "generation": 1 }, "spec": spec }),
    )
}

fn cell_namespace(labels: Value) -> Object {
    object(json!({ "metadata": { "name": "ns-n1", "uid": "cell-ns", "labels": labels } }))
}

fn of_project(name: &str) -> Value {
    json!({ "meta.datumapis.com/upstream-cluster-name": format!("cluster-{name}"),
        "meta.datumapis.com/upstream-namespace": "default" })
}

/// A cell with one slot and its gated Instance, of namespace `default` in project `p`.
fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    servers.put(&Plane::Cell, NAMESPACE, cell_namespace(of_project("org_p")));
    servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(1));
    servers.put(&Plane::Cell, kind::INSTANCE, instance(&["Network", "Quota"]));
    servers
}

fn see<T>(servers: &FakeServers, look: impl FnOnce(&Observation<'_>) -> T) -> T {
    let claims = servers.list(&project(), kind::RESOURCE_CLAIM);
    look(&Observation {
        identity: &Identity::Matches,
        source: DFW,
        project: "p",
        namespace: "ns-n1",
        name: "web-0",
        cell_namespace: servers.get(&Plane::Cell, NAMESPACE, "", "ns-n1"),
        single: None,
        instance: servers.get(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0"),
        deployments: &servers.list(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT),
        claims: Observed::Known(&claims),
        record: servers.get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects"),
        program_namespace: PROGRAM,
    })
}

fn reconcile(servers: &FakeServers) -> Plan {
    see(servers, decide)
}

fn settle(servers: &mut FakeServers) {
    servers.settle(reconcile);
}

fn held(servers: &FakeServers) -> Option<&Object> {
    servers.get(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0")
}

fn end_instance(servers: &mut FakeServers) {
    servers.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
}

#[test]
fn a_claim_is_created_in_the_project_and_says_what_it_is_for() {
    let mut servers = servers();
    settle(&mut servers);
    let claim = held(&servers).unwrap();
    let reference = json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p" });
    let expected = json!({ "consumerRef": reference, "resourceRef": reference, "requests": [
        { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
        { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
        { "resourceType": "compute.datumapis.com/memory", "amount": 2048 } ] });
    assert_eq!(claim.data, json!({ "spec": expected }));
    let labels = json!({ "compute.datumapis.com/source-cluster": "dfw-01",
        "compute.datumapis.com/instance-namespace": "ns-n1" });
    assert_eq!(serde_json::to_value(&claim.metadata.labels).unwrap(), labels);
    assert_eq!(crate::removed_cells::of(claim), Some(DFW));
    assert_eq!(instance_of(claim), Some(("ns-n1", "web-0")));
    // The cell has no claims.
    assert!(servers.list(&Plane::Cell, kind::RESOURCE_CLAIM).is_empty());
    assert_eq!(reconcile(&servers), Plan::default());
}

#[test]
fn a_project_is_recorded_before_its_first_claim() {
    let with_others = object(
        json!({ "metadata": { "name": "popcell-claim-projects", "namespace": PROGRAM, "uid": "cm",
        "resourceVersion": "1" }, "data": { "other": "" } }),
    );
    let empty = object(
        json!({ "metadata": { "name": "popcell-claim-projects", "namespace": PROGRAM, "uid": "cm",
        "resourceVersion": "1" } }),
    );
    for record in [None, Some(with_others), Some(empty)] {
        let mut servers = servers();
        let others = record.as_ref().map_or(0, |one| projects::recorded(Some(one)).count());
        if let Some(record) = record {
            servers.put(&Plane::Cell, CONFIG_MAP, record);
        }
        let plan = reconcile(&servers);
        let [first, Action::Create { target, .. }] = plan.actions.as_slice() else {
            panic!("{plan:?}");
        };
        assert_eq!((&first.target().plane, first.target().kind), (&Plane::Cell, CONFIG_MAP));
        assert_eq!((&target.plane, target.kind), (&project(), kind::RESOURCE_CLAIM));
        // A death in between leaves the entry and no claim.
        servers.apply_start(&plan, 1);
        let record = servers.get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects");
        let projects: Vec<_> = projects::recorded(record).map(|(project, _)| project).collect();
        assert_eq!((projects.len(), projects.contains(&"p")), (others + 1, true));
        assert!(held(&servers).is_none());
        assert_eq!(reconcile(&servers).actions.len(), 1);
        settle(&mut servers);
        assert!(held(&servers).is_some());
    }
}

#[test]
fn a_slot_without_instance_keeps_an_equal_claim_and_creates_none() {
    let mut servers = servers();
    let mut empty = servers.clone();
    end_instance(&mut empty);
    assert_eq!(reconcile(&empty), Plan::default());

    settle(&mut servers);
    let before = held(&servers).cloned();
    end_instance(&mut servers);
    assert_eq!(reconcile(&servers), Plan::default());
    servers.put(&Plane::Cell, kind::INSTANCE, instance(&["Quota"]));
    assert_eq!(reconcile(&servers), Plan::default());
    assert_eq!(held(&servers).cloned(), before);
}

#[test]
fn a_claim_that_nothing_needs_is_deleted_with_proof() {
    let mut servers = servers();
    settle(&mut servers);
    servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    // As long as the Instance is there, so is its claim: also while it is being torn down.
    assert_eq!(reconcile(&servers), Plan::default());
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    servers.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(reconcile(&servers), Plan::default());

    end_instance(&mut servers);
    let plan = reconcile(&servers);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    let source = Target::namespaced(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(delete.proofs, [Proof::Gone { source, uid: None }]);
    // The WorkloadDeployment lives and asks for fewer: a user scaled it down.
    let source = Target::namespaced(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let uid = deployment(0).uid().to_owned();
    let not_served = || Proof::NotServed {
        cluster: DFW.name.to_owned(),
        deployment: Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web"),
    };
    assert_eq!(
        delete.deletion_guard,
        DeletionGuard::Unless(vec![Proof::Lives { source, uid }, not_served()])
    );
    // Gone from the cell, it has to be gone from the hub too; in single-cluster mode the cell is where it was made.
    let mut lost = servers.clone();
    lost.remove(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let Action::Delete(of_lost) = reconcile(&lost).actions.remove(0) else {
        panic!("no delete");
    };
    let source = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let gone = Proof::Gone { source, uid: None };
    assert_eq!(of_lost.deletion_guard, DeletionGuard::Unless(vec![gone, not_served()]));
    // One of that name that came meanwhile keeps it.
    let mut anew = servers.clone();
    anew.put(&Plane::Cell, kind::INSTANCE, instance(&["Quota"]));
    anew.apply(&plan);
    assert!(held(&anew).is_some());
    settle(&mut servers);
    assert!(held(&servers).is_none());
    // A claim that is gone already is as good.
    assert_eq!(reconcile(&servers), Plan::default());
}

#[test]
fn an_instance_that_is_being_deleted_gets_no_claim() {
    let mut servers = servers();
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    servers.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(reconcile(&servers), Plan::default());
}

#[test]
fn an_unreachable_project_loses_no_claim() {
    let mut left = servers();
    settle(&mut left);
    left.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    end_instance(&mut left);
    for servers in [&servers(), &left] {
        assert!(!reconcile(servers).is_unchanged());
        let plan = see(servers, |seen| {
            decide(&Observation {
                claims: Observed::Unknown,
                ..*seen
            })
        });
        assert!(
            plan.is_unchanged() && plan.notes == [Note::Unknown(project())],
            "{plan:?}"
        );
        // Nor does a cell write whose identity is not confirmed.
        for identity in [Identity::Mismatch("another".to_owned()), Identity::Unknown] {
            let plan = see(servers, |seen| {
                decide(&Observation {
                    identity: &identity,
                    ..*seen
                })
            });
            assert!(plan.is_unchanged(), "{plan:?}");
        }
    }
}

#[test]
fn a_claim_that_is_being_deleted_is_waited_for() {
    let mut servers = servers();
    settle(&mut servers);
    servers.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.metadata.finalizers = Some(vec!["quota".to_owned()]);
    });
    servers.delete(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0");
    let plan = reconcile(&servers);
    assert!(plan.is_unchanged(), "{plan:?}");
    assert_eq!(plan.requeue, Some(Duration::from_secs(1)));
    assert!(matches!(plan.notes[..], [Note::WaitsFor(_)]));
    let mut slot = servers.clone();
    end_instance(&mut slot);
    assert_eq!(reconcile(&slot), Plan::default());

    servers.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.metadata.finalizers = None;
    });
    settle(&mut servers);
    assert!(!held(&servers).unwrap().deleting());
}

#[test]
fn each_answer_to_the_creation_of_a_claim_has_its_reason() {
    for (code, namespace_is_missing, reason) in [
        (404, false, "QuotaProjectNotFound"),
        (404, true, "QuotaNamespaceNotFound"),
        (403, false, "QuotaMisconfigured"),
        (422, false, "QuotaMisconfigured"),
        (401, false, "QuotaBackendUnavailable"),
        (429, false, "QuotaBackendUnavailable"),
        (503, false, "QuotaBackendUnavailable"),
        (0, false, "QuotaBackendUnavailable"),
    ] {
        assert_eq!(refusal(code, namespace_is_missing), reason, "{code}");
    }
}
