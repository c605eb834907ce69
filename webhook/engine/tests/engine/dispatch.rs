//! Requests on an async runtime: the fast path, the slots, and who gets room.

use std::sync::Arc;
use std::time::{Duration, Instant};

use popcell_engine::{CallResult, Dispatcher, Modules, Outcome, Path, Settings};
use popcell_protocol::{Answer, decode};

use crate::fixture::{engine, settings, wasm};

/// Long enough to leave the fast path on any machine: some tens of milliseconds.
const SLOW: &str = "spin-50000000";

fn dispatcher(settings: &Settings, variants: &[&str]) -> Arc<Dispatcher> {
    let engine = engine(settings);
    let modules = variants
        .iter()
        .map(|variant| engine.load(variant, &wasm(variant)).unwrap());
    Arc::new(Dispatcher::new(Arc::new(Modules::new(modules).unwrap()), settings).unwrap())
}

async fn ask(dispatcher: &Dispatcher, kind: &str, behaviour: &str, within: Duration) -> Outcome {
    let body = format!(
        r#"{{"request":{{"uid":"u","kind":{{"group":"tests.popcell.dev","version":"v1","kind":"{kind}"}},"name":"a","namespace":"ns","operation":"InterpretHealth","object":{{"metadata":{{"annotations":{{"tests.popcell.dev/behaviour":"{behaviour}"}}}}}}}}}}"#
    );
    dispatcher
        .interpret(&decode(body.as_bytes()).unwrap(), Instant::now() + within)
        .await
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn short_calls_stay_on_the_fast_path() {
    // A generous budget: this is about where a call runs, not about how fast the machine is.
    let settings = Settings {
        fast_budget: Duration::from_secs(1),
        ..settings()
    };
    let outcome = ask(
        &dispatcher(&settings, &["misbehaving"]),
        "Misbehaving",
        "",
        Duration::from_secs(5),
    )
    .await;
    assert!(
        matches!(outcome.result, CallResult::Answer(Answer::Health(true))),
        "{outcome:?}"
    );
    assert_eq!(outcome.path, Path::Fast);
    assert_eq!(outcome.queued, Duration::ZERO);
    assert_eq!(outcome.module.unwrap().label(), "misbehaving@0.1.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_calls_move_to_a_slot() {
    let dispatcher = dispatcher(&settings(), &["misbehaving"]);
    let outcome = ask(&dispatcher, "Misbehaving", SLOW, Duration::from_secs(20)).await;
    assert!(
        matches!(outcome.result, CallResult::Answer(Answer::Health(true))),
        "{outcome:?}"
    );
    assert_eq!(outcome.path, Path::Slow);
    assert_eq!(dispatcher.free_slots(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loop_is_the_modules_fault() {
    let settings = Settings {
        call_timeout: Duration::from_millis(300),
        ..settings()
    };
    let outcome = ask(
        &dispatcher(&settings, &["misbehaving"]),
        "Misbehaving",
        "loop",
        Duration::from_secs(10),
    )
    .await;
    let CallResult::Error(error) = outcome.result else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.label(), "deadline");
    assert!(error.to_string().contains("300ms"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_and_operations_without_a_module_are_refused_by_name() {
    let dispatcher = dispatcher(&settings(), &["no-health"]);
    for (kind, text) in [
        (
            "Misbehaving",
            "InterpretHealth Misbehaving ns/a: no module implements this operation",
        ),
        (
            "Unheard",
            "InterpretHealth Unheard ns/a: no module is loaded for this kind",
        ),
    ] {
        let outcome = ask(&dispatcher, kind, "", Duration::from_secs(5)).await;
        let CallResult::Error(error) = outcome.result else {
            panic!("{outcome:?}")
        };
        assert!(error.to_string().starts_with(text), "{error}");
        assert_eq!(error.label(), "no-module");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_free_slot_a_call_is_turned_away() {
    let settings = Settings {
        slots: 1,
        call_timeout: Duration::from_secs(20),
        ..settings()
    };
    let dispatcher = dispatcher(&settings, &["misbehaving"]);
    let holder = tokio::spawn({
        let dispatcher = Arc::clone(&dispatcher);
        async move { ask(&dispatcher, "Misbehaving", "loop", Duration::from_secs(20)).await }
    });
    until(|| dispatcher.free_slots() == 0).await;
    let outcome = ask(&dispatcher, "Misbehaving", SLOW, Duration::from_millis(400)).await;
    assert!(matches!(outcome.result, CallResult::Overloaded), "{outcome:?}");
    assert!(outcome.queued >= Duration::from_millis(50), "{outcome:?}");
    holder.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_not_blamed_for_time_it_did_not_get() {
    let dispatcher = dispatcher(&settings(), &["misbehaving"]);
    for within in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(60)] {
        let outcome = ask(&dispatcher, "Misbehaving", "loop", within).await;
        assert!(
            matches!(outcome.result, CallResult::Overloaded),
            "{within:?}: {outcome:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_given_up_frees_its_slot() {
    let settings = Settings {
        slots: 1,
        call_timeout: Duration::from_secs(30),
        ..settings()
    };
    let dispatcher = dispatcher(&settings, &["misbehaving"]);
    let holder = tokio::spawn({
        let dispatcher = Arc::clone(&dispatcher);
        async move { ask(&dispatcher, "Misbehaving", "loop", Duration::from_secs(30)).await }
    });
    until(|| dispatcher.free_slots() == 0).await;
    holder.abort();
    // The loop would hold the slot for 30 s; the test runner's patience is the limit here, not ours.
    until(|| dispatcher.free_slots() == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looping_calls_leave_room_for_other_kinds() {
    let settings = Settings {
        slots: 2,
        call_timeout: Duration::from_secs(10),
        ..settings()
    };
    let dispatcher = dispatcher(&settings, &["misbehaving", "other"]);
    let loops: Vec<_> = (0..8)
        .map(|_| {
            let dispatcher = Arc::clone(&dispatcher);
            tokio::spawn(async move { ask(&dispatcher, "Misbehaving", "loop", Duration::from_secs(40)).await })
        })
        .collect();
    until(|| dispatcher.free_slots() == 1).await;
    for behaviour in ["", SLOW, "", SLOW] {
        let outcome = ask(&dispatcher, "Other", behaviour, Duration::from_secs(20)).await;
        assert!(
            matches!(outcome.result, CallResult::Answer(_)),
            "{behaviour}: {outcome:?}"
        );
    }
    for looping in loops {
        looping.abort();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_is_answered_or_turned_away() {
    let dispatcher = dispatcher(&settings(), &["misbehaving"]);
    let calls: Vec<_> = (0..40)
        .map(|_| {
            let dispatcher = Arc::clone(&dispatcher);
            tokio::spawn(async move { ask(&dispatcher, "Misbehaving", SLOW, Duration::from_secs(4)).await })
        })
        .collect();
    for call in calls {
        let outcome = call.await.unwrap();
        // How many of them find room depends on the machine; what the others hear does not.
        assert!(
            matches!(
                outcome.result,
                CallResult::Answer(Answer::Health(true)) | CallResult::Overloaded
            ),
            "{outcome:?}"
        );
    }
    assert_eq!(dispatcher.free_slots(), 2);
}
