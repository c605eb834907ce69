//! What a served webhook answers, counts and logs.

use popcell_protocol::Operation;
use serde_json::json;

use crate::client::get_plain;
use crate::fixture::{UID, object, request, request_about};
use crate::process::Environment;

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_is_answered_over_both_protocols() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "30s"]);
    let client = environment.client(&webhook);
    let mut kept = client.http1().await;
    for operation in Operation::ALL {
        let body = request(operation.as_str(), "");
        for reply in [
            kept.post("", body.clone()).await,
            client.post_http2("?timeout=30s", body).await,
        ] {
            assert!(reply.is_successful(), "{operation}: {reply:?}");
        }
        let series = format!(
            r#"popcell_calls_total{{module="misbehaving@0.1.0",kind="tests.popcell.dev/v1 Misbehaving",operation="{operation}",outcome="ok"}}"#
        );
        assert_eq!(webhook.metric(&series).await, 2, "{}", webhook.metrics().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_statuses_that_were_skipped_are_counted() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&[]);
    let client = environment.client(&webhook);
    let series =
        r#"popcell_status_parts_dropped_total{module="misbehaving@0.1.0",kind="tests.popcell.dev/v1 Misbehaving"}"#;
    assert_eq!(webhook.metric(series).await, 0, "there before anything is left out");
    for behaviour in ["leave-out", "", "leave-out"] {
        let reply = client.post("", request("AggregateStatus", behaviour)).await;
        assert!(reply.is_successful(), "{reply:?}");
    }
    assert_eq!(webhook.metric(series).await, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn five_faults_are_distinguished_and_the_server_continues() {
    let environment = Environment::new(&["misbehaving", "other"]);
    let webhook = environment.start(&["--call-timeout", "3s"]);
    let client = environment.client(&webhook);
    let mut messages = Vec::new();
    for (behaviour, label, expected) in [
        ("loop", "deadline", "ran longer than its deadline of 3s"),
        ("trap", "trapped", "trapped"),
        ("allocate", "memory", "wanted more memory than 64 MiB"),
        ("recurse", "stack", "stack overflow"),
        ("failed", "failed", "no such size"),
    ] {
        let reply = client.post("?timeout=30s", request("InterpretStatus", behaviour)).await;
        let message = reply.refusal();
        assert!(
            message.starts_with("misbehaving@0.1.0 InterpretStatus Misbehaving ns/a: "),
            "{message}"
        );
        assert!(message.contains(expected) && message.len() <= 256, "{message}");
        messages.push(message.to_owned());
        let series = format!(
            r#"popcell_calls_total{{module="misbehaving@0.1.0",kind="tests.popcell.dev/v1 Misbehaving",operation="InterpretStatus",outcome="{label}"}}"#
        );
        assert_eq!(webhook.metric(&series).await, 1, "{}", webhook.metrics().await);
    }
    messages.dedup();
    assert_eq!(messages.len(), 5);
    let other = request_about("InterpretHealth", "Other", &object("Other", ""));
    assert!(client.post("", other).await.is_successful());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_operation_and_an_unserved_kind_are_refused_by_name() {
    let environment = Environment::new(&["no-health"]);
    let webhook = environment.start(&[]);
    let client = environment.client(&webhook);
    let reply = client.post("", request("InterpretHealth", "")).await;
    assert!(
        reply.refusal().contains("InterpretHealth Misbehaving ns/a"),
        "{reply:?}"
    );
    let reply = client
        .post("", request_about("InterpretStatus", "Unheard", &json!({})))
        .await;
    assert!(reply.refusal().contains("Unheard"), "{reply:?}");
    assert!(
        reply.refusal().contains("loaded: tests.popcell.dev/v1 Misbehaving"),
        "{reply:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_expected_fields_are_answered_by_every_operation() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "30s"]);
    let mut client = environment.client(&webhook).http1().await;
    let objects = [
        json!({}),
        json!({"metadata": {}}),
        json!({"status": {}}),
        json!({"status": null}),
        json!({"status": {"conditions": null, "observedGeneration": -1}}),
        json!({"status": {"conditions": [null, {"type": "Available"}], "replicas": 2.0}}),
        json!({"metadata": {"annotations": {"resourcetemplate.karmada.io/generation": "abc"}}}),
    ];
    for operation in Operation::ALL {
        for object in &objects {
            let reply = client
                .post("", request_about(operation.as_str(), "Misbehaving", object))
                .await;
            assert!(reply.is_successful(), "{operation} {object}: {reply:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_do_not_disturb_others() {
    let environment = Environment::new(&["misbehaving"]);
    let webhook = environment.start(&["--call-timeout", "30s"]);
    let client = environment.client(&webhook);
    let whole = request("InterpretHealth", "");
    let padded = |size: usize| {
        let pad = size - whole.len() - r#","pad":"""#.len();
        whole.replacen(
            r#""metadata":{"#,
            &format!(r#""pad":"{}","metadata":{{"#, "x".repeat(pad)),
            1,
        )
    };
    let limit = 8 << 20;
    assert_eq!(padded(limit).len(), limit);
    assert!(client.post("", padded(limit)).await.is_successful());
    for reply in [
        client.post("", padded(limit + 1)).await,
        client.post_http2("", padded(limit + 1)).await,
    ] {
        assert_eq!(reply.status, 413, "{reply:?}");
        assert!(reply.message().contains("8388608 bytes"), "{reply:?}");
    }
    let reply = client.post("", whole[..whole.len() - 20].to_owned()).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.body["response"]["uid"], UID);
    let deep = format!("{}{}", r#"{"a":"#.repeat(5000) + "1", "}".repeat(5000));
    let reply = client
        .post(
            "",
            whole.replacen(r#""metadata":{"#, &format!(r#""deep":{deep},"metadata":{{"#), 1),
        )
        .await;
    assert!(reply.refusal().contains("nests deeper"), "{reply:?}");
    assert!(client.post("", whole).await.is_successful());
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_name_modules_certificate_engine_and_process() {
    let environment = Environment::new(&["misbehaving", "other"]);
    let webhook = environment.start(&[]);
    assert!(
        environment
            .client(&webhook)
            .post("", request("InterpretHealth", ""))
            .await
            .is_successful()
    );
    let text = webhook.metrics().await;
    for expected in [
        r#"popcell_module_info{name="misbehaving",version="0.1.0",digest=""#,
        r#"popcell_module_info{name="other",version="0.1.0",digest=""#,
        r#"popcell_engine_allocator_info{allocator="pooling"} 1"#,
        "popcell_build_info{version=",
        "popcell_certificate_not_after_seconds 1",
        "popcell_certificate_reload_errors_total 0",
        "popcell_connections ",
        "popcell_requests_in_flight ",
        "popcell_call_duration_seconds_bucket{le=",
        "popcell_call_queue_seconds_count{",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "# EOF",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert_eq!(get_plain(webhook.health, "/livez").await.0, 200);
    assert_eq!(get_plain(webhook.health, "/readyz").await.0, 200);
    assert_eq!(get_plain(webhook.health, "/interpret").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_say_what_was_asked_and_never_what_is_in_the_object() {
    let environment = Environment::new(&["misbehaving"]);
    let mut command = environment.command();
    // Everything but the compiler, which writes a novel about each module.
    command.env(
        "RUST_LOG",
        "info,popcell_webhook=trace,popcell_engine=trace,popcell_https=trace,hyper=trace,h2=trace",
    );
    let webhook = crate::process::Webhook::start(command);
    let client = environment.client(&webhook);
    for behaviour in ["", "trap", "failed"] {
        let mut object = object("Misbehaving", behaviour);
        object["spec"] = json!({"password": "s3cr3t-value"});
        client
            .post("", request_about("InterpretStatus", "Misbehaving", &object))
            .await;
    }
    client
        .post("", r#"{"request":{"uid":"x","object":"s3cr3t-value""#)
        .await;
    crate::process::eventually("the calls are logged", async || {
        webhook.log().matches(r#""message":"call""#).count() == 3
    })
    .await;
    let log = webhook.log();
    assert!(!log.contains("s3cr3t-value"), "an object is in the log");
    let call: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(r#""outcome":"trapped""#))
        .collect();
    for expected in [
        UID,
        r#""operation":"InterpretStatus""#,
        "tests.popcell.dev/v1 Misbehaving",
        r#""namespace":"ns""#,
        r#""ran_us":"#,
    ] {
        assert!(call[0].contains(expected), "{call:?}");
    }
}
