//! A review: what has to be asked, and what the rules say of it.

use std::collections::BTreeSet;

use futures::future::join;
use popcell_api::kind::WORKLOAD;
use popcell_core::admission::{
    Fault, FieldError, NetworkUse, access_denied, access_failed, is_reviewed, networks_to_review, project_of, validate,
};
use popcell_core::bindings::usable_cities;
use popcell_core::object::{Fields, Object};
use popcell_core::plan::Plane;
use popcell_core::workload;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ask::{AskError, Asker};
use super::refusal::Refusal;
use super::wire::Request;
use super::{Admission, Mode, Outcome};
use crate::error::Error;
use crate::planes::SINGLE;

impl Admission {
    /// Allowed or unread; it ends by `by`.
    pub(super) async fn review(&self, request: &Request<'_>, by: Instant) -> Result<Outcome, Refusal> {
        let Some((old, new)) = change(request)? else {
            return Ok(Outcome::Unread);
        };
        if !is_reviewed(old.as_ref(), &new) {
            return Ok(Outcome::Unread);
        }
        let user = user(request)?;
        let plane = self.plane(&user).map_err(|why| Refusal::forbidden(new.name(), &why))?;
        let faults = self.faults(&plane, &user, old.as_ref(), &new, by).await?;
        if faults.is_empty() {
            Ok(Outcome::Allowed)
        } else {
            Err(Refusal::fields(new.name(), &faults))
        }
    }

    /// The plane that the request was made on.
    fn plane(&self, user: &Value) -> Result<Plane, String> {
        let id = match self.mode {
            Mode::Single => SINGLE,
            Mode::Milo => project_of(user)?,
        };
        Ok(Plane::Project(id.to_owned()))
    }

    async fn faults(
        &self,
        plane: &Plane,
        user: &Value,
        old: Option<&Object>,
        new: &Object,
        by: Instant,
    ) -> Result<Vec<FieldError>, Refusal> {
        let networks = networks_to_review(old, new);
        let adds_city = adds_city(old, new);
        if !adds_city && networks.is_empty() {
            return Ok(validate(old, new, &BTreeSet::new()));
        }
        let client = match self.clients.get(plane) {
            Err(error @ (Error::Name(_) | Error::NoService(_) | Error::Url { .. })) => {
                return Err(Refusal::forbidden(new.name(), &error.to_string()));
            }
            client => client,
        };
        let asker = Asker::new(plane, client, by);
        let bindings = async { if adds_city { Some(asker.bindings().await) } else { None } };
        let (bindings, accesses) = join(bindings, asker.accesses(user, &networks)).await;
        let mut faults = checked(old, new, bindings);
        faults.extend(
            networks
                .iter()
                .zip(accesses)
                .filter_map(|(network, access)| denied(network, access)),
        );
        Ok(faults)
    }
}

/// The rules, with the bindings if they were asked for. Without an answer about cities all other rules still hold.
fn checked(old: Option<&Object>, new: &Object, bindings: Option<Result<Vec<Object>, AskError>>) -> Vec<FieldError> {
    match bindings {
        None => validate(old, new, &BTreeSet::new()),
        Some(Ok(bindings)) => {
            let bindings: Vec<&Object> = bindings.iter().collect();
            validate(old, new, &usable_cities(&bindings))
        }
        Some(Err(error)) => {
            let mut faults = validate(old, new, &workload::cities(new));
            faults.push(FieldError {
                path: "spec.placements".to_owned(),
                fault: Fault::Internal(format!("failed to list LocationBindings: {error}")),
            });
            faults
        }
    }
}

fn denied(network: &NetworkUse, access: Result<bool, AskError>) -> Option<FieldError> {
    match access {
        Ok(true) => None,
        Ok(false) => Some(access_denied(network)),
        Err(error) => {
            let what = format!("failed to review access to network \"{}\": {error}", network.name);
            Some(access_failed(network, &what))
        }
    }
}

/// Whether a city is named that the old Workload did not name: only then bindings matter (domain.md G1).
fn adds_city(old: Option<&Object>, new: &Object) -> bool {
    let known = old.map(workload::cities).unwrap_or_default();
    !workload::cities(new).is_subset(&known)
}

/// The Workload before and after; `None` where the operation changes none.
fn change(request: &Request<'_>) -> Result<Option<(Option<Object>, Object)>, Refusal> {
    let kind = &request.kind;
    if (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str())
        != (WORKLOAD.group, WORKLOAD.version, WORKLOAD.kind)
    {
        let ours = format!("{} of {}", WORKLOAD.kind, WORKLOAD.api_version());
        return Err(Refusal::bad(format!(
            "this webhook reviews {ours} and was sent a {kind}: correct the rules of its configuration"
        )));
    }
    let old = match request.operation.as_ref() {
        "CREATE" => None,
        "UPDATE" => Some(object(request, request.old_object, "oldObject")?),
        "DELETE" => return Ok(None),
        other => {
            return Err(Refusal::bad(format!(
                "this webhook reviews CREATE and UPDATE and was sent {other:?}: correct the rules of its configuration"
            )));
        }
    };
    let new = object(request, request.object, "object")?;
    if let Some(excess) = new.excess() {
        return Err(Refusal::bad(format!(
            "failed to read request.object: it {excess}: make it smaller"
        )));
    }
    Ok(Some((old, new)))
}

/// An object of the request. What it does not say itself, the request does.
fn object(request: &Request<'_>, text: Option<&RawValue>, field: &str) -> Result<Object, Refusal> {
    let text = text.ok_or_else(|| Refusal::bad(format!("request.{field} of {} is not there", request.operation)))?;
    let mut object: Object = serde_json::from_str(text.get())
        .map_err(|error| Refusal::bad(format!("failed to read request.{field}: {error}")))?;
    let metadata = &mut *object.metadata;
    for (said, known) in [
        (&mut metadata.name, &request.name),
        (&mut metadata.namespace, &request.namespace),
    ] {
        if said.as_deref().is_none_or(str::is_empty) {
            *said = Some(known.clone().into_owned());
        }
    }
    Ok(object)
}

fn user(request: &Request<'_>) -> Result<Value, Refusal> {
    let text = request.user_info.map_or("null", RawValue::get);
    serde_json::from_str(text).map_err(|error| Refusal::bad(format!("failed to read request.userInfo: {error}")))
}
