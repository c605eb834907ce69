//! docs/migrating.md.

use std::fmt::Write as _;

use super::*;

const HEAD: &str = "\
<!-- Generated from controller/core/tests/manifests and controller/core/src/admission/tests/migrating: see there. Do not edit. -->

# From a Deployment to a Workload

For users who have a Deployment and want to run it in cities. Three parts of a Workload are in no Deployment:

| add | is |
| --- | --- |
| `spec.placements` | the cities, and how many Instances run in each of them |
| `spec.template.spec.runtime.resources.instanceType` | the size of an Instance: `datumcloud/d1-standard-2`, 1 CPU and 2 GiB for all its containers |
| `spec.template.spec.networkInterfaces` | the Network of the project, by name |

Containers go below `spec.template.spec.runtime.sandbox`, volumes below `spec.template.spec`. ConfigMaps, Secrets and
Networks that the template names are carried to its cities. No other object is: a Service, Ingress, PersistentVolumeClaim,
ServiceAccount or Role of the project has no effect on a Workload.

Errors come in up to three answers, each after the one before is fixed:

1. `strict decoding error: unknown field \"...\"`: a Workload has no such field. `kubectl apply` refuses all of them at once. With
   `--validate=warn` or another client the server drops them, and what they asked for is not done.
2. `... Required value` from the schema, such as a port without a name.
3. `admission webhook \"vworkload.kb.io\" denied the request`: the [rules](domain.md#admission), all at once.

[reference/fields.md](reference/fields.md) has every field of a Workload, and [examples/workload.yaml](examples/workload.yaml) is a
whole one.

## Ten examples

Each example was moved field by field, and then fixed until it was accepted. *Refusals* is the number of answers before that.
*Works* is about the accepted Workload with the [provider of Pods](operations.md#run-instances-as-pods). Fields here and below that
begin with neither `metadata`, `spec` nor a kind are those of `spec.template.spec`. Both Workloads of each example are in [controller/core/tests/manifests](../controller/core/tests/manifests).

| example | refusals | works | no such field or object | refused | fix |
| --- | --- | --- | --- | --- | --- |
";

const FIELDS: &str = "
None of them is accepted unchanged: each has `spec.selector`. Where a field is removed, such as a probe, the accepted Workload does
not do what it asked for.

## Field by field

Fields of a Deployment, a DaemonSet and a HorizontalPodAutoscaler. A row is also for all fields below it without a row of their
own. A field that is in no row has no place in a Workload.

| field | field of a Workload | note |
| --- | --- | --- |
";

/// Without what most have in front.
fn short(field: &str) -> &str {
    field.strip_prefix("spec.template.spec.").unwrap_or(field)
}

/// Fields of an example.
fn listed(fields: &[&str]) -> String {
    let short = |field: &&str| format!("`{}`", short(field));
    match fields {
        [] => "-".to_owned(),
        fields => fields.iter().map(short).collect::<Vec<_>>().join(", "),
    }
}

fn example_line(example: &Example) -> String {
    let refusals = [&example.unknown, &example.invalid, &example.refused];
    let refusals = refusals.iter().filter(|answer| !answer.is_empty()).count();
    let works = match example.works {
        Works::Yes => "yes",
        Works::InPart => "in part",
        Works::No => "no",
    };
    format!(
        "| [{}]({}) | {refusals} | {works} | {} | {} | {} |\n",
        example.title,
        example.source,
        listed(&example.without_a_place()),
        listed(&example.refused_fields()),
        example.why,
    )
}

fn field_line(field: &str, fate: &Fate) -> String {
    let field = short(field);
    match fate {
        Fate::Becomes(target, note) => format!("| `{field}` | `{}` | {note} |\n", short(target)),
        Fate::Refused(target, note) => format!("| `{field}` | refused: `{}` | {note} |\n", short(target)),
        Fate::NoField(note) => format!("| `{field}` | - | {note} |\n"),
    }
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for example in examples() {
        // The text below says so of each.
        assert!(example.unknown.iter().any(|field| field == "spec.selector"));
        page.push_str(&example_line(&example));
    }
    page.push_str(FIELDS);
    for (field, fate) in MAPPING {
        page.push_str(&field_line(field, fate));
    }
    let warned: Vec<Example> = examples().into_iter().filter(|one| !one.warnings.is_empty()).collect();
    page.push_str("\nA Workload that is accepted may have warnings:\n\n");
    for (example, warning) in warned
        .iter()
        .flat_map(|one| one.warnings.iter().map(move |text| (one, text)))
    {
        writeln!(page, "- {}: `{warning}`", example.title).unwrap();
    }
    page
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrating.md")
}

#[test]
fn the_page_in_docs_is_what_the_examples_say() {
    let found = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        found == page(),
        "docs/migrating.md is not what the examples say: run `cargo test -p popcell-core write_the_page -- --ignored`"
    );
}

#[test]
#[ignore = "writes docs/migrating.md"]
fn write_the_page() {
    std::fs::write(file(), page()).unwrap();
}
