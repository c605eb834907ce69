//! A module in WebAssembly, under the limits that the webhook has.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use popcell_engine::{Call, CallError, Cause, Engine, Module, Settings};
use popcell_protocol::{Operation, StatusItem, client};
use popcell_sdk::{
    Error,
    module::{Aggregation, Input, Output, Run},
    types::Description,
};
use serde_json::value::RawValue;

use super::{Unanswered, answer};
use crate::exit::Failure;

/// A loaded module.
pub struct Wasm {
    module: Module,
    timeout: Duration,
}

/// An engine with the webhook's limits. Kinds that control planes depend on are the operator's affair, not the author's.
pub fn engine(allow_core_kinds: bool) -> Result<Arc<Engine>, Failure> {
    let settings = Settings {
        allow_core_kinds,
        ..Settings::default()
    };
    Engine::new(&settings)
        .map_err(|error| Failure::Environment(format!("failed to start the WebAssembly engine: {error}")))
}

impl Wasm {
    /// Loads a file: what the webhook would refuse is refused here, in the same words.
    pub fn open(file: &Path, timeout: Duration) -> Result<Self, Failure> {
        let module = engine(true)?
            .load_file(file)
            .map_err(|error| Failure::of_load(&error))?;
        Ok(Self { module, timeout })
    }

    /// The module.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Asks one question.
    pub fn ask(&self, operation: Operation, input: &Input) -> Result<Output, Unanswered> {
        let object = input.object.to_text();
        let observed = input.observed.as_ref().map(|observed| observed.to_text());
        let statuses = statuses(&input.items)?;
        let items: Vec<_> = input
            .items
            .iter()
            .zip(&statuses)
            .map(|(item, status)| host_item(item, status.as_deref()))
            .collect();
        let call = Call {
            operation,
            kind: &input.kind,
            namespace: input.object.namespace(),
            name: input.object.name(),
            object: object.as_bytes(),
            observed: observed.as_deref().map(str::as_bytes),
            replicas: input.replicas,
            items: &items,
        };
        match self.module.call(&call, self.timeout) {
            Ok(given) => {
                let left_out = match &given {
                    popcell_protocol::Answer::Aggregation(aggregation) => Some(aggregation.left_out),
                    _ => None,
                };
                // Through the wire, so that an answer means the same from a module as from a webhook. What was skipped
                // is the one thing that it does not carry.
                let text = popcell_protocol::encode("u", &Ok(given));
                let broken = |message: String| Unanswered::Broken {
                    message,
                    frames: Vec::new(),
                };
                let answer = client::decode(&text, "u", operation).map_err(|reason| broken(reason.to_string()))?;
                let output = answer::output(operation, &answer).map_err(broken)?;
                Ok(match (output, left_out) {
                    (Output::Change(change), Some(left_out)) => Output::Aggregation(Aggregation { change, left_out }),
                    (output, _) => output,
                })
            }
            Err(error) => Err(unanswered(error)),
        }
    }
}

fn unanswered(error: CallError) -> Unanswered {
    let message = error.to_string();
    match error.cause {
        Cause::InvalidObject { path, message } => Unanswered::Said(Error::InvalidObject { path, message }),
        Cause::Undecided(reason) => Unanswered::Said(Error::Undecided(reason)),
        Cause::Unsupported | Cause::NoModule { .. } => Unanswered::Said(Error::Unsupported),
        Cause::Failed(message) => Unanswered::Said(Error::Failed(message)),
        Cause::Trapped { frames, .. } => Unanswered::Broken { message, frames },
        Cause::Deadline { .. } | Cause::Memory { .. } | Cause::Stack | Cause::Refused { .. } => Unanswered::Broken {
            message,
            frames: Vec::new(),
        },
    }
}

impl Run for Wasm {
    fn describe(&self) -> Description {
        self.module.description().clone()
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output, Error> {
        self.ask(operation, input).map_err(Error::from)
    }
}

fn statuses(items: &[popcell_sdk::StatusItem]) -> Result<Vec<Option<Box<RawValue>>>, Unanswered> {
    let raw = |item: &popcell_sdk::StatusItem| {
        item.status
            .as_ref()
            .map(|status| RawValue::from_string(status.to_text()))
            .transpose()
    };
    items
        .iter()
        .map(raw)
        .collect::<Result<_, _>>()
        .map_err(|error| Unanswered::Said(Error::failed(format!("a status is no JSON: {error}"))))
}

fn host_item<'a>(item: &'a popcell_sdk::StatusItem, status: Option<&'a RawValue>) -> StatusItem<'a> {
    StatusItem {
        cluster_name: Cow::Borrowed(&item.cluster_name),
        status,
        applied: item.applied,
        applied_message: Cow::Borrowed(&item.applied_message),
        health: item.health,
    }
}
