//! Ready of an Instance, and what quota lays over Programmed and Available while a gate holds it.

use std::cmp::Reverse;

use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::gates::{NETWORK, REFERENCED_DATA};
use serde_json::Value;

use super::Observation;
use super::draft::{Draft, is_reason};
use crate::conditions::{self, Condition, priority, text};
use crate::deployment::{binding_name, is_without_network, missing};
use crate::object::{Fields, Object};
use crate::observed::Observed;

/// Conditions that say nothing about why an Instance is not programmed.
const NOT_A_CAUSE: [&str; 4] = [
    types::PROGRAMMED,
    types::READY,
    types::QUOTA_GRANTED,
    conditions::RUNNING,
];

/// Puts Ready, and the overlay, into the draft of an Instance that these gates hold. QuotaGranted is in it already.
pub(super) fn settle(seen: &Observation<'_>, gates: &[&str], draft: &mut Draft<'_>) {
    let denied = (draft.status_of(types::QUOTA_GRANTED) == "False")
        .then(|| draft.message_of(types::QUOTA_GRANTED).to_owned())
        .filter(|_| !gates.is_empty());
    overlay(draft, denied.as_deref());
    let ready = match gates {
        [] => of_provider(draft),
        gates => gated(seen, gates, denied, draft),
    };
    draft.set(&ready);
}

/// While quota holds the Instance back, its provider has nothing to say; afterwards what we said for it is taken back.
fn overlay(draft: &mut Draft<'_>, denied: Option<&str>) {
    for type_ in [types::PROGRAMMED, types::AVAILABLE] {
        if let Some(message) = denied {
            draft.set(&Condition::new(type_, false, reasons::PENDING_QUOTA, message));
        } else if draft.reason_of(type_) == reasons::PENDING_QUOTA {
            draft.set(&Condition {
                type_,
                status: "Unknown",
                reason: reasons::PENDING.to_owned(),
                message: messages::WAITING_FOR_CONTROLLER.to_owned(),
            });
        }
    }
}

/// A failed network comes before one that is not there, that before data that are not, these before quota, and that before the
/// gates themselves: what only an edit by the user ends is said before what may be granted at any time.
fn gated(seen: &Observation<'_>, gates: &[&str], denied: Option<String>, draft: &Draft<'_>) -> Condition {
    let not_ready = |reason, message| Condition::new(types::READY, false, reason, message);
    let network = failed_network(seen).map(|message| not_ready(reasons::NETWORK_FAILED_TO_CREATE, message));
    let missing = || {
        let message = missing_network(seen).filter(|_| gates.contains(&NETWORK))?;
        Some(not_ready(reasons::NETWORK_NOT_FOUND, message))
    };
    let data = || {
        let message = missing_data(seen, draft).filter(|_| gates.contains(&REFERENCED_DATA))?;
        Some(not_ready(reasons::REFERENCED_DATA_NOT_READY, message))
    };
    let quota = || denied.map(|message| not_ready(reasons::PENDING_QUOTA, message));
    let found = network.or_else(missing).or_else(data).or_else(quota);
    found.unwrap_or_else(|| {
        not_ready(
            reasons::SCHEDULING_GATES_PRESENT,
            messages::scheduling_gates_present(gates),
        )
    })
}

/// Why the city has not the ConfigMaps and Secrets of the Instance; what was said of it while it is not known anew.
fn missing_data(seen: &Observation<'_>, draft: &Draft<'_>) -> Option<String> {
    match seen.data {
        Observed::Known(message) => message.map(str::to_owned),
        Observed::Unknown => {
            let said = draft.reason_of(types::READY) == reasons::REFERENCED_DATA_NOT_READY;
            said.then(|| draft.message_of(types::READY).to_owned())
        }
    }
}

/// The message of the first interface whose network the site could not make.
fn failed_network(seen: &Observation<'_>) -> Option<String> {
    let (deployment, bindings) = (seen.deployment?, seen.bindings.known()?);
    let interfaces = 0..seen.instance.items("/spec/networkInterfaces").len();
    interfaces.into_iter().find_map(|index| {
        let name = binding_name(deployment.name(), index);
        let binding: &Object = bindings.iter().copied().find(|one| one.name() == name)?;
        failure(binding).map(|message| match message {
            "" => format!("NetworkBinding {name} could not be made"),
            message => message.to_owned(),
        })
    })
}

/// Why the city has not a network of the Instance.
fn missing_network(seen: &Observation<'_>) -> Option<String> {
    let (deployment, interfaces) = (seen.deployment?, seen.instance.items("/spec/networkInterfaces"));
    if seen.lacks_networks {
        let name = interfaces.first()?.get("network")?.get("name")?.as_str()?;
        let city = deployment.text("/spec/cityCode").unwrap_or_default();
        return Some(messages::network_not_served(name, city));
    }
    let bindings = seen.bindings.known()?;
    missing(deployment, interfaces, bindings, seen.own_namespace_only)
}

/// Whether the site could not make the network of a NetworkBinding, or has it not.
pub fn has_failed(binding: &Object) -> bool {
    failure(binding).is_some() || is_without_network(binding)
}

/// The message of a network that the site could not make.
fn failure(binding: &Object) -> Option<&str> {
    let ready = conditions::of(binding, types::READY)?;
    let failed = text(ready, "status") == "False" && text(ready, "reason") == reasons::NETWORK_FAILED_TO_CREATE;
    failed.then(|| text(ready, "message"))
}

/// From what the provider says of an Instance that nothing holds back.
fn of_provider(draft: &Draft<'_>) -> Condition {
    if draft.status_of(types::PROGRAMMED) != "True" {
        return not_programmed(draft);
    }
    match draft.get(types::AVAILABLE) {
        Some(available) if text(available, "status") == "True" => {
            Condition::new(types::READY, true, reasons::AVAILABLE, messages::INSTANCE_READY)
        }
        Some(available) if has_own_reason(available) => passed_on(available),
        _ => Condition::new(types::READY, false, reasons::PENDING, messages::INSTANCE_NOT_AVAILABLE),
    }
}

/// The worst cause that any condition names; Programmed's own word where none is known.
fn not_programmed(draft: &Draft<'_>) -> Condition {
    let programmed = draft.get(types::PROGRAMMED);
    let others = draft
        .all()
        .filter(|one| !NOT_A_CAUSE.contains(&text(one, "type")) && text(one, "status") != "True");
    let cause = programmed
        .into_iter()
        .chain(others)
        .filter(|one| priority(text(one, "reason")) > 0)
        .min_by_key(|one| rank(one));
    let own = programmed.filter(|one| has_own_reason(one) && text(one, "reason") != reasons::PENDING_PROGRAMMING);
    cause.or(own).map_or_else(
        || {
            Condition::new(
                types::READY,
                false,
                reasons::PENDING_PROGRAMMING,
                messages::INSTANCE_NOT_PROGRAMMED,
            )
        },
        passed_on,
    )
}

/// The worst first. Among equals Programmed, then Available, then by name: the order in the list does not count.
fn rank(condition: &Value) -> (Reverse<u8>, bool, bool, &str) {
    let type_ = text(condition, "type");
    (
        Reverse(priority(text(condition, "reason"))),
        type_ != types::PROGRAMMED,
        type_ != types::AVAILABLE,
        type_,
    )
}

/// Whether a condition has another reason than its default.
fn has_own_reason(condition: &Value) -> bool {
    let reason = text(condition, "reason");
    reason != reasons::PENDING && is_reason(reason)
}

fn passed_on(condition: &Value) -> Condition {
    Condition {
        type_: types::READY,
        status: match text(condition, "status") {
            "False" => "False",
            // Never True: these are conditions that do not hold.
            _ => "Unknown",
        },
        reason: text(condition, "reason").to_owned(),
        message: text(condition, "message").to_owned(),
    }
}
