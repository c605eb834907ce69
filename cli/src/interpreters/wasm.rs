//! A module in WebAssembly, under the limits that the webhook has.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use popcell_engine::{Call, CallError, Cause, Engine, Module, Settings};
use popcell_protocol::{Health, Operation, StatusItem, client};
use popcell_sdk::{
    Error, Health as SdkHealth,
    module::{Aggregation, Input, Output, Run},
    types,
};
use serde_json::value::RawValue;

use super::{Unanswered, answer, gvk, gvk_of_host};
use crate::{exit::Failure, operation};

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

/// The description in the words of the SDK.
pub fn describe(described: &popcell_engine::Description) -> types::Description {
    let implemented = |known: &popcell_engine::Implemented| types::Implemented {
        operation: operation::to_sdk(known.operation),
        register: known.register,
    };
    let target = |target: &popcell_engine::Target| types::Target {
        kind: gvk_of_host(&target.kind),
        operations: target.operations.iter().map(implemented).collect(),
    };
    types::Description {
        name: described.name.clone(),
        version: described.version.clone(),
        targets: described.targets.iter().map(target).collect(),
    }
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
        let kind = gvk(&input.kind);
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
            kind: &kind,
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
                    popcell_protocol::Answer::Aggregation { left_out, .. } => Some(*left_out),
                    _ => None,
                };
                // Through the wire, so that an answer means the same from a module as from a webhook. What was left out
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
    fn describe(&self) -> types::Description {
        describe(self.module.description())
    }

    fn run(&self, operation: popcell_sdk::Operation, input: &Input) -> Result<Output, Error> {
        self.ask(operation::of_sdk(operation), input).map_err(Error::from)
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
        health: item.health.map(|health| match health {
            SdkHealth::Healthy => Health::Healthy,
            SdkHealth::Unhealthy => Health::Unhealthy,
            SdkHealth::Unknown => Health::Unknown,
        }),
    }
}
