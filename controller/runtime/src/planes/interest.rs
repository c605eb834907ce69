//! What is watched on a plane, and when (design.md 7.1).

use std::borrow::Cow;
use std::sync::Arc;

use popcell_api::kind::{self, Kind};
use popcell_api::labels;
use popcell_core::plan::{NAMESPACE, Plane};

/// What is watched on a plane.
pub type Interests = Box<dyn Fn(&Plane) -> Arc<[Interest]> + Send + Sync>;

/// How much of an object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it, but managedFields.
    Whole,
    /// Its metadata only; nothing else of it can be read from the store.
    Metadata,
}

/// While what a kind is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// While the plane is engaged.
    Engaged,
    /// While the plane has any object of this kind, which is itself watched.
    Any(Kind),
}

/// One watch of a plane, over all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The kind.
    pub kind: Kind,
    /// A label selector; empty = all.
    pub selector: Cow<'static, str>,
    /// How much of each object.
    pub view: View,
    /// While what.
    pub when: When,
}

impl Interest {
    const fn new(kind: Kind, when: When) -> Self {
        Self::of(kind, when, "", View::Whole)
    }

    /// Objects that have a label.
    const fn labelled(kind: Kind, label: &'static str) -> Self {
        Self::of(kind, When::Engaged, label, View::Whole)
    }

    const fn of(kind: Kind, when: When, selector: &'static str, view: View) -> Self {
        Self {
            kind,
            selector: Cow::Borrowed(selector),
            view,
            when,
        }
    }
}

/// What management controllers watch in a project. One that is idle costs two streams.
pub const PROJECT: [Interest; 5] = [
    Interest::new(kind::WORKLOAD, When::Engaged),
    Interest::new(kind::WORKLOAD_DEPLOYMENT, When::Engaged),
    Interest::new(kind::NETWORK, When::Any(kind::WORKLOAD)),
    Interest::new(kind::LOCATION_BINDING, When::Any(kind::WORKLOAD)),
    Interest::of(kind::INSTANCE, When::Any(kind::WORKLOAD_DEPLOYMENT), "", View::Metadata),
];

/// What management controllers watch on the hub.
pub const HUB: [Interest; 6] = [
    Interest::labelled(NAMESPACE, labels::UPSTREAM_CLUSTER_NAME),
    Interest::new(kind::WORKLOAD_DEPLOYMENT, When::Engaged),
    Interest::new(kind::PROPAGATION_POLICY, When::Engaged),
    Interest::new(kind::RESOURCE_BINDING, When::Engaged),
    Interest::new(kind::CLUSTER, When::Engaged),
    Interest::new(kind::INSTANCE, When::Engaged),
];

/// What cell controllers watch in the cell.
pub const CELL: [Interest; 3] = [
    Interest::labelled(NAMESPACE, labels::UPSTREAM_CLUSTER_NAME),
    Interest::new(kind::WORKLOAD_DEPLOYMENT, When::Engaged),
    Interest::new(kind::INSTANCE, When::Engaged),
];

/// What they watch in the cell beside that, where Instances wait for networks.
pub const CELL_NETWORKS: [Interest; 5] = [
    Interest::new(kind::LOCATION, When::Engaged),
    Interest::new(kind::NETWORK_BINDING, When::Engaged),
    Interest::new(kind::NETWORK_CONTEXT, When::Engaged),
    Interest::new(kind::SUBNET_CLAIM, When::Engaged),
    Interest::new(kind::SUBNET, When::Engaged),
];

/// What management controllers watch on a plane.
pub fn management(plane: &Plane) -> Arc<[Interest]> {
    match plane {
        Plane::Project(_) => Arc::from(PROJECT),
        Plane::Hub => Arc::from(HUB),
        Plane::Cell => Arc::from([]),
    }
}

/// What a cell watches of its own in another plane: objects of a kind that carry its name.
pub fn of_source(kind: Kind, cluster: &str) -> Interest {
    Interest {
        selector: Cow::Owned(format!("{}={cluster}", labels::SOURCE_CLUSTER)),
        ..Interest::new(kind, When::Engaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_project_costs_two_streams_and_every_condition_is_watched() {
        let project = PROJECT;
        let idle = project.iter().filter(|interest| interest.when == When::Engaged);
        assert_eq!(idle.count(), 2);
        for table in [PROJECT.as_slice(), &HUB, &CELL, &CELL_NETWORKS] {
            for interest in table {
                let When::Any(trigger) = interest.when else { continue };
                let found = table.iter().find(|each| each.kind == trigger).unwrap();
                assert_eq!(found.when, When::Engaged);
            }
        }
    }
}
