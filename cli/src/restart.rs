//! `popcell restart`: sets one annotation in the template of a Workload, which recreates its Instances.

use std::io::Write as _;

use jiff::Timestamp;
use kube::api::Patch;
use popcell_api::annotations::RESTARTED_AT;
use popcell_core::{
    object::{Fields as _, Object},
    paused::is_paused,
};
use serde_json::{Value, json};

use crate::{
    args::workloads::Restart,
    console::Console,
    exit::{Exit, Failure, Outcome},
    planes::Project,
};

/// A Workload in messages, before its name.
pub(crate) const NAMED: &str = "workload.compute.datumapis.com";
/// Why nothing is done for a Workload.
pub(crate) const PAUSED: &str = "paused by annotation compute.datumapis.com/paused";

/// Runs the command.
pub fn run(args: &Restart, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(restart(args, console))
}

async fn restart(args: &Restart, console: &mut Console) -> Outcome {
    let name = args.target.name()?;
    let project = Project::open(&args.project, args.target.namespace.as_deref()).await?;
    let workload = project.workload(name).await?;
    refuse_deleted(&workload)?;
    if is_paused(&workload) {
        return Err(Failure::Failed(format!(
            "workload {name} is {PAUSED}: remove the annotation first"
        )));
    }
    let patch = Patch::Merge(change(&workload, Timestamp::now()));
    match project.patch(name, &patch).await? {
        None => {
            writeln!(console.out, "{NAMED}/{name} restarted")?;
            Ok(Exit::Success)
        }
        Some(failure) => Err(failure),
    }
}

/// The annotation, on the Workload that was read and no other of its name.
fn change(workload: &Object, now: Timestamp) -> Value {
    // Fractions, so that two restarts in one second are two changes.
    let now = format!("{now:.6}");
    json!({
        "metadata": { "uid": workload.uid() },
        "spec": { "template": { "metadata": { "annotations": { RESTARTED_AT: now } } } },
    })
}

/// Nothing is written to a Workload that goes anyway.
pub(crate) fn refuse_deleted(workload: &Object) -> Result<(), Failure> {
    if workload.deleting() {
        let name = workload.name();
        return Err(Failure::Failed(format!("workload {name} is being deleted")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_annotation_of_the_template_is_written() {
        let workload = json!({ "metadata": { "name": "web", "uid": "w1" } });
        let workload: Object = serde_json::from_value(workload).unwrap();
        let now: Timestamp = "2026-01-01T12:00:00.25Z".parse().unwrap();
        assert_eq!(
            change(&workload, now),
            json!({ "metadata": { "uid": "w1" }, "spec": { "template": { "metadata": { "annotations": {
                "compute.datumapis.com/restartedAt": "2026-01-01T12:00:00.250000Z" } } } } })
        );
    }
}
