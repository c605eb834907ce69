//! What an answer of an API server means, and whose fault it is.
//!
//! The code alone does not say. A webhook that cannot be called, a quota and an object that is too large for etcd all
//! have codes that a server in trouble uses too, and a webhook that denies chooses code, reason and `Retry-After`. So
//! the words count, where the API server writes them itself: they stand before what a webhook may add. The headers
//! `X-Kubernetes-PF-*` say nothing here: every answer has them that Priority and Fairness has classified, also those whose
//! reason is a webhook.

use std::borrow::Cow;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use kube::core::Status;
use popcell_client::absent;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::refusal::{Refusal, ServerMessage};

/// Of an answer that is no Status, so much is told.
const TEXT: usize = 200;

/// What stands at the beginning of a message when a webhook denies, whatever code it chooses
/// (apiserver/pkg/admission/plugin/webhook/errors/statuserror.go).
const DENIED: &str = "admission webhook \"";

/// What is in a message when something else than server and object is the reason.
const BETWEEN: [&str; 3] = [
    // apiserver/pkg/util/webhook/error.go; wrapped as InternalError, 500.
    "failed calling webhook \"",
    // apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go
    "conversion webhook for ",
    // apiserver/pkg/admission/plugin/policy/validating/dispatcher.go; the policy chooses 401, 403, 413 or 422.
    "ValidatingAdmissionPolicy '",
];

/// As the quota of a namespace refuses (apiserver/pkg/admission/plugin/resourcequota/controller.go).
const QUOTA: [&str; 3] = ["exceeded quota: ", "failed quota: ", "status unknown for quota: "];

/// An object beyond what the store takes, told with code 500: by etcd, and by the client of etcd.
const TOO_LARGE: [&str; 2] = [
    "etcdserver: request is too large",
    "trying to send message larger than max",
];

/// JSON that a server sent, as text: nothing of it is too deep for that.
pub(super) type Text = Box<RawValue>;

/// What an answer means; an error where it is not what was asked for, which says nothing of what was sent.
pub(super) fn read(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Text, Refusal> {
    if !code.is_client_error() && !code.is_server_error() {
        return serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Refusal::Unreadable(format!("no JSON at line {line}, column {column}"))
        });
    }
    let header = headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok());
    let rest = header.and_then(|after| after.parse().ok());
    Err(match status(body) {
        Some(status) => refused(code.as_u16(), &status, rest.unwrap_or(0)),
        None => foreign(code.as_u16(), body, rest.unwrap_or(0)),
    })
}

/// What kind of object a body is.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
}

/// A Status of Kubernetes; proxies answer with something else, and some filters of API servers with text.
fn status(body: &[u8]) -> Option<Status> {
    match serde_json::from_slice::<Kind<'_>>(body) {
        Ok(body) if body.kind != "Status" => return None,
        Ok(_) => {}
        Err(error) => return error.is_eof().then(|| cut(body)).flatten(),
    }
    serde_json::from_slice(body).ok()
}

/// The beginning of a Status that is not there to its end: what its message begins with, which says who refuses. API servers
/// write the message before the details.
fn cut(body: &[u8]) -> Option<Status> {
    let text = String::from_utf8_lossy(body);
    let (head, message) = text.split_once("\"message\":\"")?;
    if !head.contains("\"kind\":\"Status\"") {
        return None;
    }
    let first = |text: &str| {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<String>();
        values.next().and_then(Result::ok)
    };
    // At most an escape is cut in two, such as one for a letter in two parts.
    let mut ends = message.char_indices().rev().map(|(end, _)| end).take(12);
    let read = |end| first(&format!("\"{}\"", message.get(..end)?));
    let message = first(&format!("\"{message}")).or_else(|| ends.find_map(read))?;
    Some(Status {
        message,
        ..Status::default()
    })
}

fn refused(code: u16, status: &Status, rest: u64) -> Refusal {
    let (said, message) = (status.message.as_str(), ServerMessage::of(status));
    let details = status.details.as_ref();
    let reported = details.map_or(0, |details| u64::from(details.retry_after_seconds));
    let retry_after = after(rest.max(reported));
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let between = said.starts_with(DENIED) || says(&BETWEEN) || code == 403 && says(&QUOTA);
    match code {
        // First of all: a webhook that denies may choose 404 or 409, and would speak about the object.
        _ if between => Refusal::Admission {
            code,
            message,
            retry_after,
        },
        404 => Refusal::NotFound {
            message,
            what: absent(status).map(|(plural, name)| (plural.to_owned(), name.to_owned())),
        },
        409 => Refusal::Changed(message),
        // How API servers answer a JSON patch whose `test` fails; what is invalid names its causes.
        422 if is_failed_test(status) => Refusal::Changed(message),
        500 if says(&TOO_LARGE) => Refusal::Refused { code, message },
        429 | 500..=599 => Refusal::Busy {
            code,
            message,
            retry_after,
        },
        code => Refusal::Refused { code, message },
    }
}

/// No Status: a filter of an API server, such as Priority and Fairness, or something before it.
fn foreign(code: u16, body: &[u8], rest: u64) -> Refusal {
    let text = str::from_utf8(body).unwrap_or_default().trim();
    let plain = !text.is_empty() && text.len() <= TEXT && !text.contains(['<', '{', '\n']);
    let message = if plain {
        ServerMessage::from(text.to_owned())
    } else {
        ServerMessage::from(format!("no Status in {} bytes: a proxy may have answered", body.len()))
    };
    match code {
        404 => Refusal::NotFound { message, what: None },
        409 => Refusal::Changed(message),
        429 | 500..=599 => Refusal::Busy {
            code,
            message,
            retry_after: after(rest),
        },
        code => Refusal::Refused { code, message },
    }
}

/// Zero is what a server says that has nothing to say.
fn after(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// A patch that does not fit what is stored is reported without details; an object that is invalid names its causes
/// (apiserver/pkg/endpoints/handlers/patch.go, `applyJSPatch`).
fn is_failed_test(status: &Status) -> bool {
    let causes = status
        .details
        .as_ref()
        .is_some_and(|details| !details.causes.is_empty());
    !causes
        && status
            .message
            .contains("the server rejected our request due to an error in our request")
}

#[cfg(test)]
mod tests;
