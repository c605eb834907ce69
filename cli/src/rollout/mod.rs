//! `popcell rollout`: how far a Workload is on its way, and which templates its Instances were made from.
//!
//! Invariants: nothing is written; a city is done only when its WorkloadDeployment is what the Workload says, and its cell
//! has observed that.

mod history;
mod member;
mod progress;
mod status;

use popcell_core::{
    conditions::text,
    names,
    object::{Fields as _, Object},
};
use serde_json::Value;

use crate::{
    args::workloads::{Rollout, RolloutCommand},
    console::Console,
    exit::Outcome,
};

/// Runs the command.
pub fn run(args: &Rollout, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(async {
        match &args.command {
            RolloutCommand::Status(args) => status::run(args, console).await,
            RolloutCommand::History(args) => history::run(args, console).await,
        }
    })
}

/// One placement in one city.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    /// Name of the placement.
    placement: String,
    /// Code of the city.
    city: String,
    /// Name of its WorkloadDeployment.
    name: String,
    /// Place of the placement in its list.
    index: usize,
}

/// What a Workload asks for, in its order; what cannot be read of it is skipped.
fn slots(workload: &Object) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for (index, placement) in workload.items("/spec/placements").iter().enumerate() {
        let cities = placement.get("cityCodes").and_then(Value::as_array);
        for city in cities.into_iter().flatten().filter_map(Value::as_str) {
            let name = text(placement, "name");
            let slot = Slot {
                placement: name.to_owned(),
                city: city.to_owned(),
                name: names::workload_deployment(workload.name(), name, city),
                index,
            };
            // The same city twice is one.
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
    }
    slots
}
