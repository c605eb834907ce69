//! What is known of an Instance's quota, for the reconcile that opens its gate.

use popcell_api::conditions::reasons;
use popcell_api::quota as api;

use super::{Observation, ProjectNamespace, fits, is_held, project_namespace};
use crate::conditions;
use crate::instance::Quota;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::remote::Ownership;
use crate::remote::cell::Identity;

/// What is known of the quota of the Instance that `seen` is about. `away` says why the project's plane is unreachable,
/// for people;
/// `refused` is reason and message of the last write of the claim, where it was refused. A claim of another size that is about
/// to be replaced is absent for one that its gate holds.
pub fn quota<'a>(seen: &Observation<'a>, away: Option<&'a str>, refused: Option<(&'static str, &'a str)>) -> Quota<'a> {
    match project_namespace(seen.namespace, seen.cell_namespace, seen.single) {
        ProjectNamespace::None => return Quota::NoProject,
        ProjectNamespace::Bad(label) => return Quota::BadProject(label),
        ProjectNamespace::In { .. } => {}
    }
    let Observed::Known(claims) = seen.claims else {
        return Quota::Unknown(away);
    };
    if let Some(claim) = seen.at_home(claims) {
        let waits_for_another = || {
            let held = seen.instance.filter(|instance| is_held(instance));
            held.and_then(|instance| instance.at("/spec"))
                .is_some_and(|spec| !fits(seen, claim, spec))
        };
        return match seen.ownership(claim) {
            Ownership::Foreign => Quota::Foreign(claim),
            Ownership::Ours | Ownership::Agrees if waits_for_another() => Quota::Absent,
            Ownership::Ours | Ownership::Agrees => Quota::Claim(claim),
        };
    }
    match (seen.identity, refused) {
        (Identity::Mismatch(message), _) => Quota::Refused {
            reason: reasons::QUOTA_MISCONFIGURED,
            message,
        },
        (_, Some((reason, message))) => Quota::Refused { reason, message },
        _ => Quota::Absent,
    }
}

/// Whether a claim says yes or no, or goes: one that is pending says nothing that an Instance is not born with.
pub fn is_answered(claim: &Object) -> bool {
    let granted = claim
        .at("/status")
        .and_then(|status| conditions::find(status, api::GRANTED));
    let word = granted.map(|granted| (conditions::text(granted, "status"), conditions::text(granted, "reason")));
    claim.deleting()
        || match word {
            Some(("True", _)) => true,
            Some(("False", reason)) => reason != reasons::PENDING_EVALUATION,
            _ => false,
        }
}

/// The reason for an answer to the creation of a claim: its HTTP status (0 = no answer), and whether it says that the
/// namespace is not there.
pub fn refusal(code: u16, namespace_is_missing: bool) -> &'static str {
    match code {
        404 if namespace_is_missing => reasons::QUOTA_NAMESPACE_NOT_FOUND,
        404 => reasons::QUOTA_PROJECT_NOT_FOUND,
        403 | 422 => reasons::QUOTA_MISCONFIGURED,
        _ => reasons::QUOTA_BACKEND_UNAVAILABLE,
    }
}
