use serde_json::json;

use super::super::subject::tests::{engaged, noon, object, single, subject};
use super::*;

fn shown(subject: &Subject) -> Vec<(&'static str, String, &'static str)> {
    let rows = rows(subject, noon());
    rows.iter()
        .map(|row| (row.target.kind.kind, row.target.name.clone(), row.orphan_state.word()))
        .collect()
}

fn why(subject: &Subject) -> String {
    rows(subject, noon())
        .first()
        .map(|row| row.why.clone())
        .unwrap_or_default()
}

#[test]
fn a_deployment_that_the_project_has_no_longer_is_a_row() {
    assert_eq!(shown(&subject(engaged(Some("n1"), &["web"]))), []);
    let orphaned = subject(engaged(Some("n1"), &[]));
    assert_eq!(shown(&orphaned), [("WorkloadDeployment", "web".to_owned(), "orphan")]);
    let row = &rows(&orphaned, noon())[0];
    assert_eq!(
        (row.project.as_str(), row.target.namespace.as_deref()),
        ("p", Some("ns-n1"))
    );
    assert_eq!(row.created, Some("2026-01-01T10:00:00Z".parse().unwrap()));
    assert_eq!(row.why, "no such WorkloadDeployment in default of the project");
}

#[test]
fn the_namespace_stands_before_what_is_in_it() {
    let gone = subject(engaged(None, &[]));
    let kinds: Vec<_> = shown(&gone).into_iter().map(|(kind, ..)| kind).collect();
    assert_eq!(
        kinds,
        ["Namespace", "WorkloadDeployment", "Instance", "PropagationPolicy"]
    );
    assert_eq!(why(&gone), "namespace default of the project is gone");
    assert_eq!(
        why(&subject(engaged(Some("n2"), &[]))),
        "namespace default of the project was recreated"
    );
}

#[test]
fn a_project_that_is_unreachable_is_unknown_and_no_orphan() {
    let away = subject(Project::Unknown("project not reachable: 503".to_owned()));
    assert_eq!(
        shown(&away),
        [
            ("Namespace", "ns-n1".to_owned(), "unknown"),
            ("WorkloadDeployment", "web".to_owned(), "unknown")
        ]
    );
    assert_eq!(why(&away), "unknown: project not reachable: 503");
}

#[test]
fn what_another_server_does_not_have_is_kept_and_said() {
    let elsewhere = single(Some("s1"), "s2");
    let kept = |kind, name: &str| (kind, name.to_owned(), "kept");
    assert_eq!(
        shown(&elsewhere),
        [kept("Namespace", "ns-n1"), kept("WorkloadDeployment", "web")]
    );
    let said = why(&elsewhere);
    assert!(
        said.contains("upstream-server-uid is s1") && said.ends_with("has s2"),
        "{said}"
    );
    let unproven = single(None, "s2");
    assert_eq!(shown(&unproven), [kept("WorkloadDeployment", "web")]);
    assert!(why(&unproven).contains("no annotation"), "{}", why(&unproven));
}

#[test]
fn what_is_not_ours_is_kept_and_said() {
    let mut foreign = subject(engaged(None, &[]));
    foreign
        .deployments
        .push(object(&json!({ "name": "theirs", "namespace": "ns-n1" })));
    let rows = shown(&foreign);
    assert_eq!(rows[0], ("Namespace", "ns-n1".to_owned(), "kept"));
    assert!(why(&foreign).ends_with("it holds objects that are not ours"));
    assert!(!rows.iter().any(|(_, name, _)| name == "theirs"), "{rows:?}");
    // Of a project that is gone the decision names them.
    let mut gone = subject(Project::Gone);
    gone.copies
        .push(object(&json!({ "name": "theirs", "namespace": "ns-n1" })));
    assert!(shown(&gone).contains(&("Instance", "theirs".to_owned(), "kept")));
}

#[test]
fn a_project_that_is_gone_shows_since_when() {
    let mut gone = subject(Project::Gone);
    assert_eq!(why(&gone), "project p is gone, not noted yet");
    let notes = gone.namespace.metadata.annotations.get_or_insert_default();
    notes.insert(
        annotations::PROJECT_GONE_SINCE.to_owned(),
        "2026-01-01T11:00:00Z".to_owned(),
    );
    assert_eq!(why(&gone), "project p is gone, noted 2026-01-01T11:00:00Z");
    gone.namespace.metadata.annotations = None;
    assert!(why(&gone).ends_with("it does not say which Project it was for"));
}

#[test]
fn a_namespace_that_is_going_is_no_row() {
    let mut going = subject(engaged(None, &[]));
    going.namespace.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T11:00:00Z")).unwrap());
    assert_eq!(shown(&going), []);
}

#[test]
fn what_cannot_be_read_is_unknown_and_keeps_its_namespace() {
    let mut gone = subject(engaged(None, &[]));
    let target = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "odd");
    gone.unreadable = vec![(target, "no object".to_owned())];
    assert_eq!(
        shown(&gone),
        [
            ("Namespace", "ns-n1".to_owned(), "kept"),
            ("WorkloadDeployment", "web".to_owned(), "orphan"),
            ("Instance", "web-0".to_owned(), "orphan"),
            ("WorkloadDeployment", "odd".to_owned(), "unknown"),
        ]
    );
    assert!(
        why(&gone).ends_with("it holds objects that cannot be read"),
        "{}",
        why(&gone)
    );
}
