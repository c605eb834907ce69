//! Annotation keys.

/// On CRDs: the control planes that serve the kind.
pub const PARENT_CONTEXTS: &str = "discovery.miloapis.com/parent-contexts";

/// The value of [`PARENT_CONTEXTS`] for kinds that live in a project.
pub const PARENT_CONTEXT_PROJECT: &str = "Project";

/// On the hub WorkloadDeployment: generation of the project WorkloadDeployment when its spec was written here. The
/// project's `observedGeneration` is derived from it, never copied from the hub.
pub const UPSTREAM_GENERATION: &str = "compute.datumapis.com/upstream-generation";

/// On the hub WorkloadDeployment: uid of the project WorkloadDeployment.
pub const UPSTREAM_UID: &str = "compute.datumapis.com/upstream-uid";

/// On a template in a Karmada plane and on its copies in the members: generation of the hub object, written by Karmada
/// (pkg/apis/work/v1alpha2 `ResourceTemplateGenerationAnnotationKey`).
pub const RESOURCE_TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// In an instance template: an RFC 3339 time that a user sets to roll every instance.
pub const RESTARTED_AT: &str = "compute.datumapis.com/restartedAt";

/// In an instance template with a virtual machine: lines of `user:key`.
pub const SSH_KEYS: &str = "compute.datumapis.com/ssh-keys";
