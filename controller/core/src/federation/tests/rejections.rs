//! What the hub's server, or the project's, refuses of a WorkloadDeployment.

use super::*;
use crate::conditions;
use crate::plan::Target;

const WORDS: &str = "admission webhook \"w\" denied the request: no";

fn rejection(plane: &Plane, namespace: &str, verb: &'static str) -> Rejection {
    Rejection::new(
        &Target::namespaced(plane, kind::WORKLOAD_DEPLOYMENT, namespace, "web"),
        verb,
        WORDS,
    )
}

fn refused(world: &World, rejected: &[Rejection]) -> Plan {
    pass_after(world, "web", P, rejected)
}

/// The status of a plan, and its events: its other writes are those that are refused.
fn tell(world: &mut World, rejected: &[Rejection]) -> Vec<String> {
    let mut plan = refused(world, rejected);
    let events = plan.events.iter().map(|event| event.reason.clone()).collect();
    plan.actions.clear();
    plan.status = plan.otherwise.take().or(plan.status);
    world.apply(&plan);
    events
}

fn said(world: &World, type_: &str) -> (String, String) {
    let status = in_project(world, "web").at("/status").cloned().unwrap();
    let condition = conditions::find(&status, type_).cloned().unwrap_or_default();
    let text = |field| conditions::text(&condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn a_hub_that_takes_no_workload_deployment_is_told_of_once_in_the_project() {
    let mut world = world(&[("web", "DFW")]);
    world.apply(&pass(&world.clone(), "web"));
    let rejected = [rejection(&Plane::Hub, "ns-n1", "create")];
    assert_eq!(tell(&mut world, &rejected), ["Rejected"]);
    let message = format!("The hub rejects the creation of WorkloadDeployment web: {WORDS}");
    for type_ in ["Available", "ReplicasReady"] {
        assert_eq!(said(&world, type_), ("Rejected".to_owned(), message.clone()), "{type_}");
    }
    let counts = in_project(&world, "web").at("/status").cloned().unwrap();
    assert!(
        crate::counts::COUNTS.iter().all(|count| counts[*count] == 0),
        "{counts}"
    );
    let again = refused(&world, &rejected);
    assert_eq!((again.status, again.events), (None, Vec::new()));
    assert!(!again.actions.is_empty(), "it is tried again");

    settle(&mut world, "web");
    assert_eq!(said(&world, "Available").1, "Waiting for city DFW");
    assert_eq!(said(&world, "ReplicasReady").0, "");
}

#[test]
fn a_change_that_the_hub_refuses_is_told_beside_what_runs() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.data["status"] = json!({ "replicas": 1, "readyReplicas": 1, "observedGeneration": 1, "conditions": [
            { "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "1/1" },
            { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable", "message": "1/1" }] });
    });
    settle(&mut world, "web");
    change(&mut world, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2);
    });
    let rejected = [rejection(&Plane::Hub, "ns-n1", "patch")];
    assert_eq!(tell(&mut world, &rejected), ["Rejected"]);
    assert_eq!(said(&world, "Available").0, "StableInstanceFound");
    assert_eq!(said(&world, "ReplicasReady").0, "Rejected");
    assert!(said(&world, "ReplicasReady").1.ends_with(WORDS));
    assert!(tell(&mut world, &rejected).is_empty());
    assert_eq!(in_project(&world, "web").int("/status/readyReplicas"), Some(1));

    settle(&mut world, "web");
    assert_eq!(said(&world, "ReplicasReady").0, "ReplicasAvailable");
}

#[test]
fn a_removal_and_the_finalizer_that_are_refused_are_told_too() {
    let mut world = world(&[("web", "DFW")]);
    tell(&mut world, &[rejection(&plane(), "default", "patch")]);
    assert_eq!(said(&world, "Available").0, "Rejected");
    settle(&mut world, "web");
    assert_eq!(said(&world, "Available").1, "Waiting for city DFW");

    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    tell(&mut world, &[rejection(&Plane::Hub, "ns-n1", "delete")]);
    let (reason, message) = said(&world, "Available");
    assert_eq!(reason, DELETING);
    assert!(message.ends_with(WORDS), "{message}");
}
