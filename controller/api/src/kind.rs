//! The kinds that popcell reads or writes, as they are addressed.

use kube::core::{ApiResource, GroupVersionKind};

use crate::{GROUP, VERSION, networking, quota, resource_manager};

/// Where objects of a kind live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster itself.
    Cluster,
    /// In namespaces on some servers and in the cluster on others: list over all namespaces, which is the same request
    /// in both.
    Either,
}

/// Group, version, kind, plural and scope: enough to address objects without asking a server what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in URLs.
    pub plural: &'static str,
    /// Where objects live.
    pub scope: Scope,
}

impl Kind {
    const fn compute(kind: &'static str, plural: &'static str) -> Self {
        Self::of(GROUP, VERSION, kind, plural, Scope::Namespaced)
    }

    const fn networking(kind: &'static str, plural: &'static str, scope: Scope) -> Self {
        Self::of(networking::GROUP, networking::VERSION, kind, plural, scope)
    }

    /// A kind by its address.
    pub const fn of(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        plural: &'static str,
        scope: Scope,
    ) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            scope,
        }
    }

    /// `group/version`, or the version alone in the core group.
    pub fn api_version(&self) -> String {
        self.resource().api_version
    }

    /// What kube's dynamic API takes.
    pub fn resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(self.group, self.version, self.kind), self.plural)
    }
}

impl From<Kind> for ApiResource {
    fn from(kind: Kind) -> Self {
        kind.resource()
    }
}

/// [`crate::Workload`].
pub const WORKLOAD: Kind = Kind::compute("Workload", "workloads");
/// [`crate::WorkloadDeployment`].
pub const WORKLOAD_DEPLOYMENT: Kind = Kind::compute("WorkloadDeployment", "workloaddeployments");
/// [`crate::Instance`].
pub const INSTANCE: Kind = Kind::compute("Instance", "instances");
/// [`crate::InstanceType`], on the platform's own server.
pub const INSTANCE_TYPE: Kind = Kind::of(GROUP, VERSION, "InstanceType", "instancetypes", Scope::Cluster);

/// A site; its city is under [`crate::labels::CITY_CODE`] in `spec.topology`.
pub const LOCATION: Kind = Kind::networking("Location", "locations", Scope::Either);
/// A site that a project may use, with the topology of its Location.
pub const LOCATION_BINDING: Kind = Kind::networking("LocationBinding", "locationbindings", Scope::Either);
/// A network. Only its existence is checked.
pub const NETWORK: Kind = Kind::networking("Network", "networks", Scope::Namespaced);
/// A network in a site, made by the cell for each interface.
pub const NETWORK_BINDING: Kind = Kind::networking("NetworkBinding", "networkbindings", Scope::Namespaced);
/// What the network services make of a NetworkBinding.
pub const NETWORK_CONTEXT: Kind = Kind::networking("NetworkContext", "networkcontexts", Scope::Namespaced);
/// A request for a subnet, made by the cell.
pub const SUBNET_CLAIM: Kind = Kind::networking("SubnetClaim", "subnetclaims", Scope::Namespaced);
/// The subnet that answers a SubnetClaim.
pub const SUBNET: Kind = Kind::networking("Subnet", "subnets", Scope::Namespaced);

/// Kubernetes' autoscaler, which the cell makes for a WorkloadDeployment.
pub const HORIZONTAL_POD_AUTOSCALER: Kind = Kind::of(
    "autoscaling",
    "v2",
    "HorizontalPodAutoscaler",
    "horizontalpodautoscalers",
    Scope::Namespaced,
);

/// A share of a project's budget; see [`quota::ResourceClaimSpec`].
pub const RESOURCE_CLAIM: Kind = Kind::of(
    quota::GROUP,
    quota::VERSION,
    "ResourceClaim",
    "resourceclaims",
    Scope::Namespaced,
);
/// A project; its name is the project id, and its own API server is below a path of milo's. It is engaged while its condition
/// `Ready` is True.
pub const PROJECT: Kind = Kind::of(
    resource_manager::GROUP,
    resource_manager::VERSION,
    resource_manager::PROJECT_KIND,
    "projects",
    Scope::Cluster,
);

/// What stands for a [`PROJECT`] in milo's own infrastructure cluster, under the project's name. Only
/// name, uid and conditions are read. Its scope is not documented, so both are accepted.
pub const PROJECT_CONTROL_PLANE: Kind = Kind::of(
    "infrastructure.miloapis.com",
    "v1alpha1",
    "ProjectControlPlane",
    "projectcontrolplanes",
    Scope::Either,
);

/// Which objects of a namespace go to which clusters.
pub const PROPAGATION_POLICY: Kind = Kind::of(
    "policy.karmada.io",
    "v1alpha1",
    "PropagationPolicy",
    "propagationpolicies",
    Scope::Namespaced,
);
/// Where Karmada has placed an object, and what the clusters say of it. Its clusters are to be believed only when the scheduler
/// has seen its generation (`status.schedulerObservedGeneration`).
pub const RESOURCE_BINDING: Kind = Kind::of(
    "work.karmada.io",
    "v1alpha2",
    "ResourceBinding",
    "resourcebindings",
    Scope::Namespaced,
);
/// A member. Its city is the label [`crate::labels::CITY_CODE`]; its condition `Ready` says whether it answers; `spec.id` is
/// the uid of its kube-system, empty until Karmada has looked.
pub const CLUSTER: Kind = Kind::of("cluster.karmada.io", "v1alpha1", "Cluster", "clusters", Scope::Cluster);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_addressed_as_their_crds_say() {
        for ours in [WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE, INSTANCE_TYPE] {
            let crds = [crate::crds(), crate::catalogue_crds()].concat();
            let crd = crds.iter().find(|crd| crd.spec.names.kind == ours.kind).unwrap();
            assert_eq!(crd.spec.names.plural, ours.plural);
            assert_eq!(crd.spec.group, ours.group);
            assert_eq!(crd.spec.versions[0].name, ours.version);
            assert_eq!(ours.api_version(), crate::API_VERSION);
        }
    }
}
