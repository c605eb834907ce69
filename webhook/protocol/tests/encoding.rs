//! Answers, byte for byte as Karmada's client checks them.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use base64::Engine as _;
use popcell_protocol::{
    Aggregation, Answer, Change, Component, Dependency, NodeClaim, PatchOp, Refusal, Replicas, Requirements, encode,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// The response, after a look at what surrounds it.
fn response(answer: &Result<Answer, Refusal>) -> Value {
    let text = String::from_utf8(encode("u-1", answer)).unwrap();
    let mut context: Value = serde_json::from_str(&text).unwrap();
    let response = context["response"].take();
    assert_eq!(
        context,
        json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext", "response": null})
    );
    assert_eq!(response["uid"], "u-1");
    assert_eq!(response["successful"], answer.is_ok());
    let mut response = response;
    let fields = response.as_object_mut().unwrap();
    fields.remove("uid");
    fields.remove("successful");
    response
}

#[test]
fn no_change_has_neither_patch_nor_type() {
    assert_eq!(response(&Ok(Answer::Change(Change::Unchanged))), json!({}));
    assert_eq!(response(&Ok(Answer::Change(Change::Patch(Vec::new())))), json!({}));
    let unchanged = Answer::Aggregation(Aggregation {
        change: Change::Unchanged,
        left_out: 3,
    });
    assert_eq!(response(&Ok(unchanged)), json!({}), "Karmada has no place for it");
}

#[test]
fn a_patch_is_base64_with_its_type() {
    let steps = vec![
        PatchOp::Add {
            path: "/status".into(),
            value: raw(r#"{"n":9007199254740993,"d":1.50}"#),
        },
        PatchOp::Replace {
            path: "/spec/a~1b".into(),
            value: raw("null"),
        },
        PatchOp::Remove { path: "/spec/c".into() },
    ];
    let response = response(&Ok(Answer::Change(Change::Patch(steps))));
    assert_eq!(response["patchType"], "JSONPatch");
    let patch = base64::engine::general_purpose::STANDARD
        .decode(response["patch"].as_str().unwrap())
        .unwrap();
    assert_eq!(
        String::from_utf8(patch).unwrap(),
        r#"[{"op":"add","path":"/status","value":{"n":9007199254740993,"d":1.50}},{"op":"replace","path":"/spec/a~1b","value":null},{"op":"remove","path":"/spec/c"}]"#
    );
    assert_eq!(response.as_object().unwrap().len(), 2);
}

#[test]
fn values_of_zero_are_written() {
    assert_eq!(response(&Ok(Answer::Replicas(0.into()))), json!({"replicas": 0}));
    assert_eq!(response(&Ok(Answer::Health(false))), json!({"healthy": false}));
    assert_eq!(response(&Ok(Answer::Status(raw("{}")))), json!({"rawStatus": {}}));
    assert_eq!(response(&Ok(Answer::Components(Vec::new()))), json!({"components": []}));
    assert_eq!(
        response(&Ok(Answer::Dependencies(Vec::new()))),
        json!({"dependencies": []})
    );
}

#[test]
fn a_refusal_has_a_status_and_nothing_else() {
    let refusal = Refusal {
        code: 422,
        message: "boom \"x\"".into(),
    };
    assert_eq!(
        response(&Err(refusal)),
        json!({"status": {"code": 422, "message": "boom \"x\""}})
    );
}

#[test]
fn status_keeps_its_digits() {
    let status = r#"{"big":9007199254740993,"exact":1.10,"exp":1e400}"#;
    let text = String::from_utf8(encode("u", &Ok(Answer::Status(raw(status))))).unwrap();
    assert!(text.contains(&format!("\"rawStatus\":{status}")), "{text}");
}

fn requirements() -> Requirements {
    Requirements {
        node_claim: Some(NodeClaim {
            hard_node_affinity: Some(raw(r#"{"nodeSelectorTerms":[]}"#)),
            node_selector: [("zone".to_owned(), "a".to_owned())].into(),
            tolerations: vec![raw(r#"{"operator":"Exists"}"#)],
        }),
        resource_request: [("cpu".to_owned(), "100m".to_owned())].into(),
        namespace: Some("ns".into()),
        priority_class_name: Some("high".into()),
    }
}

#[test]
fn requirements_have_karmadas_names() {
    let claim = json!({
        "hardNodeAffinity": {"nodeSelectorTerms": []},
        "nodeSelector": {"zone": "a"},
        "tolerations": [{"operator": "Exists"}],
    });
    assert_eq!(
        response(&Ok(Answer::Replicas(Replicas {
            replicas: 2,
            requirements: Some(requirements())
        }))),
        json!({
            "replicas": 2,
            "replicaRequirements": {
                "nodeClaim": claim, "resourceRequest": {"cpu": "100m"}, "namespace": "ns", "priorityClassName": "high",
            },
        })
    );
    // Components have no namespace (work/v1alpha2 ComponentReplicaRequirements).
    let component = Component {
        name: "main".into(),
        replicas: 2,
        requirements: Some(requirements()),
    };
    assert_eq!(
        response(&Ok(Answer::Components(vec![component]))),
        json!({"components": [{
            "name": "main", "replicas": 2,
            "replicaRequirements": {
                "nodeClaim": claim, "resourceRequest": {"cpu": "100m"}, "priorityClassName": "high",
            },
        }]})
    );
}

#[test]
fn dependencies_have_karmadas_names() {
    let named = Dependency {
        api_version: "v1".into(),
        kind: "Secret".into(),
        namespace: Some("ns".into()),
        name: Some("a".into()),
        label_selector: None,
    };
    let selected = Dependency {
        name: None,
        namespace: None,
        label_selector: Some(raw(r#"{"matchLabels":{"a":"b"}}"#)),
        ..named.clone()
    };
    assert_eq!(
        response(&Ok(Answer::Dependencies(vec![named, selected]))),
        json!({"dependencies": [
            {"apiVersion": "v1", "kind": "Secret", "namespace": "ns", "name": "a"},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "b"}}},
        ]})
    );
}
