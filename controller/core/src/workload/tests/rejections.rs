//! What a project's server refuses of a Workload, and what is refused of its WorkloadDeployments further down.

use super::*;
use crate::plan::Target;

const WORDS: &str = "ValidatingAdmissionPolicy 'p' denied request: no";

fn rejection(kind: kind::Kind, name: &str, verb: &'static str) -> Rejection {
    let plane = Plane::Project("p".to_owned());
    Rejection::new(&Target::namespaced(&plane, kind, "default", name), verb, WORDS)
}

fn refused(servers: &FakeServers, rejected: &[Rejection]) -> Plan {
    let plane = Plane::Project("p".to_owned());
    decide(&Observation {
        project: "p",
        workload: servers.get(&plane, kind::WORKLOAD, "default", "web").unwrap(),
        deployments: &servers.list(&plane, kind::WORKLOAD_DEPLOYMENT),
        bindings: Observed::Known(&servers.list(&plane, kind::LOCATION_BINDING)),
        networks: Observed::Known(&servers.list(&plane, kind::NETWORK)),
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected,
        now: testing::now(),
    })
}

/// The status of a plan alone, and its events: its other writes are those that are refused.
fn tell(servers: &mut FakeServers, rejected: &[Rejection]) -> Vec<String> {
    let mut plan = refused(servers, rejected);
    let events = plan.events.iter().map(|event| event.reason.clone()).collect();
    plan.actions.clear();
    servers.apply(&plan);
    events
}

#[test]
fn a_workload_deployment_that_is_refused_is_reported_once_on_the_workload_and_tried_again() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW", "ORD"]);
    let rejected = [rejection(kind::WORKLOAD_DEPLOYMENT, "web-us-ord", "create")];
    assert_eq!(tell(&mut servers, &rejected), ["Rejected"]);
    let message = format!("The project p rejects the creation of WorkloadDeployment web-us-ord: {WORDS}");
    let (said, reason, words) = available(&status(&servers));
    assert_eq!(
        (said.as_str(), reason.as_str(), words),
        ("False", "Rejected", format!("City ORD: {message}"))
    );
    let placement = conditions::find(&status(&servers)["placements"][0], types::AVAILABLE).cloned();
    assert_eq!(placement.unwrap()["message"], message);
    // What is refused is neither counted nor seen to.
    assert_eq!(status(&servers)["deployments"], 1);
    assert_eq!(status(&servers).get("observedGeneration"), None);
    let again = refused(&servers, &rejected);
    assert_eq!((again.actions.len(), again.status, again.events), (2, None, Vec::new()));

    // It is taken: nothing is left of it.
    servers.settle(decide_in);
    assert_eq!(available(&status(&servers)).1, reasons::NO_AVAILABLE_PLACEMENTS);
    assert_eq!(
        refused(&servers, &rejected),
        Plan::independent(),
        "there is no such write any more"
    );
}

#[test]
fn a_change_that_is_refused_is_reported_while_everything_runs() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.data["status"] = json!({ "conditions": [{ "type": "Available", "status": "True" }] });
    });
    servers.settle(decide_in);
    edit(&mut servers, |workload| {
        workload.metadata.generation = Some(4);
        workload.data["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(5);
    });
    tell(
        &mut servers,
        &[rejection(kind::WORKLOAD_DEPLOYMENT, "web-us-dfw", "patch")],
    );
    let (said, reason, words) = available(&status(&servers));
    assert_eq!((said.as_str(), reason.as_str()), ("True", "AvailablePlacementFound"));
    assert!(
        words.starts_with(messages::AVAILABLE_PLACEMENT_FOUND) && words.ends_with(WORDS),
        "{words}"
    );
    assert_eq!(status(&servers)["observedGeneration"], 3);
}

#[test]
fn a_removal_and_the_finalizer_that_are_refused_are_reported_too() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW", "ORD"]);
    servers.settle(decide_in);
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["cityCodes"] = json!(["DFW"])
    });
    tell(
        &mut servers,
        &[rejection(kind::WORKLOAD_DEPLOYMENT, "web-us-ord", "delete")],
    );
    assert!(
        available(&status(&servers))
            .2
            .contains("rejects the deletion of WorkloadDeployment web-us-ord")
    );

    let mut new = self::servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    edit(&mut new, |workload| workload.metadata.finalizers = None);
    tell(&mut new, &[rejection(kind::WORKLOAD, "web", "patch")]);
    assert_eq!(available(&status(&new)).1, "Rejected");
    new.settle(decide_in);
    assert_eq!(names(&new), ["web-us-dfw"]);
}

#[test]
fn what_is_refused_further_down_is_named_by_the_workload_whatever_runs() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    let words = format!("1/2 replicas available; The cell rejects the creation of Instance web-us-dfw-1: {WORDS}");
    for (serves, reason) in [("True", "AvailablePlacementFound"), ("False", "Rejected")] {
        edit_deployment(&mut servers, "web-us-dfw", |one| {
            let condition = |type_: &str, status: &str, reason: &str| json!({ "type": type_, "status": status, "reason": reason, "message": words });
            one.data["status"] = json!({ "conditions": [condition("Available", serves, "Rejected"),
                condition("ReplicasReady", "False", "Rejected")] });
        });
        servers.settle(decide_in);
        let (said, reported, message) = available(&status(&servers));
        assert_eq!((said.as_str(), reported.as_str()), (serves, reason));
        assert!(message.contains(&words), "{message}");
        let placement = conditions::find(&status(&servers)["placements"][0], types::AVAILABLE).cloned();
        let placement = placement.unwrap();
        assert!(conditions::text(&placement, "message").contains(&words), "{placement}");
    }
}
