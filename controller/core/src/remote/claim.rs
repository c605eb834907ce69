//! The claim of one Instance in its project.
//!
//! - Projects that hold claims are written down in the cell before the first claim ([`super::projects`]).
//! - A slot without Instance keeps a claim of its size, so that a roll loses no budget, and makes none.
//! - What is asked for cannot be changed: a claim of another size is replaced while the Instance is held for quota or
//!   missing, and stays while it runs.
//! - A claim of another source, or of no agreeing identity, is never adopted; one that is being deleted is waited for.
//!   Without any stamp, a grant of exactly what this Instance asks for agrees (`is_granted_for`).
//!
//! Why: `docs/decisions/06-copies-and-claims-by-level.md`.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use popcell_api::conditions::reasons;
use popcell_api::quota::{self as api, ObjectReference, ResourceClaimSpec, ResourceRequest};
use popcell_api::{annotations, events, gates, kind, labels, names::RESOURCE_CLAIM_PREFIX, resource_manager};
use serde_json::json;

use super::cell::Identity;
use super::{BackingObject, Ownership, SourceMatch, done, foreign, guarded, projects};
use crate::conditions;
use crate::edit::Edit;
use crate::identity;
use crate::names;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Event, NAMESPACE, Note, Plan, Plane, Proof, Target};
use crate::removed_cells::Source;
use crate::sizing::{self, Described};

#[cfg(test)]
mod tests;

/// The label by which tools say what they manage.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// How soon a claim that is being deleted is looked at again.
pub const GOING: Duration = Duration::from_secs(1);

/// Whose the Instances of a cell namespace are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectNamespace<'a> {
    /// It does not say.
    None,
    /// What it says names no project.
    Bad(&'a str),
    /// A namespace in a project.
    In {
        /// The project id.
        project: &'a str,
        /// The namespace.
        namespace: &'a str,
    },
}

impl<'a> ProjectNamespace<'a> {
    /// The project, where one is named.
    pub fn project(self) -> Option<&'a str> {
        match self {
            Self::In { project, .. } => Some(project),
            Self::None | Self::Bad(_) => None,
        }
    }
}

/// Whose the Instances of a cell namespace are, by the labels of the Namespace only. In single-cluster mode, `single`
/// is the project, and the namespace is the project's own.
pub fn project_namespace<'a>(
    name: &'a str,
    cell_namespace: Option<&'a Object>,
    single: Option<&'a str>,
) -> ProjectNamespace<'a> {
    if let Some(project) = single {
        return ProjectNamespace::In {
            project,
            namespace: name,
        };
    }
    let Some((cell_namespace, label)) = cell_namespace.and_then(|one| {
        Some((
            one,
            one.label(labels::UPSTREAM_CLUSTER_NAME)
                .filter(|said| !said.is_empty())?,
        ))
    }) else {
        return ProjectNamespace::None;
    };
    let good = |project: &str| names::check_project(project).is_ok();
    match identity::of_namespace(cell_namespace) {
        Some((project, namespace)) if good(project) => ProjectNamespace::In { project, namespace },
        None if names::project_of_label(label).is_some_and(good) => ProjectNamespace::None,
        _ => ProjectNamespace::Bad(label),
    }
}

/// What a reconcile over one name of one cell namespace, in one project, looks at. The cell is this reconciler's own
/// plane and known.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Whether we may write at all.
    pub identity: &'a Identity,
    /// Who we are.
    pub source: Source<'a>,
    /// The project.
    pub project: &'a str,
    /// The cell namespace.
    pub namespace: &'a str,
    /// Name of the Instance.
    pub name: &'a str,
    /// The Namespace object of the cell.
    pub cell_namespace: Option<&'a Object>,
    /// The project, in single-cluster mode.
    pub single: Option<&'a str>,
    /// The Instance.
    pub instance: Option<&'a Object>,
    /// WorkloadDeployments of the cell namespace: at least the one in which the name stands for a slot.
    pub deployments: &'a [&'a Object],
    /// Claims of that [`name`] in any namespace of the project, whoever made them, as far as they are known; those of
    /// other names are passed over.
    pub claims: Observed<&'a [&'a Object]>,
    /// The ConfigMap of projects that hold claims.
    pub record: Option<&'a Object>,
    /// The namespace of that ConfigMap: the program's.
    pub program_namespace: &'a str,
}

/// Name of the claim of an Instance.
pub fn name(instance: &str) -> String {
    format!("{RESOURCE_CLAIM_PREFIX}{instance}")
}

/// The Instance that a claim of this cell is for: cell namespace and name. `None` where it does not say, or its name is no
/// claim's.
pub fn instance_of(claim: &Object) -> Option<(&str, &str)> {
    let namespace = claim.label(labels::INSTANCE_NAMESPACE).filter(|one| !one.is_empty())?;
    Some((namespace, instance_name(claim)?))
}

/// The name of the Instance that a claim is for by its own name; `None` where that is no claim's. Whose the claim is, is
/// for the reconcile to say: its other stamps may be of any client.
pub fn instance_name(claim: &Object) -> Option<&str> {
    let name = claim.name().strip_prefix(RESOURCE_CLAIM_PREFIX);
    name.filter(|one| !one.is_empty())
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    if let Some(plan) = seen.identity.forbids() {
        return plan;
    }
    let Observed::Known(claims) = seen.claims else {
        return Plan::noted(Note::Unknown(seen.plane()));
    };
    let backing = BackingObject::of(seen.name, seen.instance, seen.deployments);
    let at_home = seen.at_home(claims);
    let mut plan = match at_home {
        Some(claim) => keep(seen, claim, backing),
        None => make(seen, backing),
    };
    let name = name(seen.name);
    let elsewhere = |claim: &&&Object| {
        claim.name() == name && at_home.is_none_or(|project_namespace| project_namespace.uid() != claim.uid())
    };
    for claim in claims.iter().filter(elsewhere) {
        misplaced(seen, claim, backing, &mut plan);
    }
    plan
}

impl<'a> Observation<'a> {
    fn plane(&self) -> Plane {
        Plane::Project(self.project.to_owned())
    }

    /// The project's namespace that the Instance's claim belongs in; `None` unless it is this project's.
    fn home_namespace(&self) -> Option<&'a str> {
        match project_namespace(self.namespace, self.cell_namespace, self.single) {
            ProjectNamespace::In { project, namespace } if project == self.project => Some(namespace),
            _ => None,
        }
    }

    fn at_home(&self, claims: &[&'a Object]) -> Option<&'a Object> {
        let (namespace, name) = (self.home_namespace()?, name(self.name));
        let there = |claim: &&Object| claim.namespace() == namespace && claim.name() == name;
        claims.iter().copied().find(there)
    }

    /// By the stamps of the source and the cell namespace; without the uid, name and cell namespace must agree.
    fn ownership(&self, claim: &Object) -> Ownership {
        let namespace = claim.label(labels::INSTANCE_NAMESPACE);
        if namespace.is_some_and(|one| one != self.namespace) {
            return Ownership::Foreign;
        }
        match (SourceMatch::on(claim, self.source), namespace) {
            (SourceMatch::Ours, Some(_)) => Ownership::Ours,
            (SourceMatch::Ours | SourceMatch::Partly { id: true, .. }, _)
            | (SourceMatch::Partly { name: true, .. }, Some(_)) => Ownership::Agrees,
            (SourceMatch::Partly { .. }, _) if is_granted_for(self, claim) => Ownership::Agrees,
            (SourceMatch::Another | SourceMatch::Partly { .. }, _) => Ownership::Foreign,
        }
    }

    fn instance(&self) -> Target {
        Target::namespaced(&Plane::Cell, kind::INSTANCE, self.namespace, self.name)
    }

    fn target(&self, claim: &Object) -> Target {
        Target::of(&self.plane(), kind::RESOURCE_CLAIM, claim)
    }
}

/// Whether an Instance waits for its grant.
fn is_held(instance: &Object) -> bool {
    let gates = instance.items("/spec/controller/schedulingGates");
    gates
        .iter()
        .any(|gate| gate.get("name").and_then(serde_json::Value::as_str) == Some(gates::QUOTA))
}

/// Whether a claim asks for what this project has to give to such an Instance.
fn fits(seen: &Observation<'_>, claim: &Object, described: Described<'_>) -> bool {
    // What cannot be seen of it is no reason to take it away.
    if claim.excess().is_some() {
        return true;
    }
    claim.text("/spec/consumerRef/kind") == Some(resource_manager::PROJECT_KIND)
        && claim.text("/spec/consumerRef/name") == Some(seen.project)
        && sizing::is_claimed(claim, described)
}

/// What the next Instance of a slot is.
fn slot(deployment: &Object) -> Option<Described<'_>> {
    Described::at(deployment, "/spec/template/spec")
}

fn make(seen: &Observation<'_>, backing: BackingObject<'_>) -> Plan {
    let (BackingObject::Instance(instance), Some(namespace)) = (backing, seen.home_namespace()) else {
        return Plan::default();
    };
    // What it still uses is used by the one that comes after it, too.
    if instance.deleting() {
        return Plan::default();
    }
    let claim = claim(seen, instance, namespace);
    written_down(seen, Some(Action::create(&seen.plane(), kind::RESOURCE_CLAIM, claim)))
}

/// A write that makes a claim ours, after the project is in the record.
fn written_down(seen: &Observation<'_>, write: Option<Action>) -> Plan {
    let record = || projects::record(seen.record, seen.program_namespace, seen.project);
    Plan {
        actions: write.as_ref().and_then(|_| record()).into_iter().chain(write).collect(),
        ..Plan::default()
    }
}

fn claim(seen: &Observation<'_>, instance: &Object, namespace: &str) -> Object {
    let project = ObjectReference {
        api_group: resource_manager::GROUP.to_owned(),
        kind: resource_manager::PROJECT_KIND.to_owned(),
        name: seen.project.to_owned(),
        namespace: String::new(),
    };
    let requests = sizing::requests(Described::instance(instance));
    let spec = ResourceClaimSpec {
        consumer_ref: Some(project.clone()),
        requests: requests
            .into_iter()
            .map(|(resource_type, amount)| ResourceRequest {
                resource_type: resource_type.to_owned(),
                amount,
            })
            .collect(),
        resource_ref: Some(project),
    };
    let mut object = Object::new(&name(seen.name), &kind::RESOURCE_CLAIM.resource())
        .within(namespace)
        .data(json!({ "spec": spec }));
    let labels = [
        (labels::SOURCE_CLUSTER, seen.source.name),
        (labels::INSTANCE_NAMESPACE, seen.namespace),
    ];
    object.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    object.metadata.annotations = Some([(annotations::SOURCE_UID.to_owned(), seen.source.id.to_owned())].into());
    object
}

/// What there is under the Instance's name in its project.
fn keep(seen: &Observation<'_>, claim: &Object, backing: BackingObject<'_>) -> Plan {
    let ownership = seen.ownership(claim);
    let lives = matches!(backing, BackingObject::Instance(instance) if !instance.deleting());
    match ownership {
        Ownership::Foreign if lives => {
            let mut plan = foreign(seen.target(claim));
            plan.notes.extend(maker(&claim.metadata).map(Note::Maker));
            return plan;
        }
        Ownership::Foreign => return Plan::default(),
        _ if claim.deleting() && lives => {
            return Plan {
                requeue: Some(GOING),
                ..Plan::noted(Note::WaitsFor(seen.target(claim)))
            };
        }
        _ if claim.deleting() => return Plan::default(),
        // Only what is stamped is deleted: that is the next reconcile.
        Ownership::Agrees => return written_down(seen, stamped(seen, claim)),
        Ownership::Ours => {}
    }
    let gone = Proof::Gone {
        source: seen.instance(),
        uid: None,
    };
    let proof = match backing {
        BackingObject::Nothing => gone,
        BackingObject::Slot(deployment) => match slot(deployment) {
            // In a single cluster only its Instances say how large their type is.
            Some(described) if seen.single.is_none() && !fits(seen, claim, described) => gone,
            _ => return Plan::default(),
        },
        BackingObject::Instance(instance) => match Described::at(instance, "/spec") {
            Some(described) if lives && is_held(instance) && !fits(seen, claim, described) => Proof::Lives {
                source: seen.instance(),
                uid: instance.uid().to_owned(),
            },
            _ => return Plan::default(),
        },
    };
    done(Some(delete(seen, claim, proof)))
}

/// A claim in a place where the cell namespace does not, or no longer, say that it belongs.
fn misplaced(seen: &Observation<'_>, claim: &Object, backing: BackingObject<'_>, plan: &mut Plan) {
    if seen.ownership(claim) != Ownership::Ours || claim.deleting() {
        return;
    }
    let BackingObject::Nothing = backing else {
        // It may be the grant that the Instance runs on: it stays as long as that.
        plan.notes.push(Note::Orphan(seen.target(claim)));
        return;
    };
    let gone = Proof::Gone {
        source: seen.instance(),
        uid: None,
    };
    plan.actions.push(delete(seen, claim, gone));
    plan.notes.push(Note::ClaimOrphaned);
    if let Some(namespace) = seen.cell_namespace {
        let note = format!(
            "Namespace {} does not say that its project is {}: ResourceClaim {}/{} there is of no Instance and is deleted",
            seen.namespace,
            seen.project,
            claim.namespace(),
            claim.name()
        );
        let event = Event::warning(&Plane::Cell, NAMESPACE, namespace, events::QUOTA_CLAIM_ORPHANED, &note);
        plan.events.push(event);
    }
}

fn delete(seen: &Observation<'_>, claim: &Object, proof: Proof) -> Action {
    // In single-cluster mode the cell is the project.
    let origin = if seen.single.is_some() { Plane::Cell } else { Plane::Hub };
    let found = seen.deployments.iter().copied().find(|one| one.deleting());
    let uid = match origin {
        Plane::Cell => found.map(Fields::uid),
        _ => found.and_then(|one| one.annotation(annotations::RESOURCE_TEMPLATE_UID)),
    };
    let guard = guarded((seen.namespace, seen.name), seen.deployments, seen.source, &origin, uid);
    Action::delete(&seen.plane(), kind::RESOURCE_CLAIM, claim, vec![proof], guard)
}

fn stamped(seen: &Observation<'_>, claim: &Object) -> Option<Action> {
    Edit::of(&seen.plane(), kind::RESOURCE_CLAIM, claim)
        .label(labels::SOURCE_CLUSTER, seen.source.name)
        .label(labels::INSTANCE_NAMESPACE, seen.namespace)
        .annotation(annotations::SOURCE_UID, Some(seen.source.id))
        .action()
}

/// What is known of the quota of an Instance; [`quota`] says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quota<'a> {
    /// No credential is configured: quota is not enforced.
    Disabled,
    /// The cell namespace does not say which project it belongs to.
    NoProject,
    /// The cell namespace says it with a text that names no project.
    BadProject,
    /// The project's plane cannot be asked: away, and why; or `None` for the moment until it is first listed.
    Unknown(Option<&'a str>),
    /// The last write of the claim was refused.
    Refused {
        /// One of the reasons `Quota*` of the condition.
        reason: &'static str,
        /// What the server said.
        message: &'a str,
    },
    /// The project is known and has no claim of the name.
    Absent,
    /// Another source's or an unmarked claim holds the name.
    Foreign(&'a Object),
    /// Our claim. One that is terminating counts as absent.
    Claim(&'a Object),
}

/// What is known of the quota of the Instance that `seen` is about. `away` says why the project's plane is unreachable,
/// for people; `refused` is reason and message of the last write of the claim, where it was refused. A claim of another size that is about
/// to be replaced is absent for one that its gate holds.
pub fn quota<'a>(seen: &Observation<'a>, away: Option<&'a str>, refused: Option<(&'static str, &'a str)>) -> Quota<'a> {
    match project_namespace(seen.namespace, seen.cell_namespace, seen.single) {
        ProjectNamespace::None => return Quota::NoProject,
        ProjectNamespace::Bad(_) => return Quota::BadProject,
        ProjectNamespace::In { .. } => {}
    }
    let Observed::Known(claims) = seen.claims else {
        return Quota::Unknown(away);
    };
    if let Some(claim) = seen.at_home(claims) {
        let waits_for_another = || {
            let held = seen.instance.filter(|instance| is_held(instance));
            held.and_then(|instance| Described::at(instance, "/spec"))
                .is_some_and(|described| !fits(seen, claim, described))
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
    let word = conditions::of(claim, api::GRANTED)
        .map(|granted| (conditions::text(granted, "status"), conditions::text(granted, "reason")));
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

/// Whether a claim is a grant to the Instance, or the slot, of the reconcile: by its name and namespace, by who consumes,
/// and by all amounts. Claims that are watched carry our label; so one without it was read live in this reconcile.
fn is_granted_for(seen: &Observation<'_>, claim: &Object) -> bool {
    let described = match BackingObject::of(seen.name, seen.instance, seen.deployments) {
        BackingObject::Instance(instance) => Described::at(instance, "/spec"),
        BackingObject::Slot(deployment) => slot(deployment),
        BackingObject::Nothing => None,
    };
    let at_home = seen.home_namespace() == Some(claim.namespace()) && claim.name() == name(seen.name);
    let granted = conditions::says(claim, api::GRANTED, "True");
    at_home && granted && described.is_some_and(|described| fits(seen, claim, described))
}

/// Who made a claim, for people, as far as its metadata says: no object says which user made it. `None` where nothing does.
/// Only what was read with its `managedFields` tells which program wrote it.
pub fn maker(metadata: &ObjectMeta) -> Option<String> {
    let mut known: Vec<String> = Vec::new();
    let label = |key: &str| metadata.labels.as_ref()?.get(key).filter(|value| !value.is_empty());
    let uid = metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(annotations::SOURCE_UID));
    let uid = uid.map(|uid| format!(" of uid {uid}"));
    known.extend(label(labels::SOURCE_CLUSTER).map(|source| format!("cell {source}{}", uid.unwrap_or_default())));
    known.extend(label(MANAGED_BY).map(|manager| format!("managed by {manager}")));
    let owner = metadata.owner_references.iter().flatten().next();
    known.extend(owner.map(|owner| format!("owned by {} {}", owner.kind, owner.name)));
    let writer = metadata.managed_fields.iter().flatten();
    let writer = writer
        .filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty())
        .filter(|entry| entry.manager.is_some())
        .min_by_key(|entry| entry.time.as_ref().map(|time| time.0));
    known.extend(writer.and_then(written));
    (!known.is_empty()).then(|| known.join(", "))
}

fn written(entry: &ManagedFieldsEntry) -> Option<String> {
    let manager = entry.manager.as_deref()?;
    let at = entry
        .time
        .as_ref()
        .map(|time| format!(" at {}", conditions::seconds(time.0)));
    Some(format!("written by {manager}{}", at.unwrap_or_default()))
}
