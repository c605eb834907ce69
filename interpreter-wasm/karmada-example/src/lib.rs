//! Interpreter of Karmada's example kind, workload.example.io/v1alpha1 Workload.
//!
//! Does what Karmada's own example webhook does (examples/customresourceinterpreter/webhook/app/workloadwebhook.go), and
//! differs where that one is wrong: absent replicas mean 1 for every operation, every object that the template names is a
//! dependency (there only the first container's `envFrom`, which has to be one), and every error names the place in the
//! object. It also says what a pod of the template needs.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use popcell_sdk::{aggregation, pod, prelude::*};

/// Pointer of the pod template.
const TEMPLATE: &str = "/spec/template";

/// The kind.
pub struct Workload;

#[interpreter(api_version = "workload.example.io/v1alpha1", kind = "Workload")]
impl Interpreter for Workload {
    fn replicas(workload: &Object) -> Result<Replicas> {
        let replicas = desired(workload)?;
        Ok(Replicas {
            replicas,
            requirements: requirements(workload, replicas)?,
        })
    }

    fn components(workload: &Object) -> Result<Vec<Component>> {
        let replicas = desired(workload)?;
        Ok(vec![Component {
            name: "main".to_owned(),
            replicas,
            requirements: requirements(workload, replicas)?,
        }])
    }

    fn revise(workload: &mut Object, replicas: i32) -> Result<()> {
        workload.set("/spec/replicas", replicas)
    }

    /// The member decides whether it is paused.
    fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
        let paused = observed.bool("/spec/paused")?;
        if desired.bool("/spec/paused")?.unwrap_or(false) == paused.unwrap_or(false) {
            return Ok(());
        }
        match paused {
            Some(paused) => desired.set("/spec/paused", paused),
            None => desired.remove("/spec/paused").map(drop),
        }
    }

    fn aggregate(workload: &mut Object, items: &[StatusItem]) -> Result<()> {
        workload.set("/status/readyReplicas", aggregation::total(items, "/readyReplicas")?)
    }

    fn status(workload: &Object) -> Result<Json> {
        let ready = workload.int("/status/readyReplicas")?;
        Ok(Json::object(ready.map(|ready| ("readyReplicas", ready))))
    }

    fn health(workload: &Object) -> Result<bool> {
        Ok(workload.int("/status/readyReplicas")?.unwrap_or(0) == desired(workload)?)
    }

    fn dependencies(workload: &Object) -> Result<Vec<Dependency>> {
        pod::dependencies(workload, TEMPLATE)
    }
}

fn desired(workload: &Object) -> Result<i64> {
    Ok(workload.int("/spec/replicas")?.unwrap_or(1))
}

/// What one pod needs. With requirements at 0 replicas Karmada's scheduler would take the object out of its cluster.
fn requirements(workload: &Object, replicas: i64) -> Result<Option<Requirements>> {
    if replicas > 0 {
        pod::requirements(workload, TEMPLATE)
    } else {
        Ok(None)
    }
}
