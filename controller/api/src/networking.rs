//! Types of the network services, group `networking.datumapis.com`: the fields that popcell reads or writes, others are
//! ignored.
//!
//! Location and LocationBinding are namespaced on some servers and cluster-scoped on others, and so are references to
//! Locations.

use std::collections::BTreeMap;

use kube::core::object::{NotUsed, Object};
use serde::{Deserialize, Serialize};

use crate::instance::{LocationReference, NetworkReference};
use crate::observed::{ConditionsOnly, ObservedCondition, null_as_default};

/// API group.
pub const GROUP: &str = "networking.datumapis.com";
/// Version.
pub const VERSION: &str = "v1alpha";
/// The class of the SubnetClaims that the cell makes.
pub const SUBNET_CLASS_PRIVATE: &str = "private";
/// The only family of addresses that the cell asks for.
pub const IP_FAMILY_IPV4: &str = "IPv4";

/// A site.
pub type Location = Object<LocationSpec, ConditionsOnly>;
/// A site that a project may use.
pub type LocationBinding = Object<LocationBindingSpec, ConditionsOnly>;
/// A network. Only its existence is checked.
pub type Network = Object<Option<NotUsed>, NotUsed>;
/// A network in a site, made by the cell for each interface.
pub type NetworkBinding = Object<NetworkBindingSpec, NetworkBindingStatus>;
/// What the network services make of a NetworkBinding.
pub type NetworkContext = Object<NetworkContextSpec, ConditionsOnly>;
/// A request for a subnet, made by the cell.
pub type SubnetClaim = Object<SubnetClaimSpec, SubnetClaimStatus>;
/// The subnet that answers a SubnetClaim.
pub type Subnet = Object<SubnetSpec, ConditionsOnly>;

/// Name of an object in the namespace of the one that refers to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalReference {
    /// The name.
    #[serde(default)]
    pub name: String,
}

/// A site.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationSpec {
    /// Properties; the city is under [`crate::labels::CITY_CODE`].
    #[serde(default, deserialize_with = "null_as_default")]
    pub topology: BTreeMap<String, String>,
}

/// A site that a project may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LocationBindingSpec {
    /// The Location.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_ref: Option<LocationReference>,
    /// The Location's topology; the city is under [`crate::labels::CITY_CODE`].
    #[serde(default, deserialize_with = "null_as_default")]
    pub topology: BTreeMap<String, String>,
}

/// A network in a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkBindingSpec {
    /// The network, as the interface names it.
    pub network: NetworkReference,
    /// The site.
    pub location: LocationReference,
}

/// How far a NetworkBinding is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkBindingStatus {
    /// Its NetworkContext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_context_ref: Option<NetworkContextReference>,
    /// Conditions; `Ready` counts. Born Unknown/Pending.
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Vec<ObservedCondition>,
}

/// Name of a NetworkContext.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkContextReference {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A network in a site, as the network services made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkContextSpec {
    /// The site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
}

/// A request for a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetClaimSpec {
    /// Class of the subnet; see [`SUBNET_CLASS_PRIVATE`].
    pub subnet_class: String,
    /// The NetworkContext.
    pub network_context: LocalReference,
    /// The site.
    pub location: LocationReference,
    /// Family of the addresses; see [`IP_FAMILY_IPV4`].
    pub ip_family: String,
}

/// How far a SubnetClaim is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubnetClaimStatus {
    /// The Subnet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_ref: Option<LocalReference>,
    /// Conditions; `Ready` counts. Born Unknown/Pending.
    #[serde(default, deserialize_with = "null_as_default")]
    pub conditions: Vec<ObservedCondition>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetSpec {
    /// The site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<LocationReference>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn read<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_location_binding_is_read_namespaced_or_cluster_scoped() {
        for (namespace, reference) in [
            (Value::Null, json!({ "name": "dfw-a" })),
            (json!("default"), json!({ "name": "dfw-a", "namespace": "datum" })),
        ] {
            let binding: LocationBinding = read(json!({
                "apiVersion": "networking.datumapis.com/v1alpha",
                "kind": "LocationBinding",
                "metadata": { "name": "dfw", "namespace": namespace },
                "spec": {
                    "locationRef": reference,
                    "locationClassName": "datum-managed",
                    "topology": { "topology.datum.net/city-code": "DFW" },
                    "of": { "a": "later release" },
                },
                "status": { "conditions": [{ "type": "Available", "status": "False" }] },
            }));
            assert_eq!(binding.spec.topology[labels::CITY_CODE], "DFW");
            assert_eq!(binding.spec.location_ref.unwrap().name, "dfw-a");
            assert_eq!(binding.status.unwrap().conditions[0].status, "False");
        }
    }

    #[test]
    fn what_is_absent_or_null_does_not_harm() {
        let bare: LocationBinding = read(json!({ "metadata": {}, "spec": { "topology": null } }));
        assert!(bare.spec.topology.is_empty() && bare.status.is_none());
        let location: Location = read(json!({ "metadata": {}, "spec": {}, "status": { "conditions": null } }));
        assert_eq!(location.status, Some(ConditionsOnly::default()));
        let network: Network = read(json!({ "metadata": { "name": "default" } }));
        assert_eq!(network.metadata.name.as_deref(), Some("default"));
        let claim: SubnetClaimStatus = read(json!({}));
        assert_eq!(claim, SubnetClaimStatus::default());
    }

    #[test]
    fn what_the_cell_makes_is_written_without_empty_fields() {
        let location = LocationReference {
            name: "dfw-a".to_owned(),
            namespace: None,
        };
        let binding = NetworkBindingSpec {
            network: NetworkReference {
                name: "default".to_owned(),
                namespace: None,
            },
            location: location.clone(),
        };
        let written = serde_json::to_value(NetworkBinding::new(
            "web-us-dfw-net-0",
            &crate::kind::NETWORK_BINDING.resource(),
            binding,
        ));
        assert_eq!(
            written.unwrap(),
            json!({
                "apiVersion": "networking.datumapis.com/v1alpha",
                "kind": "NetworkBinding",
                "metadata": { "name": "web-us-dfw-net-0" },
                "spec": { "network": { "name": "default" }, "location": { "name": "dfw-a" } },
            })
        );
        let claim = SubnetClaimSpec {
            subnet_class: SUBNET_CLASS_PRIVATE.to_owned(),
            network_context: LocalReference {
                name: "default-dfw-a".to_owned(),
            },
            location,
            ip_family: IP_FAMILY_IPV4.to_owned(),
        };
        assert_eq!(
            serde_json::to_value(claim).unwrap(),
            json!({
                "subnetClass": "private",
                "networkContext": { "name": "default-dfw-a" },
                "location": { "name": "dfw-a" },
                "ipFamily": "IPv4",
            })
        );
    }
}
