//! Changes of one observed object, collected into a JSON patch of owned paths (design.md 7.3).
//!
//! A change that changes nothing leaves no trace, so an empty patch means "as desired".

use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch as JsonPatch, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use popcell_api::kind::Kind;
use serde_json::{Value, json};

use crate::object::{Fields, Object};
use crate::plan::{Action, Patch, Plane, Precondition, Target};

/// A JSON patch that grows.
#[derive(Debug)]
pub struct Edit<'a> {
    target: Target,
    object: &'a Object,
    status: bool,
    operations: Vec<PatchOperation>,
    new_labels: bool,
    new_annotations: bool,
}

impl<'a> Edit<'a> {
    /// Of the object itself.
    pub fn of(plane: &Plane, kind: Kind, object: &'a Object) -> Self {
        Self {
            target: Target::of(plane, kind, object),
            object,
            status: false,
            operations: Vec::new(),
            new_labels: object.metadata.labels.is_none(),
            new_annotations: object.metadata.annotations.is_none(),
        }
    }

    /// The whole status, by way of the subresource; `None` when it already is so.
    ///
    /// Conditions are compared by type, whatever their order (domain.md G30).
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

    /// Sets the whole spec.
    #[must_use]
    pub fn spec(mut self, spec: &Value) -> Self {
        if self.object.at("/spec") != Some(spec) {
            self.put(&["spec"], self.object.data.get("spec").is_some(), spec.clone());
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
    pub fn without_finalizer(mut self, finalizer: &str) -> Self {
        if self.object.has_finalizer(finalizer) {
            let left: Vec<_> = self
                .object
                .metadata
                .finalizers
                .iter()
                .flatten()
                .filter(|one| *one != finalizer)
                .collect();
            self.put(&["metadata", "finalizers"], true, json!(left));
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

    /// The patch, with tests of uid and resourceVersion before it; `None` when there is nothing to do.
    pub fn patch(self) -> Option<Patch> {
        if self.operations.is_empty() {
            return None;
        }
        let on = Precondition::of(self.object);
        let mut operations = vec![
            test(&["metadata", "uid"], &on.uid),
            test(&["metadata", "resourceVersion"], &on.resource_version),
        ];
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

fn test(path: &[&str], value: &str) -> PatchOperation {
    PatchOperation::Test(TestOperation {
        path: pointer(path),
        value: json!(value),
    })
}

fn pointer(path: &[&str]) -> PointerBuf {
    PointerBuf::from_tokens(path.iter().copied())
}

#[cfg(test)]
mod tests;
