//! What the operations answer, seen by Karmada.

use std::cell::RefCell;
use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use popcell_sdk::Operation;
use popcell_sdk::module::{Change, Input, Output, Run};
use popcell_sdk::test::cases::{self, Case, Expected};
use popcell_sdk::types::Description;
use popcell_sdk::{Error, Json, Object, diff};
use popcell_suites::peer::Peer;
use popcell_suites::wire::{Answer, Row, WireClient, text};
use popcell_test_support::workspace;
use serde_json::{Value, json};

use crate::environment::{Environment, MODULES};
use crate::objects::{OPERATIONS, item, row, workload};

/// Karmada's example webhook is the reference for its kind. It has flaws that ours mends, so the inputs are those on which
/// it answers at all.
pub(crate) async fn like_the_example(environment: &Environment, _: &str) -> Result<()> {
    let example = Peer::example(Ipv4Addr::LOCALHOST).await?;
    let mut client = WireClient::start()?;
    for (replicas, ready) in [(3, 3), (3, 1), (0, 0), (1000, 999)] {
        for operation in OPERATIONS
            .iter()
            .filter(|operation| **operation != "InterpretComponent")
        {
            let mut row = row(operation, workload(replicas, ready));
            if let Some(observed) = &mut row.observed {
                observed["spec"]["paused"] = json!(true);
            }
            row.aggregated_status = vec![
                item("dfw", &json!({ "readyReplicas": 2 })),
                item("ord", &json!({ "readyReplicas": 5 })),
            ];
            let ours = environment.call(&row).await?.value()?;
            let theirs = Row {
                url: example.url(),
                ca_file: text(&example.ca_file()),
                timeout_seconds: 10,
                ..row
            };
            let theirs = client.call(&theirs)?.value()?;
            // The example adds empty fields when it writes the object again; what it means is compared.
            let pointer = match *operation {
                "InterpretReplica" => "/replicas",
                "ReviseReplica" => "/object/spec/replicas",
                "Retain" => "/object/spec/paused",
                "AggregateStatus" => "/object/status/readyReplicas",
                "InterpretStatus" => "/status",
                "InterpretHealth" => "/healthy",
                _ => "/dependencies",
            };
            let (ours, theirs) = (ours.pointer(pointer).cloned(), theirs.pointer(pointer).cloned());
            // The example leaves a zero out; ours keeps the key, which rules of state preservation read.
            let theirs = if *operation == "InterpretStatus" && ready == 0 {
                Some(json!({ "readyReplicas": 0 }))
            } else {
                theirs
            };
            ensure!(
                ours.is_some() && ours == theirs,
                "{operation} at {pointer}: ours {ours:?}, theirs {theirs:?}"
            );
        }
    }
    Ok(())
}

/// The modules' own test files, asked through Karmada's client.
pub(crate) async fn cases(environment: &Environment, _: &str) -> Result<()> {
    let (mut asked, mut rewritten_by_the_client, mut wrong) = (0, 0, Vec::new());
    for module in MODULES {
        let folder = workspace::root().join("interpreter-wasm").join(module).join("tests");
        let files = cases::read_folder(&folder, &folder).context("failed to read a module's cases")?;
        let over = OverTheWire {
            template: environment.addressed_h1(&Row::default()),
            client: RefCell::new(WireClient::start()?),
        };
        for case in files.into_iter().flat_map(|file| file.cases) {
            let case = case?;
            if rewritten(&case.input) {
                rewritten_by_the_client += 1;
                continue;
            }
            asked += 1;
            if let Err(complaint) = holds(&case, &over) {
                wrong.push(format!("{module}: {}: {complaint:#}", case.name));
            }
        }
    }
    ensure!(asked > 100, "only {asked} cases were found");
    ensure!(
        rewritten_by_the_client < 15,
        "{rewritten_by_the_client} cases were left out"
    );
    ensure!(
        wrong.is_empty(),
        "{} of {asked} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}

/// Whether Karmada's client asks something else: Go writes 2.0 as 2, and no server sees a negative number of replicas
/// (ours refuses it in the envelope).
fn rewritten(input: &Input) -> bool {
    fn has_float(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_f64(),
            Value::Array(items) => items.iter().any(has_float),
            Value::Object(fields) => fields.values().any(has_float),
            _ => false,
        }
    }
    let statuses = input
        .items
        .iter()
        .filter_map(|item| item.status.as_ref())
        .map(Json::to_text);
    let observed = input.observed.iter().map(|object| object.to_text());
    let mut texts = statuses.chain(observed).chain([input.object.to_text()]);
    input.replicas < 0 || texts.any(|text| serde_json::from_str(&text).is_ok_and(|value| has_float(&value)))
}

fn holds(case: &Case, over: &OverTheWire) -> Result<()> {
    match &case.expected {
        Expected::Answer { .. } => match cases::check(case, over).1 {
            Ok(()) => Ok(()),
            Err(failure) => bail!("{}", failure.message),
        },
        Expected::Error(part) | Expected::Undecided(part) => {
            let answer = over.ask(case.operation, &case.input)?;
            let text = answer.refusal()?;
            // What Karmada gets is cut at 256 bytes.
            ensure!(
                part.len() > 60 || text.contains(part.as_str()),
                "{part:?} is not in {text:?}"
            );
            Ok(())
        }
    }
}

/// A module behind Karmada's client.
struct OverTheWire {
    template: Row,
    client: RefCell<WireClient>,
}

impl OverTheWire {
    fn ask(&self, operation: Operation, input: &Input) -> Result<Answer> {
        let parsed = |json: &Json| serde_json::from_str::<Value>(&json.to_text()).context("no JSON");
        let mut items = Vec::new();
        for each in &input.items {
            let mut item = json!({
                "clusterName": each.cluster_name, "applied": each.applied, "appliedMessage": each.applied_message,
            });
            if let Some(status) = &each.status {
                item["status"] = parsed(status)?;
            }
            if let Some(health) = each.health {
                item["health"] = json!(format!("{health:?}"));
            }
            items.push(item);
        }
        let row = Row {
            operation: operation.to_string(),
            object: parsed(&input.object)?,
            observed: input.observed.as_ref().map(|object| parsed(object)).transpose()?,
            replicas: input.replicas,
            aggregated_status: items,
            ..self.template.clone()
        };
        self.client.borrow_mut().call(&row)
    }

    fn output(&self, operation: Operation, input: &Input) -> Result<Output, String> {
        let answer = self.ask(operation, input).map_err(|error| format!("{error:#}"))?;
        if !answer.ok {
            return Err(answer.error);
        }
        let text = answer.result.as_ref().map_or("null", |result| result.get());
        let result = Json::parse(text).map_err(|error| error.to_string())?;
        read(operation, &result, input).map_err(|error| error.to_string())
    }
}

impl Run for OverTheWire {
    fn describe(&self) -> Description {
        Description {
            name: "over the wire".into(),
            version: "0".into(),
            targets: Vec::new(),
        }
    }

    fn run(&self, operation: Operation, input: &Input) -> popcell_sdk::Result<Output> {
        self.output(operation, input).map_err(Error::Failed)
    }
}

fn read(operation: Operation, result: &Json, input: &Input) -> popcell_sdk::Result<Output> {
    let absent = || Error::failed("the result lacks the operation's field");
    Ok(match operation {
        Operation::InterpretReplica => Output::Replicas(read_back::replicas(result)?),
        Operation::InterpretComponent => Output::Components(read_back::components(result)?),
        Operation::ReviseReplica | Operation::Retain | Operation::AggregateStatus => {
            let after = Object::parse(result.get("/object").ok_or_else(absent)?.to_text())?;
            let steps = diff::diff(&input.object, &after);
            Output::Change(if steps.is_empty() {
                Change::Unchanged
            } else {
                Change::Patch(steps)
            })
        }
        Operation::InterpretStatus => Output::Status(result.get("/status").ok_or_else(absent)?.clone()),
        Operation::InterpretHealth => Output::Health(result.bool("/healthy")?.ok_or_else(absent)?),
        Operation::InterpretDependency => Output::Dependencies(read_back::dependencies(result)?),
    })
}

#[path = "read_back.rs"]
mod read_back;
