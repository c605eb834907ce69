//! `maxReplicas`: an autoscaler of the cell, and the number that it asks for.

use super::*;
use crate::plan::Note;

/// Settings with metrics.
fn scaled(least: i64, most: i64) -> Value {
    let target = json!({ "averageUtilization": 60 });
    json!({ "minReplicas": least, "maxReplicas": most, "metrics": [{ "resource": { "name": "cpu", "target": target } }] })
}

/// One that runs `least` Instances, and may run more.
fn cell(least: i64, most: i64) -> Cell {
    let mut cell = Cell::new(least);
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(least, most));
    for ordinal in 0..least {
        cell.settle();
        cell.report(ordinal, true);
    }
    cell.settle();
    cell
}

/// As an autoscaler does, or `kubectl scale`.
fn ask(cell: &mut Cell, replicas: i64) {
    cell.edit(|one| one.data["spec"]["replicas"] = json!(replicas));
}

fn autoscaler(cell: &Cell) -> Option<&Object> {
    cell.servers
        .get(&Plane::Cell, kind::HORIZONTAL_POD_AUTOSCALER, NAMESPACE, "web")
}

fn edit_autoscaler(cell: &mut Cell, change: impl FnOnce(&mut Object)) {
    let kind = kind::HORIZONTAL_POD_AUTOSCALER;
    cell.servers.change(&Plane::Cell, kind, NAMESPACE, "web", change);
}

/// Status, reason and message of the condition.
fn condition(cell: &Cell) -> Option<(String, String, String)> {
    let condition = crate::conditions::of(cell.get()?, "Autoscaling")?;
    let text = |field| crate::conditions::text(condition, field).to_owned();
    Some((text("status"), text("reason"), text("message")))
}

fn reason(cell: &Cell) -> Option<String> {
    condition(cell).map(|(_, reason, _)| reason)
}

#[test]
fn with_room_above_the_least_and_metrics_the_cell_has_an_autoscaler() {
    let cell = cell(2, 5);
    let found = autoscaler(&cell).unwrap();
    assert_eq!(
        found.at("/spec").unwrap(),
        &json!({
            "scaleTargetRef": { "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": "web" },
            "minReplicas": 2, "maxReplicas": 5,
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": 60 } } }],
        })
    );
    assert!(found.marked() && found.controller().is_some_and(|owner| owner.uid == "wd"));
    // The subresource cannot be read before there is a number.
    assert_eq!(cell.get().unwrap().int("/spec/replicas"), Some(2));
    let selector = "compute.datumapis.com/workload-deployment-uid=wd";
    assert_eq!(cell.get().unwrap().text("/status/selector"), Some(selector));
    let message = "HorizontalPodAutoscaler web scales between 2 and 5 instances".to_owned();
    assert_eq!(
        condition(&cell),
        Some(("True".to_owned(), "AutoscalerCreated".to_owned(), message))
    );
}

#[test]
fn what_an_autoscaler_asks_for_counts_within_least_and_most_and_follows_the_order() {
    let mut cell = cell(1, 3);
    ask(&mut cell, 7);
    assert_eq!(cell.settle(), ["create web-1"]);
    cell.report(1, true);
    assert_eq!(cell.settle(), ["create web-2"]);
    cell.report(2, true);
    assert_eq!(cell.settle(), Vec::<String>::new());
    assert_eq!(cell.get().unwrap().int("/status/desiredReplicas"), Some(3));
    // The highest goes first, whatever it is like.
    cell.report(0, false);
    ask(&mut cell, 0);
    assert_eq!(cell.settle(), ["delete web-2", "delete web-1"]);
    assert_eq!(cell.get().unwrap().int("/status/desiredReplicas"), Some(1));
}

#[test]
fn a_changed_scale_is_carried_to_the_autoscaler_and_the_rest_of_it_stays() {
    let mut cell = cell(2, 5);
    edit_autoscaler(&mut cell, |one| {
        one.data["spec"]["behavior"] = json!({ "scaleDown": {} })
    });
    assert!(cell.plan().is_unchanged());
    cell.edit(|one| {
        one.data["spec"]["scaleSettings"] = scaled(3, 6);
        one.data["spec"]["scaleSettings"]["metrics"][0]["resource"]["target"] = json!({ "averageValue": "1000m" });
    });
    cell.settle();
    let spec = autoscaler(&cell).unwrap().at("/spec").unwrap().clone();
    assert_eq!((&spec["minReplicas"], &spec["maxReplicas"]), (&json!(3), &json!(6)));
    assert_eq!(spec["behavior"], json!({ "scaleDown": {} }));
    // The server writes a quantity in its own way.
    edit_autoscaler(&mut cell, |one| {
        one.data["spec"]["metrics"][0]["resource"]["target"]["averageValue"] = json!("1");
    });
    let rewritten = |plan: &Plan| {
        plan.writes()
            .any(|one| one.target().kind == kind::HORIZONTAL_POD_AUTOSCALER)
    };
    assert!(!rewritten(&cell.plan()));
    edit_autoscaler(&mut cell, |one| one.data["spec"]["maxReplicas"] = json!(1000));
    assert!(rewritten(&cell.plan()));
}

#[test]
fn an_autoscaler_that_nothing_asks_for_is_deleted_and_the_least_runs() {
    for settings in [
        json!({ "minReplicas": 1 }),
        scaled(1, 1),
        json!({ "minReplicas": 1, "maxReplicas": 3 }),
    ] {
        let mut cell = cell(1, 3);
        cell.edit(|one| one.data["spec"]["scaleSettings"] = settings.clone());
        cell.settle();
        assert_eq!(autoscaler(&cell), None, "{settings}");
        assert_eq!(condition(&cell), None, "{settings}");
    }
    // Its number ends with it, and nothing is said of it.
    let mut cell = cell(1, 3);
    ask(&mut cell, 2);
    cell.settle();
    cell.edit(|one| one.data["spec"]["scaleSettings"] = json!({ "minReplicas": 1 }));
    assert_eq!(cell.settle(), ["delete web-1"]);
    assert_eq!(condition(&cell), None);
    assert_eq!(cell.get().unwrap().at("/spec/replicas"), None);
}

#[test]
fn a_number_without_room_is_kept_and_reported() {
    let mut cell = Cell::running(1);
    ask(&mut cell, 2);
    assert_eq!(cell.settle(), Vec::<String>::new());
    assert_eq!(cell.get().unwrap().int("/spec/replicas"), Some(2));
    let message = "spec.replicas 2 is ignored: maxReplicas is not above minReplicas 1".to_owned();
    assert_eq!(
        condition(&cell),
        Some(("False".to_owned(), "ReplicasIgnored".to_owned(), message))
    );
    ask(&mut cell, 1);
    cell.settle();
    assert_eq!(condition(&cell), None);
}

#[test]
fn without_metrics_whoever_scales_it_has_room_and_no_autoscaler_is_made() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["scaleSettings"] = json!({ "minReplicas": 1, "maxReplicas": 2 }));
    cell.settle();
    assert_eq!(autoscaler(&cell), None);
    assert_eq!(cell.get().unwrap().int("/spec/replicas"), Some(1));
    ask(&mut cell, 2);
    assert_eq!(cell.settle(), ["create web-1"]);
    assert_eq!(condition(&cell), None);
}

#[test]
fn an_autoscaler_of_another_owner_is_kept_and_named() {
    let mut cell = Cell::running(1);
    let foreign = object(
        json!({ "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "x", "resourceVersion": "9",
        "labels": { "compute.datumapis.com/managed-by": "popcell" } }, "spec": { "maxReplicas": 9 } }),
    );
    cell.servers
        .put(&Plane::Cell, kind::HORIZONTAL_POD_AUTOSCALER, foreign.clone());
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(1, 3));
    cell.settle();
    assert_eq!(reason(&cell).as_deref(), Some("NameConflict"));
    assert!(
        condition(&cell)
            .unwrap()
            .2
            .contains("HorizontalPodAutoscaler web is held by another owner")
    );
    let is_foreign =
        |note: &Note| matches!(note, Note::Foreign(target) if target.kind == kind::HORIZONTAL_POD_AUTOSCALER);
    assert!(cell.plan().notes.iter().any(is_foreign));
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(1, 1));
    cell.settle();
    assert_eq!(autoscaler(&cell), Some(&foreign));
}

#[test]
fn a_cell_that_does_not_serve_autoscalers_says_so_and_deletes_nothing() {
    let mut cell = Cell::running(1);
    cell.autoscalers = Observed::Unknown;
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(1, 3));
    cell.settle();
    assert_eq!(reason(&cell).as_deref(), Some("AutoscalersUnknown"));
    assert_eq!(autoscaler(&cell), None);
    cell.autoscalers = Observed::Known(());
    cell.settle();
    assert_eq!(reason(&cell).as_deref(), Some("AutoscalerCreated"));
    // A watch that is interrupted changes nothing that was said.
    cell.autoscalers = Observed::Unknown;
    assert!(cell.plan().is_unchanged());
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(1, 1));
    cell.settle();
    assert!(autoscaler(&cell).is_some());
}

#[test]
fn a_metric_that_an_autoscaler_does_not_take_is_named() {
    let mut cell = Cell::running(1);
    let mut settings = scaled(1, 3);
    settings["metrics"][0]["resource"]["target"] = json!({ "value": "2" });
    cell.edit(|one| one.data["spec"]["scaleSettings"] = settings);
    cell.settle();
    assert_eq!(reason(&cell).as_deref(), Some("UnsupportedMetric"));
    assert!(
        condition(&cell)
            .unwrap()
            .2
            .starts_with("metrics[0] needs averageUtilization or averageValue")
    );
    assert_eq!(autoscaler(&cell), None);
}

#[test]
fn an_autoscaler_that_the_server_rejects_is_reported_and_holds_up_nothing_else() {
    let mut cell = Cell::new(1);
    cell.edit(|one| one.data["spec"]["scaleSettings"] = scaled(1, 3));
    let kind = kind::HORIZONTAL_POD_AUTOSCALER;
    let target = crate::plan::Target::namespaced(&Plane::Cell, kind, NAMESPACE, "web");
    cell.rejected = vec![Rejection::new(&target, "create", "exceeded quota")];
    for _ in 0..5 {
        let mut plan = cell.plan();
        assert!(condition(&cell).is_none_or(|one| one.0 == "False"));
        // It is rejected again.
        plan.best_effort.clear();
        cell.servers.apply(&plan);
    }
    let message = "The cell rejects the creation of HorizontalPodAutoscaler web: exceeded quota".to_owned();
    assert_eq!(
        condition(&cell),
        Some(("False".to_owned(), "Rejected".to_owned(), message))
    );
    assert!(cell.instance(0).is_some());
    cell.rejected.clear();
    cell.settle();
    assert_eq!(reason(&cell).as_deref(), Some("AutoscalerCreated"));
}
