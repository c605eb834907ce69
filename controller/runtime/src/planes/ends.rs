//! How Projects ended: what a user deleted is told from what is only missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use popcell_core::object::{Fields, Object};
use popcell_core::roster::Way;
use tokio::time::Instant;

use super::change::Change;
use crate::sync::lock;

/// How long an end is remembered: by then it is noted on the hub.
const REMEMBERED: Duration = Duration::from_hours(24);

/// Id and uid.
type Who = (String, String);

#[derive(Debug, Default)]
struct Seen {
    ended: BTreeMap<Who, (Instant, Way)>,
    /// Those that have just left the store: by a list, if it ends with the next event, or else by a watch.
    leaving: BTreeSet<Who>,
}

/// Ends of Projects that the discovery server has told of.
#[derive(Debug, Default)]
pub struct Ends(Mutex<Seen>);

impl Ends {
    /// Takes in an event.
    pub(crate) fn note(&self, change: &Change) {
        let mut seen = lock(&self.0);
        match change {
            Change::Applied { now, .. } if now.deleting() => seen.end(who(now), Way::Deleted),
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
                seen.end(who, Way::Told);
            }
        }
    }

    /// How a Project that is not listed any more has ended.
    pub(super) fn way(&self, id: &str, uid: Option<&str>) -> Way {
        let who = (id.to_owned(), uid.unwrap_or_default().to_owned());
        lock(&self.0).ended.get(&who).map_or(Way::Missing, |(_, way)| *way)
    }

    /// Whether the end of a Project was seen: it did not just vanish.
    pub fn has(&self, id: &str, uid: Option<&str>) -> bool {
        self.way(id, uid) != Way::Missing
    }
}

impl Seen {
    fn end(&mut self, who: Who, way: Way) {
        let now = Instant::now();
        self.ended
            .retain(|_, (since, _)| now.saturating_duration_since(*since) < REMEMBERED);
        self.ended.insert(who, (now, way));
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
    fn ends_are_told_by_a_deletion_a_watch_or_nothing() {
        use Way::{Deleted, Missing, Told};
        for (what, changes, way) in [
            (
                "by a list",
                vec![applied("p", false), gone("p"), Change::Listed],
                Missing,
            ),
            ("by a watch", vec![applied("p", false), gone("p")], Told),
            (
                "by a watch, after a list",
                vec![gone("q"), Change::Listed, gone("p")],
                Told,
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
            let ends = Ends::default();
            for change in &changes {
                ends.note(change);
            }
            ends.settle();
            assert_eq!(ends.way("p", Some("u")), way, "{what}");
            assert_eq!(ends.has("p", Some("u")), way != Missing, "{what}");
            assert!(!ends.has("p", Some("another")) && !ends.has("p", None), "{what}");
        }
    }
}
