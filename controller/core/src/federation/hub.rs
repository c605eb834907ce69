//! Writes to the hub: Namespace and WorkloadDeployment, and their removal.

use std::collections::BTreeMap;

use popcell_api::{annotations, kind, labels};
use serde_json::{Value, json};

use super::{Hub, INSTANCE, Reconcile, hub_labels};
use crate::edit::Edit;
use crate::identity;
use crate::object::{Fields, Object};
use crate::plan::{Action, DeletionGuard, NAMESPACE, Note, Plane, Proof, Target};
use crate::sizing::Described;
use crate::{growth, orphans, references, reserved, workload};

/// Fields that the API makes immutable.
const IMMUTABLE: [&str; 3] = ["/spec/cityCode", "/spec/placementName", "/spec/workloadRef"];

/// Whether a hub WorkloadDeployment was made for this one: by uid, or, left by upstream's operator and unmarked, for the
/// same Workload.
pub(super) fn is_made_for(hub: &Object, deployment: &Object) -> bool {
    match hub.annotation(annotations::UPSTREAM_UID) {
        Some(uid) => uid == deployment.uid(),
        None => same_workload(hub, deployment),
    }
}

/// Whether a spec has another template than what is stored.
fn changes_template(existing: &Object, spec: &Value) -> bool {
    existing.at("/spec/template") != spec.get("template")
}

fn same_workload(hub: &Object, deployment: &Object) -> bool {
    let uid = deployment.text("/spec/workloadRef/uid");
    uid.is_some() && hub.text("/spec/workloadRef/uid") == uid
}

impl<'a> Reconcile<'a> {
    /// Plans what brings namespace and WorkloadDeployment to the hub; true when another owner holds a name.
    pub(super) fn carry(&mut self, hub: &Hub<'a>, namespace: &Object, hub_namespace: &str) -> bool {
        let existing = hub.namespaces.iter().find(|one| one.name() == hub_namespace);
        match existing {
            None => self.create_namespace(hub_namespace),
            Some(one) if one.deleting() => {
                self.plan
                    .notes
                    .push(Note::WaitsFor(Target::of(&Plane::Hub, NAMESPACE, one)));
                return false;
            }
            Some(one) => {
                if !self.mend_namespace(one) {
                    return true;
                }
            }
        }
        let holder = hub
            .deployments
            .iter()
            .find(|one| one.namespace() == hub_namespace && one.name() == self.seen.deployment.name());
        match holder {
            None => self.create_deployment(hub_namespace),
            Some(one) if one.deleting() => {
                let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, one);
                self.plan.notes.push(Note::WaitsFor(target));
            }
            Some(one) if !is_made_for(one, self.seen.deployment) => {
                if !one.marked() || one.annotation(annotations::UPSTREAM_UID).is_none() {
                    let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, one);
                    self.plan.notes.push(Note::Foreign(target));
                    return true;
                }
                self.replace(one, namespace);
            }
            Some(one) if one.marked() && self.differs_for_good(one) => self.replace(one, namespace),
            Some(one) => self.update_deployment(one),
        }
        false
    }

    /// Plans the removal of all that was made for this one; true while the finalizer must stay.
    pub(super) fn remove_from(&mut self, hub: &Hub<'a>) -> bool {
        let deployment = self.seen.deployment;
        let mut held = false;
        let ours: Vec<&str> = hub
            .namespaces
            .iter()
            .filter(|one| self.belongs(one))
            .map(|one| one.name())
            .collect();
        for one in hub.deployments {
            let to_delete = one.name() == deployment.name()
                && ours.contains(&one.namespace())
                && is_made_for(one, deployment)
                && !one.deleting();
            if !to_delete {
                continue;
            }
            if one.marked() && one.annotation(annotations::UPSTREAM_UID).is_some() {
                let server = self.seen.project.server.map(|uid| Proof::Server {
                    project: self.seen.project.id.to_owned(),
                    uid: uid.to_owned(),
                });
                let gone = Proof::Gone {
                    source: self.target(),
                    uid: Some(deployment.uid().to_owned()),
                };
                let proofs = server.into_iter().chain([gone]).collect();
                self.plan.actions.push(delete(one, proofs, DeletionGuard::Exempt));
            } else {
                // Only what carries our marker is deleted: take it over first.
                held = true;
                self.plan.actions.extend(self.stamped(one, false).action());
            }
        }
        held
    }

    fn create_namespace(&mut self, name: &str) {
        let mut object = Object::new(name, &NAMESPACE.resource()).data(json!({}));
        let labels = identity::namespace_labels(self.seen.project, self.seen.deployment.namespace());
        object.metadata.labels = Some(labels);
        let stamps: BTreeMap<String, String> = identity::namespace_annotations(self.seen.project)
            .map(|(key, uid)| (key.to_owned(), uid.to_owned()))
            .collect();
        object.metadata.annotations = Some(stamps).filter(|stamps| !stamps.is_empty());
        self.plan.actions.push(Action::create(&Plane::Hub, NAMESPACE, object));
    }

    /// Adds what is missing; false when the Namespace says that it is another project's.
    fn mend_namespace(&mut self, existing: &Object) -> bool {
        let wanted = identity::namespace_labels(self.seen.project, self.seen.deployment.namespace());
        if identity::contradicts(existing, self.seen.project, self.seen.deployment.namespace()) {
            let target = Target::of(&Plane::Hub, NAMESPACE, existing);
            self.plan.notes.push(Note::Foreign(target));
            return false;
        }
        let mut edit = orphans::unnoted(existing);
        for (key, uid) in identity::namespace_annotations(self.seen.project) {
            edit = edit.annotation(key, Some(uid));
        }
        for (key, value) in &wanted {
            // `cluster-org_p` means the same project as `cluster-p`: what upstream wrote stays.
            if existing.label(key).is_none_or(str::is_empty) || key == labels::MANAGED_BY {
                edit = edit.label(key, value);
            }
        }
        self.plan.actions.extend(edit.action());
        true
    }

    fn create_deployment(&mut self, hub_namespace: &str) {
        let deployment = self.seen.deployment;
        let mut object = Object::new(deployment.name(), &kind::WORKLOAD_DEPLOYMENT.resource())
            .within(hub_namespace)
            .data(json!({ "spec": self.spec() }));
        object.metadata.labels = Some(
            hub_labels(deployment)
                .map(|(key, value)| (key.to_owned(), value))
                .into(),
        );
        let expected = self
            .expected_data(None, true)
            .map(|value| (annotations::EXPECTED_REFERENCED_DATA, value.to_owned()));
        let size = self.seen_size(deployment.at(INSTANCE), None);
        let size = size.map(|size| (annotations::INSTANCE_TYPE_SIZE, size));
        let stamps = self.stamps().into_iter().chain(expected).chain(size);
        object.metadata.annotations = Some(stamps.map(|(key, value)| (key.to_owned(), value)).collect());
        let create = Action::create(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object);
        self.plan.actions.push(create);
    }

    fn update_deployment(&mut self, existing: &Object) {
        // Of one whose status is too large the spec is not kept; it is of the generation that was written with it.
        let [_, (key, generation)] = self.stamps();
        if existing.excess().is_some() && existing.annotation(key) == Some(&generation) {
            self.plan.actions.extend(self.stamped(existing, false).action());
            return;
        }
        let spec = self.spec();
        let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, existing);
        let is_echo = self.seen.spec_echoes.explains(&target, &spec, existing.at("/spec"));
        let changes_template = !is_echo && changes_template(existing, &spec);
        let edit = self.stamped(existing, changes_template);
        let edit = self.sized(edit, existing, &spec);
        let edit = self.keeping(edit, existing, changes_template);
        let edit = edit.spec_unless_echoed(&spec, self.seen.spec_echoes, &mut self.plan.notes);
        self.plan.actions.extend(edit.action());
    }

    /// Labels and annotations of ours; the generation goes with the spec in one write, so that a status can be matched
    /// with the generation that it observed. `changes_template`: what is written beside them is another one.
    fn stamped<'o>(&self, existing: &'o Object, changes_template: bool) -> Edit<'o> {
        let mut edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, existing);
        for (key, value) in hub_labels(self.seen.deployment) {
            edit = edit.label(key, &value);
        }
        for (key, value) in self.stamps() {
            edit = edit.annotation(key, Some(&value));
        }
        self.expecting(edit, existing, changes_template)
    }

    /// What its city is to have of ConfigMaps and Secrets goes with the template in one write.
    fn expecting<'o>(&self, mut edit: Edit<'o>, existing: &'o Object, changes_template: bool) -> Edit<'o> {
        let expected = self.expected_data(Some(existing), changes_template);
        if expected != existing.annotation(annotations::EXPECTED_REFERENCED_DATA) {
            edit = edit.annotation(annotations::REFERENCED_DATA_ERROR, None);
        }
        edit.annotation(annotations::EXPECTED_REFERENCED_DATA, expected)
    }

    /// What its city is to have of ConfigMaps and Secrets, as far as it is known of its template; `None` where that names none.
    fn expected_data<'o>(&self, existing: Option<&'o Object>, changes_template: bool) -> Option<&'o str> {
        if !self.seen.carries_data || references::data(self.seen.deployment).is_empty() {
            return None;
        }
        let existing = existing.filter(|_| !changes_template);
        let known = existing.and_then(|one| one.annotation(annotations::EXPECTED_REFERENCED_DATA));
        Some(known.unwrap_or(annotations::DATA_PENDING))
    }

    fn stamps(&self) -> [(&'static str, String); 2] {
        let deployment = self.seen.deployment;
        let generation = deployment.generation().unwrap_or_default();
        [
            (annotations::UPSTREAM_UID, deployment.uid().to_owned()),
            (annotations::UPSTREAM_GENERATION, generation.to_string()),
        ]
    }

    /// The spec as it leaves the project: `replicas` is an autoscaler's, in a cell.
    fn spec(&self) -> Value {
        let mut spec = self.seen.deployment.at("/spec").cloned().unwrap_or_else(|| json!({}));
        if let Some(fields) = spec.as_object_mut() {
            fields.remove(workload::REPLICAS);
        }
        if let Some(template) = spec.get_mut("template") {
            reserved::strip(template);
            references::localise(template, self.seen.deployment.namespace());
        }
        spec
    }

    /// For a city that has no usable binding, and for what exceeds a limit: nothing that adds anything.
    pub(super) fn lowered(&self, existing: &Object) -> Option<Action> {
        if existing.deleting() {
            return None;
        }
        let (spec, is_whole) = self.lowered_spec(existing)?;
        // What is carried whole is of this generation.
        let changes_template = changes_template(existing, &spec);
        let edit = if is_whole {
            self.stamped(existing, changes_template)
        } else {
            let edit = Edit::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, existing);
            if changes_template {
                self.expecting(edit, existing, true)
            } else {
                edit
            }
        };
        // A larger size of the same type is growth too.
        let edit = if changes_template {
            self.sized(edit, existing, &spec)
        } else {
            edit
        };
        self.keeping(edit, existing, changes_template).spec(&spec).action()
    }

    /// What the template named before goes on being named with the new one in one write, until that one is rolled out.
    fn keeping<'o>(&self, edit: Edit<'o>, existing: &Object, changes_template: bool) -> Edit<'o> {
        let kept = references::to_keep(existing, self.seen.deployment, changes_template);
        edit.annotation(annotations::PREVIOUS_REFERENCES, kept.as_deref())
    }

    /// The size of the instance type goes with the spec that names it in one write.
    fn sized<'o>(&self, edit: Edit<'o>, existing: &'o Object, spec: &Value) -> Edit<'o> {
        let size = self.seen_size(spec.pointer("/template/spec"), Some(existing));
        edit.annotation(annotations::INSTANCE_TYPE_SIZE, size.as_deref())
    }

    /// As far as it is known; else what there is.
    fn seen_size(&self, instance: Option<&Value>, existing: Option<&Object>) -> Option<String> {
        let kept = |_| existing?.annotation(annotations::INSTANCE_TYPE_SIZE).map(str::to_owned);
        self.size_of(instance, existing).unwrap_or_else(kept)
    }

    /// Whether nothing is held back of what is asked for.
    pub(super) fn is_carried_whole(&self, existing: &Object) -> bool {
        self.lowered_spec(existing).is_some_and(|(_, is_whole)| is_whole)
    }

    fn lowered_spec(&self, existing: &Object) -> Option<(Value, bool)> {
        let stored = existing.at("/spec")?;
        let spec = self.spec();
        // Of what exceeds a limit no more may be kept than that.
        let exceeds = self.seen.deployment.excess().or(existing.excess()).is_some();
        let lowered = if exceeds || self.differs_for_good(existing) {
            workload::lowered(stored, &spec)
        } else {
            let size = self
                .size_of(spec.pointer("/template/spec"), Some(existing))
                .ok()
                .flatten();
            let described = |spec, type_size| Described { spec, type_size };
            let type_size = existing.annotation(annotations::INSTANCE_TYPE_SIZE);
            growth::held(described(stored, type_size), described(&spec, size.as_deref()))
        };
        let is_whole = lowered == spec;
        Some((lowered, is_whole))
    }

    /// The hub's object says another city, placement or Workload: no patch can mend it.
    fn differs_for_good(&self, existing: &Object) -> bool {
        IMMUTABLE
            .iter()
            .any(|path| existing.at(path).is_some() && existing.at(path) != self.seen.deployment.at(path))
    }

    /// Deletes what stands in our place; the next reconcile makes ours.
    fn replace(&mut self, existing: &Object, namespace: &Object) {
        let proofs = vec![
            Proof::Lives {
                source: self.target(),
                uid: self.seen.deployment.uid().to_owned(),
            },
            Proof::Lives {
                source: Target::cluster(&self.plane, NAMESPACE, namespace.name()),
                uid: namespace.uid().to_owned(),
            },
        ];
        self.plan.actions.push(delete(existing, proofs, DeletionGuard::Applies));
    }
}

fn delete(object: &Object, proofs: Vec<Proof>, deletion_guard: DeletionGuard) -> Action {
    Action::delete(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object, proofs, deletion_guard)
}
