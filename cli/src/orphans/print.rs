//! The list, and what became of its objects.

use std::io::{self, Write};

use jiff::Timestamp;
use popcell_core::plan::{Action, Target};
use serde_json::{Value, json};

use crate::table::{self, address, age};

use super::{
    clean::Outcome,
    row::{OrphanState, Row},
};

const HEADS: [&str; 6] = ["NAMESPACE", "KIND", "NAME", "PROJECT", "AGE", "WHY"];

/// Every row, in columns that are as wide as they need to be; nothing when there is none.
pub(super) fn table(rows: &[Row], now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let or_dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let target = &row.target;
        [
            or_dash(target.namespace.as_deref().unwrap_or_default()),
            target.kind.kind.to_owned(),
            target.name.clone(),
            or_dash(&row.project),
            age(row.created, now),
            row.why.clone(),
        ]
    }));
    table::write(&lines, out)
}

/// How many there are of each.
pub(super) fn summary(rows: &[Row]) -> String {
    let count = |orphan_state| rows.iter().filter(|row| row.orphan_state == orphan_state).count();
    format!(
        "{} orphans, {} that are not ours to delete, {} unknown",
        count(OrphanState::Orphan),
        count(OrphanState::Kept),
        count(OrphanState::Unknown)
    )
}

fn name(target: &Target) -> String {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    format!("{} {}", target.kind.kind, address(namespace, &target.name))
}

/// What would be done to one object.
pub(super) fn intent(action: &Action) -> String {
    let verb = if matches!(action, Action::Delete(_)) {
        "delete"
    } else {
        "note that its project is gone on"
    };
    format!("{verb} {}", name(action.target()))
}

/// What became of one object, in one line.
pub(super) fn outcome(target: &Target, outcome: &Outcome) -> String {
    let name = name(target);
    match outcome {
        Outcome::Deleted => format!("{name}: deleted"),
        Outcome::Noted => format!("{name}: noted that its project is gone"),
        Outcome::Left(why) => format!("{name}: left, {why}"),
    }
}

/// The whole report. `done` is absent where nothing was to be deleted.
pub(super) fn json(server: &str, rows: &[Row], done: Option<&[(Target, Outcome)]>) -> Value {
    let about =
        |target: &Target| json!({ "namespace": target.namespace, "kind": target.kind.kind, "name": target.name });
    let rows = rows.iter().map(|row| {
        let mut value = about(&row.target);
        value["project"] = json!(row.project);
        value["verdict"] = json!(row.orphan_state.word());
        value["why"] = json!(row.why);
        value["created"] = json!(row.created.map(|time| time.to_string()));
        value
    });
    let mut report = json!({ "server": server, "objects": rows.collect::<Vec<_>>() });
    if let Some(done) = done {
        let done = done.iter().map(|(target, outcome)| {
            let mut value = about(target);
            let (word, why) = match outcome {
                Outcome::Deleted => ("deleted", None),
                Outcome::Noted => ("noted", None),
                Outcome::Left(why) => ("left", Some(why)),
            };
            value["outcome"] = json!(word);
            value["why"] = json!(why);
            value
        });
        report["done"] = json!(done.collect::<Vec<_>>());
    }
    report
}

#[cfg(test)]
mod tests;
