//! An answer of a server about a user's object is reported to the user, and not logged.

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use tracing::instrument::WithSubscriber;

use super::*;
use crate::cell::testing::cell;
use crate::context::testing::Log;
use crate::reconcilers::cell as of_cell;

const SECRET: &str = "s3cret";

fn told_with(code: u16, reason: &str, message: &str, causes: &Value) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": reason, "details": { "causes": causes }, "code": code })
}

#[tokio::test(start_paused = true)]
async fn what_a_server_rejects_is_logged_by_reason_and_field_and_never_by_value() {
    let invalid = format!("Instance \"web-0\" is invalid: spec.env: Invalid value: \"{SECRET}\"\nFORGED");
    let denied = format!("admission webhook \"deny.example\" denied the request: {SECRET}\nFORGED");
    let called = format!("Internal error occurred: failed calling webhook \"deny.example\": {SECRET}\nFORGED");
    let causes =
        json!([{ "reason": "FieldValueInvalid", "message": format!("Invalid value: {SECRET}"), "field": "spec.env" }]);
    let of_webhook = json!([{ "message": SECRET, "field": SECRET }]);
    let padded = format!("{denied}{}", "x".repeat(100 * 1024));
    for (code, reason, message, causes, logged) in [
        (422, "Invalid", &invalid, &causes, "refused (422): Invalid at spec.env"),
        (
            403,
            SECRET,
            &denied,
            &of_webhook,
            "refused at admission (403): another reason: admission webhook \"deny.example\" denied the request",
        ),
        (
            404,
            "NotFound",
            &padded,
            &json!([]),
            "refused at admission (404): no reason: admission webhook \"deny.example\" denied the request",
        ),
        (
            500,
            "InternalError",
            &called,
            &of_webhook,
            "refused at admission (500): InternalError: failed calling webhook \"deny.example\"",
        ),
        (
            409,
            "Conflict",
            &invalid,
            &causes,
            "it has changed: Conflict at spec.env",
        ),
        (
            503,
            "ServiceUnavailable",
            &invalid,
            &causes,
            "the server cannot now (503): ServiceUnavailable at spec.env",
        ),
    ] {
        let script = Arc::<Script>::default();
        let body = told_with(code, reason, message, causes);
        script.say(&format!("cell POST {DEPLOYMENTS}/ns-1/instances"), code, body);
        let fixture = Fixture::in_cell(of_cell(&Arc::new(cell(None))), &[], script.answer()).await;
        let mut one = deployment("ns-1", "web", "wd");
        one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
        fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![one]);
        fixture.list(&Plane::Cell, INSTANCE, Vec::new());
        let log = Log::default();
        let key = Key::new(&Plane::Cell, "ns-1", "web");
        fixture
            .reconcile("deployment", &key)
            .with_subscriber(log.subscriber())
            .await;
        let log = log.text();
        assert!(log.contains(logged), "{logged}: {log}");
        assert!(!log.contains(SECRET) && !log.contains("FORGED"), "{log}");
    }
}
