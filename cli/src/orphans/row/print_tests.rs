use popcell_api::kind;
use popcell_core::plan::{NAMESPACE, Plane};

use super::*;

fn rows() -> Vec<Row> {
    vec![
        Row {
            target: Target::cluster(&Plane::Hub, NAMESPACE, "ns-1"),
            project: String::new(),
            orphan_state: OrphanState::Unknown,
            why: "unknown: away".to_owned(),
            created: None,
        },
        Row {
            target: Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-1", "web-edge-dfw"),
            project: "p".to_owned(),
            orphan_state: OrphanState::Orphan,
            why: "gone".to_owned(),
            created: Some("2026-01-01T10:00:00Z".parse().unwrap()),
        },
    ]
}

fn noon() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

#[test]
fn columns_are_as_wide_as_their_cells() {
    let mut out = Vec::new();
    table(&rows(), noon(), &mut out).unwrap();
    let expected = "\
NAMESPACE  KIND                NAME          PROJECT  AGE  WHY
-          Namespace           ns-1          -        -    unknown: away
ns-1       WorkloadDeployment  web-edge-dfw  p        2h   gone
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    let mut nothing = Vec::new();
    table(&[], noon(), &mut nothing).unwrap();
    assert!(nothing.is_empty());
    assert_eq!(summary(&rows()), "1 orphans, 0 that are not ours to delete, 1 unknown");
}

#[test]
fn ages_have_one_unit() {
    let age_of = |created: &str| age(created.parse().ok(), noon());
    assert_eq!(age_of("2026-01-01T11:58:01Z"), "119s");
    assert_eq!(age_of("2026-01-01T11:58:00Z"), "2m");
    assert_eq!(age_of("2025-12-30T12:00:01Z"), "47h");
    assert_eq!(age_of("2025-12-30T12:00:00Z"), "2d");
    assert_eq!(age_of("2027-01-01T12:00:00Z"), "0s");
    assert_eq!(age_of("never"), "-");
}

#[test]
fn the_json_says_what_became_of_each() {
    let rows = rows();
    let listed = json("https://hub", &rows, None);
    assert_eq!(listed["objects"][1]["verdict"], "orphan");
    assert_eq!(listed["objects"][1]["created"], "2026-01-01T10:00:00Z");
    assert_eq!(listed["objects"][0]["namespace"], Value::Null);
    assert!(listed.get("done").is_none());
    let left = Outcome::Left("it has changed".to_owned());
    let done = [
        (rows[1].target.clone(), Outcome::Deleted),
        (rows[0].target.clone(), left),
    ];
    let report = json("https://hub", &rows, Some(&done));
    assert_eq!(report["done"][0]["outcome"], "deleted");
    assert_eq!(report["done"][1]["why"], "it has changed");
}

#[test]
fn an_outcome_is_one_line() {
    let rows = rows();
    assert_eq!(
        outcome(&rows[1].target, &Outcome::Deleted),
        "WorkloadDeployment ns-1/web-edge-dfw: deleted"
    );
    let left = Outcome::Left("it has changed".to_owned());
    assert_eq!(outcome(&rows[0].target, &left), "Namespace ns-1: left, it has changed");
}
