//! The controller's configuration file, which says where projects are, also to the command line; and why a configuration is
//! refused. Each message names the setting, the file where there is one, and the fix.

mod address;
mod file;

pub use address::{Address, Host, Listen};
pub use file::{DiscoveryConfig, MetricsServer, Mode, ServerConfig, TlsFiles, WebhookServer};

use std::path::PathBuf;

use kube::config::{InClusterError, KubeconfigError};
use thiserror::Error;

/// What is wrong with flags, the configuration file, or what they name.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The file of `--server-config` cannot be read.
    #[error("failed to read {file}, which --server-config names")]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is no YAML, or has two documents, or a key twice.
    #[error("failed to understand {file}: {reason}")]
    Syntax {
        /// The file.
        file: PathBuf,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// It has a key that is not known, or a value that cannot be.
    #[error("failed to accept {file}: {path}: {problem}")]
    Field {
        /// The file.
        file: PathBuf,
        /// Keys from the root, joined by dots.
        path: String,
        /// What is wrong, and the fix.
        problem: String,
    },
    /// Two settings do not go together.
    #[error("failed to start: {first} {relation} {second}: {fix}")]
    Refused {
        /// A setting as the user knows it.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// How they go together: `excludes`, `needs`.
        relation: &'static str,
        /// What to do.
        fix: &'static str,
    },
    /// A file that a setting names is not there.
    #[error("failed to find {file}, which {setting} names: mount it there, or {fix}")]
    Missing {
        /// The setting as the user knows it.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// What else to do.
        fix: &'static str,
    },
    /// Nothing says where the process runs.
    #[error(
        "failed to find the API server that this process runs on: it has no service account token; give --kubeconfig"
    )]
    Nowhere,
    /// The pod's own credentials cannot be used.
    #[error("failed to use the pod's own credentials; mount a service account token, or give --kubeconfig")]
    InCluster(#[source] InClusterError),
    /// A kubeconfig cannot be used.
    #[error("failed to use {file}, which {setting} names")]
    Kubeconfig {
        /// The setting as the user knows it.
        setting: &'static str,
        /// The file, or the files of a list.
        file: PathBuf,
        /// Why.
        source: KubeconfigError,
    },
    /// A file that a kubeconfig names cannot be used.
    #[error("failed to use {file}, which {setting} names: its {key} {path} {problem}")]
    Credential {
        /// The setting as the user knows it.
        setting: &'static str,
        /// The kubeconfig.
        file: PathBuf,
        /// `tokenFile` and the like.
        key: &'static str,
        /// The file that it names.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// No client can be made of a kubeconfig.
    #[error("failed to make a client of {file}, which {setting} names")]
    Client {
        /// The setting as the user knows it.
        setting: &'static str,
        /// The kubeconfig.
        file: PathBuf,
        /// Why.
        source: Box<kube::Error>,
    },
}
