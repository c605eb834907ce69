//! WorkloadDeployments: made directly, or from a Workload.

use super::*;

/// One that a tenant makes, with the template of the Workload of these tests.
fn direct() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": "mine", "namespace": "default" },
        "spec": {
            "workloadRef": { "name": "none", "uid": "none" }, "placementName": "us", "cityCode": "DFW",
            "template": workload()["spec"]["template"], "scaleSettings": { "minReplicas": 1 },
        },
    })
}

/// As popcell makes it from a Workload.
fn of(workload: &Value) -> Value {
    let mut made = direct();
    made["metadata"] = json!({ "name": "web-us-dfw", "namespace": "default", "labels": { "compute.datumapis.com/workload-uid": "u" },
        "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload", "name": "web", "uid": "u",
            "controller": true, "blockOwnerDeletion": true }] });
    made["spec"]["workloadRef"] = json!({ "name": "web", "uid": "u" });
    made["spec"]["template"] = workload["spec"]["template"].clone();
    made["spec"]["scaleSettings"] = workload["spec"]["placements"][0]["scaleSettings"].clone();
    made
}

fn reported(old: Option<&Value>, new: &Value, workload: Option<&Value>, cities: &[&str]) -> Vec<String> {
    let (old, workload) = (old.cloned().map(object), workload.cloned().map(object));
    let cities = cities.iter().copied().collect();
    let errors = validate_deployment(
        old.as_ref(),
        &object(new.clone()),
        workload.as_ref(),
        &cities,
        Observed::Known(&Catalogue::default()),
    );
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn one_made_directly_has_the_rules_of_a_workload() {
    const DFW: &[&str] = &["DFW"];
    assert_eq!(reported(None, &direct(), None, DFW), Vec::<String>::new());
    let instance = "/spec/template/spec";
    let at = |rest: &str| format!("{instance}{rest}");
    for (pointer, value, expected) in [
        (
            "/spec/cityCode".to_owned(),
            json!("LHR"),
            r#"spec.cityCode: Unsupported value: "LHR": supported values: "DFW""#,
        ),
        (
            "/spec/cityCode".to_owned(),
            json!("nyc_1"),
            "spec.cityCode: Invalid value: \"nyc_1\"",
        ),
        (
            "/spec/placementName".to_owned(),
            json!("A_b"),
            "spec.placementName: Invalid value",
        ),
        (
            "/metadata/name".to_owned(),
            json!("a".repeat(60)),
            "metadata.name: Invalid value",
        ),
        (
            "/spec/scaleSettings/minReplicas".to_owned(),
            json!(1001),
            "spec.scaleSettings.minReplicas: Invalid value: 1001",
        ),
        (
            at("/runtime/resources/instanceType"),
            json!("huge"),
            "spec.template.spec.runtime.resources.instanceType: Unsupported value: \"huge\"",
        ),
        (
            at("/runtime/resources/requests"),
            json!({ "cpu": "1" }),
            "runtime.resources.requests: Forbidden: not implemented",
        ),
        (
            at("/runtime/sandbox/containers/0/resources"),
            json!({ "limits": { "cpu": "1" } }),
            "containers[0].resources: Forbidden: not implemented",
        ),
        (at("/networkInterfaces"), json!([]), "networkInterfaces: Required value"),
        (
            "/spec/template/metadata".to_owned(),
            json!({ "labels": { "work.karmada.io/name": "x" } }),
            "spec.template.metadata.labels[work.karmada.io/name]: Forbidden: the key is reserved",
        ),
        // A Workload's schema has no place for these.
        (
            at("/hostNetwork"),
            json!(true),
            "spec.template.spec.hostNetwork: Forbidden: unknown field",
        ),
        (
            at("/runtime/sandbox/containers/0/securityContext"),
            json!({ "privileged": true }),
            "containers[0].securityContext: Forbidden: unknown field",
        ),
        (
            at("/runtime/sandbox/containers/0/env"),
            json!([{ "name": "A", "value": "b", "of": 1 }]),
            "containers[0].env[0].of: Forbidden: unknown field",
        ),
        (
            "/spec/template".to_owned(),
            json!("x"),
            "spec: Invalid value: \"...\": cannot be read",
        ),
    ] {
        let mut whole = direct();
        set(&mut whole, &pointer, value.clone());
        let found = reported(None, &whole, None, DFW);
        assert!(
            found.iter().any(|one| one.contains(expected)),
            "{pointer} = {value}: {found:#?} lacks {expected}"
        );
    }
}

#[test]
fn every_fault_of_a_template_is_found_in_both_kinds() {
    let mut bad = workload();
    let template = &mut bad["spec"]["template"];
    template["metadata"] = json!({ "labels": { "karmada.io/a": "x" }, "annotations": { "a b": "" } });
    template["spec"]["runtime"]["resources"]["instanceType"] = json!("huge");
    template["spec"]["volumes"][0]["name"] = json!("A");
    template["spec"]["networkInterfaces"] = json!([]);
    let mut same = direct();
    same["spec"]["template"] = bad["spec"]["template"].clone();
    let found = faults(None, bad);
    assert!(found.len() > 4, "{found:#?}");
    assert_eq!(reported(None, &same, None, &["DFW"]), found);
}

#[test]
fn what_runs_something_else_than_its_workload_is_asked_for_what_it_reads() {
    let mut asked = workload();
    let container = "/spec/template/spec/runtime/sandbox/containers/0";
    asked.pointer_mut(container).unwrap()["envFrom"] = json!([{ "secretRef": { "name": "db" } }]);
    let (made, workload) = (of(&asked), object(asked.clone()));
    let named = |old: Option<&Value>, new: &Value| -> Vec<String> {
        let old = old.map(|one| object(one.clone()));
        let uses = uses_to_review(old.as_ref(), &object(new.clone()), Some(&workload));
        uses.into_iter().map(|one| one.name).collect()
    };
    assert_eq!(named(None, &made), Vec::<String>::new());
    let mut other = made.clone();
    other.pointer_mut(container).unwrap()["image"] = json!("mine:1");
    assert_eq!(named(None, &other), ["db"]);
    assert_eq!(named(Some(&made), &other), ["db"]);
    assert_eq!(named(Some(&other), &made), Vec::<String>::new());
}

#[test]
fn what_a_living_workload_asks_for_is_not_reviewed_again() {
    let mut asked = workload();
    // From before a rule, in a city that has lost its binding.
    asked["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("old");
    asked["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(5000);
    let made = of(&asked);
    assert_eq!(reported(None, &made, Some(&asked), &[]), Vec::<String>::new());
    assert_eq!(
        city_to_review(None, &object(made.clone()), Some(&object(asked.clone()))),
        None
    );
    assert_eq!(
        uses_to_review(None, &object(made.clone()), Some(&object(asked.clone()))),
        []
    );
    // The claim alone is worth nothing, nor is a Workload that asks for something else.
    let mut other = asked.clone();
    other["metadata"]["uid"] = json!("u2");
    let mut elsewhere = asked.clone();
    elsewhere["spec"]["placements"][0]["cityCodes"] = json!(["ORD"]);
    for workload in [None, Some(&other), Some(&elsewhere)] {
        let found = reported(None, &made, workload, &[]);
        assert!(
            found.iter().any(|one| one.starts_with("spec.cityCode: Unsupported")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|one| one.contains("instanceType: Unsupported")),
            "{found:?}"
        );
        let uses = uses_to_review(None, &object(made.clone()), workload.cloned().map(object).as_ref());
        assert_eq!(uses.len(), 1);
    }
    // What is changed on the way is reviewed.
    let mut changed = made.clone();
    changed["spec"]["template"]["spec"]["networkInterfaces"] = json!([{ "network": { "name": "theirs" } }]);
    changed["spec"]["scaleSettings"]["minReplicas"] = json!(6000);
    let found = reported(Some(&made), &changed, Some(&asked), &[]);
    assert!(found.iter().any(|one| one.contains("instanceType")), "{found:?}");
    assert!(
        found.iter().any(|one| one.contains("minReplicas: Invalid value: 6000")),
        "{found:?}"
    );
    let uses = uses_to_review(Some(&object(made)), &object(changed), Some(&object(asked)));
    assert_eq!(uses.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["theirs"]);
}

#[test]
fn a_city_that_lost_its_binding_stays_and_a_template_that_stays_may_shrink() {
    let mut old = direct();
    old["spec"]["cityCode"] = json!("LHR");
    old["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("old");
    old["spec"]["scaleSettings"]["minReplicas"] = json!(3);
    let with = |replicas: i64| {
        let mut new = old.clone();
        new["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
        new
    };
    assert_eq!(reported(Some(&old), &with(2), None, &[]), Vec::<String>::new());
    assert_eq!(reported(Some(&old), &with(4), None, &[]).len(), 1);
    // More room is more, and none is not.
    let room = |most: i64| {
        let mut new = with(2);
        new["spec"]["scaleSettings"]["maxReplicas"] = json!(most);
        new["spec"]["scaleSettings"]["metrics"] =
            json!([{ "resource": { "name": "cpu", "target": { "averageUtilization": 50 } } }]);
        new
    };
    assert_eq!(reported(Some(&old), &room(3), None, &[]), Vec::<String>::new());
    assert_eq!(reported(Some(&old), &room(4), None, &[]).len(), 1);
    let mut touched = with(2);
    touched["spec"]["template"]["metadata"] = json!({ "labels": { "a": "b" } });
    assert_eq!(reported(Some(&old), &touched, None, &[]).len(), 1);
}

#[test]
fn updates_that_leave_the_spec_and_objects_that_go_are_admitted_unread() {
    let mut bad = direct();
    bad["spec"]["template"] = json!("x");
    let mut noted = bad.clone();
    noted["metadata"]["finalizers"] = json!(["x"]);
    noted["metadata"]["annotations"] = json!({ "compute.datumapis.com/granted-slots": "0" });
    assert_eq!(reported(Some(&bad), &noted, None, &[]), Vec::<String>::new());
    bad["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(reported(Some(&direct()), &bad, None, &[]), Vec::<String>::new());
}

#[test]
fn reserved_keys_are_refused_but_for_the_one_that_popcell_sets() {
    const KEY: &str = "compute.datumapis.com/workload-uid";
    let with = |labels: Value| {
        let mut whole = direct();
        whole["metadata"]["labels"] = labels;
        reported(None, &whole, None, &["DFW"])
    };
    assert_eq!(with(json!({ KEY: "none", "app": "a" })), Vec::<String>::new());
    let refused = "Forbidden: the key is reserved: use a domain of your own";
    assert_eq!(
        with(json!({ KEY: "u" })),
        [format!("metadata.labels[{KEY}]: {refused}")]
    );
    assert_eq!(
        with(json!({ "compute.datumapis.com/managed-by": "popcell" })),
        [format!("metadata.labels[compute.datumapis.com/managed-by]: {refused}")]
    );
}

#[test]
fn a_metadata_update_adds_no_reserved_key_but_for_those_that_popcell_writes() {
    let refused = "Forbidden: the key is reserved: use a domain of your own";
    for (field, key, is_refused) in [
        ("labels", "karmada.io/managed", true),
        ("annotations", "resourcetemplate.karmada.io/generation", true),
        ("labels", "compute.datumapis.com/managed-by", true),
        ("annotations", "compute.datumapis.com/source-uid", true),
        ("labels", "compute.datumapis.com/granted-slots", true),
        ("annotations", "compute.datumapis.com/granted-slots", false),
        ("annotations", "compute.datumapis.com/granted-size", false),
        ("annotations", "compute.datumapis.com/paused", false),
        ("labels", "app", false),
    ] {
        // The spec is from before a rule: it is not looked at.
        let mut old = direct();
        old["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!("old");
        let mut new = old.clone();
        new["metadata"][field] = json!({ key: "x" });
        let expected: Vec<String> = is_refused
            .then(|| format!("metadata.{field}[{key}]: {refused}"))
            .into_iter()
            .collect();
        assert_eq!(reported(Some(&old), &new, None, &[]), expected, "{key}");
        let (old, new) = (object(old), object(new));
        assert_eq!(is_deployment_reviewed(Some(&old), &new), is_refused, "{key}");
        assert!(!is_deployment_reviewed(Some(&new), &new), "{key} was there");
        assert!(!is_deployment_reviewed(Some(&new), &old), "{key} is taken away");
        assert_eq!(city_to_review(Some(&old), &new, None), None);
    }
    // One that is going loses its finalizers whatever it has.
    let mut going = direct();
    going["metadata"]["labels"] = json!({ "karmada.io/managed": "x" });
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(!is_deployment_reviewed(Some(&object(direct())), &object(going)));
}

#[test]
fn the_number_of_an_autoscaler_is_set_in_cells_only() {
    const DFW: &[&str] = &["DFW"];
    let asking = |replicas: i64| {
        let mut asking = direct();
        asking["spec"]["replicas"] = json!(replicas);
        asking
    };
    let refused = "spec.replicas: Forbidden: an autoscaler sets it in a cell";
    for old in [None, Some(direct()), Some(asking(3))] {
        let reported = reported(old.as_ref(), &asking(5), None, DFW);
        assert!(
            matches!(reported.as_slice(), [one] if one.starts_with(refused)),
            "{old:?}: {reported:?}"
        );
    }
    // The least is where an autoscaler begins; what the subresource has set does not hold up other changes.
    assert_eq!(reported(Some(&direct()), &asking(1), None, DFW), Vec::<String>::new());
    let mut changed = asking(5);
    changed["spec"]["template"]["metadata"] = json!({ "labels": { "a": "b" } });
    assert_eq!(reported(Some(&asking(5)), &changed, None, DFW), Vec::<String>::new());
    assert_eq!(reported(Some(&asking(5)), &direct(), None, DFW), Vec::<String>::new());
}
