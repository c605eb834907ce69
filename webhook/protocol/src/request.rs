//! The request as Karmada sends it (pkg/apis/config/v1alpha1/interpretercontext_types.go).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::{Gvk, Health, Operation};

/// What one member cluster reported (work/v1alpha2 `AggregatedStatusItem`).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusItem<'a> {
    /// Name of the member's `Cluster`.
    #[serde(borrow)]
    pub cluster_name: Cow<'a, str>,
    /// What InterpretStatus returned there; `None` while nothing was collected.
    #[serde(borrow)]
    pub status: Option<&'a RawValue>,
    /// Whether the object was applied in the member.
    #[serde(default)]
    pub applied: bool,
    /// Why it was not.
    #[serde(borrow, default, deserialize_with = "text")]
    pub applied_message: Cow<'a, str>,
    /// Health in the member; data of old Karmada versions may have none.
    #[serde(default, deserialize_with = "health")]
    pub health: Option<Health>,
}

/// One question about one object. Everything but the kind borrows from the body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The text that all of this was read from.
    pub body: &'a [u8],
    /// Names the question; the answer must carry the same.
    pub uid: Cow<'a, str>,
    /// Kind of the object.
    pub kind: Gvk,
    /// Name of the object.
    pub name: Cow<'a, str>,
    /// Namespace of the object; `None` for cluster-scoped ones.
    pub namespace: Option<Cow<'a, str>>,
    /// What is asked.
    pub operation: Operation,
    /// The object: always a JSON object.
    pub object: &'a RawValue,
    /// The object as the member cluster has it: always there for Retain, and then a JSON object.
    pub observed_object: Option<&'a RawValue>,
    /// Present (as 0) for every operation: only ReviseReplica may look at it.
    pub replicas: Option<i32>,
    /// One item per member cluster, for AggregateStatus.
    pub aggregated_status: Vec<StatusItem<'a>>,
}

/// A string that borrows when it has no escapes. serde borrows a plain `Cow` only outside of `Option`.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A text that may be null, which says the same as none.
pub(crate) fn text<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Cow<'a, str>, D::Error> {
    let text: Option<Text<'a>> = Option::deserialize(deserializer)?;
    Ok(text.unwrap_or_default().0)
}

fn health<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Health>, D::Error> {
    Ok(match &*text(deserializer)? {
        "" => None,
        // A word that a newer Karmada invented says no more than "unknown".
        word => Some(Health::from_wire(word).unwrap_or(Health::Unknown)),
    })
}
