//! How Projects ended: what a user deleted is distinguished from what is only missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use popcell_core::object::{Fields, Object};
use popcell_core::recent_removals::RemovalCause;
use tokio::time::Instant;

use super::change::Change;
use crate::sync::lock;

/// How long an end is remembered: by then it is noted on the hub.
const REMEMBERED: Duration = Duration::from_hours(24);

/// Id and uid.
type Who = (String, String);

#[derive(Debug, Default)]
struct Seen {
    ended: BTreeMap<Who, (Instant, RemovalCause)>,
    /// Those that have just left the store: by a list, if it ends with the next event, or else by a watch.
    leaving: BTreeSet<Who>,
}

/// Ends of Projects that the discovery server has told of.
#[derive(Debug, Default)]
pub struct ProjectRemovals(Mutex<Seen>);

impl ProjectRemovals {
    /// Takes in an event.
    pub(crate) fn note(&self, change: &Change) {
        let mut seen = lock(&self.0);
        match change {
            Change::Applied { now, .. } if now.deleting() => seen.end(who(now), RemovalCause::Deleted),
            Change::Applied { now, .. } => {
                seen.ended.remove(&who(now));
            }
            Change::Gone { last: Some(last), .. } => {
                seen.leaving.insert(who(last));
            }
            Change::Listed | Change::Lost | Change::Cleared => seen.leaving.clear(),
            Change::Gone { last: None, .. } | Change::Unreadable { .. } => {}
        }
    }

    /// No list is being told of: what has left since was told by a watch.
    pub(super) fn settle(&self) {
        let mut seen = lock(&self.0);
        for who in std::mem::take(&mut seen.leaving) {
            if !seen.ended.contains_key(&who) {
                seen.end(who, RemovalCause::Reported);
            }
        }
    }

    /// How a Project that is not listed any more has ended.
    pub(super) fn cause(&self, id: &str, uid: Option<&str>) -> RemovalCause {
        let who = (id.to_owned(), uid.unwrap_or_default().to_owned());
        lock(&self.0)
            .ended
            .get(&who)
            .map_or(RemovalCause::Missing, |(_, cause)| *cause)
    }

    /// Whether the end of a Project was seen: it did not just vanish.
    pub fn has(&self, id: &str, uid: Option<&str>) -> bool {
        self.cause(id, uid) != RemovalCause::Missing
    }
}

impl Seen {
    fn end(&mut self, who: Who, cause: RemovalCause) {
        let now = Instant::now();
        self.ended
            .retain(|_, (since, _)| now.saturating_duration_since(*since) < REMEMBERED);
        self.ended.insert(who, (now, cause));
    }
}

fn who(project: &Object) -> Who {
    (project.name().to_owned(), project.uid().to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn project(id: &str, deleting: bool) -> Arc<Object> {
        let mut one = json!({ "metadata": { "name": id, "uid": "u" } });
        if deleting {
            one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(serde_json::from_value(one).unwrap())
    }

    fn applied(id: &str, deleting: bool) -> Change {
        Change::Applied {
            before: None,
            now: project(id, deleting),
        }
    }

    fn gone(id: &str) -> Change {
        Change::Gone {
            namespace: String::new(),
            name: id.to_owned(),
            last: Some(project(id, false)),
        }
    }

    #[test]
    fn ends_are_reported_by_a_deletion_a_watch_or_nothing() {
        use RemovalCause::{Deleted, Missing, Reported};
        for (what, changes, cause) in [
            (
                "by a list",
                vec![applied("p", false), gone("p"), Change::Listed],
                Missing,
            ),
            ("by a watch", vec![applied("p", false), gone("p")], Reported),
            (
                "by a watch, after a list",
                vec![gone("q"), Change::Listed, gone("p")],
                Reported,
            ),
            ("deleted", vec![applied("p", true), gone("p")], Deleted),
            (
                "deleted, and a list",
                vec![applied("p", true), gone("p"), Change::Listed],
                Deleted,
            ),
            (
                "back",
                vec![applied("p", true), applied("p", false), gone("p"), Change::Listed],
                Missing,
            ),
            ("never seen", vec![], Missing),
        ] {
            let project_removals = ProjectRemovals::default();
            for change in &changes {
                project_removals.note(change);
            }
            project_removals.settle();
            assert_eq!(project_removals.cause("p", Some("u")), cause, "{what}");
            assert_eq!(project_removals.has("p", Some("u")), cause != Missing, "{what}");
            assert!(
                !project_removals.has("p", Some("another")) && !project_removals.has("p", None),
                "{what}"
            );
        }
    }
}
