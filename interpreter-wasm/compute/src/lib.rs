//! Karmada interpreter of WorkloadDeployment (`compute.datumapis.com/v1alpha`): how the hub counts, places, judges and
//! summarises an object that runs in a cell (why so: `docs/decisions/23-compute-module.md`).
//!
//! Every function here is pure: the answer depends on the objects that are given and on nothing else, so the same input
//! gives the same bytes. Nothing traps: an object that cannot be read is `InvalidObject` with the path, and where an
//! answer is possible without the broken part, that answer is given and the module of the topic says which.
//!
//! Not implemented: InterpretComponent (one template per object).
#![cfg_attr(not(target_family = "wasm"), forbid(unsafe_code))]
#![deny(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, clippy::expect_used)]

use popcell_sdk::prelude::*;

mod conditions;
mod dependencies;
mod health;
mod replicas;
mod status;

/// Fields that a controller in the cell writes. `spec.replicas` is an autoscaler's: Karmada would take it back otherwise.
const MEMBER_OWNED: &[&str] = &["/spec/replicas"];

/// The kind that this module interprets.
#[derive(Debug)]
pub struct WorkloadDeployment;

#[interpreter(api_version = "compute.datumapis.com/v1alpha", kind = "WorkloadDeployment")]
impl Interpreter for WorkloadDeployment {
    fn replicas(object: &Object) -> Result<Replicas> {
        replicas::interpret(object)
    }

    // Not registered: with one cell per city it would only write counts that are out of date.
    #[interpreter(register = false)]
    fn revise(object: &mut Object, replicas: i32) -> Result<()> {
        replicas::revise(object, replicas)
    }

    // A field that the member does not have keeps the template's value as a start, so retaining twice is retaining once, and
    // equal objects give no patch. A hook that fails blocks apply and status: this one fails only where the spec is no object,
    // which no API server stores.
    fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
        for pointer in MEMBER_OWNED {
            if let Some(value) = observed.get(pointer).filter(|value| !value.is_null()) {
                desired.set(pointer, value.clone())?;
            }
        }
        Ok(())
    }

    fn aggregate(object: &mut Object, items: &[StatusItem]) -> Result<()> {
        status::aggregate(object, items)
    }

    fn status(object: &Object) -> Result<Json> {
        status::interpret(object)
    }

    fn health(object: &Object) -> Result<bool> {
        health::interpret(object)
    }

    fn dependencies(object: &Object) -> Result<Vec<Dependency>> {
        dependencies::interpret(object)
    }
}
