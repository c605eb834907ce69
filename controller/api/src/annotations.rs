//! Annotation keys and fixed values.
//!
//! The contract behind them: `docs/domain.md#annotations`.

keys! {
    /// On CRDs: the control planes that serve the kind.
    PARENT_CONTEXTS = "discovery.miloapis.com/parent-contexts";

    /// In an instance template: an RFC 3339 time that a user sets to roll every instance.
    RESTARTED_AT = "compute.datumapis.com/restartedAt";
    /// In an instance template with a virtual machine: lines of `user:key`.
    SSH_KEYS = "compute.datumapis.com/ssh-keys";

    /// On a Workload or a WorkloadDeployment: `"true"` stops every reconcile that writes for it.
    PAUSED = "compute.datumapis.com/paused";

    /// On the hub WorkloadDeployment: generation of the project WorkloadDeployment when its spec was written here. The
    /// project's `observedGeneration` is derived from it, never copied from the hub.
    UPSTREAM_GENERATION = "compute.datumapis.com/upstream-generation";
    /// On the hub WorkloadDeployment: uid of the project WorkloadDeployment.
    UPSTREAM_UID = "compute.datumapis.com/upstream-uid";
    /// On the hub Namespace: uid of the Project; in milo mode only.
    UPSTREAM_PROJECT_UID = "compute.datumapis.com/upstream-project-uid";
    /// On the hub Namespace: uid of the `kube-system` Namespace of the project's API server; in single mode only. Set it by hand to
    /// say that another server has become, or was, the project.
    UPSTREAM_SERVER_UID = "compute.datumapis.com/upstream-server-uid";
    /// On the hub Namespace: RFC 3339 time at which its project was found to be gone.
    PROJECT_GONE_SINCE = "compute.datumapis.com/project-gone-since";
    /// Beside [`PROJECT_GONE_SINCE`]: its deletion was seen, so that a user meant it. The deletion guard does not count it.
    PROJECT_DELETED = "compute.datumapis.com/project-deleted";

    /// On the hub WorkloadDeployment, where popcell carries the ConfigMaps and Secrets that its template names: the hash of those
    /// that its city is to have, or [`DATA_PENDING`].
    EXPECTED_REFERENCED_DATA = "compute.datumapis.com/expected-referenced-data";
    /// Beside [`EXPECTED_REFERENCED_DATA`], why it is pending: names, and never a value.
    REFERENCED_DATA_ERROR = "compute.datumapis.com/referenced-data-error";
    /// On a copy of a ConfigMap or Secret on the hub, and below it: the version of what it holds.
    DATA_VERSION = "compute.datumapis.com/data-version";

    /// On hub copies and claims: uid of the kube-system namespace of the cell that wrote them.
    SOURCE_UID = "compute.datumapis.com/source-uid";
    /// On the cell WorkloadDeployment: ordinals whose claim was granted.
    GRANTED_SLOTS = "compute.datumapis.com/granted-slots";
    /// Beside [`GRANTED_SLOTS`]: what each of those claims asked for. Without it, what the template asks for.
    GRANTED_SIZE = "compute.datumapis.com/granted-size";

    /// On the WorkloadDeployment of hub and cell, and on the Instance in the cell: how large the instance type that it names is, as
    /// `acme/large cpu=4 memory=8Gi`. Without it the type has the size that popcell has built in.
    INSTANCE_TYPE_SIZE = "compute.datumapis.com/instance-type-size";

    /// On the WorkloadDeployment of the hub: what its template named before and names no more, as `configmaps/settings,secrets/db`. It
    /// is carried on until all Instances are of the new template.
    PREVIOUS_REFERENCES = "compute.datumapis.com/previous-references";

    /// On the Pod of an Instance: hash of the template that the Pod was made from.
    TEMPLATE_HASH = "compute.datumapis.com/template-hash";
    /// On the Pod of an Instance: how many Pods that had ended it replaced in a row, in decimal.
    POD_REPLACEMENTS = "compute.datumapis.com/pod-replacements";

    /// On objects on the hub: RFC 3339 time at which `popcell reinterpret` had Karmada interpret the object again. Karmada
    /// carries it to the cell, where it means nothing.
    REINTERPRETED_AT = "compute.datumapis.com/reinterpreted-at";

    /// On our Lease: releases the deletion guard once. The value is the plane that is released, as logs, events and metrics
    /// print it (`hub`, `project a`), or [`MASS_DELETE_ALLOW`].
    MASS_DELETE = "compute.datumapis.com/mass-delete";

    /// On a template in a Karmada plane and on its copies in the members: generation of the hub object, written by Karmada
    /// (pkg/apis/work/v1alpha2 `ResourceTemplateGenerationAnnotationKey`).
    RESOURCE_TEMPLATE_GENERATION = "resourcetemplate.karmada.io/generation";
    /// On copies in the members: uid of the hub object, written by Karmada (pkg/apis/work/v1alpha2
    /// `ResourceTemplateUIDAnnotation`).
    RESOURCE_TEMPLATE_UID = "resourcetemplate.karmada.io/uid";
}

/// The value of [`PARENT_CONTEXTS`] for kinds that live in a project.
pub const PARENT_CONTEXT_PROJECT: &str = "Project";
/// The value of [`EXPECTED_REFERENCED_DATA`] until the project's ConfigMaps and Secrets were read, and are on the hub.
pub const DATA_PENDING: &str = "pending";
/// The value of [`PAUSED`] that pauses; any other does not.
pub const PAUSED_TRUE: &str = "true";
/// The value of [`MASS_DELETE`] that releases whatever is held.
pub const MASS_DELETE_ALLOW: &str = "allow";
