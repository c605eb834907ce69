//! What the cell's server refuses of a WorkloadDeployment.

use popcell_api::annotations;

use super::*;
use crate::conditions;
use crate::plan::Target;

const WORDS: &str = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no Instances here";

fn rejection(kind: kind::Kind, name: &str, verb: &'static str) -> Rejection {
    Rejection::new(&Target::namespaced(&Plane::Cell, kind, NAMESPACE, name), verb, WORDS)
}

impl Cell {
    /// A reconcile whose writes are refused: what is told all the same, and the events.
    fn refused(&mut self, rejection: Rejection) -> Vec<String> {
        self.rejected = vec![rejection];
        let mut plan = self.plan();
        let events = plan.events.iter().map(|event| event.reason.clone()).collect();
        assert!(plan.writes().next().is_some(), "it is tried again");
        plan.actions.clear();
        self.servers.apply(&plan);
        events
    }

    fn said(&self, type_: &str) -> (String, String, String) {
        let status = self
            .get()
            .and_then(|one| one.at("/status"))
            .cloned()
            .unwrap_or_default();
        let condition = conditions::find(&status, type_).cloned().unwrap_or_default();
        let text = |field| conditions::text(&condition, field).to_owned();
        (text("status"), text("reason"), text("message"))
    }
}

#[test]
fn a_cell_that_takes_no_instances_is_reported_once_with_all_counts() {
    let mut cell = Cell::new(2);
    assert_eq!(cell.refused(rejection(kind::INSTANCE, "web-0", "create")), ["Rejected"]);
    let (said, reason, message) = cell.said("Available");
    assert_eq!((said.as_str(), reason.as_str()), ("False", "Rejected"));
    assert_eq!(
        message,
        format!("The cell rejects the creation of Instance web-0: {WORDS}")
    );
    let (said, reason, message) = cell.said("ReplicasReady");
    assert_eq!((said.as_str(), reason.as_str()), ("False", "Rejected"));
    assert!(
        message.starts_with("0/2 replicas available; The cell rejects"),
        "{message}"
    );
    let status = cell.get().unwrap().at("/status").cloned().unwrap();
    assert_eq!(
        (&status["desiredReplicas"], &status["observedGeneration"]),
        (&json!(2), &json!(3))
    );
    let again = cell.plan();
    assert_eq!(
        (again.status, again.events),
        (None, Vec::new()),
        "an unchanged cluster state causes no event"
    );

    cell.rejected.clear();
    cell.settle();
    assert_eq!(cell.said("Available").1, "ProvisioningInstances");
}

#[test]
fn a_scale_up_that_is_refused_shows_what_is_desired() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
    assert_eq!(cell.refused(rejection(kind::INSTANCE, "web-1", "create")), ["Rejected"]);
    let status = cell.get().unwrap().at("/status").cloned().unwrap();
    assert_eq!(
        (&status["desiredReplicas"], &status["readyReplicas"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(cell.said("Available").0, "True");
    let (said, reason, message) = cell.said("ReplicasReady");
    assert_eq!((said.as_str(), reason.as_str()), ("False", "Rejected"));
    assert!(message.ends_with(WORDS), "{message}");
    // The user takes it back: there is nothing to refuse.
    cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1));
    cell.settle();
    assert_eq!(cell.said("ReplicasReady").1, "ReplicasAvailable");
}

#[test]
fn a_change_and_a_deletion_that_are_refused_are_reported_too() {
    let mut cell = Cell::running(1);
    cell.edit_instance(0, |one| one.metadata.labels = None);
    cell.refused(rejection(kind::INSTANCE, "web-0", "patch"));
    assert_eq!(cell.said("ReplicasReady").1, "Rejected", "also while all are Ready");
    let mut cell = Cell::running(1);
    cell.servers
        .delete(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, "web");
    cell.refused(rejection(kind::INSTANCE, "web-0", "delete"));
    assert!(
        cell.said("ReplicasReady")
            .2
            .contains("rejects the deletion of Instance web-0")
    );
    // The finalizer comes before everything.
    let mut cell = Cell::new(1);
    cell.edit(|one| one.metadata.finalizers = None);
    cell.refused(rejection(kind::WORKLOAD_DEPLOYMENT, "web", "patch"));
    assert_eq!(cell.said("Available").1, "Rejected");
}

#[test]
fn a_worse_cause_of_an_instance_is_reported_before() {
    let mut cell = Cell::running(1);
    cell.report(0, false);
    cell.edit(|one| one.data["spec"]["template"] = template("two"));
    cell.refused(rejection(kind::INSTANCE, "web-0", "delete"));
    assert_eq!(cell.said("Available").1, "InstanceCrashing");
}

#[test]
fn what_is_remembered_of_grants_is_written_before_what_is_refused() {
    let mut cell = Cell::new(2);
    cell.reconcile();
    cell.report(0, true);
    // The slot is granted, and the next one is refused.
    cell.rejected = vec![rejection(kind::INSTANCE, "web-1", "create")];
    let plan = cell.plan();
    let targets: Vec<&str> = plan
        .actions
        .iter()
        .map(|action| action.target().name.as_str())
        .collect();
    assert_eq!((targets, plan.status.is_some()), (vec!["web", "web-1"], true));
    cell.servers.apply(&Plan {
        actions: plan.actions[..1].to_vec(),
        ..Plan::default()
    });
    assert_eq!(cell.get().unwrap().annotation(annotations::GRANTED_SLOTS), Some("0"));
    cell.refused(rejection(kind::INSTANCE, "web-1", "create"));
    assert_eq!(cell.said("ReplicasReady").1, "Rejected");
    // Where that itself is refused, the rest is told all the same.
    let mut cell = Cell::new(1);
    cell.reconcile();
    cell.report(0, true);
    cell.refused(rejection(kind::WORKLOAD_DEPLOYMENT, "web", "patch"));
    assert_eq!(cell.said("ReplicasReady").1, "Rejected");
}

#[test]
fn what_is_refused_of_gates_copies_and_claims_is_reported_once_and_taken_back() {
    let of =
        |plane, kind, name: &str, verb| Rejection::new(&Target::namespaced(plane, kind, NAMESPACE, name), verb, WORDS);
    let project = Plane::Project("p".to_owned());
    for (refused, start) in [
        (
            of(&Plane::Cell, kind::INSTANCE, "web-0", "patch"),
            "The cell rejects the change of Instance web-0",
        ),
        (
            of(&Plane::Hub, kind::INSTANCE, "web-0", "create"),
            "The platform rejects the creation of Instance web-0",
        ),
        (
            of(&project, kind::RESOURCE_CLAIM, "instance-web-0", "create"),
            "The project p rejects the creation of ResourceClaim instance-web-0",
        ),
    ] {
        for ready in [true, false] {
            let mut cell = Cell::running(1);
            cell.report(0, ready);
            cell.settle();
            let before = cell.said("Available");
            cell.elsewhere = Some(refused.clone());
            let plan = cell.plan();
            // What is worse is reported before.
            assert_eq!(plan.events.len(), usize::from(ready), "{start}");
            assert!(
                plan.writes().next().is_none(),
                "this reconcile writes nothing but the status"
            );
            cell.servers.apply(&plan);
            let (said, reason, message) = cell.said("ReplicasReady");
            assert_eq!(said, "False");
            if ready {
                assert_eq!(cell.said("Available"), before, "running workloads are unaffected");
                assert_eq!(reason, "Rejected");
                assert!(message.contains(start) && message.ends_with(WORDS), "{message}");
            }
            let again = cell.plan();
            assert_eq!((again.status, again.events), (None, Vec::new()), "{start}");
            cell.elsewhere = None;
            cell.settle();
            assert_ne!(cell.said("ReplicasReady").1, "Rejected");
        }
    }
}

#[test]
fn a_claim_that_is_refused_is_reported_instead_of_a_budget_that_is_used_up() {
    let mut cell = Cell::new(1);
    cell.reconcile();
    let pending = json!([
        { "type": "QuotaGranted", "status": "False", "reason": "QuotaMisconfigured", "message": "refused" },
        { "type": "Ready", "status": "False", "reason": "PendingQuota", "message": "refused" },
    ]);
    cell.edit_instance(0, |one| one.data["status"] = json!({ "conditions": pending }));
    cell.settle();
    assert_eq!(cell.said("ReplicasReady").1, "QuotaExceeded");
    let target = Target::namespaced(
        &Plane::Project("p".to_owned()),
        kind::RESOURCE_CLAIM,
        "default",
        "instance-web-0",
    );
    cell.elsewhere = Some(Rejection::new(&target, "create", WORDS));
    cell.settle();
    for type_ in ["Available", "ReplicasReady"] {
        let (_, reason, message) = cell.said(type_);
        assert!(
            reason == "Rejected" && message.ends_with(WORDS),
            "{type_}: {reason}, {message}"
        );
    }
}
