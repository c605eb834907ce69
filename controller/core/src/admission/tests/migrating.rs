//! Ten Deployments that users know, as Workloads: the answers of an API server and of admission, and docs/migrating.md, which
//! is made from them.

mod mapping;
mod page;
mod server;

use std::collections::BTreeSet;
use std::path::PathBuf;

use popcell_api::kind::WORKLOAD;

use super::*;
use mapping::{Fate, MAPPING, fate, schema_place};

/// One file of `controller/core/tests/manifests`, whose README describes the keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    title: String,
    source: String,
    original: Vec<String>,
    works: Works,
    why: String,
    unknown: Vec<String>,
    invalid: Vec<String>,
    refused: Vec<String>,
    warnings: Vec<String>,
    workload: Value,
    accepted: Value,
}

#[derive(Clone, Copy, Deserialize)]
enum Works {
    #[serde(rename = "yes")]
    Yes,
    #[serde(rename = "in part")]
    InPart,
    #[serde(rename = "no")]
    No,
}

impl Example {
    /// Its fields with this fate.
    fn fields(&self, is_wanted: impl Fn(&Fate) -> bool) -> Vec<&str> {
        let fields = self.original.iter().map(String::as_str);
        fields.filter(|field| fate(field).is_some_and(&is_wanted)).collect()
    }

    fn without_a_place(&self) -> Vec<&str> {
        self.fields(|fate| matches!(fate, Fate::NoField(_)))
    }

    fn refused_fields(&self) -> Vec<&str> {
        self.fields(|fate| matches!(fate, Fate::Refused(..)))
    }
}

/// All of them, in the order of their files.
fn examples() -> Vec<Example> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/manifests");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    paths.iter().map(read).collect()
}

fn sorted<T: Ord>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort();
    items
}

/// `a.b[0].c` as a JSON pointer.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace('[', "/").replace(']', "").replace('.', "/"))
}

/// A path of an object without its indices, as `a.b[].c`.
fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |whole, part| {
        format!("{whole}[]{}", part.split_once(']').unwrap().1)
    })
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap()
}

#[test]
fn each_example_gets_the_answers_in_its_file() {
    let examples = examples();
    assert_eq!(examples.len(), 10);
    for example in examples {
        let title = &example.title;
        let mut received = server::receive(&example.workload);
        assert_eq!(sorted(received.unknown), sorted(example.unknown), "{title}: unknown");
        assert_eq!(received.invalid, example.invalid, "{title}: invalid");
        for message in &example.invalid {
            let place = pointer(message.split_once(": ").unwrap().0);
            let value = example.accepted.pointer(&place).cloned();
            set(&mut received.kept, &place, value.unwrap_or_default());
        }
        assert_eq!(
            sorted(faults(None, received.kept)),
            sorted(example.refused),
            "{title}: refused"
        );

        let received = server::receive(&example.accepted);
        assert_eq!(received.unknown, Vec::<String>::new(), "{title}: unknown when accepted");
        assert_eq!(received.invalid, Vec::<String>::new(), "{title}: invalid when accepted");
        assert_eq!(
            faults(None, received.kept.clone()),
            Vec::<String>::new(),
            "{title}: refused when accepted"
        );
        let warned = warnings(WORKLOAD, None, &object(received.kept), None);
        assert_eq!(warned, example.warnings, "{title}: warnings");
    }
}

/// Otherwise a Workload of other containers could be the accepted one.
#[test]
fn each_accepted_workload_has_the_containers_of_its_example() {
    for example in examples() {
        let names = |workload: &Value, list: &str| -> Vec<String> {
            let containers = workload.pointer(&format!("/spec/template/spec/runtime/sandbox/{list}"));
            let containers = containers.and_then(Value::as_array).into_iter().flatten();
            containers.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
        };
        let mut first = names(&example.workload, "containers");
        first.extend(names(&example.workload, "initContainers"));
        assert!(!first.is_empty());
        assert_eq!(names(&example.accepted, "containers"), first, "{}", example.title);
    }
}

#[test]
fn no_field_of_an_example_is_without_a_place_or_a_reason() {
    for example in examples() {
        let lacking: Vec<&String> = example.original.iter().filter(|field| fate(field).is_none()).collect();
        assert!(lacking.is_empty(), "{}: not in mapping.rs: {lacking:#?}", example.title);
        let once: BTreeSet<&String> = example.original.iter().collect();
        assert_eq!(once.len(), example.original.len(), "{}", example.title);
    }
}

/// Fields without fields of their own, as `a.b[].c`.
fn leaves(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                leaves(&format!("{path}.{name}"), value, found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                leaves(&format!("{path}[]"), item, found);
            }
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

/// Whether a path is that of a field, or below it.
fn is_within(path: &str, field: &str) -> bool {
    path.strip_prefix(field)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[test]
fn fields_with_a_place_are_those_that_a_workload_has() {
    /// Of no Deployment, or a default there.
    const ADDED: [&str; 5] = [
        "spec.placements[].name",
        "spec.placements[].cityCodes",
        "spec.placements[].scaleSettings.minReplicas",
        "spec.template.spec.runtime.resources.instanceType",
        "spec.template.spec.networkInterfaces",
    ];
    for example in examples() {
        let kept = server::receive(&example.workload).kept;
        let mut found = BTreeSet::new();
        leaves("metadata", &kept["metadata"], &mut found);
        leaves("spec", &kept["spec"], &mut found);
        let targets = example.original.iter().filter_map(|field| match fate(field)? {
            Fate::Becomes(target, _) | Fate::Refused(target, _) => Some(*target),
            Fate::NoField(_) => None,
        });
        let targets: Vec<&str> = targets.collect();
        for target in &targets {
            let is_there = found.iter().any(|leaf| is_within(leaf, target));
            assert!(is_there, "{}: the Workload has no {target}", example.title);
        }
        for leaf in &found {
            let is_of_one = targets.iter().chain(&ADDED).any(|field| is_within(leaf, field));
            assert!(is_of_one, "{}: no field of the example is {leaf}", example.title);
        }
    }
}

#[test]
fn fields_without_a_place_are_those_that_a_server_does_not_know() {
    for example in examples() {
        let listed = example
            .without_a_place()
            .into_iter()
            .filter(|field| field.contains('.'));
        let listed: BTreeSet<&str> = listed.map(last).collect();
        let found: BTreeSet<&str> = example.unknown.iter().map(|path| last(path)).collect();
        assert_eq!(found, listed, "{}", example.title);
    }
}

#[test]
fn fields_that_are_refused_are_those_that_admission_forbids() {
    for example in examples() {
        let forbidden = example
            .refused
            .iter()
            .filter_map(|message| Some(message.split_once(": Forbidden: not implemented: ")?.0));
        let forbidden: BTreeSet<String> = forbidden.map(without_indices).collect();
        let listed = example
            .refused_fields()
            .into_iter()
            .filter_map(|field| match fate(field) {
                Some(Fate::Refused(target, _)) => Some((*target).to_owned()),
                _ => None,
            });
        assert_eq!(forbidden, listed.collect(), "{}", example.title);
    }
}

/// Rows of docs/reference/fields.md for a Workload, by path; another test holds them to the CRDs.
fn handled() -> Vec<(String, String)> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/fields.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (text, _) = text.split_once("## WorkloadDeployment").unwrap();
    let rows = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(path, rest)| (path.to_owned(), rest.split(' ').next().unwrap().to_owned()))
        .collect()
}

#[test]
fn the_mapping_agrees_with_what_is_done_with_each_field() {
    let handled = handled();
    assert!(handled.len() > 50);
    for (field, fate) in MAPPING {
        match fate {
            // Of every object: no row is about it.
            Fate::Becomes(target, _) if target.starts_with("metadata.") => {}
            Fate::Becomes(target, _) => {
                let done = |(path, how): &&(String, String)| how == "done" && is_within(path, target);
                assert!(handled.iter().any(|row| done(&row)), "{field}: {target} is not done");
                let exact = handled.iter().find(|(path, _)| path == target);
                assert!(exact.is_none_or(|(_, how)| how == "done"), "{field}: {target}");
            }
            Fate::Refused(target, _) => {
                let row = handled.iter().find(|(path, _)| path == target);
                assert_eq!(row.map(|(_, how)| how.as_str()), Some("refused"), "{field}: {target}");
            }
            Fate::NoField(_) => {
                if let Some(place) = schema_place(field) {
                    assert!(!server::is_described(&place), "{field}: a Workload has {place}");
                }
            }
        }
    }
}
