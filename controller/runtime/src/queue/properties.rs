//! What holds whatever happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use popcell_core::plan::Plane;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{AGEING, Backoff, Key, Queue, Requeue, Workers};

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    AddAfter(usize, u64),
    Pop,
    /// Ends the reconcile of one of those that run.
    End(usize, Requeue),
    Retire(usize),
    Pass(u64),
}

const KEYS: usize = 12;

/// Three projects with three objects each, one of the hub with three.
fn key(index: usize) -> Key {
    let name = format!("o{}", index % 3);
    Key::new(&plane(index / 3), "ns", &name)
}

fn plane(index: usize) -> Plane {
    if index == 3 {
        Plane::Hub
    } else {
        Plane::Project(format!("p{index}"))
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let requeue = prop_oneof![
        Just(Requeue::OnEvent),
        (0_u64..9).prop_map(|seconds| Requeue::After(Duration::from_secs(seconds))),
        Just(Requeue::WithBackoff(Backoff::TRANSIENT)),
        (0_u64..9).prop_map(|seconds| Requeue::Postponed(Duration::from_secs(seconds))),
    ];
    let step = prop_oneof![
        4 => (0..KEYS).prop_map(Step::Add),
        2 => (0..KEYS, 0_u64..9).prop_map(|(key, seconds)| Step::AddAfter(key, seconds)),
        5 => Just(Step::Pop),
        4 => (0..KEYS, requeue).prop_map(|(reconcile, requeue)| Step::End(reconcile, requeue)),
        1 => (0_usize..4).prop_map(Step::Retire),
        2 => (0_u64..9).prop_map(Step::Pass),
    ];
    proptest::collection::vec(step, 0..200)
}

/// Which keys must get a reconcile at the latest when, as far as the queue was told.
#[derive(Default)]
struct Model {
    wanted: BTreeMap<Key, Instant>,
    running: BTreeSet<Key>,
    retired: BTreeSet<Key>,
}

impl Model {
    fn want(&mut self, key: Key, at: Instant) {
        let time = self.wanted.entry(key).or_insert(at);
        *time = at.min(*time);
    }
}

proptest! {
    #[test]
    fn no_key_is_lost_and_none_has_two_reconciles_at_once(
        steps in steps(),
        total in 1_usize..5,
        share in 1_usize..5,
    ) {
        let mut now = Instant::now();
        let mut queue = Queue::new(Workers { total, share });
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Add(index) => {
                    queue.add(key(index), now);
                    model.want(key(index), now);
                }
                Step::AddAfter(index, seconds) => {
                    let at = now + Duration::from_secs(seconds);
                    queue.add_at(key(index), at, now);
                    model.want(key(index), at);
                }
                Step::Pop => {
                    if let Some(popped) = queue.pop(now) {
                        prop_assert!(model.running.insert(popped.as_ref().clone()), "{popped} twice at once");
                        prop_assert!(model.running.len() <= total);
                        let mine = model.running.iter().filter(|each| each.tenant() == popped.tenant()).count();
                        prop_assert!(mine <= share);
                        model.wanted.remove(&popped);
                    }
                }
                Step::End(reconcile, requeue) => {
                    let Some(ended) = model.running.iter().nth(reconcile % model.running.len().max(1)).cloned() else {
                        continue;
                    };
                    queue.done(&ended, requeue, now);
                    model.running.remove(&ended);
                    let retired = model.retired.remove(&ended);
                    match requeue {
                        Requeue::After(delay) | Requeue::Postponed(delay) if !retired => model.want(ended, now + delay),
                        // At the latest after the longest rest, also what was asked for during the reconcile.
                        Requeue::WithBackoff(backoff) => {
                            let asked = model.wanted.remove(&ended).is_some();
                            if asked || !retired {
                                model.want(ended, now + backoff.cap.max(Duration::from_secs(9)));
                            }
                        }
                        _ => {}
                    }
                }
                Step::Retire(index) => {
                    queue.retire(&plane(index));
                    model.wanted.retain(|key, _| key.plane != plane(index));
                    let running = model.running.iter().filter(|key| key.plane == plane(index));
                    model.retired.extend(running.cloned());
                }
                Step::Pass(seconds) => now += Duration::from_secs(seconds),
            }
        }
        for ended in std::mem::take(&mut model.running) {
            queue.done(&ended, Requeue::OnEvent, now);
        }
        now += Backoff::TRANSIENT.cap + Duration::from_secs(9);
        let mut seen = BTreeSet::new();
        while let Some(popped) = queue.pop(now) {
            prop_assert!(seen.insert(popped.as_ref().clone()), "{popped} is held twice");
            queue.done(&popped, Requeue::OnEvent, now);
        }
        for lost in model.wanted.keys() {
            prop_assert!(seen.contains(lost), "{lost} is lost");
        }
        let stats = queue.stats(now);
        prop_assert_eq!((stats.depth, stats.waiting, stats.running), (0, 0, 0));
        prop_assert_eq!((stats.oldest, stats.unfinished), (Duration::ZERO, Duration::ZERO));
        prop_assert_eq!(stats.waited.count(), stats.worked.count());
        // Those that are retired while they are ready get no reconcile.
        prop_assert!(stats.waited.count() <= stats.adds && stats.retries <= stats.worked.count());
    }

    #[test]
    fn a_flood_delays_others_by_a_bounded_number_of_reconciles(
        flood in 1_usize..400,
        others in 0_usize..20,
        warm_up in 0_usize..9,
    ) {
        let now = Instant::now();
        let mut queue = Queue::new(Workers { total: 1, share: 1 });
        for index in 0..flood {
            queue.add(Key::new(&Plane::Project("flood".to_owned()), "ns", &index.to_string()), now);
        }
        for index in 0..others {
            queue.add(Key::new(&Plane::Project(format!("other{index}")), "ns", "o"), now);
        }
        for _ in 0..warm_up {
            if let Some(popped) = queue.pop(now) {
                queue.done(&popped, Requeue::OnEvent, now);
            }
        }
        let quiet = Key::new(&Plane::Project("unchanged".to_owned()), "ns", "o");
        queue.add(quiet.clone(), now);
        let mut reconciles = 0;
        while let Some(popped) = queue.pop(now) {
            reconciles += 1;
            let found = *popped == quiet;
            queue.done(&popped, Requeue::OnEvent, now);
            if found {
                break;
            }
        }
        // One round of the ring, in which each AGEING-th reconcile is the oldest key's.
        let (round, ageing) = (others + 2, usize::try_from(AGEING).unwrap());
        prop_assert!(reconciles <= round + round.div_ceil(ageing - 1), "{reconciles} reconciles, {round} tenants");
    }
}
