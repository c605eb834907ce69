//! Every gate and terminal condition of a WorkloadDeployment in its cell, with every kind of change.

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gate {
    None,
    /// Networks are not there, and no Location is either.
    Networks,
    /// The claim of an Instance is refused.
    Quota,
    /// Another owner's object has the name of a slot.
    NameConflict,
    /// The template cannot be read.
    Unreadable,
    /// It was taken in with a city code that cannot be one.
    InvalidCityCode,
    Paused,
}

fn closed(gate: Gate) -> Cell {
    let mut cell = Cell::running(3);
    match gate {
        Gate::Networks => cell.networking = true,
        Gate::Quota => cell.edit_instance(1, |one| {
            one.data["spec"]["controller"]["schedulingGates"] = json!([{ "name": "Quota" }]);
            one.data["status"]["conditions"] = json!([
                { "type": "QuotaGranted", "status": "False", "reason": "QuotaExceeded", "message": "m" },
                { "type": "Ready", "status": "False", "reason": "PendingQuota", "message": "m" }]);
        }),
        Gate::NameConflict => {
            cell.servers.remove(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
            let foreign = object(
                json!({ "metadata": { "name": "web-1", "namespace": NAMESPACE, "uid": "x",
                "resourceVersion": "9" }, "spec": {} }),
            );
            cell.servers.put(&Plane::Cell, kind::INSTANCE, foreign);
        }
        Gate::Unreadable => cell.edit(|one| one.data["spec"]["template"] = json!({})),
        Gate::InvalidCityCode => cell.edit(|one| one.data["spec"]["cityCode"] = json!("d_w")),
        Gate::Paused => cell.edit(|one| {
            one.metadata.annotations = Some([("compute.datumapis.com/paused".to_owned(), "true".to_owned())].into());
        }),
        Gate::None => {}
    }
    cell.settle();
    cell
}

#[test]
fn what_holds_growth_holds_neither_what_shrinks_nor_what_goes() {
    for gate in [
        Gate::None,
        Gate::Networks,
        Gate::Quota,
        Gate::NameConflict,
        Gate::Unreadable,
        Gate::InvalidCityCode,
        Gate::Paused,
    ] {
        let moves = gate != Gate::Paused;
        let gone = |cell: &Cell, ordinal| cell.instance(ordinal).is_none();
        // Fewer replicas: the highest slot goes.
        let mut cell = closed(gate);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
        cell.settle();
        assert_eq!(gone(&cell, 2), moves, "{gate:?}: fewer replicas");
        assert!(!gone(&cell, 0), "{gate:?}: no more than that");
        // An Instance that fails with an old template is replaced.
        let mut cell = closed(gate);
        cell.report(2, false);
        if gate != Gate::Unreadable {
            cell.edit(|one| one.data["spec"]["template"] = template("two"));
        }
        cell.settle();
        let image = |one: &Object| {
            one.text("/spec/runtime/sandbox/containers/0/image")
                .unwrap_or_default()
                .to_owned()
        };
        let is_new = cell.instance(2).is_none_or(|one| image(one) == "two");
        assert_eq!(is_new, moves && gate != Gate::Unreadable, "{gate:?}: repair");
        // It goes, and all that is its own.
        let mut cell = closed(gate);
        let foreign = usize::from(gate == Gate::NameConflict);
        cell.servers
            .delete(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, "web");
        cell.settle();
        let left = cell.servers.list(&Plane::Cell, kind::INSTANCE).len();
        assert_eq!(left == foreign && cell.get().is_none(), moves, "{gate:?}: delete");
        // More replicas: what is held is one slot, and it says so.
        let mut cell = closed(gate);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(4));
        cell.settle();
        let grows = matches!(gate, Gate::None | Gate::Networks | Gate::InvalidCityCode);
        assert_eq!(cell.instance(3).is_some(), grows, "{gate:?}: more replicas");
    }
}

#[test]
fn a_city_that_may_not_be_used_gets_nothing_new_and_what_runs_continues() {
    // Nothing is made of a new one, whether it is told yet or not.
    let mut cell = Cell::new(2);
    cell.edit(|one| one.metadata.finalizers = None);
    cell.served = Observed::Unknown;
    let plan = cell.plan();
    assert!(plan.actions.is_empty() && plan.status.is_none());
    cell.served = Observed::Known(false);
    cell.settle();
    assert!(cell.instance(0).is_none() && cell.get().unwrap().metadata.finalizers.is_none());
    assert_eq!(condition(&cell), ("NoMatchingLocation".to_owned(), "False".to_owned()));
    cell.served = Observed::Known(true);
    assert_eq!(cell.settle(), ["create web-0"]);

    for served in [Observed::Known(false), Observed::Unknown] {
        let mut cell = Cell::running(3);
        cell.served = served;
        // No more; what is lost comes back, whichever it is.
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(4));
        assert!(cell.settle().is_empty());
        let expected = if served == Observed::Unknown {
            "StableInstanceFound"
        } else {
            "NoMatchingLocation"
        };
        assert_eq!(condition(&cell).0, expected);
        cell.derived = true;
        cell.settle();
        assert_eq!(condition(&cell).0, "StableInstanceFound", "its Workload tells");
        cell.derived = false;
        cell.settle();
        for (ordinal, name) in [(1, "web-1"), (2, "web-2")] {
            cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, name);
            assert_eq!(cell.settle(), [format!("create {name}")]);
            cell.report(ordinal, true);
        }
        // No larger ones; what is lost meanwhile would be one.
        cell.edit(|one| {
            one.data["spec"]["template"]["spec"]["runtime"]["resources"]["requests"] =
                json!({ "cpu": "64", "memory": "1Gi" });
        });
        assert!(cell.settle().is_empty());
        cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-1");
        assert!(cell.settle().is_empty(), "it would be another one");
        // Repairs, one after the other, and fewer.
        cell.edit(|one| one.data["spec"]["template"] = template("two"));
        assert_eq!(cell.settle(), ["create web-1"]);
        cell.report(1, true);
        assert_eq!(cell.settle(), ["delete web-2", "create web-2"]);
        cell.report(2, true);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1));
        // The last one is all that says what ran: it is neither repaired nor recreated.
        assert_eq!(cell.settle(), ["delete web-2", "delete web-1"]);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(2));
        assert!(cell.settle().is_empty(), "what was given up is more");
        cell.servers.delete(&Plane::Cell, kind::INSTANCE, NAMESPACE, "web-0");
        assert!(cell.settle().is_empty(), "it may be larger");
        cell.served = Observed::Known(true);
        assert_eq!(cell.settle()[0], "create web-0");
    }
}

fn condition(cell: &Cell) -> (String, String) {
    let status = cell.get().unwrap().at("/status").cloned().unwrap_or_default();
    let found = crate::conditions::find(&status, "Available")
        .cloned()
        .unwrap_or_default();
    let text = |field| crate::conditions::text(&found, field).to_owned();
    (text("reason"), text("status"))
}
