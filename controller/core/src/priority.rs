//! Which reason is the worst, and so the one that is shown where several apply.
//!
//! Why: `docs/decisions/12-reasons-where-users-look.md`.

use popcell_api::conditions::reasons;

use crate::names::INVALID_NAME;

/// Reasons that only a change by the user ends, or a fault of a site: always shown before "on its way".
pub const BLOCKING: u8 = 3;

/// Priority of a reason: the higher, the more it hides others. Unknown reasons are 0.
pub fn of(reason: &str) -> u8 {
    match reason {
        reasons::PROVISIONING_INSTANCES | reasons::PROVISIONING => 1,
        reasons::PROVISIONING_NETWORK => 2,
        reasons::PENDING_QUOTA | reasons::QUOTA_EXCEEDED => BLOCKING,
        reasons::REJECTED => 4,
        reasons::IMAGE_UNAVAILABLE | reasons::INSTANCE_CRASHING | reasons::CONFIGURATION_ERROR => 5,
        reasons::NETWORK_NOT_FOUND | reasons::NO_MATCHING_LOCATION => 6,
        reasons::NETWORK_FAILED_TO_CREATE => 7,
        _ if needs_an_edit(reason) => 8,
        _ => 0,
    }
}

/// Whether only a change of the object, or of the one that it conflicts with, ends it.
pub fn needs_an_edit(reason: &str) -> bool {
    matches!(
        reason,
        reasons::INVALID_CITY_CODE
            | reasons::CITY_CODE_CONFLICT
            | reasons::NAME_CONFLICT
            | reasons::LIMIT_EXCEEDED
            | INVALID_NAME
    )
}
