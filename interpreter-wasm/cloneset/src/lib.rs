//! Interpreter of OpenKruise CloneSet (apps.kruise.io/v1alpha1).
//!
//! Karmada bundles the same kind as Lua
//! (pkg/resourceinterpreter/default/thirdparty/resourcecustomizations/apps.kruise.io/v1alpha1/CloneSet), and this module
//! passes Karmada's own test files for it. It differs where that script fails: absent fields are no error, the order of
//! the clusters does not matter, and there are no requirements at 0 replicas.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use popcell_sdk::{aggregation, generation, pod, prelude::*};

/// Pointer of the pod template.
const TEMPLATE: &str = "/spec/template";

/// Counts of a status; those of several clusters add up.
const COUNTS: [&str; 6] = [
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "updatedReadyReplicas",
    "expectedUpdatedReplicas",
];

/// Texts of a status; those of several clusters are alike, and the last cluster that has one speaks.
const TEXTS: [&str; 3] = ["updateRevision", "currentRevision", "labelSelector"];

/// The kind.
pub struct CloneSet;

#[interpreter(api_version = "apps.kruise.io/v1alpha1", kind = "CloneSet")]
impl Interpreter for CloneSet {
    fn replicas(set: &Object) -> Result<Replicas> {
        let replicas = set.int("/spec/replicas")?.unwrap_or(1);
        // With requirements at 0 replicas Karmada's scheduler would take the object out of its cluster.
        let requirements = if replicas > 0 {
            pod::requirements(set, TEMPLATE)?
        } else {
            None
        };
        Ok(Replicas { replicas, requirements })
    }

    fn revise(set: &mut Object, replicas: i32) -> Result<()> {
        set.set("/spec/replicas", replicas)
    }

    fn aggregate(set: &mut Object, items: &[StatusItem]) -> Result<()> {
        let observed = if items.is_empty() {
            // Not spread to any cluster: there is nothing to wait for.
            set.generation()?
        } else {
            generation::translate(set, &items.iter().collect::<Vec<_>>())?
        };
        set.set("/status/observedGeneration", observed.unwrap_or(0))?;
        for count in COUNTS {
            let pointer = format!("/{count}");
            set.set(&format!("/status{pointer}"), aggregation::total(items, &pointer)?)?;
        }
        if items.is_empty() {
            return Ok(());
        }
        for text in TEXTS {
            let pointer = format!("/{text}");
            set.set(
                &format!("/status{pointer}"),
                aggregation::last_text(items, &pointer)?.unwrap_or_default(),
            )?;
        }
        Ok(())
    }

    fn status(set: &Object) -> Result<Json> {
        let mut status = Json::object::<&str, Json>([]);
        if set.fields("/status")?.is_none() {
            return Ok(status);
        }
        for field in COUNTS.iter().chain(&TEXTS).chain(&["observedGeneration"]) {
            if let Some(value) = set.get(&format!("/status/{field}")).filter(|value| !value.is_null()) {
                status.set(&format!("/{field}"), value.clone())?;
            }
        }
        generation::note(&mut status, set)?;
        Ok(status)
    }

    fn health(set: &Object) -> Result<bool> {
        if set.fields("/status")?.is_none() || set.int("/status/observedGeneration")? != set.generation()? {
            return Ok(false);
        }
        let updated = set.int("/status/updatedReplicas")?.unwrap_or(0);
        let available = set.int("/status/availableReplicas")?.unwrap_or(0);
        Ok(updated >= set.int("/spec/replicas")?.unwrap_or(0) && available >= updated)
    }

    fn dependencies(set: &Object) -> Result<Vec<Dependency>> {
        pod::dependencies(set, TEMPLATE)
    }
}
