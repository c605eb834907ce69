//! What is watched on a plane, and when (design.md 7.1).

use popcell_api::kind::{self, Kind};
use popcell_api::labels;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// The kind.
    pub kind: Kind,
    /// A label selector; empty = all.
    pub selector: &'static str,
    /// How much of each object.
    pub view: View,
    /// While what.
    pub when: When,
}

impl Interest {
    const fn new(kind: Kind, when: When) -> Self {
        Self {
            kind,
            selector: "",
            view: View::Whole,
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
    Interest {
        view: View::Metadata,
        ..Interest::new(kind::INSTANCE, When::Any(kind::WORKLOAD_DEPLOYMENT))
    },
];

/// What management controllers watch on the hub.
pub const HUB: [Interest; 6] = [
    Interest {
        selector: labels::UPSTREAM_CLUSTER_NAME,
        ..Interest::new(popcell_core::plan::NAMESPACE, When::Engaged)
    },
    Interest::new(kind::WORKLOAD_DEPLOYMENT, When::Engaged),
    Interest::new(kind::PROPAGATION_POLICY, When::Engaged),
    Interest::new(kind::RESOURCE_BINDING, When::Engaged),
    Interest::new(kind::CLUSTER, When::Engaged),
    Interest::new(kind::INSTANCE, When::Engaged),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_project_costs_two_streams_and_every_condition_is_watched() {
        let idle = PROJECT.iter().filter(|interest| interest.when == When::Engaged);
        assert_eq!(idle.count(), 2);
        for table in [PROJECT.as_slice(), HUB.as_slice()] {
            for interest in table {
                let When::Any(trigger) = interest.when else { continue };
                let found = table.iter().find(|each| each.kind == trigger).unwrap();
                assert_eq!(found.when, When::Engaged);
            }
        }
    }
}
