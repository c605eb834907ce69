//! `data-copy`: in a hub namespace, copies of the ConfigMaps and Secrets that WorkloadDeployments there name
//! ([`references::data`]), for Karmada to carry with them to their cells; and what each of these cities is to have
//! ([`Expected`]).
//!
//! - A copy is needed as long as a WorkloadDeployment of its hub namespace names it. The end of its source changes nothing:
//!   running workloads keep what they need.
//! - Ours is one with two of the three marks that a copy has ([`is_ours`]). Another client's object at the name is never changed.
//! - A copy holds what its source holds, its version, and nothing else of it. What another client changes of it is written again.
//! - It is deleted when a live list finds no WorkloadDeployment that names it.
//! - What all hub namespaces of a project have is bounded, by all copies that are there, named or not ([`bytes_taken`]). Nothing is taken
//!   away for that; what has no room comes as a source that [exceeds](Excess) something.
//! - What is deleted to be made again is made in the same reconcile. Where another client's finalizer keeps the old one, it keeps its
//!   room while the process runs.
//! - What a city is to have is said after its copies are written. It is taken back by each change of what it is said of
//!   (`federation`), so that nothing starts with data that are older than the template.
//!
//! Nothing is watched: all is read by name, when a WorkloadDeployment changes and every [`REFRESH`].
//!
//! Why: `docs/decisions/31-configuration-and-secrets.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions::messages;
use popcell_api::kind::Kind;
use popcell_api::{annotations, kind, labels};
use serde_json::json;

use crate::edit::Edit;
use crate::identity::{self, Project};
use crate::instance;
use crate::names::is_dns_subdomain;
use crate::object::{Excess, Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, NAMESPACE, Note, Plan, Plane, Proof, ROLE_BINDING, Target};
use crate::referenced_data::{self, Expected, FIELDS};
use crate::references::{self, Reference};

#[cfg(test)]
mod tests;

/// How often the sources are read again.
pub const REFRESH: Duration = Duration::from_mins(10);
/// When a namespace of the hub is asked again after a right to it was bound.
const BOUND: Duration = Duration::from_secs(5);
/// When one is that gives no access although it is.
const NO_ACCESS: Duration = Duration::from_mins(1);
/// How soon at the earliest sources are read again that something waits for.
const AWAITED: Duration = Duration::from_secs(15);
/// When the next of many sources are read, or those again that were read for an earlier version of a WorkloadDeployment.
const NEXT: Duration = Duration::from_secs(1);
/// The most ConfigMaps and Secrets that one hub namespace has copies of.
pub const MOST: usize = 256;

/// What one of them takes beside what it holds, in bytes: its metadata, and what a server keeps of it.
const OVERHEAD: usize = 1 << 10;

/// The ClusterRole that the management plane has in a hub namespace with copies, by a RoleBinding of the same name.
pub const ROLE: &str = "popcell-referenced-data";
const RBAC: &str = "rbac.authorization.k8s.io";

/// What a project says of a source.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// It is there, as [`noted`] left it.
    Found(&'a Object),
    /// There is none.
    Absent,
    /// The project gives no right to read it.
    Forbidden,
    /// It was not read.
    Unknown,
}

/// What the hub says of its namespace.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// All ConfigMaps and Secrets that are there, without what they hold; those that differ from their sources whole.
    Open(&'a [(Kind, &'a Object)]),
    /// The RoleBinding has to be there first: it as it is, and the user that it is for.
    Forbidden(Option<&'a Object>, &'a str),
}

/// What a reconcile looks at.
#[derive(Clone, Copy)]
pub struct Observation<'a> {
    /// The project that the namespace names; `None` while it is not engaged.
    pub project: Option<Project<'a>>,
    /// The hub Namespace.
    pub namespace: &'a Object,
    /// The WorkloadDeployments in it.
    pub deployments: &'a [&'a Object],
    /// Whether a WorkloadDeployment is as it was before the sources were read. Of one that has changed meanwhile nothing is said: the
    /// sources may have changed before it did, and where it waits they are read again.
    pub is_read_for: &'a dyn Fn(&Object) -> bool,
    /// Its ConfigMaps and Secrets.
    pub access: Access<'a>,
    /// Sources, of the references of [`needed`].
    pub source: &'a dyn Fn(&Reference) -> Source<'a>,
    /// Whether some sources were left for the next reconcile.
    pub has_more: bool,
    /// Whether they are carried. Where they are not any more, copies go with the last that names them, and are kept as they are
    /// until then: what runs needs them.
    pub is_carried: bool,
    /// The time of the reconcile.
    pub now: Timestamp,
}

/// Notes the version of a source ([`referenced_data::version_of_source`]) on it, and throws away what it holds where that is not to be
/// written, or where it is larger than `limit` allows, or where `refuses` says so of what the copy will take. How many bytes are left to
/// be written; 0 where nothing is.
pub fn noted(
    kind: Kind,
    source: &mut Object,
    version: String,
    copy: Option<&Object>,
    limit: usize,
    refuses: impl FnOnce(usize) -> Option<Excess>,
) -> usize {
    let bytes = source.bytes();
    let is_written = is_written(source, copy, &version);
    let excess = if bytes > limit {
        Some(Excess::Bytes { bytes, limit })
    } else if is_written {
        refuses(bytes_with(Some(&version), limit))
    } else {
        None
    };
    let is_left = is_written && excess.is_none();
    if !is_left {
        source.data = json!({}).into();
    }
    // Its metadata may be what is too large: then nothing of it is noted, and nothing carried.
    if excess.is_none_or(|excess| source.exceeds(excess, kind).is_ok()) {
        let annotations = source.metadata.annotations.get_or_insert_default();
        annotations.insert(annotations::DATA_VERSION.to_owned(), version);
    }
    if is_left { bytes } else { 0 }
}

/// Whether what a source of this version holds is to be written.
pub fn is_written(source: &Object, copy: Option<&Object>, version: &str) -> bool {
    let can_be = |copy: &Object| is_ours(copy) && !copy.deleting() && !is_at(copy, version);
    !source.deleting() && copy.is_none_or(can_be)
}

/// Whether a copy of ours, read whole, has to be deleted for what its source holds: no server changes the type of a Secret, or what is
/// immutable.
pub fn is_made_again(copy: &Object, source: &Object) -> bool {
    copy.data.get("type") != source.data.get("type") || copy.at("/immutable") == Some(&json!(true))
}

/// What WorkloadDeployments of a hub namespace need, each once; of more than [`MOST`] the first, and what is named now before what was
/// named by earlier templates. What is no name is not among them: it
/// would lead elsewhere in the path of a request.
pub fn needed<'a>(deployments: impl IntoIterator<Item = &'a Object>) -> Vec<Reference> {
    let (mut now, mut before) = (Vec::new(), Vec::new());
    for one in deployments {
        // What is decoded to look at one goes with this copy.
        let one = one.clone();
        now.extend(references::data(&one));
        before.extend(references::previous(&one).filter(|one| references::DATA.contains(&one.kind)));
    }
    let mut all = in_order(now);
    before.retain(|one| !all.contains(one));
    all.extend(in_order(before));
    all.truncate(MOST);
    all
}

fn in_order(mut all: Vec<Reference>) -> Vec<Reference> {
    all.retain(|one| is_dns_subdomain(&one.name));
    all.sort_by_cached_key(Reference::to_string);
    all.dedup();
    all
}

/// Whether there is anything to look at in a hub namespace; `is_carried` as in [`Observation`].
pub fn is_concerned<'a>(
    namespace: &Object,
    deployments: impl IntoIterator<Item = &'a Object>,
    is_carried: bool,
) -> bool {
    let is_ours = namespace.marked() && !namespace.deleting();
    let are_named = || deployments.into_iter().any(|one| !data(one).is_empty());
    is_ours && (has_had_some(namespace) || is_carried && are_named())
}

/// Gives a copy that was read whole the version of what it holds, in place of the one that it says.
pub fn weigh(copy: &mut Object, source: &Object) {
    let version = referenced_data::version_of(source.uid(), copy);
    let annotations = copy.metadata.annotations.as_mut();
    if let Some(said) = annotations.and_then(|all| all.get_mut(annotations::DATA_VERSION)) {
        *said = version;
    }
}

/// Whether a copy has all marks, and says that it holds this version. Whether it does is known only where it was read whole
/// ([`weigh`]): another client may have changed it and kept its annotation.
pub fn is_at(copy: &Object, version: &str) -> bool {
    let is_marked = copy.marked() && copy.label(labels::REFERENCED_DATA).is_some();
    is_marked && !copy.deleting() && copy.annotation(annotations::DATA_VERSION) == Some(version)
}

/// Whether an object is a copy of ours, which has three marks: two labels and the version. One that lost one of them is mended and
/// deleted like the others; with fewer it may be another client's.
fn is_ours(copy: &Object) -> bool {
    let marks = [
        copy.marked(),
        copy.label(labels::REFERENCED_DATA).is_some(),
        copy.annotation(annotations::DATA_VERSION).is_some(),
    ];
    marks.into_iter().filter(|is_there| *is_there).count() >= 2
}

/// What an object in a hub namespace takes of the room of its project: nothing unless it is a copy. One that does not say what it
/// holds counts as `largest`.
pub fn bytes_taken(object: &Object, largest: usize) -> usize {
    if is_ours(object) {
        bytes_with(object.annotation(annotations::DATA_VERSION), largest)
    } else {
        0
    }
}

/// What a copy with this version takes.
fn bytes_with(version: Option<&str>, largest: usize) -> usize {
    let said = version.and_then(referenced_data::bytes_of);
    said.unwrap_or(largest).saturating_add(OVERHEAD)
}

/// Decides one reconcile.
pub fn decide(seen: &Observation<'_>) -> Plan {
    if !seen.namespace.marked() || seen.namespace.deleting() {
        return Plan::dropped("the namespace is not ours, or going");
    }
    let mut reconcile = Reconcile {
        seen,
        // A copy that is refused holds up no other; a city waits for what it is to have until it has that.
        plan: Plan::independent(),
    };
    reconcile.decide();
    reconcile.plan
}

struct Reconcile<'s, 'a> {
    seen: &'s Observation<'a>,
    plan: Plan,
}

/// How a copy stands.
enum State {
    /// The hub has this version, or gets it by this plan.
    Carried(String),
    /// The project has none.
    Absent(OnHub),
    /// It cannot be carried, and the user is told why.
    Fault(String, OnHub),
    Unknown,
}

/// What stays at the name of a copy.
enum OnHub {
    Nothing,
    /// A copy of ours, with this version.
    Copy(String),
    /// What has no version of ours.
    Other,
}

impl OnHub {
    fn of(copy: Option<&Object>) -> Self {
        let Some(copy) = copy else { return Self::Nothing };
        let version = copy.annotation(annotations::DATA_VERSION);
        let version = version.filter(|_| is_ours(copy) && !copy.deleting());
        version.map_or(Self::Other, |version| Self::Copy(version.to_owned()))
    }
}

impl<'a> Reconcile<'_, 'a> {
    fn decide(&mut self) {
        let needed = needed(self.seen.deployments.iter().copied());
        let copies = match self.seen.access {
            Access::Open(copies) if self.seen.is_carried => copies,
            Access::Open(copies) => return self.remove(copies),
            Access::Forbidden(binding, user) if self.seen.is_carried => return self.ask_for_access(binding, user),
            Access::Forbidden(..) => return,
        };
        if !needed.is_empty() && !has_had_some(self.seen.namespace) {
            // Before the first copy: after a restart it says where to look for copies that are not needed any more.
            let edit = Edit::of(&Plane::Hub, NAMESPACE, self.seen.namespace);
            let edit = edit.label(labels::REFERENCED_DATA, labels::REFERENCED_DATA_TRUE);
            self.plan.actions.extend(edit.action());
        }
        let keep = |one| (one, self.keep(one, copy_of(copies, one)));
        let states: Vec<(&Reference, State)> = needed.iter().map(keep).collect();
        self.remove(copies);
        for deployment in self.seen.deployments {
            self.expect(deployment, copies, &states);
        }
        if self.seen.has_more {
            self.plan.requeue_within(NEXT);
        } else if !needed.is_empty() || copies.iter().any(|(_, copy)| is_ours(copy)) {
            self.plan.requeue_within(REFRESH);
        }
    }

    fn ask_for_access(&mut self, binding: Option<&Object>, user: &str) {
        let subjects = json!([{ "kind": "User", "apiGroup": RBAC, "name": user }]);
        let action = match binding {
            None => {
                let mut object = Object::new(ROLE, &ROLE_BINDING.resource())
                    .within(self.seen.namespace.name())
                    .data(json!({
                        "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": ROLE },
                        "subjects": subjects,
                    }));
                let marker = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_POPCELL.to_owned());
                object.metadata.labels = Some([marker].into());
                Some(Action::create(&Plane::Hub, ROLE_BINDING, object))
            }
            Some(binding) if !binding.marked() => {
                self.plan.notes.push(Note::Foreign(self.binding_target()));
                None
            }
            Some(binding) => Edit::of(&Plane::Hub, ROLE_BINDING, binding)
                .set(&["subjects"], subjects)
                .action(),
        };
        if action.is_some() {
            // The authorizer learns of it a moment later.
            self.plan.requeue_within(BOUND);
        } else {
            self.plan.requeue_within(NO_ACCESS);
            self.report_on_all(messages::NO_ACCESS_TO_DATA);
        }
        self.plan.actions.extend(action);
    }

    /// Says on all WorkloadDeployments that wait for anything why they do.
    fn report_on_all(&mut self, why: &str) {
        for deployment in self.seen.deployments {
            let waits = matches!(Expected::of(deployment), Expected::Pending(_));
            if waits && deployment.marked() && !deployment.deleting() {
                let edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, deployment);
                let edit = edit.annotation(annotations::REFERENCED_DATA_ERROR, Some(why));
                self.plan.actions.extend(edit.action());
            }
        }
    }

    fn binding_target(&self) -> Target {
        Target::namespaced(&Plane::Hub, ROLE_BINDING, self.seen.namespace.name(), ROLE)
    }

    fn keep(&mut self, reference: &Reference, copy: Option<&'a Object>) -> State {
        let target = Target::namespaced(&Plane::Hub, reference.kind, self.seen.namespace.name(), &reference.name);
        match copy {
            Some(copy) if copy.deleting() => {
                self.plan.notes.push(Note::WaitsFor(target));
                // No event says when it is gone.
                self.plan.requeue_within(AWAITED);
                return State::Unknown;
            }
            Some(copy) if !is_ours(copy) => {
                self.plan.notes.push(Note::Foreign(target));
                let message = messages::held_on_the_hub(reference.kind.kind, &reference.name);
                return State::Fault(message, OnHub::Other);
            }
            _ => {}
        }
        let source = match self.source(reference) {
            Source::Found(source) if !source.deleting() => source,
            other => {
                self.mend(reference, copy);
                return match other {
                    Source::Found(_) | Source::Absent => State::Absent(OnHub::of(copy)),
                    Source::Forbidden => {
                        let message = messages::data_not_readable(reference.kind.kind, &reference.name);
                        State::Fault(message, OnHub::of(copy))
                    }
                    Source::Unknown => State::Unknown,
                };
            }
        };
        if let Some(excess) = source.excess() {
            self.mend(reference, copy);
            if matches!(excess, Excess::DataUncounted { .. }) {
                self.plan.requeue_within(AWAITED);
            }
            let message = format!("{} {} {excess}; {}", reference.kind.kind, reference.name, excess.fix());
            return State::Fault(message, OnHub::of(copy));
        }
        let Some(version) = source.annotation(annotations::DATA_VERSION) else {
            return State::Unknown;
        };
        let version = version.to_owned();
        match copy {
            Some(copy) if is_at(copy, &version) => {}
            Some(copy) if is_made_again(copy, source) => {
                self.delete(reference, copy, Vec::new());
                self.create(reference, source, &version);
                // A finalizer of another client may keep it.
                self.plan.requeue_within(NEXT);
            }
            Some(copy) => {
                let mut edit = labelled(reference.kind, copy).annotation(annotations::DATA_VERSION, Some(&version));
                for field in FIELDS {
                    edit = match source.data.get(field) {
                        Some(value) => edit.set(&[field], value.clone()),
                        None => edit.without(&[field]),
                    };
                }
                self.plan.actions.extend(edit.action());
            }
            None => self.create(reference, source, &version),
        }
        State::Carried(version)
    }

    /// Gives a copy of ours that stays as it is the labels that it lost.
    fn mend(&mut self, reference: &Reference, copy: Option<&Object>) {
        let mended = copy.and_then(|copy| labelled(reference.kind, copy).action());
        self.plan.actions.extend(mended);
    }

    /// What the project says, where the namespace is its own: an earlier Project of the name, or one of another installation,
    /// is not asked.
    fn source(&self, reference: &Reference) -> Source<'a> {
        let Some(project) = self.seen.project else {
            return Source::Unknown;
        };
        if identity::is_of(self.seen.namespace, project) {
            (self.seen.source)(reference)
        } else {
            Source::Unknown
        }
    }

    fn create(&mut self, reference: &Reference, source: &Object, version: &str) {
        let mut object = Object::new(&reference.name, &reference.kind.resource())
            .within(self.seen.namespace.name())
            .data(referenced_data::held(source));
        let labels = referenced_data::copy_labels().map(|(key, value)| (key.to_owned(), value.to_owned()));
        object.metadata.labels = Some(labels.into());
        object.metadata.annotations = Some([(annotations::DATA_VERSION.to_owned(), version.to_owned())].into());
        self.plan
            .actions
            .push(Action::create(&Plane::Hub, reference.kind, object));
    }

    /// Takes away copies that nobody names any more.
    fn remove(&mut self, copies: &[(Kind, &'a Object)]) {
        let is_copy = |one: &Object| is_ours(one) && !one.deleting();
        for (kind, copy) in copies.iter().filter(|(_, one)| is_copy(one)) {
            let reference = Reference {
                kind: *kind,
                name: copy.name().to_owned(),
            };
            if references::is_named(self.seen.deployments.iter().copied(), &reference) == Observed::Known(false) {
                let unnamed = Proof::NotNamed {
                    namespace: self.seen.namespace.name().to_owned(),
                    reference: reference.clone(),
                };
                self.delete(&reference, copy, vec![unnamed]);
            }
        }
    }

    fn delete(&mut self, reference: &Reference, copy: &Object, proofs: Vec<Proof>) {
        // Its last WorkloadDeployment is gone by then, which the guard has counted.
        let delete = Action::delete(&Plane::Hub, reference.kind, copy, proofs, DeletionGuard::Exempt);
        self.plan.actions.push(delete);
        // No event says when it is gone, and counts no more.
        self.plan.requeue_within(AWAITED);
    }

    /// Says on a WorkloadDeployment what its city is to have.
    fn expect(&mut self, deployment: &Object, copies: &[(Kind, &Object)], states: &[(&Reference, State)]) {
        let expected = Expected::of(deployment);
        let is_ours = deployment.marked() && !deployment.deleting();
        if !is_ours || expected == Expected::Anything {
            return;
        }
        if !(self.seen.is_read_for)(deployment) {
            // What changed meanwhile may be its status, or a label of Karmada's, whose event is no reason to read again. What has a
            // hash waits for nothing.
            if matches!(expected, Expected::Pending(_)) {
                self.plan.requeue_within(NEXT);
            }
            return;
        }
        let deployment = &deployment.clone();
        let named = references::data(deployment);
        if named.is_empty() {
            return;
        }
        let (mut versions, mut fault) = (Vec::new(), None);
        // Whether it is known of all that is named what its city has or gets.
        let mut is_known = true;
        for reference in &named {
            let is_optional = references::is_optional(deployment, reference);
            let of_it = states.iter().find(|(one, _)| *one == reference);
            let unlisted;
            let (on_hub, message) = match of_it.map(|(_, state)| state) {
                Some(State::Carried(version)) => {
                    versions.push((reference, version.clone()));
                    continue;
                }
                Some(State::Unknown) => {
                    is_known = false;
                    continue;
                }
                Some(State::Absent(on_hub)) => {
                    let message = || messages::data_not_found(reference.kind.kind, &reference.name);
                    (on_hub, (!is_optional).then(message))
                }
                Some(State::Fault(message, on_hub)) => (on_hub, Some(message.clone())),
                None => {
                    unlisted = OnHub::of(copy_of(copies, reference));
                    (&unlisted, Some(not_carried(reference)))
                }
            };
            match on_hub {
                OnHub::Copy(version) => versions.push((reference, version.clone())),
                // Its city goes on without it.
                OnHub::Nothing if is_optional => {}
                OnHub::Nothing | OnHub::Other => is_known = false,
            }
            fault = fault.or(message);
        }
        if fault.is_none() && !is_known {
            return;
        }
        let hash = referenced_data::hash(versions.iter().map(|(one, version)| (*one, version.as_str())));
        let edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, deployment);
        if fault.is_some() {
            // What is old waits for a long time already.
            self.plan
                .requeue_within(instance::tier(deployment.created(), self.seen.now).max(AWAITED));
        }
        let edit = match (&fault, expected) {
            // What is new does not start with older data than its template.
            (Some(_), Expected::Pending(_)) => edit,
            // What starts of a template that had all begins with what its city has of it.
            (_, Expected::Hash(before)) if before == hash || !is_known => edit,
            _ => {
                // What the hub refuses is not expected.
                let this = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, deployment);
                let copy =
                    |one: &Reference| Target::namespaced(&Plane::Hub, one.kind, self.seen.namespace.name(), &one.name);
                let rests = named.iter().map(|one| (this.clone(), copy(one)));
                self.plan.rests.extend(rests);
                edit.annotation(annotations::EXPECTED_REFERENCED_DATA, Some(&hash))
            }
        };
        let edit = edit.annotation(annotations::REFERENCED_DATA_ERROR, fault.as_deref());
        self.plan.actions.extend(edit.action());
    }
}

/// Why what is named is not among [`needed`].
fn not_carried(reference: &Reference) -> String {
    let kind = reference.kind.kind;
    if is_dns_subdomain(&reference.name) {
        format!(
            "the Workloads of the namespace name more than {MOST} ConfigMaps and Secrets: {kind} {} is not carried",
            reference.name
        )
    } else {
        format!("the template names a {kind} by what is no name")
    }
}

/// A change of a copy that gives it the labels that it has to have.
fn labelled(kind: Kind, copy: &Object) -> Edit<'_> {
    let labels = referenced_data::copy_labels().into_iter();
    labels.fold(Edit::of(&Plane::Hub, kind, copy), |edit, (key, value)| {
        edit.label(key, value)
    })
}

/// What a WorkloadDeployment of the hub needs; what is decoded to look at it goes with the copy.
fn data(deployment: &Object) -> Vec<Reference> {
    references::needed_data(&deployment.clone())
}

/// Whether a hub namespace has copies, or has had some.
pub fn has_had_some(namespace: &Object) -> bool {
    namespace.label(labels::REFERENCED_DATA).is_some()
}

fn copy_of<'a>(copies: &[(Kind, &'a Object)], reference: &Reference) -> Option<&'a Object> {
    let mut copies = copies.iter();
    let found = copies.find(|(kind, one)| *kind == reference.kind && one.name() == reference.name);
    found.map(|(_, copy)| *copy)
}
