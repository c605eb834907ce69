//! Single calls: honest ones, crashes, limits and lies.

use std::time::{Duration, Instant};

use popcell_engine::{Call, Cause, Settings};
use popcell_protocol::{Aggregation, Answer, Change, Operation, PatchOp, Replicas, StatusItem};
use serde_json::value::RawValue;

use crate::fixture::{KIND, ask, kind, load, module, object, settings};

use Operation::{
    AggregateStatus, InterpretComponent, InterpretDependency, InterpretHealth, InterpretReplica, InterpretStatus,
    Retain, ReviseReplica,
};

#[test]
fn every_operation_is_answered() {
    let module = module(&settings());
    assert!(matches!(
        ask(&module, InterpretReplica, ""),
        Ok(Answer::Replicas(Replicas {
            replicas: 3,
            requirements: Some(_)
        }))
    ));
    assert!(matches!(ask(&module, InterpretComponent, ""), Ok(Answer::Components(parts)) if parts.len() == 2));
    assert!(matches!(ask(&module, ReviseReplica, ""), Ok(Answer::Change(Change::Patch(steps))) if steps.len() == 1));
    assert!(matches!(
        ask(&module, Retain, ""),
        Ok(Answer::Change(Change::Unchanged))
    ));
    assert!(matches!(ask(&module, InterpretHealth, ""), Ok(Answer::Health(true))));
    assert!(matches!(ask(&module, InterpretDependency, ""), Ok(Answer::Dependencies(all)) if all.len() == 1));
    let Ok(Answer::Status(status)) = ask(&module, InterpretStatus, "") else {
        panic!("no status")
    };
    assert_eq!(status.get(), r#"{"big":9007199254740993,"exact":1.10}"#);
}

#[test]
fn status_items_arrive() {
    let module = module(&settings());
    let (kind, object) = (kind(KIND), object(""));
    let status = RawValue::from_string("{}".into()).unwrap();
    let item = |name: &'static str| StatusItem {
        cluster_name: name.into(),
        status: Some(&status),
        applied: true,
        applied_message: "".into(),
        health: None,
    };
    let items = [item("dfw"), item("ord")];
    let call = Call {
        items: &items,
        ..Call::new(AggregateStatus, &kind, &object)
    };
    let Ok(Answer::Aggregation(Aggregation {
        change: Change::Patch(steps),
        left_out: 0,
    })) = module.call(&call, Duration::from_secs(5))
    else {
        panic!("no patch")
    };
    let [PatchOp::Add { path, value }] = steps.as_slice() else {
        panic!("{steps:?}")
    };
    assert_eq!(
        (path.as_str(), value.get()),
        ("/status", r#"{"clusters":["dfw","ord"]}"#)
    );
}

#[test]
fn what_an_aggregation_skipped_is_reported() {
    let module = module(&settings());
    assert!(matches!(
        ask(&module, AggregateStatus, "leave-out"),
        Ok(Answer::Aggregation(Aggregation { left_out: 3, .. }))
    ));
}

#[test]
fn the_five_causes_are_distinguished() {
    let (patient, hasty) = (module(&settings()), module(&hasty()));
    let cases = [
        ("loop", "deadline", "deadline of 200ms (--call-timeout"),
        ("trap", "trapped", "trapped in"),
        ("allocate", "memory", "more memory than 64 MiB (--max-memory)"),
        ("recurse", "stack", "stack overflow"),
        ("recurse-large", "stack", "stack overflow"),
        ("failed", "failed", "no such size"),
        ("undecided", "undecided", "undecided: the image cannot be pulled"),
        (
            "invalid",
            "invalid-object",
            "/spec/replicas: expected an integer, found \"two\"",
        ),
        ("unsupported", "unsupported", "does not implement"),
    ];
    for (behaviour, label, text) in cases {
        let module = if behaviour == "loop" { &hasty } else { &patient };
        let error = ask(module, InterpretHealth, behaviour).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.label(), label, "{behaviour}: {message}");
        assert!(
            message.starts_with("misbehaving@0.1.0 InterpretHealth Misbehaving ns/a: "),
            "{message}"
        );
        assert!(message.contains(text), "{behaviour}: {message} does not say {text}");
        assert!(message.len() <= 256);
    }
}

/// For a call that has no end: any other may need longer than this on a busy machine.
fn hasty() -> Settings {
    Settings {
        call_timeout: Duration::from_millis(200),
        ..settings()
    }
}

#[test]
fn a_limit_that_was_met_says_what_was_used() {
    let settings = settings();
    let cause = ask(&module(&hasty()), InterpretHealth, "loop").unwrap_err().cause;
    // A deadline is exact to ten milliseconds downwards; upwards it depends on how busy the machine is.
    assert!(
        matches!(cause, Cause::Deadline { limit, ran } if ran + Duration::from_millis(10) >= limit),
        "{cause:?}"
    );
    let cause = ask(&module(&settings), InterpretHealth, "allocate").unwrap_err().cause;
    assert!(
        matches!(cause, Cause::Memory { limit, asked } if limit == settings.max_memory && asked > limit),
        "{cause:?}"
    );
}

#[test]
fn a_trap_names_the_modules_function() {
    let error = ask(&module(&settings()), InterpretHealth, "trap").unwrap_err();
    let Cause::Trapped {
        function: Some(function),
        ..
    } = &error.cause
    else {
        panic!("{error:?}")
    };
    assert!(function.contains("give_up"), "{:?}", error.cause);
    assert!(!function.contains("::h"), "{function}");
}

#[test]
fn after_every_failure_the_next_call_is_served() {
    let settings = Settings {
        call_timeout: Duration::from_secs(2),
        ..settings()
    };
    let module = module(&settings);
    for behaviour in ["trap", "loop", "allocate", "recurse"] {
        assert!(ask(&module, InterpretHealth, behaviour).is_err());
        assert!(
            matches!(ask(&module, InterpretHealth, ""), Ok(Answer::Health(true))),
            "after {behaviour}"
        );
    }
}

#[test]
fn invalid_answers_are_refused_with_their_place() {
    let module = module(&settings());
    let cases = [
        (
            InterpretReplica,
            "lie-negative",
            "/replicas: must be 0 to 2147483647, is -1",
        ),
        (InterpretReplica, "lie-large", "/replicas: must be 0 to 2147483647"),
        (
            InterpretReplica,
            "lie-quantity",
            "/replicaRequirements/resourceRequest/cpu: \"lots\" is no Kubernetes quantity",
        ),
        (InterpretComponent, "lie-twice", "/components/1/name"),
        (
            ReviseReplica,
            "lie-parent",
            "/spec/none/replicas: the patch does not apply",
        ),
        (
            ReviseReplica,
            "lie-status",
            "/status/replicas: ReviseReplica may not touch it",
        ),
        (
            Retain,
            "lie-karmada",
            "/metadata/annotations/work.karmada.io~1name: Retain may not touch it",
        ),
        (Retain, "lie-name", "/metadata/name: Retain may not touch it"),
        (Retain, "lie-json", "/spec: is no JSON"),
        (
            AggregateStatus,
            "lie-spec",
            "/spec: AggregateStatus may not touch it: only /status",
        ),
        (
            InterpretStatus,
            "lie-scalar",
            "/rawStatus: must be a JSON object, is a number",
        ),
        (InterpretStatus, "lie-json", "/rawStatus: is no JSON"),
        (InterpretStatus, "lie-utf8", "/rawStatus: is not UTF-8"),
        (InterpretStatus, "lie-huge", "unreadable"),
        (
            InterpretDependency,
            "lie-nameless",
            "/dependencies/0: has neither name nor labelSelector",
        ),
    ];
    for (operation, lie, text) in cases {
        let error = ask(&module, operation, lie).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.label(), "refused-answer", "{lie}: {message}");
        assert!(
            message.starts_with(&format!(
                "misbehaving@0.1.0 {operation} Misbehaving ns/a: refused answer: "
            )),
            "{message}"
        );
        assert!(message.contains(text), "{lie}: {message} does not say {text}");
    }
}

#[test]
fn a_patch_that_takes_too_much_work_ends_within_the_call_timeout() {
    let settings = settings();
    let module = module(&settings);
    let list = format!(r#","spec":{{"list":[0{}]}}}}"#, ",0".repeat(699_999));
    let mut object = String::from_utf8(object("lie-inserts")).unwrap();
    object.truncate(object.len() - 1);
    object.push_str(&list);
    let kind = kind(KIND);
    let call = Call {
        observed: Some(b"{}"),
        ..Call::new(Retain, &kind, object.as_bytes())
    };
    let started = Instant::now();
    let error = module.call(&call, Duration::from_secs(30)).unwrap_err();
    assert!(started.elapsed() < settings.call_timeout, "{:?}", started.elapsed());
    assert_eq!(error.label(), "refused-answer", "{error}");
    assert!(error.to_string().contains("too much work"), "{error}");
}

#[test]
fn a_missing_operation_is_named() {
    let module = load("no-health").unwrap();
    let (kind, object) = (kind(KIND), object(""));
    let error = module
        .call(&Call::new(InterpretHealth, &kind, &object), Duration::from_secs(5))
        .unwrap_err();
    assert_eq!(error.label(), "unsupported");
    assert!(
        error
            .to_string()
            .starts_with("no-health@0.1.0 InterpretHealth Misbehaving: "),
        "{error}"
    );
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let error = ask(&module(&settings()), InterpretHealth, "failed-at-length").unwrap_err();
    let message = error.to_string();
    assert!(
        message.len() <= 256 && message.ends_with("...") && !message.contains('\n'),
        "{message}"
    );
}

#[test]
fn more_callers_than_instances_wait_for_their_turn() {
    let module = module(&settings());
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| (0..20).all(|_| matches!(ask(&module, InterpretHealth, ""), Ok(Answer::Health(true)))))
            })
            .collect();
        assert!(callers.into_iter().all(|caller| caller.join().unwrap()));
    });
}
