//! A review: what has to be asked, and what the rules say of it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join;
use popcell_api::kind::{Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_core::admission::{
    Fault, FieldError, ObjectUse, access_denied, access_failed, city_to_review, is_deployment_reviewed, is_reviewed,
    is_spec_reviewed, project_of, too_many_uses, uses_to_review, validate, validate_deployment, warnings,
};
use popcell_core::bindings::usable_cities;
use popcell_core::instance_types::Catalogue;
use popcell_core::limits::{Excess, picked};
use popcell_core::names::is_dns_subdomain;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::Plane;
use popcell_core::{derived, workload};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::ask::{AskError, Asker};
use super::wire::{Refusal, Request};
use super::{Admission, Mode, Outcome};
use crate::planes::SINGLE;

/// How long a review waits for the catalogue of instance types where it was not read yet: many need no answer of it.
const FIRST_TYPES: Duration = Duration::from_secs(3);

/// Where the API server has a number of replicas only.
const SCALE: &str = "scale";
/// Why one is refused in a project.
const NO_SCALE: &str = "replicas that are set here have no effect: run `popcell scale <workload> --replicas=<number>`, or set \
     scaleSettings.minReplicas of the placement in the Workload (of the WorkloadDeployment, where it has none)";

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Workload,
    Deployment,
}

impl Subject {
    fn of(request: &Request<'_>) -> Result<Self, Refusal> {
        let asked = &request.kind;
        let is = |kind: Kind| {
            (asked.group.as_str(), asked.version.as_str(), asked.kind.as_str()) == (kind.group, kind.version, kind.kind)
        };
        if is(WORKLOAD) {
            return Ok(Self::Workload);
        }
        if is(WORKLOAD_DEPLOYMENT) {
            return Ok(Self::Deployment);
        }
        let (one, other) = (WORKLOAD.kind, WORKLOAD_DEPLOYMENT.kind);
        let ours = format!("{one} and {other} of {}", WORKLOAD.api_version());
        Err(Refusal::bad(format!(
            "this webhook reviews {ours} and was sent a {asked}: correct the rules of its configuration"
        )))
    }

    fn kind(self) -> Kind {
        match self {
            Self::Workload => WORKLOAD,
            Self::Deployment => WORKLOAD_DEPLOYMENT,
        }
    }
}

/// An object before and after.
struct Changed {
    subject: Subject,
    old: Option<Object>,
    new: Object,
    /// The Workload that a WorkloadDeployment says it is made from, as it lives.
    workload: Option<Object>,
    types: Observed<Arc<Catalogue>>,
}

impl Changed {
    fn is_reviewed(&self) -> bool {
        match self.subject {
            Subject::Workload => is_reviewed(self.old.as_ref(), &self.new),
            Subject::Deployment => is_deployment_reviewed(self.old.as_ref(), &self.new),
        }
    }

    /// What exceeds a limit is refused where its spec is another one, before anything of it is decoded: values take many times
    /// their text. One from before the webhook loses its finalizers.
    fn check_size(&self, limit: usize) -> Result<(), Refusal> {
        let new = &self.new;
        let (bytes, old) = (new.bytes(), self.old.as_ref());
        let is_large = bytes > limit;
        let excess = new.excess().or(is_large.then_some(Excess::Bytes { bytes, limit }));
        match excess {
            Some(excess) if !new.deleting() && !old.is_some_and(|old| old.has_spec_text_of(new)) => {
                let reported = format!("failed to read request.object: it {excess}: {}", excess.fix());
                Err(Refusal::bad(reported))
            }
            _ => Ok(()),
        }
    }

    fn is_spec_reviewed(&self) -> bool {
        is_spec_reviewed(self.old.as_ref(), &self.new)
    }

    /// Forgets what was decoded, for as long as others are asked: their time is not ours to choose.
    fn rest(&mut self) {
        let (old, workload) = (&mut self.old, &mut self.workload);
        for object in [old, workload].into_iter().flatten().chain([&mut self.new]) {
            *object = object.as_text();
        }
    }

    /// The Workload to look for: a name that can be one.
    fn claims(&self) -> Option<&str> {
        let (name, _) = match self.subject {
            Subject::Deployment if self.is_spec_reviewed() => derived::claimed(&self.new)?,
            _ => return None,
        };
        is_dns_subdomain(name).then_some(name)
    }

    fn uses(&self) -> Vec<ObjectUse> {
        uses_to_review(self.old.as_ref(), &self.new, self.workload.as_ref())
    }

    /// Whether a city is named that needs a binding: only then bindings matter.
    fn adds_city(&self) -> bool {
        match self.subject {
            Subject::Workload => {
                let known = self.old.as_ref().map(workload::cities).unwrap_or_default();
                !workload::cities(&self.new).is_subset(&known)
            }
            Subject::Deployment => city_to_review(self.old.as_ref(), &self.new, self.workload.as_ref()).is_some(),
        }
    }

    fn cities(&self) -> BTreeSet<&str> {
        match self.subject {
            Subject::Workload => workload::cities(&self.new),
            Subject::Deployment => self.new.text("/spec/cityCode").into_iter().collect(),
        }
    }

    fn validate(&self, cities: &BTreeSet<&str>) -> Vec<FieldError> {
        let types = self.types.as_ref().map(Arc::as_ref);
        let (old, new) = (self.old.as_ref(), &self.new);
        match self.subject {
            Subject::Workload => validate(old, new, cities, types),
            Subject::Deployment => validate_deployment(old, new, self.workload.as_ref(), cities, types),
        }
    }

    fn warnings(&self) -> Vec<String> {
        let (old, workload) = (self.old.as_ref(), self.workload.as_ref());
        warnings(self.subject.kind(), old, &self.new, workload)
    }

    /// The rules, with the bindings if they were asked for. Without an answer about cities all other rules still hold.
    fn checked(&self, bindings: Option<Result<Vec<Object>, AskError>>) -> Vec<FieldError> {
        match bindings {
            None => self.validate(&BTreeSet::new()),
            Some(Ok(bindings)) => {
                let bindings: Vec<&Object> = bindings.iter().collect();
                self.validate(&usable_cities(&bindings))
            }
            Some(Err(error)) => {
                let mut faults = self.validate(&self.cities());
                let path = match self.subject {
                    Subject::Workload => "spec.placements",
                    Subject::Deployment => "spec.cityCode",
                };
                faults.push(FieldError {
                    path: path.to_owned(),
                    fault: Fault::Internal(format!("failed to list LocationBindings: {error}")),
                });
                faults
            }
        }
    }
}

/// A request that is not refused.
pub(super) struct Admitted {
    /// Allowed or unread.
    pub(super) outcome: Outcome,
    /// For the user.
    pub(super) warnings: Vec<String>,
}

impl Admitted {
    const UNREAD: Self = Self {
        outcome: Outcome::Unread,
        warnings: Vec::new(),
    };
}

impl Admission {
    /// It ends by `by`.
    pub(super) async fn review(&self, request: &Request<'_>, by: Instant) -> Result<Admitted, Refusal> {
        if request.sub_resource == SCALE {
            return self.scaled(request);
        }
        let Some(mut changed) = change(request)? else {
            return Ok(Admitted::UNREAD);
        };
        changed.check_size(self.object_bytes)?;
        if !changed.is_reviewed() {
            return Ok(Admitted::UNREAD);
        }
        if changed.is_spec_reviewed() {
            changed.types = self.types.known_by(by.min(Instant::now() + FIRST_TYPES)).await;
        }
        let user = user(request)?;
        let kind = changed.subject.kind();
        let plane = self
            .plane(&user)
            .map_err(|why| Refusal::forbidden(kind, changed.new.name(), &why))?;
        let faults = self.faults(&plane, &user, &mut changed, by).await?;
        if faults.is_empty() {
            Ok(Admitted {
                outcome: Outcome::Allowed,
                warnings: changed.warnings(),
            })
        } else {
            Err(Refusal::fields(kind, changed.new.name(), &faults))
        }
    }

    /// A number for a WorkloadDeployment. In a project it would have no effect: it is the cell's. A single cluster is the cell.
    fn scaled(&self, request: &Request<'_>) -> Result<Admitted, Refusal> {
        let replicas = |text, field| -> Result<Option<i64>, Refusal> {
            Ok(object(request, WORKLOAD_DEPLOYMENT, text, field)?.int("/spec/replicas"))
        };
        match self.mode {
            Mode::Milo if replicas(request.old_object, "oldObject")? != replicas(request.object, "object")? => {
                Err(Refusal::forbidden(WORKLOAD_DEPLOYMENT, &request.name, NO_SCALE))
            }
            Mode::Milo | Mode::Single => Ok(Admitted::UNREAD),
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
        changed: &mut Changed,
        by: Instant,
    ) -> Result<Vec<FieldError>, Refusal> {
        let asks = || changed.claims().is_some() || changed.adds_city() || !changed.uses().is_empty();
        if !changed.is_spec_reviewed() || !asks() {
            return Ok(changed.checked(None));
        }
        let client = match self.clients.get(plane) {
            Err(error) if error.is_of_the_address() => {
                let kind = changed.subject.kind();
                return Err(Refusal::forbidden(kind, changed.new.name(), &error.to_string()));
            }
            client => client,
        };
        let asker = Asker::new(plane, client, by);
        if let Some(name) = changed.claims().map(str::to_owned) {
            changed.rest();
            match asker.workload(changed.new.namespace(), &name).await {
                // Of one that exceeds the limit nothing is made.
                Ok(workload) => changed.workload = workload.filter(|one| one.bytes() <= self.object_bytes),
                // Neither that it is made from it nor that it is not: that is unknown.
                Err(error) => return Ok(vec![unread_workload(&name, error)]),
            }
        }
        let (named, adds_city) = (changed.uses(), changed.adds_city());
        changed.rest();
        if let Some(fault) = too_many_uses(&named) {
            return Ok(vec![fault]);
        }
        let bindings = async { if adds_city { Some(asker.bindings().await) } else { None } };
        let (bindings, accesses) = join(bindings, asker.accesses(user, &named)).await;
        let mut faults = changed.checked(bindings);
        faults.extend(
            named
                .iter()
                .zip(accesses)
                .filter_map(|(object, access)| denied(object, access)),
        );
        Ok(faults)
    }
}

fn unread_workload(name: &str, error: AskError) -> FieldError {
    FieldError {
        path: "spec.workloadRef".to_owned(),
        fault: Fault::Internal(format!("failed to read Workload \"{name}\": {error}")),
    }
}

fn denied(object: &ObjectUse, access: Result<bool, AskError>) -> Option<FieldError> {
    match access {
        Ok(true) => None,
        Ok(false) => Some(access_denied(object)),
        Err(error) => Some(access_failed(object, &error.to_string())),
    }
}

/// The object before and after; `None` where the operation changes none.
fn change(request: &Request<'_>) -> Result<Option<Changed>, Refusal> {
    let subject = Subject::of(request)?;
    let kind = subject.kind();
    let old = match request.operation.as_ref() {
        "CREATE" => None,
        "UPDATE" => Some(object(request, kind, request.old_object, "oldObject")?),
        "DELETE" => return Ok(None),
        other => {
            return Err(Refusal::bad(format!(
                "this webhook reviews CREATE and UPDATE and was sent {other:?}: correct the rules of its configuration"
            )));
        }
    };
    Ok(Some(Changed {
        subject,
        old,
        new: object(request, kind, request.object, "object")?,
        workload: None,
        types: Observed::Unknown,
    }))
}

/// An object of the request. What it does not say itself, the request does.
fn object(request: &Request<'_>, kind: Kind, text: Option<&RawValue>, field: &str) -> Result<Object, Refusal> {
    let text = text.ok_or_else(|| Refusal::bad(format!("request.{field} of {} is not there", request.operation)))?;
    let mut object: Object = serde_json::from_str(text.get())
        .map_err(|error| Refusal::bad(format!("failed to read request.{field}: {error}")))?;
    object.pick(picked(kind));
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
