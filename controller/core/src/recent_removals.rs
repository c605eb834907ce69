//! Which projects there were lately: when many end at once, that is counted as a mass deletion is
//! ([`crate::deletion_guard`]).
//!
//! A discovery server that was restored from a backup, or a kubeconfig of another one, knows none of the projects; one whose
//! own controllers fail may take their readiness away one after the other. So what has left within [`LATELY`] counts with
//! what is to leave now. What a user deleted does not count, however many that is.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a project that has left counts.
pub const LATELY: Duration = Duration::from_mins(10);
/// So many projects may leave at the word of a watch, however few there are.
pub const FREE_PROJECTS: usize = 3;

/// How a project leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemovalCause {
    /// It had a deletionTimestamp when it was seen last: a user deleted it.
    Deleted,
    /// A watch has brought its end, or it is not Ready any more.
    Reported,
    /// A list does not have it, and nothing has said why.
    Missing,
}

/// Projects that have left, by id: when, on a clock that only goes forward, and how.
#[derive(Clone, Debug, Default)]
pub struct RecentRemovals {
    left: BTreeMap<String, (Duration, RemovalCause)>,
}

impl RecentRemovals {
    /// A project has left.
    pub fn left(&mut self, id: &str, cause: RemovalCause, now: Duration) {
        if cause != RemovalCause::Deleted {
            self.left.insert(id.to_owned(), (now, cause));
        }
    }

    /// These are there.
    pub fn there<'a>(&mut self, ids: impl Iterator<Item = &'a String>) {
        for id in ids {
            self.left.remove(id);
        }
    }

    /// How many projects there were lately, and how many of them will have left without a user's word. `engaged` counts those
    /// of `leaving` too.
    ///
    /// A few whose end was reported count as none: in a small installation that is everyday. One that is missing for no reason is
    /// not.
    pub fn difference(&mut self, engaged: usize, leaving: &[RemovalCause], now: Duration) -> (usize, usize) {
        self.left.retain(|_, (since, _)| now.saturating_sub(*since) < LATELY);
        let deleted = leaving.iter().filter(|cause| **cause == RemovalCause::Deleted).count();
        let ours = (engaged + self.left.len()).saturating_sub(deleted);
        let lately = self.left.values().map(|(_, cause)| *cause);
        let counted: Vec<RemovalCause> = lately
            .chain(leaving.iter().copied())
            .filter(|cause| *cause != RemovalCause::Deleted)
            .collect();
        if counted.len() <= FREE_PROJECTS && !counted.contains(&RemovalCause::Missing) {
            return (ours, 0);
        }
        (ours, counted.len())
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::PROJECT;

    use super::RemovalCause::{Deleted, Missing, Reported};
    use super::*;
    use crate::deletion_guard::is_mass;

    fn is_held(recent_removals: &mut RecentRemovals, engaged: usize, leaving: &[RemovalCause], now: Duration) -> bool {
        let (ours, to_delete) = recent_removals.difference(engaged, leaving, now);
        is_mass(PROJECT, ours, to_delete)
    }

    #[test]
    fn what_leaves_at_once_or_in_drops_is_the_same() {
        let start = Duration::ZERO;
        for cause in [Reported, Missing] {
            assert!(is_held(&mut RecentRemovals::default(), 100, &[cause; 100], start));
            assert!(!is_held(&mut RecentRemovals::default(), 100, &[cause; 50], start));
            // One after the other: the second half stays.
            let (mut recent_removals, mut engaged) = (RecentRemovals::default(), 100);
            for number in 0..100 {
                if is_held(&mut recent_removals, engaged, &[cause], start) {
                    break;
                }
                recent_removals.left(&format!("p-{number}"), cause, start);
                engaged -= 1;
            }
            assert_eq!(engaged, 50);
            // Those that are back count no more, and neither does what left long ago.
            let back: Vec<String> = (0..40).map(|number| format!("p-{number}")).collect();
            recent_removals.there(back.iter());
            assert!(!is_held(&mut recent_removals, 90, &[cause], start));
            assert_eq!(recent_removals.difference(90, &[Missing], LATELY), (90, 1));
        }
    }

    #[test]
    fn the_last_few_of_a_small_installation_may_go() {
        // Unless nothing says why: a discovery server that knows less than half of them may be another one.
        for (engaged, leaving, reported, missing) in [
            (1, 1, false, true),
            (2, 1, false, false),
            (2, 2, false, true),
            (3, 1, false, false),
            (3, 2, false, true),
            (3, 3, false, true),
            (4, 2, false, false),
            (4, 4, true, true),
            (8, 4, false, false),
            (7, 4, true, true),
        ] {
            for (cause, held) in [(Reported, reported), (Missing, missing), (Deleted, false)] {
                assert_eq!(
                    is_held(
                        &mut RecentRemovals::default(),
                        engaged,
                        &vec![cause; leaving],
                        Duration::ZERO
                    ),
                    held,
                    "{leaving} of {engaged} {cause:?}"
                );
            }
        }
    }

    #[test]
    fn what_a_user_deleted_counts_neither_for_nor_against_what_is_missing() {
        let now = Duration::ZERO;
        // Of ten, eight are deleted, and one of the two others is missing.
        let mut leaving = vec![Deleted; 8];
        assert!(!is_held(&mut RecentRemovals::default(), 10, &leaving, now));
        leaving.push(Missing);
        assert!(!is_held(&mut RecentRemovals::default(), 10, &leaving, now));
        leaving.push(Missing);
        assert!(is_held(&mut RecentRemovals::default(), 10, &leaving, now));
        // One that was deleted before is not there to be missed.
        let mut recent_removals = RecentRemovals::default();
        recent_removals.left("p", Deleted, now);
        assert_eq!(recent_removals.difference(2, &[Missing], now), (2, 1));
        // One whose end was reported makes the next that is missing one of two.
        recent_removals.left("q", Reported, now);
        assert!(is_held(&mut recent_removals, 2, &[Missing], now));
    }
}
