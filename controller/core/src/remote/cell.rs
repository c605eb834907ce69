//! Whether this process is the cell that it says it is.
//!
//! A cell is (name of the Karmada Cluster, uid of its kube-system namespace). Two cells under one name would overwrite each
//! other's copies and delete each other's claims, so nothing remote is written before the hub has agreed.
//!
//! Why: `docs/decisions/05-cell-identity.md`.

use popcell_api::names::REMOVED_CELLS;

use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Note, Plan, Plane};
use crate::removed_cells::{self, Source};

/// What the hub says of this cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// The Cluster of our name has our uid. A cell that has quota and no hub trusts its configuration, and is this.
    Matches,
    /// It has not: for people, with what to do. The cell works locally and writes nothing remote.
    Mismatch(String),
    /// Not checked since the hub was last reached.
    Unknown,
}

/// Compares. `cluster` is the Cluster of our name read live, `Known(None)` = NotFound; `record` is the record of removed
/// cells, read live.
pub fn identify(source: Source<'_>, cluster: Observed<Option<&Object>>, record: Observed<Option<&Object>>) -> Identity {
    let Source { name, id } = source;
    let (Observed::Known(cluster), Observed::Known(record)) = (cluster, record) else {
        return Identity::Unknown;
    };
    if record.is_some_and(|record| removed_cells::is_removed(record, source)) {
        let key = removed_cells::record_key(source);
        return Identity::Mismatch(format!(
            "cell \"{name}\" was removed from the hub by `popcell cell remove`: to take it back, delete \"{key}\" from \
             ConfigMap {REMOVED_CELLS} on the hub and join the cell again"
        ));
    }
    let Some(cluster) = cluster else {
        return Identity::Mismatch(format!(
            "the hub has no Cluster \"{name}\": join this cell under that name, or set discovery.clusterName to the name \
             it was joined under"
        ));
    };
    match cluster.text("/spec/id").unwrap_or_default() {
        found if found == id && !id.is_empty() => Identity::Matches,
        "" => Identity::Mismatch(format!(
            "Cluster \"{name}\" on the hub has no spec.id: Karmada sets it when the cell is joined with `karmadactl join` \
             or its agent registers; otherwise set it to the uid of this cell's kube-system namespace, {id}"
        )),
        found => Identity::Mismatch(format!(
            "Cluster \"{name}\" on the hub is another cell: its spec.id is {found}, the uid of this cell's kube-system \
             namespace is {id}; set discovery.clusterName to this cell's own name, or, where this cell replaces that one, \
             run `popcell cell remove {name}` and join this cell again"
        )),
    }
}

impl Identity {
    /// The plan of a reconcile that may not write; `None` where it may.
    pub(super) fn forbids(&self) -> Option<Plan> {
        match self {
            Self::Matches => None,
            Self::Mismatch(_) => Some(Plan::dropped("the hub knows another cell by this name")),
            Self::Unknown => Some(Plan::noted(Note::Unknown(Plane::Hub))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use serde_json::json;

    const DFW: Source<'static> = Source {
        name: "dfw-01",
        id: "uid-1",
    };

    fn cluster(spec: serde_json::Value) -> Object {
        object(json!({ "metadata": { "name": "dfw-01" }, "spec": spec }))
    }

    #[test]
    fn only_a_cluster_with_our_uid_is_this_cell() {
        let none = Observed::Known(None);
        let asked = |spec| identify(DFW, Observed::Known(Some(&cluster(spec))), none);
        assert_eq!(asked(json!({ "id": "uid-1" })), Identity::Matches);
        for (spec, fix) in [
            (json!({ "id": "uid-2" }), "popcell cell remove dfw-01"),
            (
                json!({ "id": "" }),
                "set it to the uid of this cell's kube-system namespace, uid-1",
            ),
            (json!({}), "has no spec.id"),
            (json!(null), "has no spec.id"),
        ] {
            let Identity::Mismatch(message) = asked(spec.clone()) else {
                panic!("{spec}");
            };
            assert!(message.contains(fix), "{message}");
        }
        let Identity::Mismatch(message) = identify(DFW, none, none) else {
            panic!("no Cluster is no match");
        };
        assert!(message.contains("discovery.clusterName"), "{message}");
        // A cell that does not know its own uid matches no Cluster.
        let unknown = Source { name: "dfw-01", id: "" };
        let empty = cluster(json!({ "id": "" }));
        assert!(matches!(
            identify(unknown, Observed::Known(Some(&empty)), none),
            Identity::Mismatch(_)
        ));
    }

    #[test]
    fn the_identity_is_unknown_until_cluster_and_record_are_read() {
        let us = cluster(json!({ "id": "uid-1" }));
        for (cluster, record) in [
            (Observed::Unknown, Observed::Known(None)),
            (Observed::Known(Some(&us)), Observed::Unknown),
            (Observed::Unknown, Observed::Unknown),
        ] {
            assert_eq!(identify(DFW, cluster, record), Identity::Unknown);
        }
    }

    #[test]
    fn a_cell_that_is_recorded_as_removed_does_not_match() {
        let us = cluster(json!({ "id": "uid-1" }));
        let asked = |record: &Object| identify(DFW, Observed::Known(Some(&us)), Observed::Known(Some(record)));
        let record =
            |key: &str| object(json!({ "metadata": { "name": "r" }, "data": { key: "2026-01-01T00:00:00Z" } }));
        let Identity::Mismatch(message) = asked(&record("dfw-01_uid-1")) else {
            panic!("removed");
        };
        assert!(
            message.contains("\"dfw-01_uid-1\" from ConfigMap popcell-removed-cells"),
            "{message}"
        );
        // The record of its predecessor says nothing of it.
        assert_eq!(asked(&record("dfw-01_uid-0")), Identity::Matches);
    }
}
