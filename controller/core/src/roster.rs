//! Which projects there were lately: when many end at once, that is counted as a mass deletion is ([`crate::brake`]).
//!
//! A discovery server that was restored from a backup, or a kubeconfig of another one, knows none of the projects; one whose
//! own controllers fail may take their readiness away one after the other. So what has left within [`LATELY`] counts with
//! what is to leave now.

use std::collections::BTreeMap;
use std::time::Duration;

/// How long a project that has left counts.
pub const LATELY: Duration = Duration::from_mins(10);

/// Projects that have left, by id, and when, on a clock that only goes forward.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    left: BTreeMap<String, Duration>,
}

impl Roster {
    /// A project has left.
    pub fn left(&mut self, id: &str, now: Duration) {
        self.left.insert(id.to_owned(), now);
    }

    /// These are there.
    pub fn there<'a>(&mut self, ids: impl Iterator<Item = &'a String>) {
        for id in ids {
            self.left.remove(id);
        }
    }

    /// How many projects there were lately, and how many of them will have left. `engaged` counts those of `leaving` too.
    pub fn difference(&mut self, engaged: usize, leaving: usize, now: Duration) -> (usize, usize) {
        self.left.retain(|_, since| now.saturating_sub(*since) < LATELY);
        let left = self.left.len();
        (engaged.saturating_add(left), leaving.saturating_add(left))
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::PROJECT;

    use super::*;
    use crate::brake::is_mass;

    fn is_held(roster: &mut Roster, engaged: usize, leaving: usize, now: Duration) -> bool {
        let (ours, doomed) = roster.difference(engaged, leaving, now);
        is_mass(PROJECT, ours, doomed)
    }

    #[test]
    fn what_leaves_at_once_or_in_drops_is_the_same() {
        let start = Duration::ZERO;
        assert!(is_held(&mut Roster::default(), 100, 100, start));
        assert!(!is_held(&mut Roster::default(), 100, 50, start));
        // One after the other: the second half stays.
        let (mut roster, mut engaged) = (Roster::default(), 100);
        for number in 0..100 {
            if is_held(&mut roster, engaged, 1, start) {
                break;
            }
            roster.left(&format!("p-{number}"), start);
            engaged -= 1;
        }
        assert_eq!(engaged, 50);
        // Those that are back count no more, and neither does what left long ago.
        let back: Vec<String> = (0..40).map(|number| format!("p-{number}")).collect();
        roster.there(back.iter());
        assert!(!is_held(&mut roster, 90, 1, start));
        assert_eq!(roster.difference(90, 1, LATELY), (90, 1));
    }

    #[test]
    fn the_last_few_of_a_small_installation_may_go() {
        for (engaged, leaving, held) in [(1, 1, false), (3, 3, false), (4, 4, true), (8, 4, false), (7, 4, true)] {
            assert_eq!(
                is_held(&mut Roster::default(), engaged, leaving, Duration::ZERO),
                held,
                "{leaving} of {engaged}"
            );
        }
    }
}
