//! A call that outlives the request's buffer.

use popcell_protocol::{Gvk, Operation, StatusItem};
use serde_json::value::RawValue;

use crate::Call;

pub(super) struct OwnedCall {
    operation: Operation,
    kind: Gvk,
    namespace: Option<String>,
    name: String,
    object: Vec<u8>,
    observed: Option<Vec<u8>>,
    replicas: i32,
    items: Vec<OwnedItem>,
}

type OwnedItem = popcell_contract::StatusItem<Box<RawValue>>;

impl From<&Call<'_>> for OwnedCall {
    fn from(call: &Call<'_>) -> Self {
        Self {
            operation: call.operation,
            kind: call.kind.clone(),
            namespace: call.namespace.map(str::to_owned),
            name: call.name.to_owned(),
            object: call.object.to_owned(),
            observed: call.observed.map(<[u8]>::to_owned),
            replicas: call.replicas,
            items: call.items.iter().map(owned).collect(),
        }
    }
}

impl OwnedCall {
    pub(super) fn with<R>(&self, ask: impl FnOnce(&Call<'_>) -> R) -> R {
        let items: Vec<StatusItem<'_>> = self.items.iter().map(borrowed).collect();
        ask(&Call {
            operation: self.operation,
            kind: &self.kind,
            namespace: self.namespace.as_deref(),
            name: &self.name,
            object: &self.object,
            observed: self.observed.as_deref(),
            replicas: self.replicas,
            items: &items,
        })
    }
}

fn owned(item: &StatusItem<'_>) -> OwnedItem {
    OwnedItem {
        cluster_name: item.cluster_name.clone().into_owned(),
        status: item.status.map(ToOwned::to_owned),
        applied: item.applied,
        applied_message: item.applied_message.clone().into_owned(),
        health: item.health,
    }
}

fn borrowed(item: &OwnedItem) -> StatusItem<'_> {
    StatusItem {
        cluster_name: item.cluster_name.as_str().into(),
        status: item.status.as_deref(),
        applied: item.applied,
        applied_message: item.applied_message.as_str().into(),
        health: item.health,
    }
}
