//! Events as API servers keep them (events.k8s.io/v1).

use http::Request;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use popcell_api::kind::{Kind, Scope};
use popcell_core::object::{Fields as _, Object};
use popcell_core::plan::{Event, Severity, Target};
use serde_json::json;

use super::request;
use crate::refusal::{ApplyError, Refusal};

const EVENT: Kind = Kind::of("events.k8s.io", "v1", "Event", "events", Scope::Namespaced);
/// Where Events about objects of the cluster go.
const DEFAULT_NAMESPACE: &str = "default";
/// Who says it.
const CONTROLLER: &str = "compute.datumapis.com/popcell";

/// Longest name of an object that API servers take, in bytes.
const NAME_BYTES: usize = 253;

/// Where an Event goes, and the request that makes it.
pub(super) fn request(event: &Event) -> (Target, Result<Request<Vec<u8>>, Refusal>) {
    let about = &event.about;
    let namespace = about.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
    let now = Timestamp::now();
    let name = name(&about.name, now);
    let target = Target::namespaced(&about.plane, EVENT, namespace, &name);
    let body = json!({
        "apiVersion": EVENT.api_version(),
        "kind": EVENT.kind,
        "metadata": { "name": name, "namespace": namespace },
        "eventTime": format!("{now:.6}"),
        "reportingController": CONTROLLER,
        "reportingInstance": instance(),
        "action": "Reconcile",
        "reason": event.reason,
        "type": match event.severity { Severity::Normal => "Normal", Severity::Warning => "Warning" },
        "note": event.note,
        "regarding": {
            "apiVersion": about.kind.api_version(),
            "kind": about.kind.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": event.uid,
        },
    });
    let request = request::post(&target, body.to_string().into_bytes());
    (target, request)
}

/// Tells of an object that lives on no plane, such as our Lease. It is read for its uid.
///
/// # Errors
/// The object is not there, or the server is unreachable or refuses.
pub(crate) async fn record_event(
    client: &Client,
    about: &Target,
    severity: Severity,
    reason: &str,
    note: &str,
) -> Result<(), ApplyError> {
    let failed = |verb| move |refusal| ApplyError::of(about, verb, refusal);
    let get = request::get(about).map_err(failed("get"))?;
    let found = request::send(client, get, request::OBJECT)
        .await
        .map_err(failed("get"))?;
    let found = Object::read(found.get()).unwrap_or_default();
    let event = Event {
        about: about.clone(),
        uid: found.uid().to_owned(),
        severity,
        reason: reason.to_owned(),
        note: note.to_owned(),
    };
    let post = request(&event).1.map_err(failed("create"))?;
    request::send(client, post, request::OBJECT)
        .await
        .map_err(failed("create"))?;
    Ok(())
}

/// A name that no other Event has, and that shows what it is about.
fn name(about: &str, now: Timestamp) -> String {
    let unique = format!(".{:x}", now.as_nanosecond());
    let room = about.floor_char_boundary(NAME_BYTES.saturating_sub(unique.len()));
    // A cut may fall where no part of a name may end.
    let start = about.get(..room).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{start}{unique}")
}

/// The host name, which is the pod's; at most 128 characters.
fn instance() -> String {
    let name = std::env::var("HOSTNAME").unwrap_or_default();
    let cut = name.get(..name.floor_char_boundary(128)).unwrap_or_default();
    if cut.is_empty() {
        "popcell".to_owned()
    } else {
        cut.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_where_a_name_may_end() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let unique = ".18867251edfa0000";
        assert_eq!(name("web-dfw-0", now), format!("web-dfw-0{unique}"));
        let room = NAME_BYTES - unique.len();
        let long = "a".repeat(NAME_BYTES);
        assert_eq!(name(&long, now), format!("{}{unique}", "a".repeat(room)));
        let parted = format!("{}.-{}", "a".repeat(room - 2), "b".repeat(17));
        assert_eq!(name(&parted, now), format!("{}{unique}", "a".repeat(room - 2)));
    }
}
