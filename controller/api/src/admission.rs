//! Wire strings of the admission webhooks for Workloads and WorkloadDeployments.

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
