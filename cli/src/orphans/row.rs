//! What the list says: one row for each orphan, and for each object whose project is unknown. Pure.

use jiff::Timestamp;
use popcell_api::{annotations, kind};
use popcell_core::{
    identity,
    object::Fields as _,
    plan::{NAMESPACE, Plane, Target},
};

use super::subject::{Project, Standing, Subject};

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
    let mut rows = readable(subject, now);
    let project = subject.owner().0;
    rows.extend(
        subject
            .unreadable
            .iter()
            .map(|(target, why)| unreadable(target.clone(), project, why)),
    );
    rows
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
    if let Project::Unknown(reason) = &subject.project {
        let marked = subject.deployments.iter().filter(|one| one.marked() && !one.deleting());
        let marked = marked.map(|one| Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, one));
        let all = std::iter::once(own).chain(marked);
        return all
            .map(|target| row(&target, OrphanState::Unknown, format!("unknown: {reason}")))
            .collect();
    }
    let why = why(subject);
    if subject.standing() == Standing::Elsewhere {
        let marked = subject.deployments.iter().filter(|one| one.marked());
        let marked = marked.map(|one| Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, one));
        let all = std::iter::once(own).chain(marked);
        return all.map(|target| row(&target, OrphanState::Kept, why.clone())).collect();
    }
    let foreseen = subject.foresee(now);
    let mut rows: Vec<Row> = foreseen
        .to_delete
        .iter()
        .map(|target| row(target, OrphanState::Orphan, why.clone()))
        .collect();
    let is_there = |rows: &[Row], target: &Target| rows.iter().any(|row| row.target == *target);
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
    if !matches!(subject.standing(), Standing::Current | Standing::Unproven) && !is_there(&rows, &own) {
        rows.push(row(
            &own,
            OrphanState::Kept,
            if subject.unreadable.is_empty() {
                format!("{why}; it holds objects that are not ours")
            } else {
                format!("{why}; it holds objects that cannot be read")
            },
        ));
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

#[cfg(test)]
mod tests;
