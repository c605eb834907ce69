//! What was found on each plane, for one Workload.

use std::collections::BTreeMap;

use popcell_core::object::{Object, Unreadable};

/// What a plane answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found<T> {
    /// It answered.
    Known(T),
    /// It was asked and did not answer.
    Away(String),
}

impl<T> Found<T> {
    /// The answer, if there is one.
    pub(super) fn known(&self) -> Option<&T> {
        match self {
            Self::Known(found) => Some(found),
            Self::Away(_) => None,
        }
    }
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    /// The Namespace in the project.
    pub(super) namespace: String,
    /// Name of the Workload.
    pub(super) name: String,
    /// Name of the hub namespace, which the cell's has as well.
    pub(super) hub_namespace: String,
    /// The Workload; `None` = NotFound.
    pub(super) workload: Option<Object>,
    /// Its WorkloadDeployments in the project.
    pub(super) deployments: Vec<Object>,
    /// ResourceClaims of its namespace in the project.
    pub(super) claims: Found<Vec<Object>>,
    /// The hub; `None` where the project is its own cell.
    pub(super) hub: Option<Found<Hub>>,
    /// Instances of its namespace in the project, where the project is its own cell.
    pub(super) instances: Vec<Object>,
    /// Cells that were asked, by the name of their Cluster.
    pub(super) cells: BTreeMap<String, Found<Cell>>,
    /// What is in the lists and cannot be read.
    pub(super) unreadable: Vec<Strange>,
}

/// An object that is there and cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Strange {
    /// As that of a [`Node`](super::node::Node).
    pub(super) plane: String,
    /// Its kind.
    pub(super) kind: &'static str,
    /// Where it is, and why it cannot be read.
    pub(super) item: Unreadable,
}

/// What is on the hub, in the one namespace unless said otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Hub {
    /// The Namespace itself; `None` = NotFound.
    pub(super) namespace: Option<Object>,
    /// WorkloadDeployments.
    pub(super) deployments: Vec<Object>,
    /// PropagationPolicies.
    pub(super) policies: Vec<Object>,
    /// ResourceBindings.
    pub(super) bindings: Vec<Object>,
    /// Works in the namespaces of Clusters that a binding names.
    pub(super) works: Vec<Object>,
    /// Copies of Instances.
    pub(super) copies: Vec<Object>,
    /// All Karmada Clusters.
    pub(super) clusters: Vec<Object>,
}

/// What is in a cell, in the one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// WorkloadDeployments.
    pub(super) deployments: Vec<Object>,
    /// Instances.
    pub(super) instances: Vec<Object>,
}
