//! The brake on mass deletion (design.md 7.4): a wrong first look after a start or a relist must not delete the world.
//!
//! The runtime tells when a (plane, kind) was listed anew. Before the first delete there that the brake counts, it tallies
//! the plans of all keys and asks. Deletes that are [`crate::plan::Brake::Exempt`] are never asked about.

use std::collections::HashMap;

use popcell_api::kind::Kind;

use crate::plan::{Action, Brake, Plan, Plane};

/// More than so many deletes, and more than half of ours, are held.
pub const FREE_DELETES: usize = 20;

/// What is to be done with the deletes of one (plane, kind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send them.
    Go,
    /// Send none; `first` when this is news, to be told once by event and metric.
    Hold {
        /// Whether the brake came on with this question.
        first: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Fresh,
    Held,
    Free,
}

/// The brakes of all planes and kinds.
#[derive(Clone, Debug, Default)]
pub struct Brakes {
    states: HashMap<(Plane, &'static str), State>,
}

impl Brakes {
    /// The store of a plane and kind was listed anew: its first difference counts again.
    pub fn relisted(&mut self, plane: &Plane, kind: Kind) {
        self.states.insert((plane.clone(), kind.kind), State::Fresh);
    }

    /// A plane that left takes its brakes along.
    pub fn forget(&mut self, plane: &Plane) {
        self.states.retain(|(one, _), _| one != plane);
    }

    /// Whether deletes of a plane and kind need no question: their first difference was small, or was released.
    pub fn is_free(&self, plane: &Plane, kind: Kind) -> bool {
        self.states.get(&(plane.clone(), kind.kind)) == Some(&State::Free)
    }

    /// Whether deletes of a plane and kind are held.
    pub fn is_held(&self, plane: &Plane, kind: Kind) -> bool {
        self.states.get(&(plane.clone(), kind.kind)) == Some(&State::Held)
    }

    /// Asks with the whole difference: how many objects of ours there are, and how many of them would be deleted.
    ///
    /// A brake that holds is asked again at each difference, and opens when the world has recovered.
    pub fn judge(&mut self, plane: &Plane, kind: Kind, ours: usize, doomed: usize) -> Verdict {
        let state = self.states.entry((plane.clone(), kind.kind)).or_default();
        match (*state, is_mass(ours, doomed)) {
            (State::Free, _) => Verdict::Go,
            (State::Fresh, true) => {
                *state = State::Held;
                Verdict::Hold { first: true }
            }
            (State::Held, true) => Verdict::Hold { first: false },
            // No delete at all is no difference yet: the next one is still the first.
            (State::Fresh, false) if doomed == 0 => Verdict::Go,
            (State::Fresh | State::Held, false) => {
                *state = State::Free;
                Verdict::Go
            }
        }
    }

    /// Opens every brake that holds, once: annotation `mass-delete: allow` on our Lease. The caller takes the annotation
    /// away. Says which were held.
    pub fn release(&mut self) -> Vec<(Plane, &'static str)> {
        let held = self.states.iter_mut().filter(|(_, state)| **state == State::Held);
        held.map(|((plane, kind), state)| {
            *state = State::Free;
            (plane.clone(), *kind)
        })
        .collect()
    }

    /// Planes and kinds whose brake holds.
    pub fn held(&self) -> impl Iterator<Item = (&Plane, &'static str)> {
        let held = |(_, state): &(_, &State)| **state == State::Held;
        self.states.iter().filter(held).map(|((plane, kind), _)| (plane, *kind))
    }
}

/// More than half of ours, and more than a few.
pub fn is_mass(ours: usize, doomed: usize) -> bool {
    doomed > FREE_DELETES && doomed.saturating_mul(2) > ours
}

/// Deletes in a plan that the brake counts, by plane and kind.
pub fn counted(plan: &Plan) -> impl Iterator<Item = (&Plane, &'static str)> {
    plan.actions.iter().filter_map(|action| match action {
        Action::Delete(delete) if delete.brake == Brake::Applies => {
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
        for (ours, doomed, held) in [
            (40, 20, false),
            (40, 21, true),
            (42, 21, false),
            (41, 21, true),
            (20, 20, false),
        ] {
            let mut brakes = Brakes::default();
            let verdict = brakes.judge(&Plane::Hub, INSTANCE, ours, doomed);
            assert_eq!(verdict != Verdict::Go, held, "{doomed} of {ours}");
        }
    }

    #[test]
    fn c24_it_holds_until_it_is_released_or_the_world_recovers() {
        let hold = |first| Verdict::Hold { first };
        let mut brakes = Brakes::default();
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 0), Verdict::Go);
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 100), hold(true));
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 100), hold(false));
        assert_eq!(brakes.held().count(), 1);
        assert!(brakes.is_held(&Plane::Hub, INSTANCE) && !brakes.is_held(&Plane::Cell, INSTANCE));
        // Another kind and another plane have brakes of their own.
        assert_eq!(brakes.judge(&Plane::Hub, WORKLOAD_DEPLOYMENT, 100, 1), Verdict::Go);
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 1), Verdict::Go);
        assert!(brakes.is_free(&Plane::Hub, INSTANCE) && !brakes.is_free(&Plane::Cell, INSTANCE));
        // After the first difference a user may delete as much as he likes, until the next list.
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 100), Verdict::Go);
        brakes.relisted(&Plane::Hub, INSTANCE);
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 100), hold(true));
        assert_eq!(brakes.release(), [(Plane::Hub, INSTANCE.kind)]);
        assert_eq!(brakes.release(), []);
        assert_eq!(brakes.judge(&Plane::Hub, INSTANCE, 100, 100), Verdict::Go);
    }
}
