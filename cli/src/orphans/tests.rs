use popcell_api::kind;
use popcell_core::plan::Plane;

use super::*;

fn row(orphan_state: OrphanState) -> Row {
    Row {
        target: Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-1", "web"),
        project: "p".to_owned(),
        orphan_state,
        why: String::new(),
        created: None,
    }
}

#[test]
fn an_orphan_outweighs_a_project_that_is_unreachable() {
    assert_eq!(orphan_state(&[]), Exit::Success);
    assert_eq!(orphan_state(&[row(OrphanState::Unknown)]), Exit::Environment);
    assert_eq!(
        orphan_state(&[row(OrphanState::Unknown), row(OrphanState::Orphan)]),
        Exit::Failed
    );
    assert_eq!(orphan_state(&[row(OrphanState::Kept)]), Exit::Failed);
}

fn answered(text: &'static str) -> (bool, usize) {
    let mut console = Console {
        out: Box::new(std::io::sink()),
        err: Box::new(std::io::sink()),
        stdin: Box::new(text.as_bytes()),
    };
    let yes = confirmed(1, "https://hub", &mut console).unwrap();
    let mut rest = Vec::new();
    console.stdin.read_to_end(&mut rest).unwrap();
    (yes, rest.len())
}

#[test]
fn nothing_but_a_yes_is_one() {
    for yes in ["y\n", "Y\n", "yes\n", " yes \r\n", "y"] {
        assert!(answered(yes).0, "{yes:?}");
    }
    for no in ["\n", "", "n\n", "yeah\n", "no\nyes\n", "y e s\n"] {
        assert!(!answered(no).0, "{no:?}");
    }
    // The line, and nothing after it.
    assert_eq!(answered("y\nmore"), (true, 4));
}

#[test]
fn a_script_says_how_many_it_expects() {
    assert!(check_count(Some(28), 28).is_ok() && check_count(None, 28).is_ok());
    for (given, found) in [(0, 28), (27, 28), (29, 28)] {
        let Err(failure) = check_count(Some(given), found) else {
            panic!("{given}");
        };
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.to_string().ends_with("--yes=28"), "{failure}");
    }
}

#[test]
fn a_server_that_nothing_is_of_is_the_wrong_one() {
    use subject::tests::single;
    let wrong = |subjects: &[Subject]| wrong_server(subjects).is_some();
    assert!(!wrong(&[]));
    assert!(wrong(&[single(Some("s1"), "s2")]) && wrong(&[single(None, "s2")]));
    assert!(wrong(&[single(Some("s1"), "s2"), single(None, "s2")]));
    // A project that has moved has namespaces of both.
    assert!(!wrong(&[single(Some("s1"), "s2"), single(Some("s2"), "s2")]));
}

#[test]
fn a_number_of_projects_is_for_mode_milo() {
    assert!(matches!(doubt(None, None), Ok(None)));
    let Err(failure) = doubt(None, Some(1)) else { panic!() };
    assert!(
        failure.exit() == Exit::Usage && failure.to_string().contains("--mode milo"),
        "{failure}"
    );
}

#[test]
fn the_end_of_a_project_is_noted_only_where_something_of_it_was_agreed_to() {
    let subject = subject::tests::subject(subject::Project::Gone);
    let [note] = <[Action; 1]>::try_from(subject.plan(Duration::from_hours(1), Timestamp::now()).actions).unwrap();
    assert!(matches!(note, Action::Patch(_)), "{note}");
    let within = |namespace: &str| Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, namespace, "web");
    let of_namespace = |name: &str| Target::cluster(&Plane::Hub, popcell_core::plan::NAMESPACE, name);
    for (agreed, expected) in [
        (vec![], false),
        (vec![within("ns-other"), of_namespace("ns-other")], false),
        (vec![within("ns-n1")], true),
        (vec![of_namespace("ns-n1")], true),
    ] {
        assert_eq!(is_agreed(&note, &agreed), expected, "{agreed:?}");
    }
}

#[test]
fn an_outcome_is_reported_once_until_it_changes() {
    let target = row(OrphanState::Orphan).target;
    let mut done = Vec::new();
    let left = Outcome::Left("it has changed".to_owned());
    assert!(keep(&mut done, &target, &left));
    assert!(!keep(&mut done, &target, &left));
    assert!(keep(&mut done, &target, &Outcome::Deleted));
    assert_eq!(done, [(target, Outcome::Deleted)]);
}
