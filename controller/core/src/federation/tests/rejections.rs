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

fn refused(servers: &FakeServers, rejected: &[Rejection]) -> Plan {
    pass_after(servers, "web", P, rejected)
}

/// The status of a plan, and its events: its other writes are those that are refused.
fn tell(servers: &mut FakeServers, rejected: &[Rejection]) -> Vec<String> {
    let mut plan = refused(servers, rejected);
    let events = plan.events.iter().map(|event| event.reason.clone()).collect();
    plan.actions.clear();
    plan.status = plan.fallback_status.take().or(plan.status);
    servers.apply(&plan);
    events
}

fn said(servers: &FakeServers, type_: &str) -> (String, String) {
    let status = in_project(servers, "web").at("/status").cloned().unwrap();
    let condition = conditions::find(&status, type_).cloned().unwrap_or_default();
    let text = |field| conditions::text(&condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn a_hub_that_takes_no_workload_deployment_is_reported_once_in_the_project() {
    let mut servers = servers(&[("web", "DFW")]);
    servers.apply(&reconcile(&servers.clone(), "web"));
    let rejected = [rejection(&Plane::Hub, "ns-n1", "create")];
    assert_eq!(tell(&mut servers, &rejected), ["Rejected"]);
    let message = format!("The platform rejects the creation of WorkloadDeployment web: {WORDS}");
    for type_ in ["Available", "ReplicasReady"] {
        assert_eq!(
            said(&servers, type_),
            ("Rejected".to_owned(), message.clone()),
            "{type_}"
        );
    }
    let counts = in_project(&servers, "web").at("/status").cloned().unwrap();
    assert!(
        crate::conditions::COUNTS.iter().all(|count| counts[*count] == 0),
        "{counts}"
    );
    let again = refused(&servers, &rejected);
    assert_eq!((again.status, again.events), (None, Vec::new()));
    assert!(!again.actions.is_empty(), "it is tried again");

    settle(&mut servers, "web");
    assert_eq!(said(&servers, "Available").1, "Waiting for city DFW");
    assert_eq!(said(&servers, "ReplicasReady").0, "");
}

#[test]
fn a_change_that_the_hub_refuses_is_reported_beside_what_runs() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.data["status"] = json!({ "replicas": 1, "readyReplicas": 1, "observedGeneration": 1, "conditions": [
            { "type": "Available", "status": "True", "reason": "StableInstanceFound", "message": "1/1" },
            { "type": "ReplicasReady", "status": "True", "reason": "ReplicasAvailable", "message": "1/1" }] });
    });
    settle(&mut servers, "web");
    change(&mut servers, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2);
    });
    let rejected = [rejection(&Plane::Hub, "ns-n1", "patch")];
    assert_eq!(tell(&mut servers, &rejected), ["Rejected"]);
    assert_eq!(said(&servers, "Available").0, "StableInstanceFound");
    assert_eq!(said(&servers, "ReplicasReady").0, "Rejected");
    assert!(said(&servers, "ReplicasReady").1.ends_with(WORDS));
    assert!(tell(&mut servers, &rejected).is_empty());
    assert_eq!(in_project(&servers, "web").int("/status/readyReplicas"), Some(1));

    settle(&mut servers, "web");
    assert_eq!(said(&servers, "ReplicasReady").0, "ReplicasAvailable");
}

#[test]
fn a_removal_and_the_finalizer_that_are_refused_are_reported_too() {
    let mut servers = servers(&[("web", "DFW")]);
    tell(&mut servers, &[rejection(&plane(), "default", "patch")]);
    assert_eq!(said(&servers, "Available").0, "Rejected");
    settle(&mut servers, "web");
    assert_eq!(said(&servers, "Available").1, "Waiting for city DFW");

    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    tell(&mut servers, &[rejection(&Plane::Hub, "ns-n1", "delete")]);
    let (reason, message) = said(&servers, "Available");
    assert_eq!(reason, DELETING);
    assert!(message.ends_with(WORDS), "{message}");
}
