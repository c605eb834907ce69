//! The deletion guard: a wrong first look after a start or a relist, or a plane that was restored from an old backup, must not
//! delete everything.
//!
//! Every difference counts, not only the first after a list: before a delete that the guard counts, the runtime tallies the
//! plans of all keys and asks. A small difference lets go as many deletes as it has, and then is asked for again, so that it
//! opens nothing for a large one after it. What a user did is confirmed by proofs ([`crate::plan::DeletionGuard::Unless`]) and
//! never asked about, and neither is [`crate::plan::DeletionGuard::Exempt`].
//!
//! Why: `docs/decisions/22-proofs-and-deletion-guard.md`.

use std::collections::{BTreeSet, HashMap};

use popcell_api::annotations::MASS_DELETE_ALLOW;
use popcell_api::kind::{Kind, PROJECT};

use crate::plan::{Action, Delete, DeletionGuard, Plan, Plane, Proof};

/// More than so many deletes, and more than half of ours, are held.
pub const FREE_DELETES: usize = 20;
/// In place of a kind, where all of a plane is held ([`DeletionGuards::rewound`]).
pub const ALL_KINDS: &str = "*";

/// What is to be done with the deletes of one (plane, kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardDecision {
    /// Send them.
    Go,
    /// Send none; `first` when this is news, to be reported once by event and metric.
    Hold {
        /// Whether the guard came on with this question.
        first: bool,
    },
}

/// How many deletes the guard would count, over all keys of a reconciler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Objects of ours.
    pub ours: usize,
    /// Those that plans would delete.
    pub to_delete: usize,
    /// Some keys could not be decided yet: there may be more.
    pub partial: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many deletes of the last difference may still go without a question.
    Watching(usize),
    /// A difference of so many deletes.
    Held(usize),
    /// So many deletes may go without a question: not more than were held, each sent twice. A difference that is small ends it
    /// before.
    Released(usize),
}

impl Default for State {
    fn default() -> Self {
        Self::Watching(0)
    }
}

/// The guards of all planes and kinds.
#[derive(Clone, Debug, Default)]
pub struct DeletionGuards {
    states: HashMap<(Plane, &'static str), State>,
    rewound: BTreeSet<Plane>,
}

impl DeletionGuards {
    /// The store of a plane and kind was relisted: what was let go or released was of the list before.
    pub fn relisted(&mut self, plane: &Plane, kind: Kind) {
        self.states.insert((plane.clone(), kind.kind), State::default());
    }

    /// The versions of a plane went back, as after the restore of a backup: nothing is deleted there, and nothing because of
    /// what it does not have, until that is released. Says whether this is news.
    pub fn rewound(&mut self, plane: &Plane) -> bool {
        self.rewound.insert(plane.clone())
    }

    /// Whether the versions of a plane went back, and that is not released.
    pub fn has_gone_back(&self, plane: &Plane) -> bool {
        self.rewound.contains(plane)
    }

    /// Whether a delete rests on a plane whose versions went back.
    pub fn is_rewound(&self, delete: &Delete) -> bool {
        let unless = match &delete.deletion_guard {
            DeletionGuard::Unless(proofs) => proofs.as_slice(),
            _ => &[],
        };
        let planes = delete.proofs.iter().chain(unless).filter_map(Proof::plane);
        !self.rewound.is_empty()
            && planes
                .chain([&delete.target.plane])
                .any(|plane| self.rewound.contains(plane))
    }

    /// A plane that left takes its guards along, but for that of [`Self::rewound`]: it may be back in a moment.
    pub fn left(&mut self, plane: &Plane) {
        self.states.retain(|(one, _), _| one != plane);
    }

    /// A plane has another owner from now on, or none: its earlier rewind no longer matters.
    pub fn forget(&mut self, plane: &Plane) {
        self.left(plane);
        self.rewound.remove(plane);
    }

    /// Whether a delete of a plane and kind needs no question, and is counted so: it is one of a difference that was small,
    /// or that was released.
    pub fn passes(&mut self, plane: &Plane, kind: Kind) -> bool {
        match self.states.get_mut(&(plane.clone(), kind.kind)) {
            Some(State::Watching(left) | State::Released(left)) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    /// Whether deletes of a plane and kind are held.
    pub fn is_held(&self, plane: &Plane, kind: Kind) -> bool {
        matches!(self.state(plane, kind), Some(State::Held(_)))
    }

    /// Whether deletes of a plane and kind were released, and are not done yet.
    pub fn is_released(&self, plane: &Plane, kind: Kind) -> bool {
        matches!(self.state(plane, kind), Some(State::Released(1..)))
    }

    fn state(&self, plane: &Plane, kind: Kind) -> Option<State> {
        self.states.get(&(plane.clone(), kind.kind)).copied()
    }

    /// Asks with the whole difference: how many objects of ours there are, and how many of them would be deleted.
    ///
    /// A guard that holds is asked again at each difference, and opens when the planes have recovered.
    pub fn judge(&mut self, plane: &Plane, kind: Kind, ours: usize, to_delete: usize) -> GuardDecision {
        let state = self.states.entry((plane.clone(), kind.kind)).or_default();
        match (*state, is_mass(kind, ours, to_delete)) {
            (State::Released(1..), true) => GuardDecision::Go,
            (before, true) => {
                *state = State::Held(to_delete);
                GuardDecision::Hold {
                    first: !matches!(before, State::Held(_)),
                }
            }
            (_, false) => {
                // The one that is asked about goes beside them. More than a few may be of another difference by then.
                *state = State::Watching(to_delete.saturating_sub(1).min(free(kind)));
                GuardDecision::Go
            }
        }
    }

    /// Opens guards that hold, once: all of them where the annotation `mass-delete` on our Lease says
    /// [`MASS_DELETE_ALLOW`], those of one plane where it names that ([`Plane`]'s `Display`). The caller takes the annotation
    /// away. Says which were held: none where the value names nothing that is.
    pub fn release(&mut self, value: &str) -> Vec<(Plane, &'static str)> {
        let is_meant = |plane: &Plane| value == MASS_DELETE_ALLOW || value == plane.to_string();
        let mut released = Vec::new();
        for ((plane, kind), state) in &mut self.states {
            if let State::Held(to_delete) = *state
                && is_meant(plane)
            {
                *state = State::Released(to_delete.saturating_mul(2));
                released.push((plane.clone(), *kind));
            }
        }
        let (meant, kept) = std::mem::take(&mut self.rewound).into_iter().partition(is_meant);
        self.rewound = kept;
        let meant: BTreeSet<Plane> = meant;
        released.extend(meant.into_iter().map(|plane| (plane, ALL_KINDS)));
        released
    }

    /// Planes and kinds whose guard holds.
    pub fn held(&self) -> impl Iterator<Item = (&Plane, &'static str)> {
        let held = |(_, state): &(_, &State)| matches!(state, State::Held(_));
        let held = self.states.iter().filter(held).map(|((plane, kind), _)| (plane, *kind));
        held.chain(self.rewound.iter().map(|plane| (plane, ALL_KINDS)))
    }
}

/// More than half of ours, and more than a few. Of projects one is many: its end is the end of all that it has. Those that a
/// user deleted are not counted to begin with ([`crate::recent_removals`], [`crate::orphans::count_projects`]).
pub fn is_mass(kind: Kind, ours: usize, to_delete: usize) -> bool {
    to_delete > free(kind) && to_delete.saturating_mul(2) > ours
}

fn free(kind: Kind) -> usize {
    if kind.kind == PROJECT.kind { 0 } else { FREE_DELETES }
}

/// Deletes in a plan that the guard counts, by plane and kind.
pub fn counted(plan: &Plan) -> impl Iterator<Item = (&Plane, &'static str)> {
    plan.actions.iter().filter_map(|action| match action {
        Action::Delete(delete)
            if matches!(delete.deletion_guard, DeletionGuard::Applies | DeletionGuard::Unless(_)) =>
        {
            Some((&delete.target.plane, delete.target.kind.kind))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use popcell_api::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};

    #[test]
    fn more_than_half_and_more_than_twenty_are_held() {
        for (ours, to_delete, held) in [
            (40, 20, false),
            (40, 21, true),
            (42, 21, false),
            (41, 21, true),
            (20, 20, false),
        ] {
            let mut deletion_guards = DeletionGuards::default();
            let verdict = deletion_guards.judge(&Plane::Hub, INSTANCE, ours, to_delete);
            assert_eq!(verdict != GuardDecision::Go, held, "{to_delete} of {ours}");
        }
    }

    #[test]
    fn a_mass_delete_is_held_until_it_is_released_or_the_planes_recover() {
        let hold = |first| GuardDecision::Hold { first };
        let mut deletion_guards = DeletionGuards::default();
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 0), GuardDecision::Go);
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 100), hold(true));
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 100), hold(false));
        assert_eq!(deletion_guards.held().count(), 1);
        assert!(deletion_guards.is_held(&Plane::Hub, INSTANCE) && !deletion_guards.is_held(&Plane::Cell, INSTANCE));
        // Another kind and another plane have guards of their own.
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, WORKLOAD_DEPLOYMENT, 100, 1),
            GuardDecision::Go
        );
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 1), GuardDecision::Go);
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 100), hold(true));
        assert_eq!(
            deletion_guards.release(MASS_DELETE_ALLOW),
            [(Plane::Hub, INSTANCE.kind)]
        );
        assert_eq!(deletion_guards.release(MASS_DELETE_ALLOW), []);
        assert!(deletion_guards.is_released(&Plane::Hub, INSTANCE));
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 100),
            GuardDecision::Go
        );
        assert!(deletion_guards.passes(&Plane::Hub, INSTANCE));
        // What was released is done: the next one is another.
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 30, 0), GuardDecision::Go);
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 30, 30), hold(true));
        deletion_guards.relisted(&Plane::Hub, INSTANCE);
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 30, 30), hold(true));
    }

    #[test]
    fn a_release_lets_go_what_was_held_and_no_more() {
        let mut deletion_guards = DeletionGuards::default();
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 60),
            GuardDecision::Hold { first: true }
        );
        deletion_guards.release(MASS_DELETE_ALLOW);
        // Nobody says meanwhile that the difference is small: a plane is unreachable.
        let passed = (0..500)
            .filter(|_| deletion_guards.passes(&Plane::Hub, INSTANCE))
            .count();
        assert_eq!(passed, 120, "each may have to be sent twice");
        assert!(!deletion_guards.is_released(&Plane::Hub, INSTANCE));
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 60),
            GuardDecision::Hold { first: true }
        );
    }

    #[test]
    fn a_small_difference_frees_its_own_deletes_and_no_others() {
        let mut deletion_guards = DeletionGuards::default();
        assert!(!deletion_guards.passes(&Plane::Hub, INSTANCE), "nobody has asked yet");
        assert_eq!(deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 3), GuardDecision::Go);
        let passed = (0..5).filter(|_| deletion_guards.passes(&Plane::Hub, INSTANCE)).count();
        assert_eq!(passed, 2, "the third is the one that was asked about");
        assert!(!deletion_guards.passes(&Plane::Cell, INSTANCE));
        // Many that are no more than half go in steps.
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, INSTANCE, 1000, 400),
            GuardDecision::Go
        );
        let passed = (0..400)
            .filter(|_| deletion_guards.passes(&Plane::Hub, INSTANCE))
            .count();
        assert_eq!(passed, FREE_DELETES);
        assert_eq!(
            deletion_guards.judge(&Plane::Hub, INSTANCE, 100, 100),
            GuardDecision::Hold { first: true }
        );
        assert!(!deletion_guards.passes(&Plane::Hub, INSTANCE));
    }

    #[test]
    fn of_projects_few_are_many() {
        for (ours, gone, held) in [
            (4, 4, true),
            (3, 3, true),
            (3, 1, false),
            (2, 1, false),
            (1, 1, true),
            (7, 4, true),
            (8, 4, false),
            (100, 50, false),
        ] {
            let verdict = DeletionGuards::default().judge(&Plane::Hub, PROJECT, ours, gone);
            assert_eq!(verdict != GuardDecision::Go, held, "{gone} of {ours}");
        }
    }

    #[test]
    fn a_plane_that_went_back_holds_all_that_rests_on_it_until_it_is_released() {
        let object = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a", "uid": "u" } })).unwrap();
        let gone = |plane| Proof::Gone {
            source: crate::plan::Target::cluster(&plane, INSTANCE, "a"),
            uid: None,
        };
        let delete =
            |proofs, deletion_guard| match Action::delete(&Plane::Hub, INSTANCE, &object, proofs, deletion_guard) {
                Action::Delete(delete) => delete,
                other => panic!("{other}"),
            };
        let (of_cell, unproven) = (
            delete(vec![gone(Plane::Cell)], DeletionGuard::Applies),
            delete(Vec::new(), DeletionGuard::Applies),
        );
        let unless = delete(Vec::new(), DeletionGuard::Unless(vec![gone(Plane::Cell)]));
        let mut deletion_guards = DeletionGuards::default();
        assert!(!deletion_guards.is_rewound(&of_cell));
        assert!(deletion_guards.rewound(&Plane::Cell) && !deletion_guards.rewound(&Plane::Cell));
        assert!(
            deletion_guards.is_rewound(&of_cell)
                && deletion_guards.is_rewound(&unless)
                && !deletion_guards.is_rewound(&unproven)
        );
        assert_eq!(deletion_guards.held().collect::<Vec<_>>(), [(&Plane::Cell, ALL_KINDS)]);
        assert_eq!(deletion_guards.release(MASS_DELETE_ALLOW), [(Plane::Cell, ALL_KINDS)]);
        assert!(!deletion_guards.is_rewound(&of_cell));
        assert!(deletion_guards.rewound(&Plane::Hub) && deletion_guards.is_rewound(&unproven));
        // It may be back in a moment, and is the same.
        deletion_guards.left(&Plane::Hub);
        assert!(deletion_guards.is_rewound(&unproven));
        deletion_guards.forget(&Plane::Hub);
        assert!(!deletion_guards.is_rewound(&unproven));
    }

    #[test]
    fn a_release_that_names_a_plane_opens_no_other() {
        let planes = [
            Plane::Hub,
            Plane::Project("a".to_owned()),
            Plane::Project("b".to_owned()),
        ];
        let held = |deletion_guards: &DeletionGuards| {
            let mut held: Vec<String> = deletion_guards
                .held()
                .map(|(plane, kind)| format!("{kind} in {plane}"))
                .collect();
            held.sort();
            held
        };
        let all = || {
            let mut deletion_guards = DeletionGuards::default();
            for plane in &planes {
                deletion_guards.judge(plane, INSTANCE, 100, 60);
                deletion_guards.rewound(plane);
            }
            deletion_guards
        };
        for (value, named, left) in [
            ("project a", "project a", ["hub", "project b"].as_slice()),
            ("hub", "hub", &["project a", "project b"]),
            (MASS_DELETE_ALLOW, "", &[]),
        ] {
            let mut deletion_guards = all();
            let released = deletion_guards.release(value);
            assert_eq!(released.len(), if named.is_empty() { 6 } else { 2 }, "{value}");
            assert!(
                released
                    .iter()
                    .all(|(plane, _)| named.is_empty() || plane.to_string() == named)
            );
            let expected =
                [INSTANCE.kind, ALL_KINDS].map(|kind| left.iter().map(move |plane| format!("{kind} in {plane}")));
            let mut expected: Vec<String> = expected.into_iter().flatten().collect();
            expected.sort();
            assert_eq!(held(&deletion_guards), expected, "{value}");
        }
        for unknown in ["", "a", "project", "project c", "cell", "Hub", "deny"] {
            let mut deletion_guards = all();
            assert_eq!(deletion_guards.release(unknown), [], "{unknown}");
            assert_eq!(held(&deletion_guards).len(), 6, "{unknown}");
        }
    }

    #[test]
    fn a_discovery_server_that_went_back_holds_what_is_deleted_for_the_end_of_a_project() {
        let object = serde_json::from_value(serde_json::json!({ "metadata": { "name": "a", "uid": "u" } })).unwrap();
        let project_gone = Proof::ProjectGone {
            project: "p".to_owned(),
            uid: "u".to_owned(),
        };
        let server = Proof::Server {
            project: "p".to_owned(),
            uid: "u".to_owned(),
        };
        let delete = |proof| match Action::delete(
            &Plane::Hub,
            INSTANCE,
            &object,
            vec![proof],
            DeletionGuard::With(PROJECT),
        ) {
            Action::Delete(delete) => delete,
            other => panic!("{other}"),
        };
        let mut deletion_guards = DeletionGuards::default();
        assert!(
            !deletion_guards.is_rewound(&delete(project_gone.clone()))
                && !deletion_guards.has_gone_back(&Plane::Discovery)
        );
        assert!(deletion_guards.rewound(&Plane::Discovery));
        assert!(
            deletion_guards.is_rewound(&delete(project_gone.clone()))
                && deletion_guards.has_gone_back(&Plane::Discovery)
        );
        assert!(
            !deletion_guards.is_rewound(&delete(server)),
            "that is asked of another server"
        );
        assert_eq!(
            deletion_guards.release(MASS_DELETE_ALLOW),
            [(Plane::Discovery, ALL_KINDS)]
        );
        assert!(!deletion_guards.is_rewound(&delete(project_gone)));
    }
}
