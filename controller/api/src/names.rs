//! Fixed names and the fixed parts of derived ones.
//!
//! Whole derived names are made in the core, where their limits are checked.

/// A hub namespace is this and the uid of the project's Namespace; the cell's has the same name.
pub const HUB_NAMESPACE_PREFIX: &str = "ns-";
/// The ResourceQuota in each hub namespace.
pub const HUB_QUOTA: &str = "popcell-hub";
/// A policy is this and the city code in lower case, with `-` for spaces.
pub const CITY_POLICY_PREFIX: &str = "city-";
/// A ResourceClaim is this and the name of the Instance.
pub const RESOURCE_CLAIM_PREFIX: &str = "instance-";
/// A NetworkBinding is the WorkloadDeployment, this, and the index of the interface.
pub const NETWORK_BINDING_INFIX: &str = "-net-";
/// A SubnetClaim is the NetworkContext and this.
pub const SUBNET_CLAIM_SUFFIX: &str = "-0";

/// A project as a label value is this and its name with `_` for `/`.
pub const PROJECT_LABEL_PREFIX: &str = "cluster-";
/// The project in discovery mode `single`.
pub const SINGLE: &str = "single";

/// Name of the Lease.
pub const LEASE: &str = "e98b06c6.datumapis.com";
/// ConfigMap in a cell, in the program's namespace: projects that may hold claims of the cell.
pub const CLAIM_PROJECTS: &str = "popcell-claim-projects";
/// ConfigMap in the program's namespace that a person makes to release the deletion guard of a program without a Lease.
pub const DELETION_GUARD: &str = "popcell-deletion-guard";
/// ConfigMap in the hub, in the program's namespace: cells whose Cluster is absent or another one's, and since when.
pub const ABSENT_CELLS: &str = "popcell-absent-cells";
/// ConfigMap in the hub, in the program's namespace: cells that `popcell cell remove` has declared gone.
pub const REMOVED_CELLS: &str = "popcell-removed-cells";

/// Finalizers. popcell sets none on Instances: one that waits for a remote plane would keep a slot occupied while that
/// plane is unreachable. Copies and claims are deleted afterwards, from what then exists.
pub mod finalizers {
    /// On project Workloads and on cell WorkloadDeployments, each set and removed by its own reconciler. In single-cluster
    /// mode one WorkloadDeployment carries it beside [`FEDERATOR`].
    pub const WORKLOAD_CONTROLLER: &str = "compute.datumapis.com/workload-controller";
    /// On project WorkloadDeployments.
    pub const FEDERATOR: &str = "compute.datumapis.com/federator";

    /// On cell Instances, by upstream's operator. popcell never sets it and takes it away where it meets it.
    pub const UPSTREAM_INSTANCE_CONTROLLER: &str = "compute.datumapis.com/instance-controller";
    /// On cell Instances, by upstream's operator. popcell never sets it and takes it away where it meets it.
    pub const UPSTREAM_CLAIM_CLEANUP: &str = "quota.compute.datumapis.com/claim-cleanup";

    /// On cell Instances, by the unikraft provider: it has something to tear down.
    pub const UNIKRAFT_PROVIDER: &str = "unikraft.datumapis.com/finalizer";
    /// On cell Instances, by the provider of Pods: there may be a Pod to delete.
    pub const POD_PROVIDER: &str = "compute.datumapis.com/pod-provider";
}

/// Wire strings of the admission webhooks for Workloads and WorkloadDeployments.
pub mod admission {
    /// Path of the mutating webhook.
    pub const MUTATE_WORKLOAD_PATH: &str = "/mutate-compute-datumapis-com-v1alpha-workload";
    /// Path of the validating webhook.
    pub const VALIDATE_WORKLOAD_PATH: &str = "/validate-compute-datumapis-com-v1alpha-workload";
    /// Path of the validating webhook for WorkloadDeployments.
    pub const VALIDATE_DEPLOYMENT_PATH: &str = "/validate-compute-datumapis-com-v1alpha-workloaddeployment";
    /// Name of the webhook at [`MUTATE_WORKLOAD_PATH`].
    pub const MUTATING_WEBHOOK: &str = "mworkload.kb.io";
    /// Name of the webhook at [`VALIDATE_WORKLOAD_PATH`].
    pub const VALIDATING_WEBHOOK: &str = "vworkload.kb.io";
    /// Name of the webhook at [`VALIDATE_DEPLOYMENT_PATH`].
    pub const VALIDATING_DEPLOYMENT_WEBHOOK: &str = "vworkloaddeployment.kb.io";
    /// Name of the webhook there for the subresource `scale`.
    pub const VALIDATING_SCALE_WEBHOOK: &str = "vworkloaddeploymentscale.kb.io";
    /// Names of the conditions of [`VALIDATING_DEPLOYMENT_WEBHOOK`] and what they say: it is called for what it has to read, a
    /// spec or a reserved key. While it cannot be reached, popcell still takes its finalizers away, and writes annotations of
    /// its own.
    pub const DEPLOYMENT_CONDITION: &str = "request.operation == 'CREATE' || object.spec != oldObject.spec || \
        (has(object.metadata.labels) && object.metadata.labels.exists(key, \
        key.matches('(?i)^([^/]*[.])?(karmada[.]io|compute[.]datumapis[.]com)/') && \
        !(has(oldObject.metadata.labels) && key in oldObject.metadata.labels && \
        oldObject.metadata.labels[key] == object.metadata.labels[key]))) || \
        (has(object.metadata.annotations) && object.metadata.annotations.exists(key, \
        key.matches('(?i)^([^/]*[.])?(karmada[.]io|compute[.]datumapis[.]com)/') && \
        !(key in ['compute.datumapis.com/granted-slots', 'compute.datumapis.com/granted-size', \
        'compute.datumapis.com/paused']) && \
        !(has(oldObject.metadata.annotations) && key in oldObject.metadata.annotations && \
        oldObject.metadata.annotations[key] == object.metadata.annotations[key])))";
    /// Name of the MutatingWebhookConfiguration.
    pub const MUTATING_CONFIGURATION: &str = "compute-mutating";
    /// Name of the ValidatingWebhookConfiguration.
    pub const VALIDATING_CONFIGURATION: &str = "compute-validating";
    /// Name of the Service.
    pub const SERVICE: &str = "compute-webhook";
    /// Port of the Service and of the program.
    pub const PORT: u16 = 9443;

    /// Key in `userInfo.extra`: name of the project that a request was made in (milo).
    pub const EXTRA_PARENT_NAME: &str = "iam.miloapis.com/parent-name";
    /// Key in `userInfo.extra`: kind of the parent (milo).
    pub const EXTRA_PARENT_TYPE: &str = "iam.miloapis.com/parent-type";
    /// Key in `userInfo.extra`: API group of the parent (milo).
    pub const EXTRA_PARENT_API_GROUP: &str = "iam.miloapis.com/parent-api-group";

    /// What the user must be allowed to do with each network: verb of the SubjectAccessReview.
    pub const NETWORK_VERB: &str = "use";
}
