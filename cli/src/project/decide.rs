//! What becomes of one object of a project: from what it has and what it shall have. Pure.
//!
//! Invariants: what another owner has, or what is being deleted, is not changed; labels, annotations and everything else of the
//! metadata that others put there stay; what we describe is replaced as a whole, so that nothing of an older version is left.

use itertools::Itertools as _;
use popcell_api::labels::{PART_OF, PART_OF_POPCELL};
use serde_json::Value;

use super::{
    manifest::{DEFINITION, Manifest, WEBHOOKS},
    schema,
};

/// How many fields are named.
const NAMED: usize = 3;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// There is none.
    Create,
    /// It is as it shall be, without a word of the server.
    Keep,
    /// This shall be in its place, unless the server's defaults make it what is there.
    Replace(Value),
    /// It is not ours to write; why, for people.
    Refuse(String),
}

/// Decides. `drops`: whether a CRD may lose fields.
pub(super) fn decide(manifest: &Manifest, found: Option<&Value>, drops: bool) -> Step {
    let Some(found) = found else {
        return Step::Create;
    };
    let metadata = &found["metadata"];
    if metadata["labels"][PART_OF] != PART_OF_POPCELL {
        return Step::Refuse(format!(
            "belongs to another owner, since it lacks the label {PART_OF}={PART_OF_POPCELL}: remove it, or set the label to have \
             it replaced"
        ));
    }
    if metadata["deletionTimestamp"].is_string() {
        return Step::Refuse("is being deleted: retry when it is gone".to_owned());
    }
    if manifest.kind == DEFINITION && !drops {
        let dropped = schema::dropped(found, &manifest.object);
        if !dropped.is_empty() {
            let named = dropped.iter().take(NAMED).join(", ");
            let more = match dropped.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Step::Refuse(format!(
                "describes what this version of popcell does not: {named}{more}. Use the version that applied it; or drop these \
                 fields with --allow-dropped-fields"
            ));
        }
    }
    let wanted = merged(manifest, found);
    if wanted == *found {
        Step::Keep
    } else {
        Step::Replace(wanted)
    }
}

/// What is there, with our fields in place of its own.
fn merged(manifest: &Manifest, found: &Value) -> Value {
    let mut wanted = manifest.object.clone();
    wanted["metadata"] = found["metadata"].clone();
    for keys in ["labels", "annotations"] {
        for (key, value) in manifest.object["metadata"][keys].as_object().into_iter().flatten() {
            wanted["metadata"][keys][key] = value.clone();
        }
    }
    if let Some(status) = found.get("status") {
        wanted["status"] = status.clone();
    }
    if WEBHOOKS.contains(&manifest.kind) {
        keep_bundles(&mut wanted, found);
    }
    wanted
}

/// Who gives no CA keeps the one that is registered: cert-manager or an operator has put it there.
fn keep_bundles(wanted: &mut Value, found: &Value) {
    let registered = found["webhooks"].as_array().map(Vec::as_slice).unwrap_or_default();
    for webhook in wanted["webhooks"].as_array_mut().into_iter().flatten() {
        let same = registered.iter().find(|one| one["name"] == webhook["name"]);
        let bundle = same.and_then(|one| one.pointer("/clientConfig/caBundle"));
        let client = &mut webhook["clientConfig"];
        if let (Some(bundle), None) = (bundle, client.get("caBundle")) {
            client["caBundle"] = bundle.clone();
        }
    }
}

/// Whether a server would store what is there already.
pub(super) fn is_same(found: &Value, stored: &Value) -> bool {
    without_status(found) == without_status(stored)
}

/// Without what each write changes, and what others write.
fn without_status(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["resourceVersion", "generation", "managedFields"] {
            metadata.remove(field);
        }
    }
    object
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
