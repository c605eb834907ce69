//! The kinds that tests look at: those of popcell, and others that only tests address.

pub use popcell_api::kind::{
    CLUSTER, INSTANCE, Kind, LOCATION_BINDING, NETWORK, PROJECT, PROPAGATION_POLICY, RESOURCE_BINDING, Scope, WORKLOAD,
    WORKLOAD_DEPLOYMENT,
};

const fn namespaced(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind::of(group, version, kind, plural, Scope::Namespaced)
}

const fn cluster(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind::of(group, version, kind, plural, Scope::Cluster)
}

/// Workload of Karmada's example interpreter webhook.
pub const EXAMPLE_WORKLOAD: Kind = namespaced("workload.example.io", "v1alpha1", "Workload", "workloads");
/// Work.
pub const WORK: Kind = namespaced("work.karmada.io", "v1alpha1", "Work", "works");
/// ResourceInterpreterWebhookConfiguration.
pub const INTERPRETER_CONFIGURATION: Kind = cluster(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterWebhookConfiguration",
    "resourceinterpreterwebhookconfigurations",
);
/// ResourceInterpreterCustomization.
pub const INTERPRETER_CUSTOMIZATION: Kind = cluster(
    "config.karmada.io",
    "v1alpha1",
    "ResourceInterpreterCustomization",
    "resourceinterpretercustomizations",
);
/// ResourceGrant of the quota system.
pub const RESOURCE_GRANT: Kind = namespaced("quota.miloapis.com", "v1alpha1", "ResourceGrant", "resourcegrants");
/// GrantCreationPolicy of the quota system.
pub const GRANT_CREATION_POLICY: Kind = cluster(
    "quota.miloapis.com",
    "v1alpha1",
    "GrantCreationPolicy",
    "grantcreationpolicies",
);
/// ResourceRegistration of the quota system.
pub const RESOURCE_REGISTRATION: Kind = cluster(
    "quota.miloapis.com",
    "v1alpha1",
    "ResourceRegistration",
    "resourceregistrations",
);
/// ServiceConfiguration of milo's service catalog.
pub const SERVICE_CONFIGURATION: Kind = cluster(
    "services.miloapis.com",
    "v1alpha1",
    "ServiceConfiguration",
    "serviceconfigurations",
);
/// ProtectedResource of milo's IAM.
pub const PROTECTED_RESOURCE: Kind = cluster(
    "iam.miloapis.com",
    "v1alpha1",
    "ProtectedResource",
    "protectedresources",
);
/// Role of milo's IAM.
pub const IAM_ROLE: Kind = namespaced("iam.miloapis.com", "v1alpha1", "Role", "roles");
/// CustomResourceDefinition.
pub const CRD: Kind = cluster(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
);
/// Namespace.
pub const NAMESPACE: Kind = cluster("", "v1", "Namespace", "namespaces");
/// Node.
pub const NODE: Kind = cluster("", "v1", "Node", "nodes");
/// Pod.
pub const POD: Kind = namespaced("", "v1", "Pod", "pods");
/// NetworkPolicy.
pub const NETWORK_POLICY: Kind = namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
/// ConfigMap.
pub const CONFIG_MAP: Kind = namespaced("", "v1", "ConfigMap", "configmaps");
/// ResourceQuota.
pub const RESOURCE_QUOTA: Kind = namespaced("", "v1", "ResourceQuota", "resourcequotas");
/// Secret.
pub const SECRET: Kind = namespaced("", "v1", "Secret", "secrets");
/// Deployment.
pub const DEPLOYMENT: Kind = namespaced("apps", "v1", "Deployment", "deployments");
/// Job.
pub const CRON_JOB: Kind = namespaced("batch", "v1", "CronJob", "cronjobs");
/// Event (core group; Karmada writes these).
pub const EVENT: Kind = namespaced("", "v1", "Event", "events");
/// ValidatingAdmissionPolicy.
pub const ADMISSION_POLICY: Kind = cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
);
/// ValidatingAdmissionPolicyBinding.
pub const ADMISSION_POLICY_BINDING: Kind = cluster(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
);
/// ClusterRole.
pub const CLUSTER_ROLE: Kind = cluster("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles");
/// ClusterRoleBinding.
pub const CLUSTER_ROLE_BINDING: Kind = cluster(
    "rbac.authorization.k8s.io",
    "v1",
    "ClusterRoleBinding",
    "clusterrolebindings",
);
