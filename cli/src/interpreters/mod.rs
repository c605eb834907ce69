//! Who can be asked: a module in WebAssembly here, under the limits that the webhook has, or a webhook somewhere, as Karmada
//! asks it. Both are a [`Run`], so that test files, laws and `interpret` ask each of them in the same way as a native module.

mod answer;

use std::{
    borrow::Cow,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use itertools::Itertools as _;
use popcell_client::sync::lock;
use popcell_engine::{Call, CallError, Cause, Engine, Module, Settings};
use popcell_protocol::{
    Operation, StatusItem,
    client::{Answer, Question, decode},
};
use popcell_sdk::{
    Error, Json,
    module::{Aggregation, Input, Output, Run},
    types::Description,
};
use serde_json::value::RawValue;

use crate::{
    args::reach::{Source, Trust},
    endpoint::{
        Endpoint,
        call::{AskError, Connection},
        certificate::Bundle,
        dial,
    },
    exit::Failure,
};

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// The module, or the webhook, says so: about the object, or because it cannot.
    Said(Error),
    /// The module is broken: it crashed, met a limit or gave an answer that is not allowed.
    Broken {
        /// What happened.
        message: String,
        /// Its call stack where it crashed, innermost first.
        frames: Vec<String>,
    },
    /// The webhook could not be asked.
    Unreached(String),
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Said(error) => error.fmt(f),
            Self::Broken { message, .. } | Self::Unreached(message) => f.write_str(message),
        }
    }
}

impl From<Unanswered> for Error {
    fn from(why: Unanswered) -> Self {
        match why {
            Unanswered::Said(error) => error,
            Unanswered::Broken { message, .. } | Unanswered::Unreached(message) => Self::failed(message),
        }
    }
}

/// An interpreter that answers questions.
pub enum Interpreter {
    /// A loaded module, and the time that a call may take.
    Module(Box<Module>, Duration),
    /// A running webhook.
    Webhook(Box<Webhook>),
}

impl Interpreter {
    /// Loads the module, or gets ready to call the webhook.
    pub fn open(source: &Source) -> Result<Self, Failure> {
        match (&source.module, &source.url) {
            (Some(file), _) => Self::module(file, source.trust.timeout),
            (None, Some(url)) => Self::webhook(url, &source.trust),
            (None, None) => Err(Failure::Usage("give --module or --url".to_owned())),
        }
    }

    /// Loads a file: what the webhook would refuse is refused here, in the same words.
    pub fn module(file: &Path, limit: Duration) -> Result<Self, Failure> {
        let module = engine(true)?
            .load_file(file)
            .map_err(|error| Failure::of_load(&error))?;
        Ok(Self::Module(Box::new(module), limit))
    }

    /// Reads URL and certificates; sends no request yet.
    pub fn webhook(url: &str, trust: &Trust) -> Result<Self, Failure> {
        let (endpoint, against) = reach(url, trust)?;
        Ok(Self::Webhook(Box::new(Webhook {
            endpoint,
            trust: against,
            limit: trust.timeout,
            runtime: crate::runtime()?,
            connection: Mutex::default(),
        })))
    }

    /// Asks one question.
    pub fn ask(&self, operation: Operation, input: &Input) -> Result<Output, Unanswered> {
        match self {
            Self::Module(module, limit) => ask_module(module, *limit, operation, input),
            Self::Webhook(webhook) => webhook.ask(operation, input),
        }
    }
}

impl Run for Interpreter {
    /// A webhook does not say which kinds it serves.
    fn describe(&self) -> Description {
        match self {
            Self::Module(module, _) => module.description().clone(),
            Self::Webhook(webhook) => Description {
                name: webhook.endpoint.to_string(),
                version: String::new(),
                targets: Vec::new(),
            },
        }
    }

    fn run(&self, operation: Operation, input: &Input) -> Result<Output, Error> {
        self.ask(operation, input).map_err(Error::from)
    }
}

fn raw(text: String) -> Result<Box<RawValue>, Unanswered> {
    RawValue::from_string(text).map_err(|error| Unanswered::Said(Error::failed(error.to_string())))
}

/// The endpoint of a URL, and what its certificate is checked against.
pub fn reach(url: &str, trust: &Trust) -> Result<(Endpoint, dial::Trust), Failure> {
    let endpoint = Endpoint::parse(url).map_err(Failure::Usage)?;
    let against = trust.ca_file.as_deref().map_or(Ok(dial::Trust::System), |file| {
        read_bundle(file).map(dial::Trust::Bundle)
    })?;
    Ok((endpoint.with_server_name(trust.server_name.as_deref()), against))
}

/// Reads a PEM file.
pub fn read_bundle(file: &Path) -> Result<Bundle, Failure> {
    let pem = std::fs::read(file).map_err(|error| Failure::file("read", file, &error))?;
    Bundle::parse(&pem).map_err(|error| Failure::Usage(format!("failed to use --ca-file {}: {error}", file.display())))
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

fn ask_module(module: &Module, limit: Duration, operation: Operation, input: &Input) -> Result<Output, Unanswered> {
    let object = input.object.to_text();
    let observed = input.observed.as_ref().map(|observed| observed.to_text());
    let status = |item: &popcell_sdk::StatusItem| item.status.as_ref().map(|status| raw(status.to_text())).transpose();
    let statuses: Vec<_> = input.items.iter().map(status).try_collect()?;
    let items = input.items.iter().zip(&statuses).map(|(item, status)| StatusItem {
        cluster_name: Cow::Borrowed(&item.cluster_name),
        status: status.as_deref(),
        applied: item.applied,
        applied_message: Cow::Borrowed(&item.applied_message),
        health: item.health,
    });
    let items = items.collect_vec();
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
    let given = module.call(&call, limit).map_err(unanswered)?;
    let left_out = match &given {
        popcell_protocol::Answer::Aggregation(aggregation) => Some(aggregation.left_out),
        _ => None,
    };
    // Through the wire, so that an answer means the same from a module as from a webhook. What was skipped is the one thing
    // that it does not carry.
    let text = popcell_protocol::encode("u", &Ok(given));
    let broken = |message: String| Unanswered::Broken {
        message,
        frames: Vec::new(),
    };
    let answer = decode(&text, "u", operation).map_err(|reason| broken(reason.to_string()))?;
    let output = answer::output(operation, &answer).map_err(|unread| broken(unread.to_string()))?;
    Ok(match (output, left_out) {
        (Output::Change(change), Some(left_out)) => Output::Aggregation(Aggregation { change, left_out }),
        (output, _) => output,
    })
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

/// A webhook and one connection to it, which is opened for the first question.
pub struct Webhook {
    endpoint: Endpoint,
    trust: dial::Trust,
    limit: Duration,
    runtime: tokio::runtime::Runtime,
    connection: Mutex<Option<Connection>>,
}

impl Webhook {
    fn ask(&self, operation: Operation, input: &Input) -> Result<Output, Unanswered> {
        let object = raw(input.object.to_text())?;
        let observed = input.observed.as_ref().map(|observed| raw(observed.to_text()));
        let observed = observed.transpose()?;
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
        answer::output(operation, &answer).map_err(|unread| Unanswered::Unreached(unread.to_string()))
    }

    async fn post(&self, question: &Question<'_>) -> Result<Answer, AskError> {
        let kept = lock(&self.connection).take();
        let mut connection = match kept {
            Some(connection) => connection,
            None => Connection::open(&self.endpoint, &self.trust, self.limit).await?,
        };
        let answer = connection.ask(question).await;
        // A session that broke is not used again.
        if matches!(answer, Ok(_) | Err(AskError::Refused { .. })) {
            *lock(&self.connection) = Some(connection);
        }
        answer
    }
}

/// An AggregatedStatusItem as Karmada writes it: what is empty is skipped.
fn wire_item(item: &popcell_sdk::StatusItem) -> Json {
    let popcell_sdk::StatusItem {
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
