//! Fake servers in memory, which carry out plans as API servers would: for tests of convergence.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use popcell_api::kind::{self, Kind};
use serde_json::{Value, json};

use crate::instance_types::Catalogue;
use crate::limits::{Excess, picked};
use crate::object::{Fields, Object};
use crate::plan::{Action, Delete, NAMESPACE, Order, Patch, Plan, Plane, Proof, Target};

pub(crate) type Key = (Plane, &'static str, String, String);

/// Objects of all planes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FakeServers {
    objects: BTreeMap<Key, Object>,
    version: u64,
    /// Projects that the discovery server does not know.
    pub(crate) gone_projects: Vec<String>,
    /// The record of removed cells: names and ids.
    pub(crate) removed_cells: Vec<(String, String)>,
    /// Writes so far.
    pub(crate) writes: usize,
}

/// The time of every reconcile.
pub(crate) fn now() -> Timestamp {
    "2026-01-01T00:10:00Z".parse().unwrap()
}

pub(crate) fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

/// The same object with something in `spec` or `status` that nests so deeply, as it is kept of what a server sends.
pub(crate) fn deepened(object: &Object, field: &str, levels: usize) -> Object {
    let mut marked = object.clone();
    marked.data[field]["deep"] = serde_json::json!("here");
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = serde_json::to_string(&marked).unwrap().replace("\"here\"", &deep);
    let mut object = Object::read(&text).unwrap();
    if let Some(excess) = object.excess() {
        object.exceeds(excess, kind::WORKLOAD_DEPLOYMENT).unwrap();
    }
    object
}

/// InstanceTypes with these names, each with so many processors and 8 GiB.
pub(crate) fn catalogue(types: &[(&str, &str)]) -> Catalogue {
    let objects: Vec<Object> = types
        .iter()
        .map(|(name, cpu)| {
            object(json!({ "metadata": { "name": name.replace('/', "-") },
                "spec": { "name": name, "cpu": cpu, "memory": "8Gi" } }))
        })
        .collect();
    Catalogue::of(&objects.iter().collect::<Vec<_>>()).0
}

/// The same object with so many bytes more in `spec` or `status`, as it is kept of what a server sends where it exceeds a
/// limit.
pub(crate) fn enlarged(object: &Object, kind: Kind, field: &str, bytes: usize, excess: Excess) -> Object {
    let mut large = object.clone();
    large.data[field]["large"] = Value::from("x".repeat(bytes));
    let mut object = Object::read(&serde_json::to_string(&large).unwrap()).unwrap();
    object.exceeds(excess, kind).unwrap();
    object.pick(picked(kind));
    object
}

fn key(plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Key {
    (plane.clone(), kind.kind, namespace.to_owned(), name.to_owned())
}

impl FakeServers {
    pub(crate) fn put(&mut self, plane: &Plane, kind: Kind, object: Object) {
        let key = key(plane, kind, object.namespace(), object.name());
        self.objects.insert(key, object);
    }

    pub(crate) fn get(&self, plane: &Plane, kind: Kind, namespace: &str, name: &str) -> Option<&Object> {
        self.objects.get(&key(plane, kind, namespace, name))
    }

    pub(crate) fn list(&self, plane: &Plane, kind: Kind) -> Vec<&Object> {
        let matches = |key: &Key| key.0 == *plane && key.1 == kind.kind;
        self.objects
            .iter()
            .filter(|(key, _)| matches(key))
            .map(|(_, object)| object)
            .collect()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.objects.iter()
    }

    pub(crate) fn change(&mut self, plane: &Plane, kind: Kind, ns: &str, name: &str, change: impl FnOnce(&mut Object)) {
        let key = key(plane, kind, ns, name);
        let mut object = self.objects.get(&key).unwrap_or_else(|| panic!("no {key:?}")).clone();
        change(&mut object);
        self.store(key, object);
    }

    pub(crate) fn remove(&mut self, plane: &Plane, kind: Kind, namespace: &str, name: &str) {
        self.objects.remove(&key(plane, kind, namespace, name)).unwrap();
    }

    /// As a DELETE request: finalizers hold the object.
    pub(crate) fn delete(&mut self, plane: &Plane, kind: Kind, namespace: &str, name: &str) {
        let key = key(plane, kind, namespace, name);
        if let Some(mut object) = self.objects.get(&key).cloned() {
            object.metadata.deletion_timestamp.get_or_insert(Time(now()));
            self.store(key, object);
        }
    }

    /// The start of a plan, as if the process died after so many writes.
    pub(crate) fn apply_start(&mut self, plan: &Plan, writes: usize) {
        let mut start = plan.clone();
        if writes < plan.actions.len() {
            start.actions.truncate(writes);
            start.best_effort.clear();
            start.status = None;
        }
        self.apply(&start);
    }

    /// Carries out a plan; panics where a server would answer an error that a converged reconcile never meets, and where users
    /// would be shown what they do not know.
    pub(crate) fn apply(&mut self, plan: &Plan) {
        for text in texts_for_users(plan) {
            assert!(is_neutral(&text), "names what users do not know: {text}");
        }
        let mut failed = Vec::new();
        for action in &plan.actions {
            self.writes += 1;
            match action {
                Action::Create { target, object } => self.create(target, object),
                Action::Patch(patch) => self.patch(patch),
                Action::Delete(delete) if delete.proofs.iter().all(|proof| self.holds(proof)) => self.end(delete),
                Action::Delete(delete) => {
                    failed.push(&delete.target.plane);
                    if plan.order == Order::Sequential {
                        break;
                    }
                }
            }
        }
        if let Some(patch) = plan
            .status
            .as_ref()
            .filter(|status| !failed.contains(&&status.target.plane))
        {
            self.writes += 1;
            let target = &patch.target;
            let wrote = plan.actions.iter().any(|action| action.target() == target);
            let made = self.objects.get(&key_of(target)).filter(|_| wrote);
            let followed = made.map(|object| patch.clone().on_version(object.resource_version()));
            self.patch(followed.as_ref().unwrap_or(patch));
        }
        for action in &plan.best_effort {
            self.writes += 1;
            match action {
                Action::Create { target, object } => self.create(target, object),
                Action::Patch(patch) => self.patch(patch),
                Action::Delete(_) => panic!("a delete aside: {action}"),
            }
        }
    }

    /// Reconciles until nothing more is decided. Ten are far more than any change needs.
    pub(crate) fn settle(&mut self, decide: impl Fn(&FakeServers) -> Plan) {
        for _ in 0..10 {
            let plan = decide(self);
            if plan.is_unchanged() {
                return;
            }
            self.apply(&plan);
        }
        panic!("not settled: {:#?}", decide(self));
    }

    fn create(&mut self, target: &Target, object: &Object) {
        let key = key_of(target);
        assert_eq!(object.metadata.name.as_deref(), Some(target.name.as_str()));
        assert_eq!(object.metadata.namespace, target.namespace);
        let types = object.types.as_ref().unwrap();
        let group = Some(target.kind.group).filter(|group| !group.is_empty());
        let version = group.map_or_else(String::new, |group| format!("{group}/")) + target.kind.version;
        assert_eq!(
            (types.api_version.as_str(), types.kind.as_str()),
            (version.as_str(), target.kind.kind)
        );
        assert!(!self.objects.contains_key(&key), "{target} exists");
        let mut object = object.clone();
        object.metadata.uid = Some(format!("made-{}", self.version + 1));
        object.metadata.creation_timestamp = Some(Time(now()));
        object.metadata.generation = Some(1);
        // Servers drop the status of a create where there is a subresource.
        if let Some(fields) = object.data.as_object_mut() {
            fields.remove("status");
        }
        self.store(key, object);
    }

    fn patch(&mut self, patch: &Patch) {
        let key = key_of(&patch.target);
        let old = self
            .objects
            .get(&key)
            .unwrap_or_else(|| panic!("no {}", patch.target))
            .clone();
        let mut whole = serde_json::to_value(&old).unwrap();
        json_patch::patch(&mut whole, &patch.patch).unwrap_or_else(|error| panic!("{patch}: {error}"));
        let mut new: Object = serde_json::from_value(whole).unwrap();
        if let Some(excess) = old.excess() {
            new.exceeds(excess, patch.target.kind).unwrap();
        }
        if patch.status {
            assert_eq!(new.metadata, old.metadata);
            assert_eq!(new.at("/spec"), old.at("/spec"));
        } else {
            assert_eq!(new.at("/status"), old.at("/status"));
            if new.at("/spec") != old.at("/spec") {
                new.metadata.generation = Some(old.generation().unwrap_or(0) + 1);
            }
        }
        assert_ne!(new, old, "an empty patch of {}", patch.target);
        self.store(key, new);
    }

    fn end(&mut self, delete: &Delete) {
        let key = key_of(&delete.target);
        let object = self.objects.get(&key).unwrap_or_else(|| panic!("no {}", delete.target));
        assert_eq!(object.uid(), delete.on.uid);
        assert_eq!(object.resource_version(), delete.on.resource_version);
        let (plane, namespace, name) = (key.0.clone(), key.2.clone(), key.3.clone());
        self.delete(&plane, delete.target.kind, &namespace, &name);
    }

    fn holds(&self, proof: &Proof) -> bool {
        let live = |source: &Target| self.objects.get(&key_of(source));
        match proof {
            Proof::Gone { source, uid } => Proof::is_gone(live(source), uid.as_deref()),
            Proof::Lives { source, uid } => live(source).is_some_and(|one| one.uid() == uid && !one.deleting()),
            Proof::NoneLeft {
                plane,
                kind,
                namespace,
                selector,
            } => {
                let (label, value) = selector.split_once('=').unwrap_or_default();
                let selected = |one: &&Object| {
                    one.namespace() == namespace && (selector.is_empty() || one.label(label) == Some(value))
                };
                !self.list(plane, *kind).iter().any(selected)
            }
            Proof::NotNamed { namespace, reference } => {
                let all = self.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
                let within: Vec<Object> = all
                    .into_iter()
                    .filter(|one| one.namespace() == namespace)
                    .cloned()
                    .collect();
                Proof::is_not_named(&within, 0, reference)
            }
            Proof::SourceGone { cluster, id } => {
                let live = self.get(&Plane::Hub, popcell_api::kind::CLUSTER, "", cluster);
                let other = |live: &Object| live.text("/spec/id").is_some_and(|one| !one.is_empty() && one != id);
                live.is_none_or(other) || self.removed_cells.contains(&(cluster.clone(), id.clone()))
            }
            Proof::NotServed { cluster, deployment } => {
                let cluster = self.get(&Plane::Hub, popcell_api::kind::CLUSTER, "", cluster);
                Proof::is_not_served(cluster, live(deployment))
            }
            Proof::Server { project, uid } => {
                let plane = Plane::Project(project.clone());
                let found = self.get(&plane, NAMESPACE, "", crate::identity::SYSTEM_NAMESPACE);
                found.is_some_and(|one| one.uid() == uid)
            }
            Proof::ProjectGone { project, .. } => self.gone_projects.contains(project),
        }
    }

    fn store(&mut self, key: Key, mut object: Object) {
        let held = object.metadata.finalizers.iter().flatten().next().is_some();
        if object.deleting() && !held {
            self.objects.remove(&key);
            return;
        }
        self.version += 1;
        object.metadata.resource_version = Some(format!("v{}", self.version));
        self.objects.insert(key, object);
    }
}

fn key_of(target: &Target) -> Key {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    key(&target.plane, target.kind, namespace, &target.name)
}

/// Messages of conditions and notes of Events in a plan, which users read in their project: also those of a cell, whose
/// statuses are mirrored.
pub(crate) fn texts_for_users(plan: &Plan) -> Vec<String> {
    let mut texts = Vec::new();
    let seen = |target: &Target| matches!(target.plane, Plane::Project(_) | Plane::Cell);
    for patch in plan.status.iter().filter(|status| seen(&status.target)) {
        collect_messages(&serde_json::to_value(&patch.patch).unwrap(), &mut texts);
    }
    for event in plan.events.iter().filter(|event| seen(&event.about)) {
        texts.push(event.note.clone());
    }
    texts
}

fn collect_messages(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            texts.extend(fields.get("message").and_then(Value::as_str).map(str::to_owned));
            let whole = fields
                .get("path")
                .and_then(Value::as_str)
                .is_some_and(|path| path.ends_with("/message"));
            texts.extend(
                fields
                    .get("value")
                    .filter(|_| whole)
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            fields.values().for_each(|one| collect_messages(one, texts));
        }
        Value::Array(list) => list.iter().for_each(|one| collect_messages(one, texts)),
        _ => {}
    }
}

/// Whether a text names nothing that stands between a project and its cities: users do not know that it is there.
pub(crate) fn is_neutral(text: &str) -> bool {
    let text = text.to_lowercase();
    let unknown = ["karmada", "cluster", "hub", "federat", "upstream", "downstream"];
    text.split(|c: char| !c.is_alphanumeric())
        .all(|word| unknown.iter().all(|one| !word.starts_with(one)))
}
