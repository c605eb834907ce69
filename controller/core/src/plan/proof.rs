//! Proofs, and what a live answer says to them.
//!
//! Why: `docs/decisions/22-proofs-and-deletion-guard.md`.

use popcell_api::kind::Kind;
use popcell_api::labels;

use super::{Plane, Target};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::references::{self, Reference};

/// What a live server must confirm right before a delete is sent.
///
/// Any other answer, an error included, is what a failed write is to the plan ([`super::Order`]), and is counted as a
/// suppressed delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// A live GET of `source` answers NotFound; or, where its uid was known, another uid, or this uid with a
    /// deletionTimestamp.
    Gone {
        /// The object that the doomed one was made for.
        source: Target,
        /// The uid that it had; `None` where it is unknown, and then only NotFound counts.
        uid: Option<String>,
    },
    /// A live GET of `source` answers this uid, without a deletionTimestamp.
    Lives {
        /// The object that takes the doomed one's place.
        source: Target,
        /// Its uid.
        uid: String,
    },
    /// A live LIST of `kind` in `namespace` by `selector` (`key=value`; empty = all) has no items.
    NoneLeft {
        /// The server.
        plane: Plane,
        /// The kind.
        kind: Kind,
        /// The namespace.
        namespace: String,
        /// The label selector.
        selector: String,
    },
    /// A live LIST of the WorkloadDeployments of a hub namespace has none that names an object, and none that cannot be read.
    NotNamed {
        /// The hub namespace.
        namespace: String,
        /// The object.
        reference: Reference,
    },
    /// A live GET of the Karmada Cluster answers NotFound, or another `spec.id` that is not empty; or the durable record of
    /// removed cells, read live, has this name and id.
    SourceGone {
        /// Name of the Cluster.
        cluster: String,
        /// Uid of the kube-system namespace of the cell.
        id: String,
    },
    /// Live GETs answer that the Karmada Cluster does not carry the city of this WorkloadDeployment of the hub: Karmada has
    /// taken it out of the cell.
    NotServed {
        /// Name of the Cluster.
        cluster: String,
        /// The WorkloadDeployment on the hub.
        deployment: Target,
    },
    /// A live GET of `kube-system` on the project's API server answers this uid: it is the server that the doomed object's
    /// project is on, so that what it does not have is gone (mode `single`).
    Server {
        /// The project id.
        project: String,
        /// The uid.
        uid: String,
    },
    /// The discovery server answers NotFound for the Project, or another uid. Never true in mode `single`.
    ProjectGone {
        /// The project id.
        project: String,
        /// The uid that it had.
        uid: String,
    },
}

impl Proof {
    /// The server whose word it is. `None` for [`Self::Server`], which asks which server it is: one that was restored is it
    /// still.
    pub fn plane(&self) -> Option<&Plane> {
        match self {
            Self::Gone { source, .. } | Self::Lives { source, .. } => Some(&source.plane),
            Self::NoneLeft { plane, .. } => Some(plane),
            Self::NotNamed { .. } | Self::SourceGone { .. } | Self::NotServed { .. } => Some(&Plane::Hub),
            Self::ProjectGone { .. } => Some(&Plane::Discovery),
            Self::Server { .. } => None,
        }
    }

    /// Whether what live GETs found proves [`Proof::NotServed`]. A Cluster that is not there may be about to come back, and
    /// says nothing.
    pub fn is_not_served(cluster: Option<&Object>, deployment: Option<&Object>) -> bool {
        let (Some(cluster), Some(deployment)) = (cluster, deployment) else {
            return false;
        };
        let city = deployment.text("/spec/cityCode");
        city.is_some() && cluster.label(labels::CITY_CODE) != city
    }

    /// Whether what a live LIST found proves [`Proof::NotNamed`].
    pub fn is_not_named(deployments: &[Object], unreadable: usize, reference: &Reference) -> bool {
        unreadable == 0 && references::is_named(deployments, reference) == Observed::Known(false)
    }

    /// Whether what a live GET found (`None` = NotFound) proves [`Proof::Gone`].
    pub fn is_gone(found: Option<&Object>, uid: Option<&str>) -> bool {
        match (found, uid) {
            (None, _) => true,
            (Some(found), Some(uid)) => found.uid() != uid || found.deleting(),
            (Some(_), None) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cluster_that_carries_another_city_has_lost_what_it_ran_for_one() {
        let object = |value| serde_json::from_value::<Object>(value).unwrap();
        let cluster = |labels| object(json!({ "metadata": { "name": "c", "labels": labels } }));
        let deployment = object(json!({ "metadata": { "name": "web" }, "spec": { "cityCode": "DFW" } }));
        let dfw = cluster(json!({ "topology.datum.net/city-code": "DFW" }));
        let ord = cluster(json!({ "topology.datum.net/city-code": "ORD" }));
        let none = cluster(json!({}));
        let not_served = |cluster| Proof::is_not_served(cluster, Some(&deployment));
        assert!(not_served(Some(&ord)) && not_served(Some(&none)));
        assert!(!not_served(Some(&dfw)) && !not_served(None) && !Proof::is_not_served(Some(&ord), None));
    }

    #[test]
    fn only_the_same_object_that_stays_counts_as_there() {
        let lives = |found: Option<&Object>, uid| !Proof::is_gone(found, uid);
        let object = |metadata| serde_json::from_value::<Object>(json!({ "metadata": metadata })).unwrap();
        let same = object(json!({ "uid": "a" }));
        let going = object(json!({ "uid": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" }));
        assert!(lives(Some(&same), Some("a")));
        assert!(!lives(Some(&going), Some("a")));
        assert!(!lives(Some(&same), Some("b")));
        assert!(!lives(None, Some("a")) && !lives(None, None));
        // Where the uid is unknown, only NotFound counts.
        assert!(lives(Some(&same), None) && lives(Some(&going), None));
    }
}
