use std::fs;
use std::path::Path;

use super::*;
use crate::module::{Aggregation, Change, Output, Run};
use crate::test::report;
use crate::types::{Description, PatchOp};
use crate::{Error, Json, Replicas, Result};

/// A module that gives the same answer to everything.
struct Says(fn() -> Result<Output>);

impl Run for Says {
    fn describe(&self) -> Description {
        Description {
            name: "says".to_owned(),
            version: "0.1.0".to_owned(),
            targets: Vec::new(),
        }
    }

    fn run(&self, _: Operation, _: &Input) -> Result<Output> {
        (self.0)()
    }
}

fn one(text: &str) -> std::result::Result<Case, String> {
    let mut cases = read(Path::new("tests/a.yaml"), text);
    assert_eq!(cases.len(), 1, "{text}");
    cases.remove(0).map_err(|error| error.to_string())
}

fn verdict(text: &str, says: fn() -> Result<Output>) -> std::result::Result<(), String> {
    let case = one(text)?;
    check(&case, &Says(says))
        .1
        .map_err(|failure| report::failure(&case, &failure, text))
}

const HEALTH: &str =
    "name: ready\noperation: interprethealth\nobservedObj: {apiVersion: example.io/v1, kind: Widget}\n";

#[test]
fn reads_every_part_of_a_document() {
    let case = one(
        "name: all\ndescription: of it\noperation: AGGREGATESTATUS\ninputReplicas: 3\n\
         desiredObj: {apiVersion: example.io/v1, kind: Widget, serial: 9007199254740993}\n\
         statusItems:\n- {clusterName: a, applied: true, appliedMessage: m, health: Unknown, status: {n: 1}}\n- {clusterName: b}\n",
    )
    .unwrap();
    assert_eq!(
        (case.operation, case.input.replicas, case.document),
        (Operation::AggregateStatus, 3, 1)
    );
    assert_eq!(case.input.kind.to_string(), "example.io/v1 Widget");
    assert_eq!(case.input.object.int("/serial"), Ok(Some(9_007_199_254_740_993)));
    let [first, second] = case.input.items.as_slice() else {
        panic!("{:?}", case.input.items)
    };
    assert_eq!(
        (first.health, first.applied, first.applied_message.as_str()),
        (Some(crate::Health::Unknown), true, "m")
    );
    assert_eq!(
        (second.health, second.applied, second.status.is_none()),
        (None, false, true)
    );
}

#[test]
fn names_file_line_and_document_of_what_it_refuses() {
    let object = "desiredObj: {apiVersion: v1, kind: A}";
    for (text, message) in [
        ("operation: Retain".to_owned(), "tests/a.yaml:1: a test needs a name"),
        ("name: x".to_owned(), "tests/a.yaml:1: x: a test needs an operation"),
        (
            "name: x\noperation: Fly".to_owned(),
            "tests/a.yaml:2: x: unknown operation \"Fly\"",
        ),
        (
            format!("name: x\nopration: Retain\n{object}"),
            "tests/a.yaml:2: x: unknown key \"opration\"",
        ),
        (
            format!("name: x\noperation: Retain\n{object}"),
            "tests/a.yaml:1: x: Retain needs both",
        ),
        (
            format!("name: x\noperation: InterpretHealth\n{object}\nobservedObj: {{apiVersion: v1, kind: A}}"),
            "tests/a.yaml:4: x: InterpretHealth takes one object",
        ),
        (
            "name: x\noperation: InterpretHealth".to_owned(),
            "tests/a.yaml:1: x: InterpretHealth needs desiredObj or",
        ),
        (
            "name: x\noperation: InterpretHealth\ndesiredObj: {apiVersion: v1}".to_owned(),
            "tests/a.yaml:3: x: the object has no kind",
        ),
        (
            format!("name: x\noperation: ReviseReplica\n{object}\ninputReplicas: many"),
            "tests/a.yaml:4: x: inputReplicas: expected an integer of 32 bits, found \"many\"",
        ),
        (
            format!("name: x\noperation: ReviseReplica\n{object}\noutput:\n  healthy: true"),
            "tests/a.yaml:5: x: ReviseReplica has no output \"healthy\": expected one of revised, error, undecided, unchanged",
        ),
        (
            format!("name: x\noperation: InterpretHealth\n{object}\noutput: {{unchanged: true}}"),
            "tests/a.yaml:4: x: InterpretHealth has no output \"unchanged\"",
        ),
        (
            format!("name: x\noperation: InterpretHealth\n{object}\noutput: {{healthy: true, error: true}}"),
            "tests/a.yaml:4: x: error: there is no other output then",
        ),
        (
            format!("name: x\noperation: AggregateStatus\n{object}\nstatusItems: [{{health: Fine}}]"),
            "tests/a.yaml:4: x: health: expected Healthy",
        ),
        ("name: [x".to_owned(), "tests/a.yaml:"),
        ("- a".to_owned(), "tests/a.yaml:1: a test is a mapping"),
    ] {
        let error = one(&text).unwrap_err();
        assert!(error.starts_with(message), "{text}\n{error}");
    }
}

#[test]
fn one_bad_document_leaves_the_others() {
    let cases = read(
        Path::new("a.yaml"),
        "name: x\n---\n# nothing\n---\nname: second\noperation: InterpretHealth\ndesiredObj: {apiVersion: v1, kind: A}\n",
    );
    assert!(cases[0].is_err());
    assert_eq!(cases[1].as_ref().unwrap().at.line, 5);
}

#[test]
fn a_case_passes_and_fails() {
    assert_eq!(
        verdict(&format!("{HEALTH}output: {{healthy: true}}"), || Ok(Output::Health(
            true
        ))),
        Ok(())
    );
    assert_eq!(
        verdict(&format!("{HEALTH}output: {{}}"), || Ok(Output::Health(true))),
        Ok(())
    );
    let failure = verdict(&format!("{HEALTH}output: {{healthy: true}}"), || {
        Ok(Output::Health(false))
    })
    .unwrap_err();
    assert_eq!(
        failure,
        "tests/a.yaml:4: InterpretHealth ready: healthy: expected another answer\n--- expected\n+++ got\n@@ -1 +1 @@\n-true\n+false\n\
         (if the answer is right: popcell test --bless)\n"
    );
    assert!(
        verdict(HEALTH, || Err(Error::failed("no such size")))
            .unwrap_err()
            .contains("InterpretHealth ready: no such size")
    );
    assert!(
        verdict(HEALTH, || Err(Error::Unsupported))
            .unwrap_err()
            .contains("does not implement InterpretHealth for example.io/v1/Widget")
    );
    assert!(
        verdict(HEALTH, || panic!("oh"))
            .unwrap_err()
            .contains("panicked (oh at ")
    );
    assert!(
        verdict(HEALTH, || Ok(Output::Change(Change::Unchanged)))
            .unwrap_err()
            .contains("answer of another operation")
    );
}

#[test]
fn an_invalid_object_is_shown_where_it_was_written() {
    let text = "name: ready\noperation: InterpretHealth\nobservedObj:\n  apiVersion: example.io/v1\n  kind: Widget\n  spec: {replicas: two}\noutput: {healthy: true}\n";
    let failure = verdict(text, || {
        Err(Error::invalid("/spec/replicas", "expected an integer, found \"two\""))
    })
    .unwrap_err();
    assert_eq!(
        failure,
        "tests/a.yaml:6: InterpretHealth ready: /spec/replicas: expected an integer, found \"two\"\n  |\n6 |   spec: {replicas: two}\n  |                    ^^^\n"
    );
}

#[test]
fn errors_and_undecided_can_be_expected() {
    let refuses: fn() -> Result<Output> = || Err(Error::invalid("/spec", "expected an object"));
    assert_eq!(
        verdict(&format!("{HEALTH}output: {{error: '/spec: expected'}}"), refuses),
        Ok(())
    );
    assert_eq!(verdict(&format!("{HEALTH}output: {{error: true}}"), refuses), Ok(()));
    assert!(verdict(&format!("{HEALTH}output: {{error: other}}"), refuses).is_err());
    assert!(verdict(&format!("{HEALTH}output: {{undecided: true}}"), refuses).is_err());
    let waits: fn() -> Result<Output> = || Err(Error::undecided("quota is pending"));
    assert_eq!(
        verdict(&format!("{HEALTH}output: {{undecided: pending}}"), waits),
        Ok(())
    );
    assert!(verdict(&format!("{HEALTH}output: {{error: true}}"), waits).is_err());
    assert!(verdict(&format!("{HEALTH}output: {{healthy: true}}"), waits).is_err());
    assert!(
        verdict(&format!("{HEALTH}output: {{undecided: true}}"), || Ok(Output::Health(
            true
        )))
        .is_err()
    );
}

#[test]
fn a_key_that_is_not_produced_fails() {
    let text = "name: x\noperation: InterpretReplica\ndesiredObj: {apiVersion: v1, kind: A}\noutput: {replica: 2, requires: {}}";
    let failure = verdict(text, || Ok(Output::Replicas(Replicas::from(2)))).unwrap_err();
    assert!(
        failure.contains("requires: expected, but the answer has none"),
        "{failure}"
    );
}

#[test]
fn what_was_skipped_is_compared_where_it_is_reported() {
    let aggregate = "name: x\noperation: AggregateStatus\ndesiredObj: {apiVersion: v1, kind: A}\n";
    let two: fn() -> Result<Output> = || {
        Ok(Output::Aggregation(Aggregation {
            change: Change::Unchanged,
            left_out: 2,
        }))
    };
    let webhook: fn() -> Result<Output> = || Ok(Output::Change(Change::Unchanged));
    let reported = |count, output| verdict(&format!("{aggregate}output: {{leftOut: {count}}}"), output);
    assert_eq!((reported(2, two), reported(2, webhook)), (Ok(()), Ok(())));
    assert!(reported(0, two).unwrap_err().contains("leftOut: expected 0 parts"));
}

#[test]
fn a_patch_is_applied_as_karmada_applies_it() {
    let revise = "name: x\noperation: ReviseReplica\ndesiredObj: {apiVersion: v1, kind: A, spec: {replicas: 1}}\n";
    let to_three: fn() -> Result<Output> = || {
        Ok(Output::Change(Change::Patch(vec![PatchOp::Replace {
            path: "/spec/replicas".to_owned(),
            value: Json::from(3),
        }])))
    };
    let revised = "output: {revised: {apiVersion: v1, kind: A, spec: {replicas: 3}}}";
    assert_eq!(verdict(&format!("{revise}{revised}"), to_three), Ok(()));
    assert!(
        verdict(&format!("{revise}output: {{unchanged: true}}"), to_three)
            .unwrap_err()
            .contains("expected the object unchanged")
    );
    assert_eq!(
        verdict(&format!("{revise}output: {{unchanged: false}}"), to_three),
        Ok(())
    );
    assert!(
        verdict(&format!("{revise}output: {{unchanged: false}}"), || Ok(Output::Change(
            Change::Unchanged
        )))
        .is_err()
    );
    for (path, message) in [("/status/n", "has no parent"), ("/spec/other", "does not exist")] {
        let change = match path {
            "/status/n" => || {
                Ok(Output::Change(Change::Patch(vec![PatchOp::Add {
                    path: "/status/n".to_owned(),
                    value: Json::from(3),
                }])))
            },
            _ => {
                (|| {
                    Ok(Output::Change(Change::Patch(vec![PatchOp::Remove {
                        path: "/spec/other".to_owned(),
                    }])))
                }) as fn() -> _
            }
        };
        let failure = verdict(&format!("{revise}{revised}"), change).unwrap_err();
        assert!(
            failure.contains("the patch cannot be applied") && failure.contains(message),
            "{failure}"
        );
    }
}

#[test]
fn a_folder_without_a_test_is_an_error() {
    let folder = std::env::temp_dir().join(format!("popcell-no-tests-{}", std::process::id()));
    fs::create_dir_all(folder.join("deep")).unwrap();
    assert!(matches!(
        read_folder(&folder, Path::new("tests")),
        Err(FolderError::Empty { .. })
    ));
    fs::write(folder.join("a.yaml"), "# nothing\n").unwrap();
    fs::write(folder.join("b.txt"), "name: x").unwrap();
    assert!(matches!(
        read_folder(&folder, Path::new("tests")),
        Err(FolderError::Empty { .. })
    ));
    fs::write(folder.join("deep/c.yml"), HEALTH).unwrap();
    let files = read_folder(&folder, Path::new("tests")).unwrap();
    assert_eq!(
        files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(),
        ["a.yaml", "deep/c.yml"]
    );
    assert_eq!(files[1].cases[0].as_ref().unwrap().file, Path::new("tests/deep/c.yml"));
    fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(
        read_folder(&folder, Path::new("tests")),
        Err(FolderError::Unreadable { .. })
    ));
}

#[test]
fn names_of_tests_are_unique() {
    let document =
        |name: &str| format!("name: {name}\noperation: InterpretHealth\ndesiredObj: {{apiVersion: v1, kind: A}}\n");
    let text = [document("a  b"), document("a b"), "operation: Retain\n".to_owned()].join("---\n");
    let files = [CaseFile {
        name: "x.yaml".to_owned(),
        cases: read(Path::new("x.yaml"), &text),
        text,
    }];
    assert_eq!(
        crate::test::runner::names(&files)[0],
        ["x.yaml::a b", "x.yaml::a b#2", "x.yaml::document 3"]
    );
}

#[test]
fn a_line_of_json_says_what_came_back() {
    use crate::test::jsonl;
    let case = one(&format!("{HEALTH}output: {{healthy: true}}")).unwrap();
    let line = |says| {
        let (outcome, verdict) = check(&case, &Says(says));
        jsonl::line(&case, &outcome, verdict.is_ok())
    };
    let head = r#"{"file":"tests/a.yaml","document":1,"name":"ready","operation":"InterpretHealth","ok":"#;
    assert_eq!(
        line(|| Ok(Output::Health(true))),
        format!(r#"{head}true,"answer":{{"healthy":true}}}}"#)
    );
    assert_eq!(
        line(|| Err(Error::invalid("/a", "odd \"b\""))),
        format!(r#"{head}false,"error":{{"message":"odd \"b\"","path":"/a","type":"invalid-object"}}}}"#)
    );
}

/// All test files that Karmada ships for its bundled kinds can be read, and ask what this project can ask.
///
/// They come from the Go module cache, where the lab's Go module puts Karmada; without it the copied files of one kind
/// (interpreter-wasm/cloneset/tests/karmada) are all that is read.
#[test]
fn karmada_test_files_parse() {
    const BUNDLED: &str = "pkg/resourceinterpreter/default/thirdparty/resourcecustomizations";
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copied = package.join("../cloneset/tests/karmada");
    let Some(karmada) = karmada_source(&package.join("../../tests/lab")) else {
        eprintln!("karmada_test_files_parse: no Karmada in the Go module cache; reading the copied files only");
        assert_parse(&copied, 6);
        return;
    };
    assert_parse(&karmada.join(BUNDLED), 123);
}

/// Where the lab's Go module has Karmada, without downloading anything.
fn karmada_source(lab: &Path) -> Option<PathBuf> {
    let go = std::process::Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", "github.com/karmada-io/karmada"])
        .current_dir(lab)
        .env("GOFLAGS", "-mod=readonly")
        .env("GOPROXY", "off")
        .output()
        .ok()?;
    let folder = PathBuf::from(String::from_utf8(go.stdout).ok()?.trim());
    folder.is_dir().then_some(folder)
}

fn assert_parse(folder: &Path, files: usize) {
    let found = read_folder(folder, Path::new("karmada")).unwrap();
    let tests = |file: &&CaseFile| !file.name.ends_with("customizations.yaml");
    let errors: Vec<String> = found
        .iter()
        .filter(tests)
        .flat_map(|file| &file.cases)
        .filter_map(|case| case.as_ref().err())
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.iter().filter(tests).count(), files);
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}
