//! Who can be asked: a module in WebAssembly here, or a webhook somewhere. Both are a [`Run`], so that test files, laws and
//! `interpret` ask each of them in the same way as a native module.
//!
//! [`Run`]: popcell_sdk::module::Run

mod answer;
mod wasm;
mod webhook;

use std::path::Path;

use popcell_sdk::Error;

use crate::{
    args::reach::{Source, Trust},
    endpoint::{Endpoint, certificate::Bundle, dial},
    exit::Failure,
};

pub use wasm::{Wasm, engine};
pub use webhook::Webhook;

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
    /// A module file.
    Module(Box<Wasm>),
    /// A running webhook.
    Webhook(Box<Webhook>),
}

impl Interpreter {
    /// Loads the module, or gets ready to call the webhook.
    pub fn open(source: &Source) -> Result<Self, Failure> {
        match (&source.module, &source.url) {
            (Some(file), _) => Ok(Self::Module(Box::new(Wasm::open(file, source.trust.timeout())?))),
            (None, Some(url)) => Ok(Self::Webhook(Box::new(Webhook::open(url, &source.trust)?))),
            (None, None) => Err(Failure::Usage("give --module or --url".to_owned())),
        }
    }

    /// Asks one question.
    pub fn ask(
        &self,
        operation: popcell_protocol::Operation,
        input: &popcell_sdk::module::Input,
    ) -> Result<popcell_sdk::module::Output, Unanswered> {
        match self {
            Self::Module(module) => module.ask(operation, input),
            Self::Webhook(webhook) => webhook.ask(operation, input),
        }
    }
}

/// The endpoint of a URL, and what its certificate is checked against.
pub fn reach(url: &str, trust: &Trust) -> Result<(Endpoint, dial::Trust), Failure> {
    let endpoint = Endpoint::parse(url).map_err(|error| Failure::Usage(error.to_string()))?;
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
