//! A running webhook, asked as Karmada asks it.

use std::{sync::Mutex, time::Duration};

use popcell_protocol::{
    Operation,
    client::{Answer, Question},
};
use popcell_sdk::{
    Error, Json, StatusItem,
    module::{Input, Output, Run},
    types::Description,
};
use serde_json::value::RawValue;

use super::{Unanswered, answer, reach};
use crate::{
    args::reach::Trust,
    endpoint::{
        Endpoint,
        call::{AskError, Connection},
        dial,
    },
    exit::Failure,
};

/// A webhook and one connection to it, which is opened for the first question.
pub struct Webhook {
    endpoint: Endpoint,
    trust: dial::Trust,
    limit: Duration,
    runtime: tokio::runtime::Runtime,
    connection: Mutex<Option<Connection>>,
}

impl Webhook {
    /// Reads URL and certificates; sends no request yet.
    pub fn open(url: &str, trust: &Trust) -> Result<Self, Failure> {
        let (endpoint, against) = reach(url, trust)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            endpoint,
            trust: against,
            limit: trust.timeout(),
            runtime,
            connection: Mutex::default(),
        })
    }

    /// Asks one question.
    pub fn ask(&self, operation: Operation, input: &Input) -> Result<Output, Unanswered> {
        let raw = |text: String| {
            RawValue::from_string(text).map_err(|error| Unanswered::Said(Error::failed(error.to_string())))
        };
        let object = raw(input.object.to_text())?;
        let observed = input
            .observed
            .as_ref()
            .map(|observed| raw(observed.to_text()))
            .transpose()?;
        let items = (!input.items.is_empty())
            .then(|| raw(Json::array(input.items.iter().map(wire_item)).to_text()))
            .transpose()?;
        let question = Question {
            operation,
            kind: &input.kind,
            name: input.object.name(),
            namespace: input.object.namespace(),
            object: &object,
            observed: observed.as_deref(),
            replicas: input.replicas,
            items: items.as_deref(),
        };
        let answer = self
            .runtime
            .block_on(self.post(&question))
            .map_err(|error| match error {
                AskError::Refused { message, .. } => Unanswered::Said(Error::Failed(message)),
                other => Unanswered::Unreached(other.to_string()),
            })?;
        answer::output(operation, &answer).map_err(Unanswered::Unreached)
    }

    async fn post(&self, question: &Question<'_>) -> Result<Answer, AskError> {
        let kept = self
            .connection
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take();
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(&self.endpoint, &self.trust, self.limit).await?,
        };
        let answer = connection.ask(question).await;
        // A session that broke is not used again.
        if matches!(answer, Ok(_) | Err(AskError::Refused { .. })) {
            *self
                .connection
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(connection);
        }
        answer
    }
}

impl Run for Webhook {
    /// A webhook does not say which kinds it serves.
    fn describe(&self) -> Description {
        Description {
            name: self.endpoint.to_string(),
            version: String::new(),
            targets: Vec::new(),
        }
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output, Error> {
        self.ask(operation, input).map_err(Error::from)
    }
}

/// An AggregatedStatusItem as Karmada writes it: what is empty is skipped.
fn wire_item(item: &StatusItem) -> Json {
    let StatusItem {
        cluster_name,
        status,
        applied,
        applied_message,
        health,
    } = item;
    let mut fields = vec![("clusterName", Json::from(cluster_name.as_str()))];
    fields.extend(status.clone().map(|status| ("status", status)));
    fields.extend(applied.then(|| ("applied", Json::from(true))));
    fields.extend((!applied_message.is_empty()).then(|| ("appliedMessage", Json::from(applied_message.as_str()))));
    fields.extend(health.map(|health| ("health", Json::from(health.as_str()))));
    Json::object(fields)
}
