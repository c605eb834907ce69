//! Reasons of events: of Warnings on Instances, of those on whatever has a status, and of those on our Lease.

use crate::conditions::reasons;

/// A claim lay in a project that its Namespace in the cell does not name, and is deleted.
pub const QUOTA_CLAIM_ORPHANED: &str = "QuotaClaimOrphaned";

/// Failures of quota: reasons of the condition `QuotaGranted` that are also events.
pub const QUOTA_FAILURES: [&str; 6] = [
    reasons::QUOTA_BACKEND_UNAVAILABLE,
    reasons::QUOTA_PROJECT_NOT_FOUND,
    reasons::QUOTA_NAMESPACE_NOT_FOUND,
    reasons::QUOTA_MISCONFIGURED,
    reasons::QUOTA_PROJECT_ID_UNRESOLVABLE,
    reasons::QUOTA_NO_BUDGET,
];

/// Reasons of the condition `Ready` that become an event when the instance gets to them.
pub const STUCK: [&str; 4] = [
    reasons::IMAGE_UNAVAILABLE,
    reasons::INSTANCE_CRASHING,
    reasons::CONFIGURATION_ERROR,
    reasons::NETWORK_FAILED_TO_CREATE,
];

/// A server rejects the status of the object, so that its conditions are not what they should be.
pub const STATUS_REJECTED: &str = "StatusRejected";

/// On our Lease: the deletion guard holds back a mass deletion.
pub const MASS_DELETE_HELD: &str = "MassDeleteHeld";
/// On our Lease: it opened by itself.
pub const MASS_DELETE_RECOVERED: &str = "MassDeleteRecovered";
/// On our Lease: it was opened by the annotation.
pub const MASS_DELETE_RELEASED: &str = "MassDeleteReleased";
/// On our Lease: the annotation names nothing that is held.
pub const MASS_DELETE_UNRELEASED: &str = "MassDeleteUnreleased";
