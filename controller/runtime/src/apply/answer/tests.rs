//! Answers as real servers give them, and what is made of each.

use serde_json::{Value, json};

use super::*;

/// Who has to change something, or to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    /// The object: nothing else is affected.
    Object,
    /// Something that a namespace or a kind has: a webhook, a policy, a quota.
    Place,
    /// It was decided on something else than what is stored.
    Stale,
    /// The server's, or not to be distinguished from it: a probe has to say.
    Server,
}

fn whose(refusal: &Refusal) -> Whose {
    match refusal {
        Refusal::Changed(_) => Whose::Stale,
        Refusal::Admission { .. } => Whose::Place,
        other if other.may_be_the_server() => Whose::Server,
        _ => Whose::Object,
    }
}

/// A Status as API servers write it.
fn reported(code: u16, reason: &str, message: &str, details: Value) -> (u16, String) {
    let mut status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code });
    if !details.is_null() {
        status["details"] = details;
    }
    (code, status.to_string())
}

fn plain(code: u16, text: &str) -> (u16, String) {
    (code, format!("{text}\n"))
}

fn answer(code: u16, headers: &[(&'static str, &str)], body: &str) -> Result<String, Refusal> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    let read = read(StatusCode::from_u16(code).unwrap(), &map, body.as_bytes());
    read.map(|text| text.get().to_owned())
}

const CALL: &str = "failed calling webhook \"deny.tenant.example\": failed to call webhook: ";

/// What a webhook, a policy or a quota of a tenant brings about.
fn of_places() -> Vec<(u16, String)> {
    let called = |cause: &str| {
        let message = format!("Internal error occurred: {CALL}{cause}");
        let details = json!({ "causes": [{ "message": format!("{CALL}{cause}") }] });
        reported(500, "InternalError", &message, details)
    };
    let denied = |code: u16, reason: &str, details: Value| {
        let message =
            "admission webhook \"deny.tenant.example\" denied the request: the server is busy, no such object";
        reported(code, reason, message, details)
    };
    let policy = |code: u16, reason: &str| {
        let message = "instances.compute.datumapis.com \"web-0\" is forbidden: ValidatingAdmissionPolicy 'none' with \
            binding 'none' denied request: failed expression: false";
        let details = json!({ "name": "web-0", "group": "compute.datumapis.com", "kind": "instances",
            "causes": [{ "message": message }] });
        reported(code, reason, message, details)
    };
    let named = json!({ "name": "web", "group": "compute.datumapis.com", "kind": "workloaddeployments" });
    let conversion =
        "conversion webhook for compute.datumapis.com/v1alpha, Kind=Workload failed: Post \"https://hook\": EOF";
    let quota = "workloaddeployments.compute.datumapis.com \"web\" is forbidden: exceeded quota: count, requested: \
        count/workloaddeployments.compute.datumapis.com=1, used: 5, limited: 5";
    let uncounted = "instances.compute.datumapis.com \"web-0\" is forbidden: status unknown for quota: popcell-hub, \
        resources: count/instances.compute.datumapis.com";
    vec![
        called("the server could not find the requested resource"),
        called("an error on the server (\"oh\") has prevented the request from succeeding"),
        called("Post \"https://hook.ns-a.svc:443/?timeout=10s\": context deadline exceeded"),
        called("Post \"https://hook.ns-a.svc:443/\": dial tcp 10.96.0.7:443: connect: connection refused"),
        called("Post \"https://hook.ns-a.svc:443/\": tls: failed to verify certificate: x509: unknown authority"),
        called("Post \"https://hook.ns-a.svc:443/\": service \"hook\" not found"),
        // A webhook that denies chooses the code, and may well say 404 with the details of an absence.
        denied(400, "", Value::Null),
        denied(403, "Forbidden", Value::Null),
        denied(404, "NotFound", named.clone()),
        denied(409, "Conflict", named.clone()),
        denied(429, "TooManyRequests", json!({ "retryAfterSeconds": 30 })),
        denied(500, "InternalError", Value::Null),
        denied(503, "ServiceUnavailable", json!({ "retryAfterSeconds": 3600 })),
        denied(504, "Timeout", Value::Null),
        policy(401, "Unauthorized"),
        policy(403, "Forbidden"),
        policy(413, "RequestEntityTooLarge"),
        policy(422, "Invalid"),
        reported(500, "", conversion, Value::Null),
        reported(403, "Forbidden", quota, named),
        reported(403, "Forbidden", uncounted, Value::Null),
    ]
}

/// What is wrong with one object, or with what we send of it.
fn of_objects() -> Vec<(u16, String)> {
    let too_large =
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2350032 vs. 2097152)";
    let terminating = "workloaddeployments.compute.datumapis.com \"web\" is forbidden: unable to create new content in \
        namespace ns-1 because it is being terminated";
    let cause = json!({ "causes": [{ "reason": "NamespaceTerminating", "field": "metadata.namespace" }] });
    let invalid = "WorkloadDeployment.compute.datumapis.com \"web\" is invalid: spec.cityCode: Invalid value";
    let field = json!({ "causes": [{ "reason": "FieldValueInvalid", "field": "spec.cityCode" }] });
    let limit = "Request entity too large: limit is 3145728";
    vec![
        reported(500, "", "etcdserver: request is too large", Value::Null),
        reported(500, "", too_large, Value::Null),
        reported(413, "RequestEntityTooLarge", limit, Value::Null),
        reported(403, "Forbidden", terminating, cause),
        reported(422, "Invalid", invalid, field),
        reported(401, "Unauthorized", "Unauthorized", Value::Null),
        reported(400, "BadRequest", "the object provided is unrecognized", Value::Null),
    ]
}

/// What was decided on something else than is stored.
fn of_conflicts() -> Vec<(u16, String)> {
    let named = json!({ "name": "web", "group": "compute.datumapis.com", "kind": "workloaddeployments" });
    let failed = "the server rejected our request due to an error in our request";
    vec![
        reported(422, "Invalid", failed, json!({})),
        reported(
            409,
            "AlreadyExists",
            "workloaddeployments \"web\" already exists",
            named,
        ),
    ]
}

/// Those which say that a server, or the way to it, may be in trouble.
fn of_servers() -> Vec<(u16, String)> {
    vec![
        plain(429, "Too many requests, please try again later."),
        plain(429, "The apiserver is shutting down, please try again later."),
        reported(
            429,
            "TooManyRequests",
            "storage is (re)initializing",
            json!({ "retryAfterSeconds": 1 }),
        ),
        reported(
            503,
            "ServiceUnavailable",
            "the request has been made before all known HTTP paths have been installed, please try again",
            json!({ "retryAfterSeconds": 5 }),
        ),
        plain(503, "service unavailable"),
        reported(
            504,
            "Timeout",
            "Timeout: request did not complete within requested timeout - context deadline exceeded",
            json!({}),
        ),
        reported(500, "", "etcdserver: request timed out", Value::Null),
        reported(500, "", "etcdserver: leader changed", Value::Null),
        reported(
            500,
            "ServerTimeout",
            "The create operation against workloaddeployments.compute.datumapis.com could not be completed at this time, \
            please try again.",
            json!({ "kind": "workloaddeployments", "retryAfterSeconds": 2 }),
        ),
        (
            502,
            "<html><head><title>502 Bad Gateway</title></head></html>".to_owned(),
        ),
        (503, "<html><body>sorry</body></html>".to_owned()),
        (500, String::new()),
        (500, "null".to_owned()),
        (200, "<html>welcome</html>".to_owned()),
        (200, "{\"kind\":".to_owned()),
    ]
}

#[test]
fn what_one_object_or_namespace_causes_is_never_the_server_s() {
    for (answers, expected) in [
        (of_places(), Whose::Place),
        (of_objects(), Whose::Object),
        (of_conflicts(), Whose::Stale),
    ] {
        for (code, body) in answers {
            let refusal = answer(code, &[], &body).unwrap_err();
            assert_eq!(whose(&refusal), expected, "{code} {body}");
            assert_eq!(refusal.server_rest(), None, "{code} {body}");
            let is_told = refusal.code() == code || matches!(refusal, Refusal::Changed(_));
            assert!(is_told, "{refusal}");
        }
    }
}

#[test]
fn what_may_be_the_server_s_is_asked_of_the_server() {
    for (code, body) in of_servers() {
        let refusal = answer(code, &[], &body).unwrap_err();
        assert_eq!(whose(&refusal), Whose::Server, "{code} {body}");
    }
}

#[test]
fn a_denial_is_no_absence_whatever_code_the_webhook_chooses() {
    let target = popcell_core::plan::Target::namespaced(
        &popcell_core::plan::Plane::Hub,
        popcell_api::kind::WORKLOAD_DEPLOYMENT,
        "ns-1",
        "web",
    );
    let gone = json!({ "name": "web", "group": "compute.datumapis.com", "kind": "workloaddeployments" });
    for (message, absent) in [
        ("workloaddeployments.compute.datumapis.com \"web\" not found", true),
        ("admission webhook \"a.b.c\" denied the request: not found", false),
    ] {
        let (code, body) = reported(404, "NotFound", message, gone.clone());
        let refusal = answer(code, &[], &body).unwrap_err();
        assert_eq!(refusal.is_absence_of(&target), absent, "{message}");
    }
}

#[test]
fn retry_after_counts_for_who_sent_it() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let fair = [
        ("Retry-After", "7"),
        ("X-Kubernetes-PF-FlowSchema-UID", "1"),
        ("X-Kubernetes-PF-PriorityLevel-UID", "2"),
    ];
    let (code, body) = plain(429, "Too many requests, please try again later.");
    let overloaded = answer(code, &fair, &body).unwrap_err();
    assert_eq!(
        (overloaded.server_rest(), overloaded.retry_after()),
        (seconds(7), seconds(7))
    );
    assert!(overloaded.to_string().contains("Too many requests"), "{overloaded}");

    // A webhook says the same, and Priority and Fairness has let the request in: the API server repeats its wish as header.
    let (code, body) = reported(
        429,
        "TooManyRequests",
        "admission webhook \"a.b.c\" denied the request: slowly",
        json!({ "retryAfterSeconds": 7 }),
    );
    let denied = answer(code, &fair, &body).unwrap_err();
    assert_eq!((denied.server_rest(), denied.retry_after()), (None, seconds(7)));

    // etcd did not answer for one object in time: nothing is said of others.
    let (code, body) = reported(
        500,
        "ServerTimeout",
        "please try again.",
        json!({ "retryAfterSeconds": 2 }),
    );
    let slow = answer(code, &[], &body).unwrap_err();
    assert_eq!((slow.server_rest(), slow.retry_after()), (None, seconds(2)));

    for header in ["0", "-1", "soon", "Wed, 21 Oct 2026 07:28:00 GMT", ""] {
        let refusal = answer(503, &[("Retry-After", header)], "away").unwrap_err();
        assert_eq!(refusal.retry_after(), None, "{header}");
    }
}

#[test]
fn what_no_api_server_wrote_is_not_repeated() {
    let page = format!("<html>{}</html>", "secret ".repeat(200));
    for body in [page.as_str(), "{\"spec\":\"secret\"}", "secret\nsecret"] {
        let refusal = answer(502, &[], body).unwrap_err();
        assert!(!refusal.to_string().contains("secret"), "{refusal}");
    }
}

#[test]
fn what_is_asked_for_is_read() {
    assert_eq!(answer(201, &[], "{\"a\":1}"), Ok("{\"a\":1}".to_owned()));
}

#[test]
fn a_status_that_is_cut_says_who_refuses() {
    for ending in ["x", "\\", "\\u00e9", "\\ud83d\\ude00"] {
        let start = format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
             \"message\":\"admission webhook \\\"a.b.c\\\" denied the request: {}",
            ending.repeat(50)
        );
        for end in start.len() - 40..=start.len() {
            let Some(cut) = start.get(..end) else { continue };
            let refusal = answer(404, &[], cut).unwrap_err();
            assert_eq!(whose(&refusal), Whose::Place, "{cut}");
            let denied = "admission webhook \"a.b.c\" denied the request: ";
            assert!(refusal.words().starts_with(denied), "{cut}: {}", refusal.words());
        }
    }
    // Also where the message is whole, and what is after it is not.
    let head = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"admission webhook \"a.b.c\" denied the request: x","details":{"name":"we"#;
    let refusal = answer(404, &[], head).unwrap_err();
    assert_eq!(refusal.words(), "admission webhook \"a.b.c\" denied the request: x");
    // Nothing else is read of what is cut.
    let foreign = answer(
        404,
        &[],
        "{\"kind\":\"Other\",\"message\":\"admission webhook \\\"a\\\" x",
    )
    .unwrap_err();
    assert_eq!(whose(&foreign), Whose::Object);
}
