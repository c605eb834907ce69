use super::*;
use crate::plan::CONFIG_MAP;
use crate::testing::{FakeServers, now, object};

const PROGRAM: &str = "popcell-system";

fn servers(data: Value) -> FakeServers {
    let mut servers = FakeServers::default();
    let record = json!({ "metadata": { "name": "popcell-claim-projects", "namespace": PROGRAM, "uid": "cm",
        "resourceVersion": "1" }, "data": data });
    servers.put(&Plane::Cell, CONFIG_MAP, object(record));
    servers
}

fn found(servers: &FakeServers) -> Option<&Object> {
    servers.get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects")
}

fn plan(servers: &FakeServers, needed: &[&str], mapped: &[&str], answers: &[(&str, Answer)], now: Timestamp) -> Plan {
    decide(&Observation {
        record: found(servers),
        namespace: PROGRAM,
        needed: &needed.iter().copied().collect(),
        mapped: &mapped.iter().copied().collect(),
        answers: &answers.iter().copied().collect(),
        now,
    })
}

fn data(servers: &FakeServers) -> Value {
    found(servers).map_or(json!(null), |record| record.data["data"].clone())
}

#[test]
fn a_project_leaves_the_record_only_after_an_empty_live_list() {
    for (answer, left) in [
        (Some(Answer::Claims(false)), json!({ "b": "" })),
        (Some(Answer::Claims(true)), json!({ "a": "", "b": "" })),
        (None, json!({ "a": "", "b": "" })),
    ] {
        let mut servers = servers(json!({ "a": "", "b": "" }));
        let answers: Vec<_> = answer.map(|answer| ("a", answer)).into_iter().collect();
        servers.apply(&plan(&servers, &["b"], &["a", "b"], &answers, now()));
        assert_eq!(data(&servers), left, "{answer:?}");
    }
    // Whoever needs it keeps it, whatever the answer.
    let needed = servers(json!({ "a": "" }));
    let answers = [("a", Answer::Claims(false))];
    assert_eq!(plan(&needed, &["a"], &["a"], &answers, now()), Plan::default());
    assert_eq!(doubtful(found(&needed), &["a"].into()), [""; 0]);
    assert_eq!(doubtful(found(&needed), &["b"].into()), ["a"]);
}

#[test]
fn an_unknown_project_leaves_the_record_after_a_day_unless_a_namespace_names_it() {
    let mut servers = servers(json!({ "a": "" }));
    let gone = [("a", Answer::NotFound)];
    let first = plan(&servers, &[], &[], &gone, now());
    assert_eq!(first.requeue, Some(Duration::from_hours(1)));
    servers.apply(&first);
    assert_eq!(data(&servers), json!({ "a": "2026-01-01T00:10:00Z" }));
    let at = |time: &str| time.parse::<Timestamp>().unwrap();

    let nearly = plan(&servers, &[], &[], &gone, at("2026-01-01T23:40:00Z"));
    assert!(nearly.is_unchanged());
    assert_eq!(nearly.requeue, Some(Duration::from_mins(30)));
    let day = at("2026-01-02T00:10:00Z");
    assert!(plan(&servers, &[], &["a"], &gone, day).is_unchanged());
    // Nobody answers: that is no 404, and no end of one.
    assert_eq!(plan(&servers, &[], &[], &[], day), Plan::default());
    let mut back = servers.clone();
    back.apply(&plan(&back, &[], &[], &[("a", Answer::Claims(true))], day));
    assert_eq!(data(&back), json!({ "a": "" }));
    // A clock that went back.
    assert!(plan(&servers, &[], &[], &gone, at("2025-12-31T00:00:00Z")).is_unchanged());

    servers.apply(&plan(&servers, &[], &[], &gone, day));
    assert_eq!(data(&servers), json!({}));
}

#[test]
fn a_record_that_was_deleted_or_damaged_is_restored() {
    let mut servers = FakeServers::default();
    assert_eq!(plan(&servers, &[], &[], &[], now()), Plan::default());
    servers.apply(&plan(&servers, &["a", "b"], &["a"], &[], now()));
    assert_eq!(data(&servers), json!({ "a": "", "b": "" }));
    assert_eq!(plan(&servers, &["a", "b"], &["a"], &[], now()), Plan::default());
    for damaged in [json!(null), json!("x"), json!({}), json!({ "a": 7, "b": null })] {
        let mut servers = super::tests::servers(damaged.clone());
        servers.apply(&plan(&servers, &["a", "b"], &["a"], &[], now()));
        assert_eq!(data(&servers), json!({ "a": "", "b": "" }), "{damaged}");
    }
    // What is no project id is not asked for, and not ours to judge.
    let odd = super::tests::servers(json!({ "../x": "", "A": "" }));
    assert!(doubtful(found(&odd), &BTreeSet::new()).is_empty());
    assert_eq!(plan(&odd, &[], &[], &[], now()), Plan::default());
}
