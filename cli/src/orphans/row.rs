//! What the list says: one row for each orphan, and for each object whose project is unknown; and what became of them. Pure but
//! for the writing.

use std::{
    io::{self, Write},
    iter,
};

use jiff::Timestamp;
use popcell_api::{annotations, kind};
use popcell_core::{
    identity,
    object::{Fields as _, Object},
    plan::{Action, NAMESPACE, Plane, Target},
};
use serde_json::{Value, json};

use super::{
    planes::Outcome,
    subject::{Project, Standing, Subject},
};
use crate::console::{address, age, write_table};

/// One object of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// The object on the hub.
    pub(super) target: Target,
    /// Id of its project; empty where nothing says it.
    pub(super) project: String,
    /// What it is.
    pub(super) orphan_state: OrphanState,
    /// Why, for people.
    pub(super) why: String,
    /// When it was created.
    pub(super) created: Option<Timestamp>,
}

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrphanState {
    /// It is orphaned.
    Orphan,
    /// It is orphaned, and it is never deleted: nothing proves that it is ours.
    Kept,
    /// Unknown.
    Unknown,
}

impl OrphanState {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Orphan => "orphan",
            Self::Kept => "kept",
            Self::Unknown => "unknown",
        }
    }
}

/// Rows of one hub namespace, and of what in it cannot be read.
pub(super) fn rows(subject: &Subject, now: Timestamp) -> Vec<Row> {
    let project = subject.owner().0;
    let strange = subject.unreadable.iter();
    let strange = strange.map(|(target, why)| unreadable(target.clone(), project, why));
    readable(subject, now).into_iter().chain(strange).collect()
}

/// The meaning of an unreadable object is unknown.
pub(super) fn unreadable(target: Target, project: &str, why: &str) -> Row {
    Row {
        target,
        project: project.to_owned(),
        orphan_state: OrphanState::Unknown,
        why: format!("unknown: it cannot be read: {why}"),
        created: None,
    }
}

fn readable(subject: &Subject, now: Timestamp) -> Vec<Row> {
    if subject.namespace.deleting() {
        return Vec::new();
    }
    let row = |target: &Target, orphan_state, why: String| Row {
        target: target.clone(),
        project: subject.owner().0.to_owned(),
        orphan_state,
        why,
        created: subject.created(target),
    };
    let own = Target::of(&Plane::Hub, NAMESPACE, &subject.namespace);
    let marked = subject.deployments.iter().filter(|one| one.marked());
    let of_marked = |one: &Object| Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, one);
    if let Project::Unknown(reason) = &subject.project {
        let why = format!("unknown: {reason}");
        let all = iter::once(own).chain(marked.filter(|one| !one.deleting()).map(of_marked));
        return all
            .map(|target| row(&target, OrphanState::Unknown, why.clone()))
            .collect();
    }
    let why = why(subject);
    if subject.standing() == Standing::Elsewhere {
        let all = iter::once(own).chain(marked.map(of_marked));
        return all.map(|target| row(&target, OrphanState::Kept, why.clone())).collect();
    }
    let foreseen = subject.foresee(now);
    let mut rows: Vec<Row> = foreseen
        .to_delete
        .iter()
        .map(|target| row(target, OrphanState::Orphan, why.clone()))
        .collect();
    for target in &foreseen.stays {
        let why = if subject.standing() == Standing::Unproven {
            why.clone()
        } else if target.kind == NAMESPACE {
            format!("{why}; it does not say which Project it was for")
        } else {
            format!("{why}; it is not marked as ours")
        };
        rows.push(row(target, OrphanState::Kept, why));
    }
    let is_listed = rows.iter().any(|row| row.target == own);
    if !matches!(subject.standing(), Standing::Current | Standing::Unproven) && !is_listed {
        let holds = if subject.unreadable.is_empty() {
            "are not ours"
        } else {
            "cannot be read"
        };
        let why = format!("{why}; it holds objects that {holds}");
        rows.push(row(&own, OrphanState::Kept, why));
    }
    // The namespace first, as the frame of the rest.
    rows.sort_by_key(|row| row.target.kind != NAMESPACE);
    rows
}

/// Why the objects of a hub namespace are what they are, for people.
pub(super) fn why(subject: &Subject) -> String {
    let (project, namespace) = subject.owner();
    match (subject.standing(), &subject.project) {
        (Standing::Current, _) => format!("no such WorkloadDeployment in {namespace} of the project"),
        (Standing::Outlived, Project::Engaged { namespace: Some(_), .. }) => {
            format!("namespace {namespace} of the project was recreated")
        }
        (Standing::Outlived, _) => format!("namespace {namespace} of the project is gone"),
        (Standing::Unproven, _) => format!(
            "namespace {namespace} is not on the project's server, and no annotation {} says that this server had it",
            annotations::UPSTREAM_SERVER_UID
        ),
        (Standing::Elsewhere, _) => format!(
            "its project is on another server: its annotation {} is {}, the server of --project-kubeconfig has {}",
            annotations::UPSTREAM_SERVER_UID,
            identity::server_of(&subject.namespace).unwrap_or_default(),
            subject.server()
        ),
        (Standing::Gone, state) => {
            let what = match state {
                Project::Engaged { .. } => "was recreated",
                _ => "is gone",
            };
            match subject.namespace.annotation(annotations::PROJECT_GONE_SINCE) {
                Some(since) => format!("project {project} {what}, noted {since}"),
                None => format!("project {project} {what}, not noted yet"),
            }
        }
        (Standing::Unknown, _) => "unknown".to_owned(),
    }
}

const HEADS: [&str; 6] = ["NAMESPACE", "KIND", "NAME", "PROJECT", "AGE", "WHY"];

/// Every row; nothing when there is none.
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
    write_table(&lines, out)
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
mod print_tests;
#[cfg(test)]
mod tests;
