//! Retain: the desired object with those fields that belong to the member cluster.
//!
//! One table says which. A field that the member does not have keeps the template's value as a start, so retaining
//! twice is retaining once, and equal objects give no patch.

use popcell_sdk::prelude::*;

/// Fields that a controller in the cell writes. `spec.replicas` is an autoscaler's: Karmada would take it back otherwise.
const MEMBER_OWNED: &[&str] = &["/spec/replicas"];

/// Copies the member's own fields from `observed` into `desired`.
pub(crate) fn retain(desired: &mut Object, observed: &Object) -> Result<()> {
    for pointer in MEMBER_OWNED {
        if let Some(value) = observed.get(pointer).filter(|value| !value.is_null()) {
            desired.set(pointer, value.clone())?;
        }
    }
    Ok(())
}
