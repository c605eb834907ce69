//! What is asked for a Workload, and which answers users get.

use std::sync::Arc;

use popcell_core::instance_types::Catalogue;
use tracing::instrument::WithSubscriber;

use super::*;
use crate::context::testing::Log;

#[tokio::test]
async fn a_good_workload_is_allowed_after_one_list_and_one_review_of_access() {
    let served = Served::good();
    let mut dry = create(workload());
    dry["dryRun"] = json!(true);
    for request in [create(workload()), dry] {
        let response = served.validate(&request).await;
        assert_eq!(response, json!({ "uid": "uid-CREATE", "allowed": true }));
        assert_eq!(served.servers.paths(), [LIST, ACCESS]);
        assert_eq!(served.servers.outcomes(), ["allowed"]);
    }
}

#[tokio::test]
async fn what_is_accepted_and_not_done_is_a_warning_of_the_answer_and_of_no_refusal() {
    let served = Served::good();
    let mut new = workload();
    new["spec"]["template"]["spec"]["networkInterfaces"][0]["networkPolicy"] = json!({ "ingress": [{}, {}] });
    let instance = "spec.template.spec";
    let policy = format!(
        "{instance}.networkInterfaces[0].networkPolicy: popcell does not enforce it: unless the provider of the cell does, \
         all traffic is let in"
    );
    for request in [create(new.clone()), update(workload(), new.clone())] {
        let response = served.validate(&request).await;
        let expected = json!({ "uid": request["uid"], "allowed": true, "warnings": [policy] });
        assert_eq!(response, expected);
        assert_eq!(served.servers.outcomes(), ["allowed"]);
    }
    // Our own finalizer is no reason to repeat it.
    let mut finalized = new.clone();
    finalized["metadata"]["finalizers"] = json!(["compute.datumapis.com/workload-controller"]);
    let response = served.validate(&update(new.clone(), finalized)).await;
    assert_eq!(response, json!({ "uid": "uid-UPDATE", "allowed": true }));
    new["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(0);
    let response = served.validate(&create(new)).await;
    assert_eq!(
        (&response["allowed"], &response["warnings"]),
        (&json!(false), &Value::Null)
    );
}

#[tokio::test]
async fn a_city_without_binding_is_refused_with_the_cities_that_have_one() {
    let served = Served::good();
    let status = served.validate(&create(in_cities(&["DFW", "LHR"]))).await["status"].take();
    let (field, message) = (
        "spec.placements[0].cityCodes[1]",
        r#"Unsupported value: "LHR": supported values: "DFW", "ORD""#,
    );
    assert_eq!(
        status,
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
            "message": format!("Workload.compute.datumapis.com \"web\" is invalid: {field}: {message}"),
            "details": { "name": "web", "group": "compute.datumapis.com", "kind": "Workload",
                "causes": [{ "reason": "FieldValueNotSupported", "message": message, "field": field }] },
        })
    );
    assert_eq!(served.servers.outcomes(), ["denied"]);
}

#[tokio::test]
async fn a_network_that_the_user_may_not_use_is_refused_beside_all_other_faults() {
    let served = Served::new(
        Mode::Milo,
        Servers::seeing(|asked| match asked.what.as_str() {
            LIST => bindings(&[]),
            _ => access(asked.body["spec"]["resourceAttributes"]["name"] == "open"),
        }),
    );
    let mut new = with_networks(&[json!({ "name": "open" }), json!({ "name": "closed" })]);
    new["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(0);
    let (code, reason, message) = served.refused(&create(new)).await;
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert_eq!(
        message,
        "Workload.compute.datumapis.com \"web\" is invalid: [\
         spec.placements[0].cityCodes[0]: Unsupported value: \"DFW\": no value is supported, \
         spec.placements[0].scaleSettings.minReplicas: Invalid value: 0: must be greater than 0, \
         spec.template.spec.networkInterfaces[1].network: Forbidden: permission to use the network was denied]"
    );
}

#[tokio::test]
async fn the_access_review_carries_all_user_extras_and_the_namespace_of_the_network() {
    let served = Served::good();
    let extra = json!({
        "iam.miloapis.com/parent-name": ["p1"],
        "iam.miloapis.com/parent-type": ["Project"],
        "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
        "example.com/many": ["a", "b"],
    });
    let mut request = create(with_networks(&[json!({ "name": "n", "namespace": "net" })]));
    request["userInfo"]["extra"] = extra.clone();
    assert_eq!(served.validate(&request).await["allowed"], json!(true));
    let asked = served.servers.asked();
    assert_eq!(
        asked[1].body,
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": "me", "uid": "1", "groups": ["g"], "extra": extra,
                "resourceAttributes": { "verb": "use", "group": "networking.datumapis.com", "version": "v1alpha",
                    "resource": "networks", "name": "n", "namespace": "net" },
            },
        })
    );
}

/// The API server fills both in late; the request has them from the start.
#[tokio::test]
async fn what_the_object_does_not_say_the_request_does() {
    let served = Served::good();
    let mut new = workload();
    new["metadata"] = json!({ "generateName": "web-" });
    let mut request = create(new.clone());
    request["namespace"] = json!("team");
    served.validate(&request).await;
    let asked = served.servers.asked();
    assert_eq!(asked[1].body["spec"]["resourceAttributes"]["namespace"], json!("team"));
    new["spec"]["placements"] = json!([]);
    let (_, _, message) = served.refused(&create(new)).await;
    assert!(
        message.starts_with("Workload.compute.datumapis.com \"web\" is invalid"),
        "{message}"
    );
}

#[tokio::test]
async fn a_request_that_is_admitted_unread_asks_no_server() {
    let served = Served::new(Mode::Milo, Servers::new(|_| Reply::Away));
    let mut finalized = workload();
    finalized["metadata"]["finalizers"] = json!(["compute.datumapis.com/workload-controller"]);
    finalized["status"] = json!({ "replicas": 1 });
    let mut going = in_cities(&["LHR"]);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut unreadable = workload();
    unreadable["spec"] = json!("not a spec");
    for mut request in [
        update(workload(), finalized),
        update(workload(), going),
        update(unreadable.clone(), unreadable),
        request("DELETE", workload(), Value::Null),
    ] {
        // Nor does it need to be known whose it is: our own writes name no project.
        request["userInfo"] = json!({ "username": "system:serviceaccount:compute-system:compute" });
        let response = served.validate(&request).await;
        assert_eq!(response["allowed"], json!(true), "{request}");
        assert_eq!(served.servers.outcomes(), ["unread"]);
    }
    assert_eq!(served.servers.asked(), []);
    assert_eq!(served.servers.clients(), []);
}

#[tokio::test]
async fn an_update_checks_only_new_cities_and_networks() {
    let served = Served::good();
    for (new, asked) in [
        (rolled(), vec![]),
        (in_cities(&["DFW", "ORD"]), vec![LIST]),
        (
            with_networks(&[json!({ "name": "default" }), json!({ "name": "b" })]),
            vec![ACCESS],
        ),
    ] {
        let response = served.validate(&update(workload(), new.clone())).await;
        assert_eq!(response["allowed"], json!(true), "{new}");
        assert_eq!(served.servers.paths(), asked, "{new}");
        assert_eq!(served.servers.outcomes(), ["allowed"]);
    }
}

#[tokio::test]
async fn an_update_may_keep_a_city_that_lost_its_binding_but_not_add_one() {
    let served = Served::new(
        Mode::Milo,
        Servers::new(|asked| match asked {
            LIST => bindings(&[binding("ORD")]),
            _ => access(true),
        }),
    );
    let response = served.validate(&update(workload(), in_cities(&["DFW", "ORD"]))).await;
    assert_eq!(response["allowed"], json!(true), "DFW was there before: {response}");
    let (code, _, message) = served.refused(&update(workload(), in_cities(&["DFW", "LHR"]))).await;
    assert_eq!(code, 422);
    assert!(
        message.contains("cityCodes[1]: Unsupported value: \"LHR\": supported values: \"ORD\""),
        "{message}"
    );
    let mut worse = rolled();
    worse["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(1001);
    let (code, _, message) = served.refused(&update(workload(), worse)).await;
    assert_eq!(code, 422);
    assert!(message.contains("must be less than or equal to 1000"), "{message}");
}

#[tokio::test]
async fn names_that_do_not_fit_and_reserved_keys_are_refused_with_their_field() {
    let served = Served::good();
    let mut long = workload();
    long["metadata"]["name"] = json!("w".repeat(64));
    let mut reserved = workload();
    reserved["spec"]["template"]["metadata"] = json!({ "labels": { "work.karmada.io/name": "x" } });
    for (new, field, rule) in [
        (long, "metadata.name", "at most 63 fit"),
        (
            in_cities(&["nyc_1"]),
            "spec.placements[0].cityCodes[0]",
            "1 to 32 letters",
        ),
        (reserved, "spec.template.metadata.labels", "work.karmada.io/name"),
    ] {
        let status = served.validate(&create(new)).await["status"].take();
        assert_eq!(status["code"], json!(422));
        let causes = status["details"]["causes"].as_array().unwrap();
        let reported = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
        assert!(
            causes.iter().any(|cause| reported(cause, "field").starts_with(field)
                && format!("{} {}", reported(cause, "field"), reported(cause, "message")).contains(rule)),
            "{field} {rule}: {status:#}"
        );
    }
}

#[tokio::test]
async fn an_unusable_or_unreadable_binding_hides_no_other() {
    let served = Served::new(
        Mode::Milo,
        Servers::new(|asked| match asked {
            LIST => {
                let mut closed = binding("LHR");
                closed["status"] = json!({ "conditions": [{ "type": "Available", "status": "False" }] });
                let bad = json!({ "metadata": { "name": "bad", "labels": "no map" } });
                bindings(&[bad, closed, json!({ "spec": 3 }), binding("DFW")])
            }
            _ => access(true),
        }),
    );
    assert_eq!(served.validate(&create(workload())).await["allowed"], json!(true));
    let (_, _, message) = served.refused(&create(in_cities(&["LHR"]))).await;
    assert!(
        message.ends_with(r#"Unsupported value: "LHR": supported values: "DFW""#),
        "{message}"
    );
}

#[tokio::test]
async fn more_networks_than_one_review_asks_for_are_refused_unasked() {
    let served = Served::good();
    let networks: Vec<Value> = (0..101).map(|number| json!({ "name": format!("n{number}") })).collect();
    let (code, _, message) = served.refused(&create(with_networks(&networks))).await;
    assert_eq!(code, 422);
    let reported = "spec.template.spec.networkInterfaces: Too many: 101: must have at most 100 items";
    assert!(message.contains(reported), "{message}");
    assert!(!served.servers.paths().contains(&ACCESS.to_owned()));
}

#[tokio::test]
async fn a_refusal_is_logged_by_fields_and_reasons() {
    let log = Log::default();
    let mut new = in_cities(&["s3cret\nFORGED"]);
    new["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["name"] = json!("s3cret!");
    new["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(0);
    let served = Served::good();
    let message = served.refused(&create(new)).with_subscriber(log.subscriber()).await.2;
    assert!(message.contains("s3cret"), "{message}");
    let log = log.text();
    let reported = "refused=spec.placements[0].cityCodes[0]: FieldValueInvalid, \
        spec.placements[0].scaleSettings.minReplicas: FieldValueInvalid, \
        spec.template.spec.runtime.sandbox.containers[0].name: FieldValueInvalid";
    assert!(log.contains(reported), "{log}");
    assert!(!log.contains("s3cret") && !log.contains("FORGED"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn instance_types_are_those_of_the_catalogue_as_it_is_now() {
    let named = |name: &str| {
        let mut whole = workload();
        whole["spec"]["template"]["spec"]["runtime"]["resources"]["instanceType"] = json!(name);
        whole
    };
    let catalogue = |name: &str| {
        let object = json!({ "metadata": { "name": "t" }, "spec": { "name": name, "cpu": "4", "memory": "8Gi" } });
        Catalogue::of(&[&serde_json::from_value(object).unwrap()]).0
    };
    let (said, types) = InstanceTypes::said(None);
    let served = Served::with_types(types);
    // Not read yet: what needs no answer of it has one all the same, and the other is waited for.
    let old = named("acme/old");
    let mut fewer = old.clone();
    fewer["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(served.validate(&update(old, fewer)).await["allowed"], json!(true));
    let (code, _, message) = served.refused(&create(named("acme/large"))).await;
    assert_eq!(code, 500, "{message}");
    assert!(
        message.contains("the platform's instance types are not read yet"),
        "{message}"
    );
    let request = create(named("acme/large"));
    let added = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        said.send_replace(Some(Arc::new(catalogue("acme/large"))));
    };
    let (response, ()) = tokio::join!(served.validate(&request), added);
    assert_eq!(response["allowed"], json!(true), "{response}");
    // One is added in the place of the other.
    said.send_replace(Some(Arc::new(catalogue("acme/other"))));
    let (code, _, message) = served.refused(&create(named("acme/large"))).await;
    assert_eq!(code, 422);
    let expected = r#"spec.template.spec.runtime.resources.instanceType: Unsupported value: "acme/large": supported values: "acme/other""#;
    assert!(message.ends_with(expected), "{message}");
    assert_eq!(
        served.validate(&create(named("acme/other"))).await["allowed"],
        json!(true)
    );
}
