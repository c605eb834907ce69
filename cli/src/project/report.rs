//! What became of each project, for people and for scripts. Pure but for the words.

use itertools::Itertools as _;
use serde_json::{Value, json};

use super::manifest::Manifest;
use crate::exit::Exit;

/// What became of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is new.
    Created,
    /// It was replaced.
    Changed,
    /// It was as it shall be.
    Unchanged,
    /// It is not ours to write.
    Refused(String),
    /// The server refused.
    Failed(String),
}

/// One object of a project.
#[derive(Clone, Debug)]
pub(super) struct Row {
    kind: &'static str,
    name: String,
    outcome: Outcome,
}

impl Row {
    pub(super) fn new(manifest: &Manifest, outcome: Outcome) -> Self {
        Self {
            kind: manifest.kind.kind,
            name: manifest.name.clone(),
            outcome,
        }
    }
}

/// What became of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// All of it is new there.
    Created,
    /// Something was written.
    Changed,
    /// Nothing was.
    Unchanged,
    /// It is being deleted, and needs nothing any more.
    Skipped,
    /// It lacks something that a retry alone does not bring.
    Refused(String),
    /// Its server refused, or could not be asked.
    Failed(String),
}

/// A project with its objects; those that nothing was tried with are not listed.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) id: String,
    pub(super) state: State,
    rows: Vec<Row>,
}

impl Report {
    /// Of a project where nothing was tried.
    pub(super) fn of(id: &str, state: State) -> Self {
        Self {
            id: id.to_owned(),
            state,
            rows: Vec::new(),
        }
    }

    /// Of a project and what became of its objects.
    pub(super) fn of_rows(id: &str, rows: Vec<Row>) -> Self {
        Self {
            id: id.to_owned(),
            state: state(&rows),
            rows,
        }
    }

    fn word(&self) -> &'static str {
        match self.state {
            State::Created => "created",
            State::Changed => "changed",
            State::Unchanged => "unchanged",
            State::Skipped => "skipped",
            State::Refused(_) => "refused",
            State::Failed(_) => "failed",
        }
    }

    fn why(&self) -> Option<&str> {
        match &self.state {
            State::Refused(why) | State::Failed(why) => Some(why),
            State::Skipped => Some("it is being deleted"),
            State::Created | State::Changed | State::Unchanged => None,
        }
    }

    /// One line, for people.
    pub(super) fn line(&self, dry_run: bool) -> String {
        let Self { id, .. } = self;
        let word = self.word();
        if let Some(why) = self.why() {
            // A server's words may be a tenant's, who shall not write lines about others.
            return format!("{id}: {word}: {}", why.replace(char::is_control, " "));
        }
        let would = if dry_run && self.state != State::Unchanged {
            "would be "
        } else {
            ""
        };
        let written = |outcome: &Outcome| {
            let of_outcome = self.rows.iter().filter(|row| row.outcome == *outcome);
            of_outcome.map(|row| format!("{} {}", row.kind, row.name)).join(", ")
        };
        match self.state {
            State::Changed => {
                let parts = [("created", Outcome::Created), ("changed", Outcome::Changed)];
                let parts = parts.map(|(word, outcome)| (word, written(&outcome)));
                let parts = parts.iter().filter(|(_, names)| !names.is_empty());
                let parts = parts.map(|(word, names)| format!("{word} {names}")).join("; ");
                format!("{id}: {would}{word}: {parts}")
            }
            _ => match self.rows.len() {
                1 => format!("{id}: {would}{word} (1 object)"),
                count => format!("{id}: {would}{word} ({count} objects)"),
            },
        }
    }

    fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let (word, why) = match &row.outcome {
                Outcome::Created => ("created", None),
                Outcome::Changed => ("changed", None),
                Outcome::Unchanged => ("unchanged", None),
                Outcome::Refused(why) => ("refused", Some(why)),
                Outcome::Failed(why) => ("failed", Some(why)),
            };
            json!({ "kind": row.kind, "name": row.name, "outcome": word, "why": why })
        });
        json!({ "id": self.id, "state": self.word(), "why": self.why(), "objects": rows.collect::<Vec<_>>() })
    }
}

fn state(rows: &[Row]) -> State {
    let address = |row: &Row| format!("{} {}", row.kind, row.name);
    let failed = rows.iter().find_map(|row| match &row.outcome {
        Outcome::Failed(why) => Some(State::Failed(format!("{}: {why}", address(row)))),
        _ => None,
    });
    if let Some(failed) = failed {
        return failed;
    }
    let mut refused = rows.iter().filter_map(|row| match &row.outcome {
        Outcome::Refused(why) => Some(format!("{} {why}", address(row))),
        _ => None,
    });
    let refused = refused.join("; ");
    let are = |outcome: &Outcome| rows.iter().all(|row| row.outcome == *outcome);
    if !refused.is_empty() {
        State::Refused(refused)
    } else if are(&Outcome::Unchanged) {
        State::Unchanged
    } else if are(&Outcome::Created) {
        State::Created
    } else {
        State::Changed
    }
}

/// How many projects there are of each.
pub(super) fn summary(reports: &[Report]) -> String {
    let words = ["created", "changed", "unchanged", "refused", "failed", "skipped"];
    let counts = words.map(|word| (word, reports.iter().filter(|one| one.word() == word).count()));
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts = counts.map(|(word, count)| format!("{count} {word}")).join(", ");
    let separator = if counts.is_empty() { "" } else { ": " };
    format!("{} projects{separator}{counts}", reports.len())
}

/// The whole report.
pub(super) fn json(reports: &[Report], dry_run: bool) -> Value {
    json!({ "dryRun": dry_run, "projects": reports.iter().map(Report::json).collect::<Vec<_>>() })
}

/// A project that was refused is a failed check; one that failed is a failed cluster.
pub(super) fn exit(reports: &[Report]) -> Exit {
    let has = |test: fn(&State) -> bool| reports.iter().any(|one| test(&one.state));
    if has(|state| matches!(state, State::Refused(_))) {
        Exit::Failed
    } else if has(|state| matches!(state, State::Failed(_))) {
        Exit::Environment
    } else {
        Exit::Success
    }
}
