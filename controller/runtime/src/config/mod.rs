//! Configuration: flags and the file become [`Settings`], or a refusal that names the setting,
//! the file and the fix. Nothing is asked of a server here.
//!
//! Invariants: what settings say is a function of flags, file and [`ProcessEnvironment`] alone; a key, file or
//! combination that is not understood ends the start, it is never ignored; quota is never asked of the server that the
//! process runs on, unless a setting names that server.

mod credentials;
mod settings;
mod validation;

use std::path::Path;

pub use credentials::{Certificate, Credentials};
pub use popcell_client::config::{
    Address, ConfigError, DiscoveryConfig, Host, Listen, MetricsServer, Mode, ServerConfig, TlsFiles, WebhookServer,
};
pub use settings::{Connections, Controllers, Discovery, LeaseSettings, Metrics, Milo, Quota, Settings, Webhook};

/// Namespace of the pod's service account.
const NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Its token.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The kernel has it while it speaks IPv6.
const IPV6: &str = "/proc/net/if_inet6";

/// The machine, as far as settings look at it.
pub trait ProcessEnvironment {
    /// Whether a file is there.
    fn has(&self, file: &Path) -> bool;
    /// An environment variable; `None` also where it is empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a file, trimmed; `None` also where it is empty.
    fn text(&self, file: &Path) -> Option<String>;

    /// Whether the process runs in a pod with credentials of its own.
    fn in_pod(&self) -> bool {
        self.variable("KUBERNETES_SERVICE_HOST").is_some() && self.has(Path::new(TOKEN))
    }

    /// The pod's namespace.
    fn pod_namespace(&self) -> Option<String> {
        self.text(Path::new(NAMESPACE))
    }

    /// Whether sockets can be bound to IPv6 addresses.
    fn ipv6(&self) -> bool {
        self.has(Path::new(IPV6))
    }
}

/// The machine itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl ProcessEnvironment for System {
    fn has(&self, file: &Path) -> bool {
        // A pipe will do: each is read once.
        file.exists() && !file.is_dir()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    fn text(&self, file: &Path) -> Option<String> {
        let text = std::fs::read_to_string(file).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }
}
