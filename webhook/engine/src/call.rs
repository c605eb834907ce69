//! One question to a module.

use popcell_protocol::{Gvk, Operation, Request, StatusItem};

/// One question about one object.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// What is asked.
    pub operation: Operation,
    /// Kind of the object.
    pub kind: &'a Gvk,
    /// Namespace of the object, for messages.
    pub namespace: Option<&'a str>,
    /// Name of the object, for messages.
    pub name: &'a str,
    /// The object as JSON text.
    pub object: &'a [u8],
    /// For Retain: the object as the member cluster has it.
    pub observed: Option<&'a [u8]>,
    /// For ReviseReplica.
    pub replicas: i32,
    /// For AggregateStatus.
    pub items: &'a [StatusItem<'a>],
}

impl<'a> Call<'a> {
    /// A question that needs nothing but the object; set the other fields as the operation asks for them.
    pub fn new(operation: Operation, kind: &'a Gvk, object: &'a [u8]) -> Self {
        Self {
            operation,
            kind,
            namespace: None,
            name: "",
            object,
            observed: None,
            replicas: 0,
            items: &[],
        }
    }

    /// The question of a request.
    pub fn of(request: &'a Request<'_>) -> Self {
        Self {
            operation: request.operation,
            kind: &request.kind,
            namespace: request.namespace.as_deref(),
            name: &request.name,
            object: request.object.get().as_bytes(),
            observed: request.observed_object.map(|observed| observed.get().as_bytes()),
            replicas: request.replicas.unwrap_or(0),
            items: &request.aggregated_status,
        }
    }

    /// `namespace/name`, or `name` for cluster-scoped objects.
    pub(crate) fn object_name(&self) -> String {
        match self.namespace {
            Some(namespace) => format!("{namespace}/{}", self.name),
            None => self.name.to_owned(),
        }
    }
}
