//! What the queue does, case by case. Times are in seconds from the start.

use std::sync::Arc;
use std::time::Duration;

use popcell_core::deployment::{PROGRESS, PROGRESS_AT_MOST};
use popcell_core::plan::Plane;
use tokio::time::Instant;

use super::{Backoff, Key, Queue, RateLimit, Requeue, Workers};
use crate::planes::SINGLE;

const BACKOFF: Backoff = Backoff {
    first: Duration::from_secs(4),
    cap: Duration::from_secs(16),
};

/// A queue with a clock that the test moves.
struct Bench {
    queue: Queue,
    start: Instant,
    now: Instant,
}

impl Bench {
    fn new(total: usize, share: usize) -> Self {
        let start = Instant::now();
        Self {
            queue: Queue::new(Workers { total, share }),
            start,
            now: start,
        }
    }

    fn rate_limited(rate_limit: RateLimit) -> Self {
        let mut bench = Self::new(1, 1);
        bench.queue = Queue::rate_limited(Workers { total: 1, share: 1 }, Some(rate_limit));
        bench
    }

    fn at(&mut self, seconds: u64) -> &mut Self {
        self.now = self.start + Duration::from_secs(seconds);
        self
    }

    fn add(&mut self, key: &str) -> &mut Self {
        self.queue.add(parse(key), self.now);
        self
    }

    fn add_after(&mut self, key: &str, seconds: u64) -> &mut Self {
        self.queue
            .add_at(parse(key), self.now + Duration::from_secs(seconds), self.now);
        self
    }

    fn pop(&mut self) -> Option<String> {
        self.queue.pop(self.now).as_deref().map(show)
    }

    fn done(&mut self, key: &str, requeue: Requeue) -> &mut Self {
        self.queue.done(&parse(key), requeue, self.now);
        self
    }

    /// Reconciles one after the other, each of which is satisfied at once.
    fn drain(&mut self) -> Vec<String> {
        std::iter::from_fn(|| {
            let key = self.queue.pop(self.now)?;
            self.queue.done(&key, Requeue::OnEvent, self.now);
            Some(show(&key))
        })
        .collect()
    }
}

/// `p/a`: object a of project p; `@n/a`: object a of namespace n of the hub.
fn parse(text: &str) -> Key {
    let (tenant, name) = text.split_once('/').unwrap();
    match tenant.strip_prefix('@') {
        Some(namespace) => Key::new(&Plane::Hub, namespace, name),
        None => Key::new(&Plane::Project(tenant.to_owned()), "default", name),
    }
}

fn show(key: &Key) -> String {
    match &key.plane {
        Plane::Project(id) => format!("{id}/{}", key.name),
        _ => format!("@{}/{}", key.namespace, key.name),
    }
}

#[test]
fn a_key_is_held_once() {
    let mut bench = Bench::new(2, 2);
    bench.add("p/a").add("p/a").add_after("p/a", 5);
    assert_eq!(bench.drain(), ["p/a"]);
    assert_eq!(bench.at(10).pop(), None);
}

#[test]
fn a_key_that_is_asked_for_during_its_reconcile_gets_one_more_afterwards() {
    let mut bench = Bench::new(2, 2);
    bench.add("p/a");
    assert_eq!(bench.pop().as_deref(), Some("p/a"));
    bench.add("p/a").add("p/a");
    assert_eq!(bench.pop(), None, "two reconciles of one key at once");
    bench.done("p/a", Requeue::OnEvent);
    assert_eq!(bench.drain(), ["p/a"]);
}

#[test]
fn the_earliest_time_counts() {
    let mut bench = Bench::new(1, 1);
    bench.add_after("p/a", 9).add_after("p/a", 5).add_after("p/a", 7);
    assert_eq!(bench.at(4).pop(), None);
    assert_eq!(bench.queue.next_due(), Some(bench.start + Duration::from_secs(5)));
    assert_eq!(bench.at(5).pop().as_deref(), Some("p/a"));
    // What was asked for during the reconcile counts as well.
    bench.add_after("p/a", 3);
    bench.done("p/a", Requeue::After(Duration::from_secs(6)));
    assert_eq!(bench.at(7).pop(), None);
    assert_eq!(bench.at(8).pop().as_deref(), Some("p/a"));
    bench.done("p/a", Requeue::OnEvent);
    assert_eq!(bench.at(60).pop(), None, "the later time is forgotten");
}

#[test]
fn failures_in_a_row_double_the_rest_and_success_ends_it() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/a");
    let mut last = Duration::ZERO;
    for (failure, most) in [4, 8, 16, 16].into_iter().enumerate() {
        assert_eq!(bench.pop().as_deref(), Some("p/a"), "failure {failure}");
        bench.done("p/a", Requeue::WithBackoff(BACKOFF));
        let rest = bench.queue.next_due().unwrap() - bench.now;
        let most = Duration::from_secs(most);
        assert!(rest <= most && rest >= most * 3 / 4, "failure {failure}: {rest:?}");
        assert!(rest > last * 5 / 8);
        last = rest;
        bench.now += rest;
    }
    bench.pop();
    bench.done("p/a", Requeue::OnEvent).add("p/a").pop();
    bench.done("p/a", Requeue::WithBackoff(BACKOFF));
    assert!(bench.queue.next_due().unwrap() - bench.now <= BACKOFF.first);
}

#[test]
fn an_event_ends_the_rest_but_not_the_count_of_failures() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/a").pop();
    bench.done("p/a", Requeue::WithBackoff(BACKOFF)).add("p/a");
    assert_eq!(bench.pop().as_deref(), Some("p/a"));
    bench.done("p/a", Requeue::WithBackoff(BACKOFF));
    assert!(bench.queue.next_due().unwrap() - bench.now > BACKOFF.first);
}

#[test]
fn a_reconcile_that_was_not_begun_counts_neither_as_failure_nor_as_success() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/a").pop();
    bench.done("p/a", Requeue::WithBackoff(BACKOFF)).add("p/a").pop();
    bench.done("p/a", Requeue::Postponed(Duration::from_secs(2)));
    assert_eq!(bench.at(1).pop(), None);
    assert_eq!(bench.at(2).pop().as_deref(), Some("p/a"));
    bench.done("p/a", Requeue::WithBackoff(BACKOFF));
    let rest = bench.queue.next_due().unwrap() - bench.now;
    assert!(rest > BACKOFF.first && rest <= BACKOFF.first * 2, "{rest:?}");
}

#[test]
fn a_failing_reconcile_that_enqueues_itself_rests() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/a").pop();
    bench.add("p/a").done("p/a", Requeue::WithBackoff(BACKOFF));
    assert_eq!(bench.pop(), None);
    assert_eq!(bench.at(4).pop().as_deref(), Some("p/a"));
}

#[test]
fn turns_go_round_between_projects_and_namespaces_of_the_hub() {
    let mut bench = Bench::new(1, 1);
    for key in ["p/1", "p/2", "p/3", "@n/1", "@n/2", "q/1"] {
        bench.add(key);
    }
    // The fourth reconcile is for the oldest key, whoever's it is.
    assert_eq!(bench.drain(), ["p/1", "@n/1", "q/1", "p/2", "p/3", "@n/2"]);
}

#[test]
fn a_tenant_whose_reconciles_hang_leaves_workers_to_others() {
    let mut bench = Bench::new(4, 2);
    bench.add("hung/1").add("hung/2").add("hung/3").add("hung/4");
    assert_eq!(bench.pop().as_deref(), Some("hung/1"));
    assert_eq!(bench.pop().as_deref(), Some("hung/2"));
    assert_eq!(bench.pop(), None);
    bench.add("p/1").add("q/1").add("r/1");
    assert_eq!(bench.pop().as_deref(), Some("p/1"));
    assert_eq!(bench.pop().as_deref(), Some("q/1"));
    assert_eq!(bench.pop(), None, "four workers");
    bench.done("hung/1", Requeue::OnEvent);
    assert!(bench.pop().is_some());
}

#[test]
fn a_namespace_of_the_only_project_is_a_tenant() {
    let tenant = |plane: &Plane, namespace: &str| Key::new(plane, namespace, "a").tenant();
    let (only, one) = (Plane::Project(SINGLE.to_owned()), Plane::Project("p".to_owned()));
    assert_ne!(tenant(&only, "a"), tenant(&only, "b"));
    assert_eq!(tenant(&one, "a"), tenant(&one, "b"));
}

#[test]
fn a_plane_that_goes_takes_its_keys_along() {
    let mut bench = Bench::new(2, 2);
    bench.add("p/running").pop();
    bench.add("p/ready").add_after("p/waiting", 5).add("q/1");
    bench.queue.retire(&Plane::Project("p".to_owned()));
    bench.done("p/running", Requeue::WithBackoff(BACKOFF));
    assert_eq!(bench.at(60).drain(), ["q/1"]);
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.depth, stats.waiting, stats.running), (0, 0, 0));
}

#[test]
fn a_plane_that_comes_back_during_a_reconcile_waits_for_its_end() {
    let mut bench = Bench::new(2, 2);
    bench.add("p/a").pop();
    bench.queue.retire(&Plane::Project("p".to_owned()));
    bench.add("p/a");
    assert_eq!(bench.pop(), None, "two reconciles of one key at once");
    bench.done("p/a", Requeue::OnEvent);
    assert_eq!(bench.drain(), ["p/a"]);
}

#[test]
fn metrics_show_how_long_the_line_is() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/1").at(3).add("p/2").add_after("p/3", 9);
    bench.at(5);
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.depth, stats.waiting, stats.running), (2, 1, 0));
    assert_eq!(stats.oldest, Duration::from_secs(5));
    bench.pop();
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.depth, stats.waiting, stats.running), (1, 1, 1));
    assert_eq!(stats.oldest, Duration::from_secs(2));
}

#[test]
fn metrics_show_what_has_been_done() {
    let mut bench = Bench::new(2, 2);
    bench.add("p/1").add("p/1").add("q/1").at(2).pop();
    bench.at(3).pop();
    bench.at(8);
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.workers, stats.running, stats.adds),
        (2, 2, 2),
        "one key is added once"
    );
    assert_eq!(stats.longest, Duration::from_secs(6));
    assert_eq!(stats.unfinished, Duration::from_secs(11));
    assert_eq!((stats.waited.count(), stats.waited.sum()), (2, Duration::from_secs(5)));
    assert_eq!(stats.worked.count(), 0);

    bench.add("p/1").done("p/1", Requeue::OnEvent);
    bench.done("q/1", Requeue::WithBackoff(BACKOFF));
    let stats = bench.queue.stats(bench.now);
    assert_eq!(
        (stats.running, stats.longest, stats.unfinished),
        (0, Duration::ZERO, Duration::ZERO)
    );
    assert_eq!((stats.worked.count(), stats.worked.sum()), (2, Duration::from_secs(11)));
    assert_eq!(
        (stats.adds, stats.retries),
        (3, 1),
        "asked for during its reconcile; failed"
    );

    bench.at(20).pop();
    assert_eq!(bench.queue.stats(bench.now).adds, 4, "its rest is over");
}

#[test]
fn a_key_that_is_not_to_come_back_is_no_retry() {
    let mut bench = Bench::new(1, 1);
    bench.add("p/1").pop();
    bench.queue.retire(&Plane::Project("p".to_owned()));
    bench.done("p/1", Requeue::WithBackoff(BACKOFF));
    let stats = bench.queue.stats(bench.now);
    assert_eq!((stats.retries, stats.worked.count()), (0, 1));
}

#[test]
fn no_workers_means_one() {
    let mut bench = Bench::new(0, 0);
    assert_eq!(bench.add("p/1").drain(), ["p/1"]);
    let idle = Arc::new(parse("p/1"));
    bench.done(&show(&idle), Requeue::OnEvent);
    assert_eq!(bench.queue.stats(bench.now).running, 0);
}

#[test]
fn a_key_that_is_always_asked_for_comes_at_its_pace_and_holds_up_no_other() {
    let rate_limit = RateLimit {
        burst: 2,
        every: Duration::from_secs(10),
    };
    let mut bench = Bench::rate_limited(rate_limit);
    let mut reconciles = Vec::new();
    for second in 0..40 {
        bench.at(second).add("p/a");
        while let Some(key) = bench.pop() {
            reconciles.push((second, key.clone()));
            // Somebody writes whenever we did.
            bench.add(&key).done(&key, Requeue::OnEvent);
        }
    }
    let of_a: Vec<u64> = reconciles.iter().map(|(second, _)| *second).collect();
    assert_eq!(of_a, [0, 0, 10, 20, 30]);
    bench.at(41).add("p/b");
    assert_eq!(bench.pop().as_deref(), Some("p/b"));
}

#[tokio::test(start_paused = true)]
async fn progress_of_many_comes_one_after_the_other_and_what_is_urgent_at_once() {
    let mut bench = Bench::new(1, 1);
    let start = bench.now;
    let due = |bench: &Bench| bench.queue.next_due().map(|at| at - start);
    bench.queue.add_progress(parse("p/0"), start);
    assert_eq!(due(&bench), Some(PROGRESS), "one alone");
    for number in 0..5_000 {
        bench.queue.add_progress(parse(&format!("p/{number}")), start);
        // An event more of the same takes no turn of another.
        bench.queue.add_progress(parse("p/0"), start);
    }
    bench.queue.add_progress(parse("q/0"), start);
    let mut popped = Vec::new();
    for seconds in 1..=20 {
        bench.at(seconds);
        popped.push(bench.drain().len());
    }
    assert_eq!(popped[..3], [2, 50, 50], "another tenant does not wait for them");
    assert_eq!(
        popped.iter().sum::<usize>(),
        5_001,
        "none waits for longer than {PROGRESS_AT_MOST:?}"
    );
    // Later they are few again.
    bench.at(60);
    bench.queue.add_progress(parse("p/0"), bench.now);
    assert_eq!(due(&bench), Some(Duration::from_mins(1) + PROGRESS));
    bench.add("p/0");
    assert_eq!(bench.drain(), ["p/0"]);
}
