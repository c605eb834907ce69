//! `popcell scale`: sets how many Instances of a placement run in each of its cities.
//!
//! Invariants: one field is written, and only on the state that was read: another Workload of the name, another placement in
//! its place or another number is decided on again.

use std::io::Write as _;

use itertools::Itertools as _;
use kube::api::Patch;
use popcell_core::{
    conditions::text,
    object::{Fields as _, Object},
    paused::is_paused,
};
use serde_json::{Value, json};

use crate::{
    args::workloads::Scale,
    console::Console,
    exit::{Exit, Failure, Outcome},
    planes::Project,
    restart::{NAMED, PAUSED, refuse_deleted},
};

/// How often it is decided, while other clients change the same field.
const TRIES: usize = 3;

/// Runs the command.
pub fn run(args: &Scale, console: &mut Console) -> Outcome {
    crate::runtime()?.block_on(scale(args, console))
}

async fn scale(args: &Scale, console: &mut Console) -> Outcome {
    let name = args.target.name()?;
    let project = Project::open(&args.project, args.target.namespace.as_deref()).await?;
    let mut rejected: Option<(Change, Failure)> = None;
    for _ in 0..TRIES {
        let workload = project.workload(name).await?;
        let change = Change::decide(&workload, args)?;
        // The same again: no test has failed, the server rejects it.
        if let Some((_, failure)) = rejected.take_if(|(before, _)| *before == change) {
            return Err(failure);
        }
        if change.from == Some(args.replicas) {
            writeln!(console.out, "{NAMED}/{name} unchanged")?;
            return Ok(Exit::Success);
        }
        match project.patch(name, &change.patch(args.replicas)?).await? {
            None => {
                writeln!(console.out, "{NAMED}/{name} scaled")?;
                remark(&workload, &change, args.replicas, console)?;
                return Ok(Exit::Success);
            }
            Some(failure) => rejected = Some((change, failure)),
        }
    }
    Err(rejected.map_or_else(
        || Failure::Environment(format!("failed to scale workload {name}")),
        |(_, failure)| failure,
    ))
}

/// What keeps the number from having the effect that is expected.
fn remark(workload: &Object, change: &Change, replicas: i64, console: &mut Console) -> Result<(), Failure> {
    if is_paused(workload) {
        writeln!(console.err, "note: {PAUSED}: nothing happens before it is removed")?;
    }
    if let Some(most) = change.most.filter(|most| *most < replicas) {
        let placement = &change.placement;
        writeln!(
            console.err,
            "note: placement {placement} has maxReplicas {most}, which leaves an autoscaler no room: raise it"
        )?;
    }
    Ok(())
}

/// The field, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    /// Uid of the Workload.
    uid: String,
    /// Place of the placement in its list.
    index: usize,
    /// Its name.
    placement: String,
    /// The number that it has.
    from: Option<i64>,
    /// Its `maxReplicas`.
    most: Option<i64>,
}

impl Change {
    fn decide(workload: &Object, args: &Scale) -> Result<Self, Failure> {
        let name = workload.name();
        refuse_deleted(workload)?;
        let placements = workload.items("/spec/placements");
        let names = || placements.iter().map(|one| text(one, "name")).join(", ");
        let found = match (&args.placement, placements) {
            (Some(wanted), _) => placements.iter().position(|one| text(one, "name") == wanted),
            (None, [_]) => Some(0),
            (None, _) => {
                let number = placements.len();
                return Err(Failure::Usage(format!(
                    "workload {name} has {number} placements: give --placement, one of {}",
                    names()
                )));
            }
        };
        let Some((index, placement)) = found.and_then(|index| Some((index, placements.get(index)?))) else {
            let wanted = args.placement.as_deref().unwrap_or_default();
            return Err(Failure::Usage(format!(
                "workload {name} has no placement {wanted}: give one of {}",
                names()
            )));
        };
        let number = |field: &str| placement.get("scaleSettings")?.get(field)?.as_i64();
        let change = Self {
            uid: workload.uid().to_owned(),
            index,
            placement: text(placement, "name").to_owned(),
            from: number("minReplicas"),
            most: number("maxReplicas"),
        };
        match (args.current_replicas, change.from) {
            (Some(expected), from) if Some(expected) != from => Err(Failure::Failed(format!(
                "expected placement {} to ask for {expected} replicas, it asks for {}",
                change.placement,
                from.map_or_else(|| "none".to_owned(), |from| from.to_string())
            ))),
            _ => Ok(change),
        }
    }

    /// The one field, under tests of what it was decided on.
    fn patch(&self, replicas: i64) -> Result<Patch<Value>, Failure> {
        let at = format!("/spec/placements/{}", self.index);
        let field = format!("{at}/scaleSettings/minReplicas");
        let test = |path: &str, value: Value| json!({ "op": "test", "path": path, "value": value });
        let operations = json!([
            test("/metadata/uid", json!(self.uid)),
            test(&format!("{at}/name"), json!(self.placement)),
            test(&field, json!(self.from)),
            { "op": "replace", "path": field, "value": replicas },
        ]);
        let patch = serde_json::from_value(operations);
        patch
            .map(Patch::Json)
            .map_err(|error| Failure::Environment(format!("failed to make the patch: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{Cli, args::Command};

    fn args(more: &[&str]) -> Scale {
        let words = ["popcell", "scale", "web", "--replicas=5"].iter().chain(more);
        match Cli::try_parse_from(words).unwrap().command {
            Command::Scale(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn workload(placements: &Value) -> Object {
        let metadata = json!({ "name": "web", "namespace": "shop", "uid": "w1" });
        serde_json::from_value(json!({ "metadata": metadata, "spec": { "placements": placements } })).unwrap()
    }

    fn two() -> Object {
        workload(&json!([
            { "name": "eu", "scaleSettings": { "minReplicas": 2, "maxReplicas": 4 } },
            { "name": "us", "scaleSettings": { "minReplicas": 3 } },
        ]))
    }

    #[test]
    fn one_placement_is_meant_without_a_name_and_several_need_one() {
        let one = workload(&json!([{ "name": "eu", "scaleSettings": { "minReplicas": 2 } }]));
        let change = Change::decide(&one, &args(&[])).unwrap();
        assert_eq!(
            (change.index, change.from, change.placement.as_str()),
            (0, Some(2), "eu")
        );
        let change = Change::decide(&two(), &args(&["--placement=us"])).unwrap();
        assert_eq!((change.index, change.from), (1, Some(3)));
        for (workload, more) in [
            (two(), &[][..]),
            (two(), &["--placement=ap"][..]),
            (workload(&json!([])), &[][..]),
        ] {
            let refused = Change::decide(&workload, &args(more)).unwrap_err();
            assert_eq!(refused.exit(), Exit::Usage, "{refused}");
            assert!(workload.items("/spec/placements").is_empty() || refused.to_string().contains("eu, us"));
        }
    }

    #[test]
    fn another_number_than_expected_is_left_as_it_is() {
        let expects = |number: &str| Change::decide(&two(), &args(&["--placement=us", "--current-replicas", number]));
        assert!(expects("3").is_ok());
        let refused = expects("4").unwrap_err();
        assert_eq!(refused.exit(), Exit::Failed);
        assert_eq!(
            refused.to_string(),
            "expected placement us to ask for 4 replicas, it asks for 3"
        );
    }

    #[test]
    fn one_field_is_written_on_the_state_that_was_read() {
        let change = Change::decide(&two(), &args(&["--placement=us"])).unwrap();
        let Patch::Json::<Value>(patch) = change.patch(5).unwrap() else {
            panic!("no JSON patch");
        };
        let applied = |workload: &Object| {
            let mut value = serde_json::to_value(workload).unwrap();
            json_patch::patch(&mut value, &patch).map(|()| value)
        };
        let mut expected = serde_json::to_value(two()).unwrap();
        expected["spec"]["placements"][1]["scaleSettings"]["minReplicas"] = json!(5);
        assert_eq!(applied(&two()).unwrap(), expected);
        for (pointer, value) in [
            ("/metadata/uid", json!("w2")),
            ("/spec/placements/1/name", json!("ap")),
            ("/spec/placements/1/scaleSettings/minReplicas", json!(4)),
            ("/spec/placements", json!([])),
        ] {
            let mut other = serde_json::to_value(two()).unwrap();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(applied(&serde_json::from_value(other).unwrap()).is_err(), "{pointer}");
        }
    }
}
