//! [`Answer`] or [`Refusal`] to bytes, by the rules that Karmada's client checks.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    API_VERSION, Aggregation, Answer, Change, Component, Dependency, KIND, NodeClaim, PatchOp, Refusal, Requirements,
};

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
            response.replica_requirements = answer.requirements.as_ref().map(|all| RequirementsOut::new(all, true));
        }
        Ok(Answer::Components(components)) => {
            response.components = Some(components.iter().map(ComponentOut::from).collect());
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
            response.dependencies = Some(dependencies.iter().map(DependencyOut::from).collect());
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
    replica_requirements: Option<RequirementsOut<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    components: Option<Vec<ComponentOut<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dependencies: Option<Vec<DependencyOut<'a>>>,
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
        let operations: Vec<PatchOut<'_>> = self.0.iter().map(PatchOut::from).collect();
        let patch = serde_json::to_vec(&operations).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&STANDARD.encode(patch))
    }
}

#[derive(Serialize)]
struct PatchOut<'a> {
    op: &'static str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
}

impl<'a> From<&'a PatchOp> for PatchOut<'a> {
    fn from(operation: &'a PatchOp) -> Self {
        let (op, value) = match operation {
            PatchOp::Add { value, .. } => ("add", Some(&**value)),
            PatchOp::Replace { value, .. } => ("replace", Some(&**value)),
            PatchOp::Remove { .. } => ("remove", None),
        };
        Self {
            op,
            path: operation.path(),
            value,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RequirementsOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    node_claim: Option<NodeClaimOut<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resource_request: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_class_name: Option<&'a str>,
}

impl<'a> RequirementsOut<'a> {
    fn new(requirements: &'a Requirements, with_namespace: bool) -> Self {
        Self {
            node_claim: requirements.node_claim.as_ref().map(NodeClaimOut::from),
            resource_request: &requirements.resource_request,
            namespace: requirements.namespace.as_deref().filter(|_| with_namespace),
            priority_class_name: requirements.priority_class_name.as_deref(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeClaimOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    hard_node_affinity: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    node_selector: &'a BTreeMap<String, String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tolerations: &'a [Box<RawValue>],
}

impl<'a> From<&'a NodeClaim> for NodeClaimOut<'a> {
    fn from(claim: &'a NodeClaim) -> Self {
        Self {
            hard_node_affinity: claim.hard_node_affinity.as_deref(),
            node_selector: &claim.node_selector,
            tolerations: &claim.tolerations,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ComponentOut<'a> {
    name: &'a str,
    replicas: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_requirements: Option<RequirementsOut<'a>>,
}

impl<'a> From<&'a Component> for ComponentOut<'a> {
    fn from(component: &'a Component) -> Self {
        Self {
            name: &component.name,
            replicas: component.replicas,
            replica_requirements: component
                .requirements
                .as_ref()
                .map(|all| RequirementsOut::new(all, false)),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DependencyOut<'a> {
    api_version: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label_selector: Option<&'a RawValue>,
}

impl<'a> From<&'a Dependency> for DependencyOut<'a> {
    fn from(dependency: &'a Dependency) -> Self {
        Self {
            api_version: &dependency.api_version,
            kind: &dependency.kind,
            namespace: dependency.namespace.as_deref(),
            name: dependency.name.as_deref(),
            label_selector: dependency.label_selector.as_deref(),
        }
    }
}
