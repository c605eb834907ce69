//! What planes and kinds are called in the tree, and how instances are counted. Pure.

use popcell_core::object::{Fields as _, Object};

pub(super) const PROJECT: &str = "project";
pub(super) const HUB: &str = "hub";

pub(super) const WORKLOAD: &str = "Workload";
pub(super) const DEPLOYMENT: &str = "WorkloadDeployment";
pub(super) const POLICY: &str = "PropagationPolicy";
pub(super) const BINDING: &str = "ResourceBinding";
pub(super) const WORK: &str = "Work";
pub(super) const INSTANCE: &str = "Instance";
pub(super) const CLAIM: &str = "ResourceClaim";

/// City and ready instances.
pub(super) fn counts(deployment: &Object) -> String {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    let of = |field: &str| deployment.int(&format!("/status/{field}")).unwrap_or_default();
    format!("{city} {}/{} ready", of("readyReplicas"), of("desiredReplicas"))
}
