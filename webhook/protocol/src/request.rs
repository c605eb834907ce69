//! The request as Karmada sends it (pkg/apis/config/v1alpha1/interpretercontext_types.go).

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{Gvk, Operation};

/// What one member cluster reported (work/v1alpha2 `AggregatedStatusItem`).
pub type StatusItem<'a> = popcell_contract::StatusItem<&'a RawValue, Cow<'a, str>>;

/// One question about one object. Everything but the kind borrows from the body.
#[derive(Clone, Debug)]
pub struct Request<'a> {
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
