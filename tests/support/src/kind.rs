//! The kinds that tests look at.

use kube::api::{ApiResource, GroupVersionKind};

/// Group, version, kind, plural and scope of a kind; enough to address it without asking the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in URLs.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    const fn namespaced(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            namespaced: true,
        }
    }

    const fn cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self {
            group,
            version,
            kind,
            plural,
            namespaced: false,
        }
    }

    /// `group/version`, or the version alone in the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        self.resource().api_version
    }

    /// What kube's dynamic API takes.
    #[must_use]
    pub fn resource(&self) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(self.group, self.version, self.kind), self.plural)
    }
}

/// WorkloadDeployment.
pub const WORKLOAD_DEPLOYMENT: Kind = Kind::namespaced(
    popcell_api::GROUP,
    popcell_api::VERSION,
    "WorkloadDeployment",
    "workloaddeployments",
);
/// Workload, of ours.
pub const WORKLOAD: Kind = Kind::namespaced(popcell_api::GROUP, popcell_api::VERSION, "Workload", "workloads");
/// Instance.
pub const INSTANCE: Kind = Kind::namespaced(popcell_api::GROUP, popcell_api::VERSION, "Instance", "instances");
/// Workload of Karmada's example interpreter webhook.
pub const EXAMPLE_WORKLOAD: Kind = Kind::namespaced("workload.example.io", "v1alpha1", "Workload", "workloads");
/// PropagationPolicy.
pub const PROPAGATION_POLICY: Kind = Kind::namespaced(
    "policy.karmada.io",
    "v1alpha1",
    "PropagationPolicy",
    "propagationpolicies",
);
/// ResourceBinding.
pub const RESOURCE_BINDING: Kind =
    Kind::namespaced("work.karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings");
/// Work.
pub const WORK: Kind = Kind::namespaced("work.karmada.io", "v1alpha1", "Work", "works");
/// Cluster.
pub const CLUSTER: Kind = Kind::cluster("cluster.karmada.io", "v1alpha1", "Cluster", "clusters");
/// ResourceInterpreterWebhookConfiguration.
pub const INTERPRETER_CONFIGURATION: Kind = Kind::cluster(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterWebhookConfiguration",
    "resourceinterpreterwebhookconfigurations",
);
/// ResourceInterpreterCustomization.
pub const INTERPRETER_CUSTOMIZATION: Kind = Kind::cluster(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterCustomization",
    "resourceinterpretercustomizations",
);
/// CustomResourceDefinition.
pub const CRD: Kind = Kind::cluster(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
/// Namespace.
pub const NAMESPACE: Kind = Kind::cluster("", "v1", "Namespace", "namespaces");
/// ConfigMap.
pub const CONFIG_MAP: Kind = Kind::namespaced("", "v1", "ConfigMap", "configmaps");
/// Secret.
pub const SECRET: Kind = Kind::namespaced("", "v1", "Secret", "secrets");
/// Event (core group; Karmada writes these).
pub const EVENT: Kind = Kind::namespaced("", "v1", "Event", "events");
