use serde_json::Value;

use super::*;
use crate::plan::Brake;
use crate::plan::CONFIG_MAP;
use crate::testing::{World, object};

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
fn world() -> World {
    let mut world = World::default();
    world.put(&Plane::Cell, NAMESPACE, cell_namespace(of_project("org_p")));
    world.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(1));
    world.put(&Plane::Cell, kind::INSTANCE, instance(&["Network", "Quota"]));
    world
}

fn see<T>(world: &World, look: impl FnOnce(&Observation<'_>) -> T) -> T {
    let claims = world.list(&project(), kind::RESOURCE_CLAIM);
    look(&Observation {
        identity: &Identity::Matches,
        source: DFW,
        project: "p",
        namespace: "ns-n1",
        name: "web-0",
        cell_namespace: world.get(&Plane::Cell, NAMESPACE, "", "ns-n1"),
        single: None,
        instance: world.get(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0"),
        deployments: &world.list(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT),
        claims: Observed::Known(&claims),
        record: world.get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects"),
        program_namespace: PROGRAM,
    })
}

fn pass(world: &World) -> Plan {
    see(world, decide)
}

fn settle(world: &mut World) {
    world.settle(pass);
}

fn held(world: &World) -> Option<&Object> {
    world.get(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0")
}

fn end_instance(world: &mut World) {
    world.remove(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
}

#[test]
fn a_claim_is_created_in_the_project_and_says_what_it_is_for() {
    let mut world = world();
    settle(&mut world);
    let claim = held(&world).unwrap();
    let reference = json!({ "apiGroup": "resourcemanager.miloapis.com", "kind": "Project", "name": "p" });
    let expected = json!({ "consumerRef": reference, "resourceRef": reference, "requests": [
        { "resourceType": "compute.datumapis.com/instances", "amount": 1 },
        { "resourceType": "compute.datumapis.com/vcpus", "amount": 1000 },
        { "resourceType": "compute.datumapis.com/memory", "amount": 2048 } ] });
    assert_eq!(claim.data, json!({ "spec": expected }));
    let labels = json!({ "compute.datumapis.com/source-cluster": "dfw-01",
        "compute.datumapis.com/instance-namespace": "ns-n1" });
    assert_eq!(serde_json::to_value(&claim.metadata.labels).unwrap(), labels);
    assert_eq!(crate::sources::of(claim), Some(DFW));
    assert_eq!(instance_of(claim), Some(("ns-n1", "web-0")));
    // The cell has no claims.
    assert!(world.list(&Plane::Cell, kind::RESOURCE_CLAIM).is_empty());
    assert_eq!(pass(&world), Plan::default());
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
        let mut world = world();
        let others = record.as_ref().map_or(0, |one| projects::recorded(Some(one)).count());
        if let Some(record) = record {
            world.put(&Plane::Cell, CONFIG_MAP, record);
        }
        let plan = pass(&world);
        let [first, Action::Create { target, .. }] = plan.actions.as_slice() else {
            panic!("{plan:?}");
        };
        assert_eq!((&first.target().plane, first.target().kind), (&Plane::Cell, CONFIG_MAP));
        assert_eq!((&target.plane, target.kind), (&project(), kind::RESOURCE_CLAIM));
        // A death in between leaves the entry and no claim.
        world.apply_start(&plan, 1);
        let record = world.get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects");
        let projects: Vec<_> = projects::recorded(record).map(|(project, _)| project).collect();
        assert_eq!((projects.len(), projects.contains(&"p")), (others + 1, true));
        assert!(held(&world).is_none());
        assert_eq!(pass(&world).actions.len(), 1);
        settle(&mut world);
        assert!(held(&world).is_some());
    }
}

#[test]
fn a_slot_without_instance_keeps_an_equal_claim_and_creates_none() {
    let mut world = world();
    let mut empty = world.clone();
    end_instance(&mut empty);
    assert_eq!(pass(&empty), Plan::default());

    settle(&mut world);
    let before = held(&world).cloned();
    end_instance(&mut world);
    assert_eq!(pass(&world), Plan::default());
    world.put(&Plane::Cell, kind::INSTANCE, instance(&["Quota"]));
    assert_eq!(pass(&world), Plan::default());
    assert_eq!(held(&world).cloned(), before);
}

#[test]
fn a_claim_that_nothing_needs_is_deleted_with_proof() {
    let mut world = world();
    settle(&mut world);
    world.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    // As long as the Instance is there, so is its claim: also while it is being torn down.
    assert_eq!(pass(&world), Plan::default());
    world.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    world.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(pass(&world), Plan::default());

    end_instance(&mut world);
    let plan = pass(&world);
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
        delete.brake,
        Brake::Unless(vec![Proof::Lives { source, uid }, not_served()])
    );
    // Gone from the cell, it has to be gone from the hub too; in single-cluster mode the cell is where it was made.
    let mut lost = world.clone();
    lost.remove(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let Action::Delete(of_lost) = pass(&lost).actions.remove(0) else {
        panic!("no delete");
    };
    let source = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    let gone = Proof::Gone { source, uid: None };
    assert_eq!(of_lost.brake, Brake::Unless(vec![gone, not_served()]));
    // One of that name that came meanwhile keeps it.
    let mut anew = world.clone();
    anew.put(&Plane::Cell, kind::INSTANCE, instance(&["Quota"]));
    anew.apply(&plan);
    assert!(held(&anew).is_some());
    settle(&mut world);
    assert!(held(&world).is_none());
    // A claim that is gone already is as good.
    assert_eq!(pass(&world), Plan::default());
}

#[test]
fn an_instance_that_is_being_deleted_gets_no_claim() {
    let mut world = world();
    world.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    world.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(pass(&world), Plan::default());
}

#[test]
fn an_unreachable_project_loses_no_claim() {
    let mut left = world();
    settle(&mut left);
    left.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
    end_instance(&mut left);
    for world in [&world(), &left] {
        assert!(!pass(world).is_quiet());
        let plan = see(world, |seen| {
            decide(&Observation {
                claims: Observed::Unknown,
                ..*seen
            })
        });
        assert!(plan.is_quiet() && plan.notes == [Note::Unknown(project())], "{plan:?}");
        // Nor does a cell write whose identity is not confirmed.
        for identity in [Identity::Mismatch("another".to_owned()), Identity::Unknown] {
            let plan = see(world, |seen| {
                decide(&Observation {
                    identity: &identity,
                    ..*seen
                })
            });
            assert!(plan.is_quiet(), "{plan:?}");
        }
    }
}

#[test]
fn a_claim_that_is_being_deleted_is_waited_for() {
    let mut world = world();
    settle(&mut world);
    world.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.metadata.finalizers = Some(vec!["quota".to_owned()]);
    });
    world.delete(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0");
    let plan = pass(&world);
    assert!(plan.is_quiet(), "{plan:?}");
    assert_eq!(plan.requeue, Some(Duration::from_secs(1)));
    assert!(matches!(plan.notes[..], [Note::WaitsFor(_)]));
    let mut slot = world.clone();
    end_instance(&mut slot);
    assert_eq!(pass(&slot), Plan::default());

    world.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.metadata.finalizers = None;
    });
    settle(&mut world);
    assert!(!held(&world).unwrap().deleting());
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
