//! Changes of one observed object, collected into a JSON patch of owned paths.
//!
//! A change that changes nothing leaves no trace, so an empty patch means "as desired".

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as JsonPatch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use popcell_api::kind::{self, Kind};
use serde_json::{Map, Value, json};

use crate::object::{Fields, Object};
use crate::plan::{Action, CONFIG_MAP, Note, Patch, Plane, Precondition, Target};
use crate::spec_echoes::ExplainSpec;

/// A JSON patch that grows.
#[derive(Debug)]
pub struct Edit<'a> {
    target: Target,
    object: &'a Object,
    status: bool,
    guard: Guard,
    operations: Vec<PatchOperation>,
    new_labels: bool,
    new_annotations: bool,
}

/// What must not have moved, beside the uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guard {
    Version,
    Values,
}

impl<'a> Edit<'a> {
    /// Of the object itself.
    pub fn of(plane: &Plane, kind: Kind, object: &'a Object) -> Self {
        Self {
            target: Target::of(plane, kind, object),
            object,
            status: false,
            guard: Guard::Version,
            operations: Vec::new(),
            new_labels: object.metadata.labels.is_none(),
            new_annotations: object.metadata.annotations.is_none(),
        }
    }

    /// Of the object itself, where a write earlier in the same plan may move its resourceVersion, such as that of its status:
    /// each change tests the uid and what it changes instead. Only for gates and finalizers, which test themselves.
    pub fn by_value(plane: &Plane, kind: Kind, object: &'a Object) -> Self {
        let mut edit = Self::of(plane, kind, object);
        edit.guard = Guard::Values;
        edit
    }

    /// The whole status, by way of the subresource; `None` when it already is so.
    ///
    /// Conditions are compared by type, whatever their order.
    pub fn status(plane: &Plane, kind: Kind, object: &'a Object, status: Value) -> Option<Patch> {
        if crate::conditions::same_status(object.at("/status"), &status) {
            return None;
        }
        let mut edit = Self::of(plane, kind, object);
        edit.status = true;
        edit.put(&["status"], object.data.get("status").is_some(), status);
        edit.patch()
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        let old = self.object.label(key);
        if old != Some(value) {
            let exists = old.is_some();
            if std::mem::take(&mut self.new_labels) {
                self.put(&["metadata", "labels"], false, json!({}));
            }
            self.put(&["metadata", "labels", key], exists, json!(value));
        }
        self
    }

    /// Sets an annotation, or takes it away.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: Option<&str>) -> Self {
        let old = self.object.annotation(key);
        match value {
            Some(value) if old != Some(value) => {
                let exists = old.is_some();
                if std::mem::take(&mut self.new_annotations) {
                    self.put(&["metadata", "annotations"], false, json!({}));
                }
                self.put(&["metadata", "annotations", key], exists, json!(value));
            }
            None if old.is_some() => self.operations.push(PatchOperation::Remove(RemoveOperation {
                path: pointer(&["metadata", "annotations", key]),
            })),
            _ => {}
        }
        self
    }

    /// Sets the whole spec; of an object that exceeds a limit the fields that are not as they are kept, since not all may be.
    #[must_use]
    pub fn spec(mut self, spec: &Value) -> Self {
        let object = self.object;
        match object.at("/spec") {
            Some(stored) if stored == spec => {}
            Some(stored) if object.excess().is_some() => self.fields(&["spec"], stored, spec),
            _ => self.put(&["spec"], object.data.get("spec").is_some(), spec.clone()),
        }
        self
    }

    /// Sets the whole spec, unless what is stored is what the server made of it before: that is noted instead.
    #[must_use]
    pub fn spec_unless_echoed(self, spec: &Value, echoes: &dyn ExplainSpec, notes: &mut Vec<Note>) -> Self {
        if echoes.explains(&self.target, spec, self.object.at("/spec")) {
            notes.push(Note::Skew(self.target.clone()));
            return self;
        }
        self.spec(spec)
    }

    fn fields(&mut self, path: &[&str], stored: &Value, wanted: &Value) {
        let (Some(stored), Some(wanted)) = (stored.as_object(), wanted.as_object()) else {
            return self.put(path, true, wanted.clone());
        };
        for (key, value) in wanted {
            let path = [path, &[key.as_str()]].concat();
            match stored.get(key) {
                Some(old) if old == value => {}
                Some(old) => self.fields(&path, old, value),
                None => self.put(&path, false, value.clone()),
            }
        }
    }

    /// Sets a field of an object that exists, by the keys that lead to it.
    #[must_use]
    pub fn set(mut self, path: &[&str], value: Value) -> Self {
        let old = self.object.data.pointer(pointer(path).as_str());
        if old != Some(&value) {
            let exists = old.is_some();
            self.put(path, exists, value);
        }
        self
    }

    /// Takes a field of the spec or the status away, by the keys that lead to it.
    #[must_use]
    pub fn without(mut self, path: &[&str]) -> Self {
        let path = pointer(path);
        if self.object.data.pointer(path.as_str()).is_some() {
            self.operations.push(PatchOperation::Remove(RemoveOperation { path }));
        }
        self
    }

    /// Adds a finalizer.
    #[must_use]
    pub fn with_finalizer(mut self, finalizer: &str) -> Self {
        if !self.object.has_finalizer(finalizer) {
            let mut all = self.object.metadata.finalizers.clone().unwrap_or_default();
            all.push(finalizer.to_owned());
            self.put(
                &["metadata", "finalizers"],
                self.object.metadata.finalizers.is_some(),
                json!(all),
            );
        }
        self
    }

    /// Takes a finalizer away, and no other.
    #[must_use]
    pub fn without_finalizer(self, finalizer: &str) -> Self {
        self.without_finalizers(&[finalizer])
    }

    /// Takes finalizers away, and no others.
    #[must_use]
    pub fn without_finalizers(mut self, finalizers: &[&str]) -> Self {
        let old = self.object.metadata.finalizers.as_deref().unwrap_or_default();
        let left: Vec<_> = old.iter().filter(|one| !finalizers.contains(&one.as_str())).collect();
        if left.len() != old.len() {
            let path = ["metadata", "finalizers"];
            if self.guard == Guard::Values {
                self.operations.push(test(&path, json!(old)));
            }
            self.put(&path, true, json!(left));
        }
        self
    }

    /// Takes scheduling gates of an Instance away, and no others. An Instance without `spec.controller`, or with one that
    /// cannot be read, has no gates.
    #[must_use]
    pub fn without_gates(mut self, opened: &[&str]) -> Self {
        let gates = self.object.items("/spec/controller/schedulingGates").iter().enumerate();
        let named = gates.filter_map(|(index, one)| Some((index, one.get("name")?.as_str()?)));
        // From the last one on, so that no index moves under a later operation.
        for (index, gate) in named.rev().filter(|(_, gate)| opened.contains(gate)) {
            let index = index.to_string();
            let path = ["spec", "controller", "schedulingGates", &index];
            let name = ["spec", "controller", "schedulingGates", &index, "name"];
            self.operations.push(test(&name, json!(gate)));
            self.operations
                .push(PatchOperation::Remove(RemoveOperation { path: pointer(&path) }));
        }
        self
    }

    /// Sets the owner reference with the uid of `owner`, and leaves others of other uids; one of the same kind and name
    /// with another uid is replaced.
    #[must_use]
    pub fn owner(mut self, owner: &OwnerReference) -> Self {
        let old = self.object.metadata.owner_references.clone().unwrap_or_default();
        if !old.contains(owner) {
            let mut all: Vec<_> = old
                .into_iter()
                .filter(|one| one.uid != owner.uid && (&one.kind, &one.name) != (&owner.kind, &owner.name))
                .collect();
            all.push(owner.clone());
            self.put(
                &["metadata", "ownerReferences"],
                self.object.metadata.owner_references.is_some(),
                json!(all),
            );
        }
        self
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The patch, with tests of uid and resourceVersion (or, made with [`Edit::by_value`], of what it changes) before it;
    /// `None` when there is nothing to do.
    pub fn patch(self) -> Option<Patch> {
        if self.operations.is_empty() {
            return None;
        }
        let on = Precondition::of(self.object);
        let mut operations = vec![test(&["metadata", "uid"], json!(on.uid))];
        if self.guard == Guard::Version {
            operations.push(test(&["metadata", "resourceVersion"], json!(on.resource_version)));
        }
        operations.extend(self.operations);
        Some(Patch {
            target: self.target,
            on,
            status: self.status,
            patch: JsonPatch(operations),
        })
    }

    /// The same as an action.
    pub fn action(self) -> Option<Action> {
        self.patch().map(Action::Patch)
    }

    fn put(&mut self, path: &[&str], exists: bool, value: Value) {
        let path = pointer(path);
        self.operations.push(if exists {
            PatchOperation::Replace(ReplaceOperation { path, value })
        } else {
            PatchOperation::Add(AddOperation { path, value })
        });
    }
}

/// Takes scheduling gates of a cell's Instance away after whatever else its plan writes to it: the patch tests the uid and
/// each gate at its place, not the resourceVersion. `None` where none of them is there.
pub fn without_gates(plane: &Plane, instance: &Object, opened: &[&str]) -> Option<Patch> {
    Edit::by_value(plane, kind::INSTANCE, instance)
        .without_gates(opened)
        .patch()
}

/// The data of a ConfigMap.
pub(crate) fn data(config_map: Option<&Object>) -> Option<&Map<String, Value>> {
    config_map?.at("/data")?.as_object()
}

/// Makes a ConfigMap hold these data and no others; `None` where it does. One without data is not created.
pub(crate) fn config_map(
    plane: &Plane,
    existing: Option<&Object>,
    namespace: &str,
    name: &str,
    wanted: Map<String, Value>,
) -> Option<Action> {
    let is_wanted = data(existing).map_or(wanted.is_empty(), |data| *data == wanted);
    match existing {
        _ if is_wanted => None,
        Some(existing) => Edit::of(plane, CONFIG_MAP, existing)
            .set(&["data"], Value::Object(wanted))
            .action(),
        None => {
            let object = Object::new(name, &CONFIG_MAP.resource())
                .within(namespace)
                .data(json!({ "data": wanted }));
            Some(Action::create(plane, CONFIG_MAP, object))
        }
    }
}

fn test(path: &[&str], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: pointer(path),
        value,
    })
}

fn pointer(path: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().copied())
}

#[cfg(test)]
mod tests;
