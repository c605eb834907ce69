//! Plans: what a reconcile does, as data. Tests assert on them, `--dry-run` prints them.
//!
//! Order of carrying out: `actions` one after the other, as [`Plan::order`] says; then `status`; then `events`. Every write
//! names what it was decided on, so that a conflict means "look again, decide again".
//!
//! Why: `docs/decisions/21-reconcile-and-writes.md`.

mod proof;

use std::fmt;
use std::time::Duration;

use json_patch::{Patch as JsonPatch, PatchOperation};
use popcell_api::kind::{Kind, Scope};
use serde_json::Value;

use crate::object::{Excess, Fields, Object};
pub use proof::Proof;

/// The kind Namespace.
pub const NAMESPACE: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
    scope: Scope::Cluster,
};

/// The kind ConfigMap.
pub const CONFIG_MAP: Kind = Kind {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
};

/// The kind Secret.
pub const SECRET: Kind = Kind {
    group: "",
    version: "v1",
    kind: "Secret",
    plural: "secrets",
    scope: Scope::Namespaced,
};

/// The kind RoleBinding.
pub const ROLE_BINDING: Kind = Kind {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "RoleBinding",
    plural: "rolebindings",
    scope: Scope::Namespaced,
};

/// The kind ResourceQuota.
pub const RESOURCE_QUOTA: Kind = Kind {
    group: "",
    version: "v1",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    scope: Scope::Namespaced,
};

/// One API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Plane {
    /// A project's control plane, by project id.
    Project(String),
    /// Karmada.
    Hub,
    /// The cell that the process runs in.
    Cell,
    /// The server that lists the projects, in mode `milo`. It is asked which there are, and is never engaged.
    Discovery,
}

impl fmt::Display for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project(id) => write!(f, "project {id}"),
            Self::Hub => f.write_str("hub"),
            Self::Cell => f.write_str("cell"),
            Self::Discovery => f.write_str("discovery"),
        }
    }
}

/// One object by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The server.
    pub plane: Plane,
    /// The kind.
    pub kind: Kind,
    /// The namespace; `None` for objects of the cluster.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl Target {
    /// An object in a namespace.
    pub fn namespaced(plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            plane: plane.clone(),
            kind,
            namespace: Some(namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    /// An object of the cluster.
    pub fn cluster(plane: &Plane, kind: Kind, name: &str) -> Self {
        Self {
            plane: plane.clone(),
            kind,
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// The address of an object that was observed.
    pub fn of(plane: &Plane, kind: Kind, object: &Object) -> Self {
        Self {
            plane: plane.clone(),
            kind,
            namespace: object.metadata.namespace.clone(),
            name: object.name().to_owned(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{} in {}", self.name, self.plane)
    }
}

/// The object as it was when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precondition {
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: String,
}

impl Precondition {
    /// "Exactly as observed".
    pub fn of(object: &Object) -> Self {
        Self {
            uid: object.uid().to_owned(),
            resource_version: object.resource_version().to_owned(),
        }
    }
}

/// A change of an object that exists: a JSON patch of owned paths that begins with `test`s of the precondition.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// The object.
    pub target: Target,
    /// What the patch tests, but for a resourceVersion that an earlier write of the plan moves
    /// ([`crate::edit::Edit::by_value`]); given apart so that it can be shown and checked.
    pub on: Precondition,
    /// Whether it goes to the status subresource.
    pub status: bool,
    /// The patch, tests included: send it as it is.
    pub patch: JsonPatch,
}

impl Patch {
    /// The same on the version that an earlier write of the plan made of the object.
    #[must_use]
    pub fn on_version(mut self, version: &str) -> Self {
        for operation in &mut self.patch.0 {
            if let PatchOperation::Test(test) = operation
                && test.path.as_str() == "/metadata/resourceVersion"
            {
                test.value = version.into();
            }
        }
        version.clone_into(&mut self.on.resource_version);
        self
    }

    /// Paths that it changes.
    pub fn changed_paths(&self) -> impl Iterator<Item = &str> {
        self.patch.iter().filter_map(change).map(|(_, path)| path)
    }

    /// The value that it puts at a path; `None` where it puts none there.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        self.patch.iter().find_map(|operation| match operation {
            PatchOperation::Add(add) if add.path.as_str() == path => Some(&add.value),
            PatchOperation::Replace(replace) if replace.path.as_str() == path => Some(&replace.value),
            _ => None,
        })
    }
}

/// Whether the deletion guard ([`crate::deletion_guard`]) counts a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionGuard {
    /// It counts.
    Applies,
    /// It is held while the guard of another kind on the same plane holds: its reason is counted there.
    With(Kind),
    /// It counts, unless one of these is proven live: then a user or operator did it, and it is never held.
    Unless(Vec<Proof>),
    /// An explicit command, the record of a removed cell, or an owner's own deletion: it does not count.
    Exempt,
}

/// A removal, by uid and resourceVersion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The object.
    pub target: Target,
    /// Preconditions of the request.
    pub on: Precondition,
    /// All must hold; empty where the reconcile's own plane is proof enough.
    pub proofs: Vec<Proof>,
    /// Whether the deletion guard counts it.
    pub deletion_guard: DeletionGuard,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A POST of a whole object, never an apply. "Already exists" means: look again, decide again.
    Create {
        /// Where it goes.
        target: Target,
        /// The body; boxed because it is by far the largest.
        object: Box<Object>,
    },
    /// A JSON patch. NotFound or a failed test means: look again, decide again.
    Patch(Patch),
    /// A DELETE. NotFound is success.
    Delete(Delete),
}

impl Action {
    /// Makes an object at the address that it carries itself.
    pub fn create(plane: &Plane, kind: Kind, object: Object) -> Self {
        Self::Create {
            target: Target::of(plane, kind, &object),
            object: Box::new(object),
        }
    }

    /// Deletes an object exactly as it was observed.
    pub fn delete(
        plane: &Plane,
        kind: Kind,
        object: &Object,
        proofs: Vec<Proof>,
        deletion_guard: DeletionGuard,
    ) -> Self {
        Self::Delete(Delete {
            target: Target::of(plane, kind, object),
            on: Precondition::of(object),
            proofs,
            deletion_guard,
        })
    }

    /// What is done to the object.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Create { .. } => "create",
            Self::Patch(_) => "patch",
            Self::Delete(_) => "delete",
        }
    }

    /// The object that is written.
    pub fn target(&self) -> &Target {
        match self {
            Self::Create { target, .. } => target,
            Self::Patch(patch) => &patch.target,
            Self::Delete(delete) => &delete.target,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { target, .. } => write!(f, "create {target}"),
            Self::Patch(patch) => patch.fmt(f),
            Self::Delete(delete) => write!(f, "delete {} (uid {})", delete.target, delete.on.uid),
        }
    }
}

/// Paths only: values hold what users keep to themselves, such as the environment of their containers.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = if self.status { "status of " } else { "" };
        write!(f, "patch {of}{}:", self.target)?;
        for (verb, path) in self.patch.iter().filter_map(change) {
            write!(f, " {verb} {path}")?;
        }
        Ok(())
    }
}

/// What an operation does to a path; `None` where it only tests or moves.
fn change(operation: &PatchOperation) -> Option<(&'static str, &str)> {
    match operation {
        PatchOperation::Add(add) => Some(("add", add.path.as_str())),
        PatchOperation::Replace(replace) => Some(("replace", replace.path.as_str())),
        PatchOperation::Remove(remove) => Some(("remove", remove.path.as_str())),
        _ => None,
    }
}

/// Longest note of an Event that every API server takes, in bytes.
pub const EVENT_NOTE_BYTES: usize = 1024;

/// Longest reason of an Event that every API server takes, in bytes. That of a condition may be longer.
pub const EVENT_REASON_BYTES: usize = 128;

/// Normal or Warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For the record.
    Normal,
    /// An operator should check.
    Warning,
}

/// A Kubernetes Event. Core gives one on transitions only: an unchanged state has no events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The object that it is about.
    pub about: Target,
    /// The uid of that object.
    pub uid: String,
    /// Normal or Warning.
    pub severity: Severity,
    /// A reason: one word for programs; at most [`EVENT_REASON_BYTES`].
    pub reason: String,
    /// For people; at most [`EVENT_NOTE_BYTES`].
    pub note: String,
}

impl Event {
    /// A Warning about an observed object; a reason or note that is too long is cut at a character: an Event that a server
    /// refuses would be lost.
    pub fn warning(plane: &Plane, kind: Kind, object: &Object, reason: &str, note: &str) -> Self {
        let about = Target::of(plane, kind, object);
        Self::of(&about, object.uid(), Severity::Warning, reason, note)
    }

    /// About an object of this uid, cut likewise.
    pub fn of(about: &Target, uid: &str, severity: Severity, reason: &str, note: &str) -> Self {
        Self {
            about: about.clone(),
            uid: uid.to_owned(),
            severity,
            reason: cut(reason, EVENT_REASON_BYTES).to_owned(),
            note: cut(note, EVENT_NOTE_BYTES).to_owned(),
        }
    }
}

/// The longest start of a text that is at most `bytes` long and ends at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// What only a change of the object can end: reported on it once, not retried until it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// The reason of the condition.
    pub reason: String,
    /// Its message.
    pub message: String,
}

impl Terminal {
    /// What is reported.
    pub(crate) fn new(reason: &str, message: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// What is counted and logged, but is no error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The object is paused by annotation: `actions` and `status` are what a reconcile would have done without it, and
    /// empty.
    Paused,
    /// A remote plane is unknown: what concerns it was skipped.
    Unknown(Plane),
    /// An object of another owner holds the name; it was not changed.
    Foreign(Target),
    /// Who made the object of the note before, as far as it says.
    Maker(String),
    /// The server keeps another spec than the one that was sent: CRDs of different versions.
    Skew(Target),
    /// A field that is needed cannot be read.
    Undecodable {
        /// The object.
        target: Target,
        /// JSON pointer of the field.
        path: String,
    },
    /// The object has too much of something: it is not carried further, and what was carried of it stays.
    Excess(Target, Excess),
    /// A terminating object must go first.
    WaitsFor(Target),
    /// An orphan was found and not deleted.
    Orphan(Target),
    /// A hub namespace says that its project is on another API server than the one that was given: nothing is written to it
    /// and nothing of it is deleted.
    AnotherServer {
        /// The hub namespace.
        target: Target,
        /// Uid of `kube-system` of the server that it names.
        stamped: String,
        /// That of the server that was given.
        server: String,
    },
    /// Several Clusters carry the uid of one cell.
    Twins {
        /// The uid.
        id: String,
        /// Names of the Clusters, with commas.
        clusters: String,
    },
    /// Quota of an Instance got to a failure: the value of the label `reason` of
    /// [`crate::metrics::QUOTA_FAILURES`]. Given at the transition only, like the event beside it; counted once the plan
    /// was carried out.
    QuotaFailed(&'static str),
    /// A claim is deleted in a project that its Namespace in the cell does not name; counted once the plan was carried out.
    ClaimOrphaned,
    /// Dropped without error; the text says why.
    Dropped(&'static str),
}

/// What an action that fails means for those after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// They may rest on it: the first that fails ends the reconcile.
    #[default]
    Sequential,
    /// None rests on another: they are carried out all the same, and the reconcile fails after them.
    Independent,
}

/// What a reconcile does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Writes, in order.
    pub actions: Vec<Action>,
    /// Whether they rest on each other.
    pub order: Order,
    /// Of independent ones, which rest on which others all the same: the first of a pair is left out where one on the second failed.
    pub rests: Vec<(Target, Target)>,
    /// Writes that rest on nothing and on which nothing rests, the status included: carried out at the end, whatever became
    /// of the rest. None of them is a delete.
    pub best_effort: Vec<Action>,
    /// The write of the object's own status, after all actions; left out when one failed on the same plane. When one failed
    /// on another, it is written all the same: so it says nothing of what this plan writes there. Where an action wrote the
    /// same object, the status is written on the version that the action made ([`Patch::on_version`]), and on no other.
    pub status: Option<Patch>,
    /// What is written to the status instead where an action on another plane failed.
    pub fallback_status: Option<Patch>,
    /// Events.
    pub events: Vec<Event>,
    /// Look again after this time at the latest; `None` waits for events only.
    pub requeue: Option<Duration>,
    /// Nothing more can be done until the object changes.
    pub terminal: Option<Terminal>,
    /// What is counted and logged.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Whether carrying it out sends nothing.
    pub fn is_unchanged(&self) -> bool {
        self.writes().next().is_none() && self.status.is_none() && self.events.is_empty()
    }

    /// All writes but that of the status.
    pub fn writes(&self) -> impl Iterator<Item = &Action> {
        self.actions.iter().chain(&self.best_effort)
    }

    /// Whether it only says why there is nothing to do.
    pub fn is_dropped(&self) -> bool {
        self.notes.iter().any(|note| matches!(note, Note::Dropped(_)))
    }

    /// A plan that only notes something.
    pub fn noted(note: Note) -> Self {
        Self {
            notes: vec![note],
            ..Self::default()
        }
    }

    /// A plan that only says why there is nothing to do.
    pub fn dropped(why: &'static str) -> Self {
        Self::noted(Note::Dropped(why))
    }

    /// A plan that leaves everything as it is, because an object has too much of something.
    pub(crate) fn exceeded(target: Target, excess: Excess) -> Self {
        Self::noted(Note::Excess(target, excess))
    }

    /// A plan whose actions will not rest on each other.
    pub fn independent() -> Self {
        Self {
            order: Order::Independent,
            ..Self::default()
        }
    }

    /// Takes in the actions and notes of a plan that has nothing else.
    pub fn append(&mut self, other: Self) {
        self.actions.extend(other.actions);
        self.notes.extend(other.notes);
        if let Some(delay) = other.requeue {
            self.requeue_within(delay);
        }
    }

    /// A field that is needed cannot be read: that ends only with a change of the object.
    pub(crate) fn note_undecodable(&mut self, target: Target, path: String) {
        self.terminal = Some(Terminal::new("Unreadable", &format!("{path} cannot be read")));
        self.notes.push(Note::Undecodable { target, path });
    }

    /// Asks for a look after `delay`, unless an earlier one is asked for.
    pub fn requeue_within(&mut self, delay: Duration) {
        self.requeue = Some(self.requeue.map_or(delay, |earlier| earlier.min(delay)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::Edit;

    #[test]
    fn what_is_shown_of_a_patch_has_no_values() {
        let object = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a", "uid": "u" } })).unwrap();
        let edit = Edit::of(&Plane::Hub, NAMESPACE, &object).label("k", "secret");
        let action = edit.spec(&serde_json::json!({ "env": "secret" })).action().unwrap();
        assert_eq!(
            action.to_string(),
            "patch Namespace a in hub: add /metadata/labels add /metadata/labels/k add /spec"
        );
    }

    #[test]
    fn the_earliest_look_counts() {
        let mut plan = Plan::default();
        for seconds in [5, 2, 9] {
            plan.requeue_within(Duration::from_secs(seconds));
        }
        assert_eq!(plan.requeue, Some(Duration::from_secs(2)));
    }

    #[test]
    fn an_event_is_made_of_a_reason_and_a_note_of_any_length() {
        let object: Object = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a" } })).unwrap();
        let event = |reason: &str, note: &str| {
            let event = Event::warning(&Plane::Cell, popcell_api::kind::INSTANCE, &object, reason, note);
            (event.reason.len(), event.note.len())
        };
        assert_eq!(event("Rejected", "no"), (8, 2));
        let long = "é".repeat(2000);
        assert_eq!(event(&long, &long), (EVENT_REASON_BYTES, EVENT_NOTE_BYTES));
    }

    #[test]
    fn a_note_is_cut_at_a_character() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
        assert_eq!(cut("", 3), "");
    }
}
