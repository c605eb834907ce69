//! Karmada's side of the exchange, for who asks a webhook as Karmada does: one question and one answer as text
//! (pkg/apis/config/v1alpha1/interpretercontext_types.go), read as strictly as Karmada's client reads it, and no more.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{API_VERSION, Gvk, KIND, Operation};

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The operation.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: &'a Gvk,
    /// Name of the object.
    pub name: &'a str,
    /// Namespace of the object.
    pub namespace: Option<&'a str>,
    /// The object: JSON text.
    pub object: &'a RawValue,
    /// For Retain.
    pub observed: Option<&'a RawValue>,
    /// For ReviseReplica.
    pub replicas: i32,
    /// For AggregateStatus: a JSON array of AggregatedStatusItem.
    pub items: Option<&'a RawValue>,
}

/// The part of an answer that Karmada reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    uid: String,
    successful: bool,
    status: Option<Status>,
    /// Base64 of a JSON patch.
    pub patch: Option<String>,
    /// `JSONPatch` beside a patch.
    pub patch_type: Option<String>,
    /// Of InterpretReplica.
    pub replicas: Option<i32>,
    /// Of InterpretReplica.
    pub replica_requirements: Option<Box<RawValue>>,
    /// Of InterpretComponent.
    pub components: Option<Box<RawValue>>,
    /// Of InterpretDependency.
    pub dependencies: Option<Box<RawValue>>,
    /// Of InterpretStatus.
    pub raw_status: Option<Box<RawValue>>,
    /// Of InterpretHealth.
    pub healthy: Option<bool>,
}

/// What a refusal says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// As the webhook gave it; Karmada only prints it.
    pub code: i32,
    /// One line.
    pub message: String,
}

/// The beginning of a body that is no answer, for messages.
pub fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    text.trim().chars().take(120).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    api_version: &'static str,
    kind: &'static str,
    request: Body<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    uid: &'a str,
    kind: BTreeMap<&'static str, &'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    operation: &'static str,
    object: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_object: Option<&'a RawValue>,
    replicas: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregated_status: Option<&'a RawValue>,
}

/// The body of the request. `uid` is what the answer must repeat.
///
/// # Errors
/// serde_json's, which no question has.
pub fn encode(question: &Question<'_>, uid: &str) -> serde_json::Result<Vec<u8>> {
    let Question {
        operation,
        kind,
        name,
        namespace,
        object,
        observed,
        replicas,
        items,
    } = *question;
    let Gvk { group, version, kind } = kind;
    serde_json::to_vec(&Context {
        api_version: API_VERSION,
        kind: KIND,
        request: Body {
            uid,
            kind: BTreeMap::from([("group", group.as_str()), ("version", version), ("kind", kind)]),
            name,
            namespace,
            operation: operation.as_str(),
            object,
            observed_object: observed,
            replicas,
            aggregated_status: items,
        },
    })
}

/// Why an answer is none.
#[derive(Debug)]
pub enum Reason {
    /// The interpreter says no.
    Refused(Status),
    /// It is not what an interpreter answers.
    Protocol(String),
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(status) => f.write_str(&status.message),
            Self::Protocol(reason) => f.write_str(reason),
        }
    }
}

/// Checks what Karmada's client checks before it believes an answer.
///
/// # Errors
/// The interpreter says no, or what it says is none of Karmada's answers.
pub fn decode(body: &[u8], uid: &str, operation: Operation) -> Result<Answer, Reason> {
    #[derive(Deserialize)]
    struct Envelope {
        response: Option<Answer>,
    }
    let protocol = |reason: String| Err(Reason::Protocol(reason));
    let envelope: Envelope = match serde_json::from_slice(body) {
        Ok(envelope) => envelope,
        Err(error) => return protocol(format!("{error}: {}", excerpt(body))),
    };
    let Some(mut answer) = envelope.response else {
        return protocol("it has no response".to_owned());
    };
    if answer.uid != uid {
        return protocol(format!("expected uid {uid:?}, found {:?}", answer.uid));
    }
    if !answer.successful {
        return match answer.status.take() {
            Some(status) => Err(Reason::Refused(status)),
            None => protocol("successful is false, and status is missing".to_owned()),
        };
    }
    let missing = match operation {
        Operation::InterpretReplica => answer.replicas.is_none().then_some("replicas"),
        Operation::InterpretStatus => answer.raw_status.is_none().then_some("rawStatus"),
        Operation::InterpretHealth => answer.healthy.is_none().then_some("healthy"),
        _ => None,
    };
    if let Some(field) = missing {
        return protocol(format!("{operation} needs {field}"));
    }
    match (answer.patch.as_deref(), answer.patch_type.as_deref()) {
        (None | Some(""), None | Some("")) | (Some(_), Some("JSONPatch")) => Ok(answer),
        (patch, kind) => protocol(format!(
            "a patch needs patchType JSONPatch, found {} and {kind:?}",
            if patch.is_some() { "a patch" } else { "no patch" }
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(body: &str, operation: Operation) -> String {
        match decode(body.as_bytes(), "u", operation) {
            Ok(_) => String::new(),
            Err(Reason::Refused(status)) => format!("refused {}: {}", status.code, status.message),
            Err(Reason::Protocol(reason)) => reason,
        }
    }

    #[test]
    fn answers_are_taken_as_karmada_takes_them() {
        let health = Operation::InterpretHealth;
        assert_eq!(
            reason(
                r#"{"response":{"uid":"u","successful":true,"healthy":false,"new":1}}"#,
                health
            ),
            ""
        );
        assert_eq!(
            reason(
                r#"{"response":{"uid":"u","successful":false,"status":{"code":422,"message":"boom"}}}"#,
                health
            ),
            "refused 422: boom"
        );
        assert_eq!(
            reason(
                r#"{"response":{"uid":"u","successful":true,"patch":"W10=","patchType":"JSONPatch"}}"#,
                Operation::Retain
            ),
            ""
        );
        assert_eq!(
            reason(r#"{"response":{"uid":"u","successful":true}}"#, Operation::Retain),
            ""
        );
    }

    #[test]
    fn answers_that_karmada_refuses_are_refused() {
        let health = Operation::InterpretHealth;
        for (body, operation, part) in [
            ("<html>", health, "<html>"),
            ("{}", health, "no response"),
            (
                r#"{"response":{"uid":"other","successful":true,"healthy":true}}"#,
                health,
                "expected uid",
            ),
            (
                r#"{"response":{"uid":"u","successful":false}}"#,
                health,
                "status is missing",
            ),
            (r#"{"response":{"uid":"u","successful":true}}"#, health, "needs healthy"),
            (
                r#"{"response":{"uid":"u","successful":true,"rawStatus":null}}"#,
                Operation::InterpretStatus,
                "needs rawStatus",
            ),
            (
                r#"{"response":{"uid":"u","successful":true,"replicas":2.0}}"#,
                Operation::InterpretReplica,
                "2.0",
            ),
            (
                r#"{"response":{"uid":"u","successful":true,"patch":"W10="}}"#,
                Operation::Retain,
                "patchType",
            ),
            (
                r#"{"response":{"uid":"u","successful":true,"patchType":"JSONPatch"}}"#,
                Operation::Retain,
                "no patch",
            ),
            (
                r#"{"response":{"uid":"u","successful":true,"patch":"W10=","patchType":"MergePatch"}}"#,
                Operation::Retain,
                "MergePatch",
            ),
        ] {
            let reason = reason(body, operation);
            assert!(reason.contains(part), "{body}: {reason}");
        }
    }

    #[test]
    fn an_object_keeps_its_digits_on_the_wire() {
        let object = RawValue::from_string(r#"{"spec":{"big":9007199254740993,"f":1.50}}"#.to_owned()).unwrap();
        let kind = Gvk::new("example.io", "v1", "Widget");
        let question = Question {
            operation: Operation::InterpretHealth,
            kind: &kind,
            name: "a",
            namespace: None,
            object: &object,
            observed: None,
            replicas: 0,
            items: None,
        };
        let text = String::from_utf8(encode(&question, "u").unwrap()).unwrap();
        assert!(
            text.contains(r#""object":{"spec":{"big":9007199254740993,"f":1.50}}"#),
            "{text}"
        );
        assert!(crate::decode(text.as_bytes()).is_ok());
    }
}
