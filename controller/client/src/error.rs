//! Why no client can be made for a plane. No request was sent.

use popcell_core::names::NameError;
use popcell_core::plan::Plane;
use thiserror::Error;

/// Why a plane cannot be reached, whatever its server would answer.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The project cannot be addressed. Nothing but another id ends it.
    #[error("failed to address a project")]
    Name(#[from] NameError),
    /// The id has a dot: as part of a host name it would name another project's service.
    #[error("failed to address project {0} by the name of its service: an id with dots has none")]
    NoService(String),
    /// The result is no URL.
    #[error("failed to make the URL of project {project}")]
    Url {
        /// The project id.
        project: String,
        /// Why.
        source: http::uri::InvalidUri,
    },
    /// The process was not told where the plane is.
    #[error("failed to reach the {0}: no kubeconfig was given for it")]
    NotConfigured(Plane),
    /// A client could not be made; mostly certificates or keys that cannot be read.
    #[error("failed to make a client for the {plane}")]
    Client {
        /// The plane.
        plane: Plane,
        /// Why.
        source: Box<kube::Error>,
    },
}

impl ConnectError {
    /// Whether the project's id cannot be an address: nothing but another id helps.
    pub fn is_of_the_address(&self) -> bool {
        matches!(self, Self::Name(_) | Self::NoService(_) | Self::Url { .. })
    }
}

/// An error with its causes in one line, for people. A cause whose words are in the line already is not repeated.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}
