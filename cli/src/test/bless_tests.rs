use std::path::Path;

use popcell_sdk::test::{cases, yaml};

use super::*;

const FILE: &str = "\
# Why this file is here.
name: one          # a remark
operation: InterpretHealth
observedObj: {apiVersion: v1, kind: A}
output:
  # goes with the expectation
  healthy: true

# About two.
---
name: two
operation: InterpretStatus
output: {status: {
  a: 1
}}
observedObj:
  apiVersion: v1
  kind: A
---
operation: InterpretHealth
name: three
observedObj: {apiVersion: v1, kind: A}
";

fn case(text: &str, index: usize) -> Case {
    cases::read(Path::new("a.yaml"), text).remove(index).unwrap()
}

fn node(text: &str) -> Node {
    yaml::documents(text).unwrap().remove(0)
}

#[test]
fn only_the_output_changes() {
    let one = rewritten(FILE, &case(FILE, 0), &node("{healthy: false}")).unwrap();
    assert_eq!(
        one,
        FILE.replace(
            "output:\n  # goes with the expectation\n  healthy: true\n",
            "output:\n  healthy: false\n"
        )
    );
    let two = rewritten(FILE, &case(FILE, 1), &node("{status: {a: 2, b: [1]}}")).unwrap();
    assert_eq!(
        two,
        FILE.replace(
            "output: {status: {\n  a: 1\n}}\n",
            "output:\n  status:\n    a: 2\n    b:\n    - 1\n"
        )
    );
}

#[test]
fn a_missing_output_is_added() {
    let three = rewritten(FILE, &case(FILE, 2), &node("{healthy: false}")).unwrap();
    assert!(
        three.contains("---\noperation: InterpretHealth\noutput:\n  healthy: false\nname: three\n"),
        "{three}"
    );
    assert_eq!(
        case(&three, 2).source.field("output").unwrap().to_json(),
        r#"{"healthy":false}"#
    );
}

#[test]
fn a_document_in_flow_style_is_kept() {
    let text =
        "{name: a, operation: InterpretHealth, observedObj: {apiVersion: v1, kind: A}, output: {healthy: true}}\n";
    assert!(rewritten(text, &case(text, 0), &node("{healthy: false}")).is_err());
}

#[test]
fn excluded_fields_stay_excluded() {
    let kept = keep_excluded(
        &node("{a: '{{EXCLUDE}}', b: [{c: '{{EXCLUDE}}'}], d: 1}"),
        &node("{a: 5, b: [{c: 6}, {c: 7}], d: 2}"),
    );
    assert_eq!(
        kept.to_json(),
        r#"{"a":"{{EXCLUDE}}","b":[{"c":"{{EXCLUDE}}"},{"c":7}],"d":2}"#
    );
}

#[test]
fn a_crash_is_never_blessed() {
    let case = case(FILE, 0);
    assert!(wanted(&case, &Err(Error::failed("trapped"))).is_none());
    assert!(wanted(&case, &Err(Error::Unsupported)).is_none());
    assert_eq!(
        wanted(&case, &Err(Error::invalid("/spec/a", "expected an integer")))
            .unwrap()
            .to_json(),
        r#"{"error":"/spec/a: expected an integer"}"#
    );
}
