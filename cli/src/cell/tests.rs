use serde_json::{Value, json};

use super::*;

fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

fn cluster(id: &str, ready: &str) -> Object {
    object(json!({
        "metadata": { "name": "dfw-01" }, "spec": { "id": id },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    }))
}

fn leaving(mut cluster: Object) -> Object {
    cluster.metadata.deletion_timestamp = Some("2026-01-01T12:00:00Z".parse().map(time).unwrap());
    cluster
}

fn time(at: jiff::Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at)
}

fn record(keys: &[&str]) -> Object {
    let data: serde_json::Map<_, _> = keys
        .iter()
        .map(|key| ((*key).to_owned(), json!("2026-01-01T12:00:00Z")))
        .collect();
    object(json!({ "metadata": { "name": REMOVED_CELLS }, "data": data }))
}

fn course(key: Option<&str>, recorded: bool, cluster: Fate) -> Course {
    Course {
        key: key.map(str::to_owned),
        recorded,
        cluster,
    }
}

fn decided(
    cluster: Option<&Object>,
    record: Option<&Object>,
    given: Option<&str>,
    force: bool,
) -> Result<Course, Refusal> {
    decide(Seen {
        name: "dfw-01",
        given,
        force,
        cluster,
        record,
    })
}

#[test]
fn a_ready_cluster_is_removed_by_force_only() {
    let ready = cluster("k1", "True");
    assert_eq!(decided(Some(&ready), None, None, false), Err(Refusal::Ready));
    assert_eq!(decided(Some(&ready), None, Some("k1"), false), Err(Refusal::Ready));
    // Whether it is on its way out already, or was recorded before.
    assert_eq!(
        decided(Some(&leaving(ready.clone())), None, None, false),
        Err(Refusal::Ready)
    );
    assert_eq!(
        decided(Some(&ready), Some(&record(&["dfw-01_k1"])), None, false),
        Err(Refusal::Ready)
    );
    assert_eq!(
        decided(Some(&ready), None, None, true),
        Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
    );
    for away in ["False", "Unknown"] {
        let away = cluster("k1", away);
        assert_eq!(
            decided(Some(&away), None, None, false),
            Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
        );
    }
    let new = object(json!({ "metadata": { "name": "dfw-01" }, "spec": { "id": "k1" } }));
    assert_eq!(
        decided(Some(&new), None, None, false),
        Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
    );
}

#[test]
fn a_removal_can_be_repeated() {
    let away = cluster("k1", "Unknown");
    let ours = record(&["dfw-01_k1"]);
    assert_eq!(
        decided(Some(&away), Some(&ours), None, false),
        Ok(course(Some("dfw-01_k1"), true, Fate::Delete))
    );
    assert_eq!(
        decided(Some(&leaving(away.clone())), Some(&ours), None, false),
        Ok(course(Some("dfw-01_k1"), true, Fate::Leaving))
    );
    assert_eq!(
        decided(None, Some(&ours), None, false),
        Ok(course(Some("dfw-01_k1"), true, Fate::Gone))
    );
    // Another cell's entry says nothing of this one, whatever it has in common.
    for other in [
        record(&["ord_k1"]),
        record(&["dfw-01.a_k1"]),
        record(&["dfw_k1"]),
        record(&[]),
    ] {
        assert_eq!(
            decided(Some(&away), Some(&other), None, false),
            Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
        );
        assert_eq!(decided(None, Some(&other), None, false), Err(Refusal::Unknown));
    }
    // One of this name that was removed before is not the one that is there now.
    let former = record(&["dfw-01_k0"]);
    assert_eq!(
        decided(Some(&away), Some(&former), None, false),
        Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
    );
}

#[test]
fn a_cell_whose_cluster_is_gone_is_removed_by_its_id() {
    assert_eq!(decided(None, None, None, false), Err(Refusal::Unknown));
    assert_eq!(
        decided(None, None, Some("k1"), false),
        Ok(course(Some("dfw-01_k1"), false, Fate::Gone))
    );
    assert_eq!(
        decided(None, Some(&record(&["dfw-01_k0"])), Some("k1"), false),
        Ok(course(Some("dfw-01_k1"), false, Fate::Gone))
    );
}

#[test]
fn another_cell_that_has_the_name_now_is_not_touched() {
    for state in ["True", "False"] {
        let other = cluster("k2", state);
        assert_eq!(
            decided(Some(&other), None, Some("k1"), false),
            Ok(course(Some("dfw-01_k1"), false, Fate::Other))
        );
        assert_eq!(
            decided(Some(&other), None, Some("k1"), true),
            Ok(course(Some("dfw-01_k1"), false, Fate::Other))
        );
    }
}

#[test]
fn a_cluster_without_id_is_deleted_and_has_nothing_to_record() {
    let unread = cluster("", "False");
    assert_eq!(
        decided(Some(&unread), None, None, false),
        Ok(course(None, false, Fate::Delete))
    );
    assert_eq!(
        decided(Some(&unread), Some(&record(&["dfw-01_k0"])), None, false),
        Ok(course(None, false, Fate::Delete))
    );
    assert_eq!(
        decided(Some(&unread), None, Some("k1"), false),
        Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
    );
}

#[test]
fn a_record_of_any_shape_is_read() {
    let away = cluster("k1", "Unknown");
    for odd in [json!(null), json!([]), json!("dfw-01_k1"), json!({ "nonsense": "x" })] {
        let odd = object(json!({ "metadata": { "name": REMOVED_CELLS }, "data": odd }));
        assert_eq!(
            decided(Some(&away), Some(&odd), None, false),
            Ok(course(Some("dfw-01_k1"), false, Fate::Delete))
        );
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let ready = Refusal::Ready.message("dfw-01", &[]);
    assert!(
        ready.contains("dfw-01 is Ready") && ready.contains("--force"),
        "{ready}"
    );
    let unknown = Refusal::Unknown.message("dfw", &["dfw-01".to_owned(), "ord".to_owned()]);
    assert!(
        unknown.contains("dfw-01, ord)") && unknown.contains("--id"),
        "{unknown}"
    );
    assert!(Refusal::Unknown.message("dfw", &[]).contains("are there: none)"));
}
