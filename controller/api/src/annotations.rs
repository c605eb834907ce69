//! Annotation keys and fixed values.
//!
//! The contract behind them: `docs/domain.md#annotations`.

/// On CRDs: the control planes that serve the kind.
pub const PARENT_CONTEXTS: &str = "discovery.miloapis.com/parent-contexts";
/// The value of [`PARENT_CONTEXTS`] for kinds that live in a project.
pub const PARENT_CONTEXT_PROJECT: &str = "Project";

/// In an instance template: an RFC 3339 time that a user sets to roll every instance.
pub const RESTARTED_AT: &str = "compute.datumapis.com/restartedAt";
/// In an instance template with a virtual machine: lines of `user:key`.
pub const SSH_KEYS: &str = "compute.datumapis.com/ssh-keys";

/// On a Workload or a WorkloadDeployment: `"true"` stops every reconcile that writes for it.
pub const PAUSED: &str = "compute.datumapis.com/paused";
/// The value of [`PAUSED`] that pauses; any other does not.
pub const PAUSED_TRUE: &str = "true";

/// On the hub WorkloadDeployment: generation of the project WorkloadDeployment when its spec was written here. The
/// project's `observedGeneration` is derived from it, never copied from the hub.
pub const UPSTREAM_GENERATION: &str = "compute.datumapis.com/upstream-generation";
/// On the hub WorkloadDeployment: uid of the project WorkloadDeployment.
pub const UPSTREAM_UID: &str = "compute.datumapis.com/upstream-uid";
/// On the hub Namespace: uid of the Project; in milo mode only.
pub const UPSTREAM_PROJECT_UID: &str = "compute.datumapis.com/upstream-project-uid";
/// On the hub Namespace: uid of the `kube-system` Namespace of the project's API server; in single mode only. Set it by hand to
/// say that another server has become, or was, the project.
pub const UPSTREAM_SERVER_UID: &str = "compute.datumapis.com/upstream-server-uid";
/// On the hub Namespace: RFC 3339 time at which its project was found to be gone.
pub const PROJECT_GONE_SINCE: &str = "compute.datumapis.com/project-gone-since";
/// Beside [`PROJECT_GONE_SINCE`]: its deletion was seen, so that a user meant it. The deletion guard does not count it.
pub const PROJECT_DELETED: &str = "compute.datumapis.com/project-deleted";

/// On hub copies and claims: uid of the kube-system namespace of the cell that wrote them.
pub const SOURCE_UID: &str = "compute.datumapis.com/source-uid";
/// On the cell WorkloadDeployment: ordinals whose claim was granted.
pub const GRANTED_SLOTS: &str = "compute.datumapis.com/granted-slots";
/// Beside [`GRANTED_SLOTS`]: what each of those claims asked for. Without it, what the template asks for.
pub const GRANTED_SIZE: &str = "compute.datumapis.com/granted-size";

/// On objects on the hub: RFC 3339 time at which `popcell reinterpret` had Karmada interpret the object again. Karmada
/// carries it to the cell, where it means nothing.
pub const REINTERPRETED_AT: &str = "compute.datumapis.com/reinterpreted-at";

/// On our Lease: releases the deletion guard once. The value is the plane that is released, as logs, events and metrics
/// print it (`hub`, `project a`), or [`MASS_DELETE_ALLOW`].
pub const MASS_DELETE: &str = "compute.datumapis.com/mass-delete";
/// The value of [`MASS_DELETE`] that releases whatever is held.
pub const MASS_DELETE_ALLOW: &str = "allow";

/// On a template in a Karmada plane and on its copies in the members: generation of the hub object, written by Karmada
/// (pkg/apis/work/v1alpha2 `ResourceTemplateGenerationAnnotationKey`).
pub const RESOURCE_TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";
/// On copies in the members: uid of the hub object, written by Karmada (pkg/apis/work/v1alpha2
/// `ResourceTemplateUIDAnnotation`).
pub const RESOURCE_TEMPLATE_UID: &str = "resourcetemplate.karmada.io/uid";

/// All of these: no other key decides anything.
pub const ALL: [&str; 17] = [
    PARENT_CONTEXTS,
    RESTARTED_AT,
    SSH_KEYS,
    PAUSED,
    UPSTREAM_GENERATION,
    UPSTREAM_UID,
    UPSTREAM_PROJECT_UID,
    UPSTREAM_SERVER_UID,
    PROJECT_GONE_SINCE,
    PROJECT_DELETED,
    SOURCE_UID,
    GRANTED_SLOTS,
    GRANTED_SIZE,
    REINTERPRETED_AT,
    MASS_DELETE,
    RESOURCE_TEMPLATE_GENERATION,
    RESOURCE_TEMPLATE_UID,
];

#[cfg(test)]
mod tests {
    use super::ALL;

    #[test]
    fn no_key_is_skipped_of_all() {
        let lines = include_str!("annotations.rs").lines();
        let defined = lines.filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1));
        let keys: Vec<&str> = defined.filter(|value| value.contains('/')).collect();
        assert_eq!(keys, ALL);
    }
}
