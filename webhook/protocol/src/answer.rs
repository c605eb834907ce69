//! Answers, in the words of the contract with the text of a module kept as it came, and [`Answer`] or [`Refusal`] to bytes,
//! by the rules that Karmada's client checks.
//!
//! What is in them was checked before: numbers of replicas fit 32 bits and are not negative, amounts are Kubernetes
//! quantities.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use popcell_contract::json::cut;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{API_VERSION, KIND};

/// One JSON value, as text.
type Text = Box<RawValue>;

/// The answer to one request.
pub type Answer = popcell_contract::Answer<Text, String>;
/// The answer to InterpretReplica.
pub type Replicas = popcell_contract::Replicas<Text, String>;
/// What one replica needs (work/v1alpha2 `ReplicaRequirements`).
pub type Requirements = popcell_contract::Requirements<Text, String>;
/// Claims on nodes (work/v1alpha2 `NodeClaim`).
pub type NodeClaim = popcell_contract::NodeClaim<Text>;
/// One part of an object with several pod templates (work/v1alpha2 `Component`).
pub type Component = popcell_contract::Component<Text, String>;
/// An object that goes wherever this one goes (config/v1alpha1 `DependentObjectReference`).
pub type Dependency = popcell_contract::Dependency<Text>;
/// What to do with the object. An empty list of steps leaves it as it is, too.
pub type Change = popcell_contract::Change<Text>;
/// The answer to AggregateStatus.
pub type Aggregation = popcell_contract::Aggregation<Text>;
/// One step of a JSON patch (RFC 6902).
pub type PatchOp = popcell_contract::PatchOp<Text>;

/// Why there is no answer: `successful: false` with a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Karmada only prints it. Chosen like an HTTP status.
    pub code: u16,
    /// One line; ends in Karmada's events.
    pub message: String,
}

/// The longest message, in bytes: messages end in Karmada's events.
pub const MAX_MESSAGE: usize = 256;

/// The text in one line of at most [`MAX_MESSAGE`] bytes.
pub fn one_line(text: String) -> String {
    let mut line = if text.contains(char::is_control) {
        text.replace(char::is_control, " ")
    } else {
        text
    };
    cut(&mut line, MAX_MESSAGE);
    line
}

/// One whole `ResourceInterpreterContext` that answers the request with this `uid`.
pub fn encode(uid: &str, answer: &Result<Answer, Refusal>) -> Vec<u8> {
    let mut response = Response {
        uid,
        successful: answer.is_ok(),
        ..Response::default()
    };
    match answer {
        Ok(Answer::Replicas(answer)) => {
            response.replicas = Some(answer.replicas);
            response.replica_requirements = answer.requirements.as_ref();
        }
        Ok(Answer::Components(components)) => {
            response.components = Some(components);
        }
        // No change is neither patch nor patchType: one without the other is an error.
        Ok(Answer::Change(change) | Answer::Aggregation(Aggregation { change, .. })) => match change {
            Change::Patch(steps) if !steps.is_empty() => {
                response.patch = Some(Base64Json(steps));
                response.patch_type = Some("JSONPatch");
            }
            Change::Patch(_) | Change::Unchanged => {}
        },
        Ok(Answer::Status(status)) => response.raw_status = Some(status),
        Ok(Answer::Health(healthy)) => response.healthy = Some(*healthy),
        Ok(Answer::Dependencies(dependencies)) => {
            response.dependencies = Some(dependencies);
        }
        Err(Refusal { code, message }) => response.status = Some(StatusOut { code: *code, message }),
    }
    let context = Context {
        api_version: API_VERSION,
        kind: KIND,
        response,
    };
    let mut out = Vec::with_capacity(512);
    if serde_json::to_writer(&mut out, &context).is_err() {
        // Writing strings, numbers and checked JSON into memory does not fail; an empty body would still be an answer
        // that Karmada reports as such.
        out.clear();
    }
    out
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    successful: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Base64Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_requirements: Option<&'a Requirements>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<&'a [Component]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<&'a [Dependency]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_status: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
}

#[derive(Serialize)]
struct StatusOut<'a> {
    message: &'a str,
    code: u16,
}

/// A JSON patch as Go's `[]byte`: base64 of its text.
struct Base64Json<'a>(&'a [PatchOp]);

impl Serialize for Base64Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let patch = serde_json::to_vec(self.0).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(patch))
    }
}
