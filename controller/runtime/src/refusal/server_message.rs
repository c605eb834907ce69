//! What a server says, and what a log may have of it.
//!
//! A message of a server repeats values of the object, and webhooks and policies choose its text. Whoever made the object
//! finds it in a condition. A log has code and reason, the fields that are at fault, and who refused.

use std::fmt;

use kube::core::Status;
use popcell_core::names::is_dns_subdomain;
use popcell_https::log::shown;

/// Fields of one refusal that are logged.
const FIELDS: usize = 8;

/// Reasons of API servers (apimachinery/pkg/apis/meta/v1 `StatusReason`). A webhook may choose any other.
const REASONS: [&str; 19] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "StoreReadError",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// The words of a server. They display as a log may have them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerMessage {
    said: String,
    brief: String,
}

impl ServerMessage {
    /// All of them, for the user whose object it is.
    pub fn said(&self) -> &str {
        &self.said
    }

    /// Those of a Status.
    pub(crate) fn of(status: &Status) -> Self {
        Self {
            said: status.message.clone(),
            brief: brief(status),
        }
    }
}

/// Words that are of no object: our own, or those of a proxy that are short and plain.
impl From<String> for ServerMessage {
    fn from(said: String) -> Self {
        let brief = shown(&said).to_string();
        Self { said, brief }
    }
}

impl fmt::Display for ServerMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.brief)
    }
}

/// What a log may have of a Status.
pub(crate) fn brief(status: &Status) -> String {
    let reason = status.reason.as_str();
    let reason = match reason {
        "" => "no reason",
        reason if REASONS.contains(&reason) => reason,
        _ => "another reason",
    };
    match source(&status.message) {
        Some(source) => format!("{reason}: {source}"),
        None => format!("{reason}{}", fields(status)),
    }
}

/// Who refused, where the server itself says so at the beginning of its message, and what etcd says, which knows no fields.
fn source(message: &str) -> Option<String> {
    let named = |rest: &str, end: char| {
        let (name, _) = rest.split_once(end)?;
        is_dns_subdomain(name).then(|| name.to_owned())
    };
    if let Some(rest) = message.strip_prefix("admission webhook \"") {
        let name = named(rest, '"').unwrap_or_default();
        return Some(format!("admission webhook \"{name}\" denied the request"));
    }
    if let Some(rest) = message.strip_prefix("Internal error occurred: failed calling webhook \"") {
        let name = named(rest, '"').unwrap_or_default();
        return Some(format!("failed calling webhook \"{name}\""));
    }
    if message.starts_with("conversion webhook for ") {
        return Some("the conversion webhook failed".to_owned());
    }
    if message.starts_with("etcdserver: ") {
        return Some(shown(message).to_string());
    }
    // The name of an object before it has no blanks.
    let (_, rest) = message.split_once(" is forbidden: ")?;
    if let Some(rest) = rest.strip_prefix("ValidatingAdmissionPolicy '") {
        let name = named(rest, '\'').unwrap_or_default();
        return Some(format!("ValidatingAdmissionPolicy '{name}' denied the request"));
    }
    // A right that is missing: an authorizer knows who asks for what, and nothing of the object.
    if rest.starts_with("User \"") && rest.contains("\" cannot ") {
        return Some(shown(rest).to_string());
    }
    let quota = ["exceeded quota: ", "failed quota: "];
    quota
        .iter()
        .any(|words| rest.starts_with(words))
        .then(|| "a quota is exceeded".to_owned())
}

/// The fields that are at fault, and what is not there: names, and never a value.
fn fields(status: &Status) -> String {
    let Some(details) = &status.details else {
        return String::new();
    };
    let named = || details.causes.iter().filter(|cause| !cause.field.is_empty());
    let mut fields: Vec<String> = named()
        .take(FIELDS)
        .map(|cause| shown(&cause.field).to_string())
        .collect();
    if named().count() > FIELDS {
        fields.push("more".to_owned());
    }
    match fields.as_slice() {
        [] if status.reason == "NotFound" && is_dns_subdomain(&details.name) => {
            format!(", {} {}", shown(&details.kind), details.name)
        }
        [] => String::new(),
        fields => format!(" at {}", fields.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(reason: &str, message: &str, causes: &[&str]) -> Status {
        let causes: Vec<_> = causes
            .iter()
            .map(|field| json!({ "reason": "FieldValueInvalid", "message": "Invalid value: \"s3cret\"", "field": field }))
            .collect();
        serde_json::from_value(
            json!({ "status": "Failure", "code": 422, "reason": reason, "message": message,
            "details": { "name": "web", "kind": "namespaces", "causes": causes } }),
        )
        .unwrap()
    }

    #[test]
    fn a_log_has_reason_fields_and_who_refused_and_no_value() {
        let invalid = "Instance.compute.datumapis.com \"web-0\" is invalid: spec.a: Invalid value: \"s3cret\\nERROR\"";
        let policy = "instances.compute.datumapis.com \"web-0\" is forbidden: ValidatingAdmissionPolicy 'no.s' with binding \
            's3cret' denied request: s3cret";
        let quota = "instances.compute.datumapis.com \"web-0\" is forbidden: exceeded quota: s3cret";
        let called = "Internal error occurred: failed calling webhook \"deny.example\": failed to call webhook: s3cret";
        for (reason, message, causes, expected) in [
            (
                "Invalid",
                invalid,
                &["spec.a", "metadata.labels[b]"] as &[_],
                "Invalid at spec.a, metadata.labels[b]",
            ),
            ("Invalid", invalid, &["spec.\nERROR"], "Invalid at spec.\\u{a}ERROR"),
            ("Invalid", invalid, &["a"; 9], "Invalid at a, a, a, a, a, a, a, a, more"),
            ("s3cret", "s3cret", &[], "another reason"),
            ("", "s3cret", &[], "no reason"),
            ("NotFound", "s3cret", &[], "NotFound, namespaces web"),
            (
                "Forbidden",
                "admission webhook \"deny.example\" denied the request: s3cret",
                &["s3cret"],
                "Forbidden: admission webhook \"deny.example\" denied the request",
            ),
            (
                "Forbidden",
                "admission webhook \"s3 cret\" denied",
                &[],
                "Forbidden: admission webhook \"\" denied the request",
            ),
            (
                "InternalError",
                called,
                &[],
                "InternalError: failed calling webhook \"deny.example\"",
            ),
            (
                "Invalid",
                policy,
                &[],
                "Invalid: ValidatingAdmissionPolicy 'no.s' denied the request",
            ),
            ("Forbidden", quota, &[], "Forbidden: a quota is exceeded"),
            (
                "Forbidden",
                "instances.compute.datumapis.com \"web-0\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource",
                &[],
                "Forbidden: User \"system:serviceaccount:a:b\" cannot patch resource",
            ),
            (
                "InternalError",
                "conversion webhook for a/v1, Kind=B failed: s3cret",
                &[],
                "InternalError: the conversion webhook failed",
            ),
            (
                "",
                "etcdserver: request timed out",
                &[],
                "no reason: etcdserver: request timed out",
            ),
            // Words of a webhook in a value name nobody.
            (
                "Invalid",
                "x: Invalid value: \"failed calling webhook \\\"s3cret\\\"\"",
                &[],
                "Invalid",
            ),
        ] {
            assert_eq!(brief(&status(reason, message, causes)), expected);
        }
        let words = ServerMessage::of(&status("Invalid", invalid, &["spec.a"]));
        assert_eq!(
            (words.said(), words.to_string().as_str()),
            (invalid, "Invalid at spec.a")
        );
        let ours = ServerMessage::from(format!("a\n{}", "b".repeat(300)));
        assert_eq!(ours.to_string(), format!("a\\u{{a}}{}...", "b".repeat(251)));
    }
}
