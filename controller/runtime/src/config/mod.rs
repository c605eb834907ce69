//! Configuration: flags and the file become [`Settings`], or a refusal that names the setting,
//! the file and the fix. Nothing is asked of a server here.
//!
//! Invariants: what settings say is a function of flags, file and [`ProcessEnvironment`] alone; a key, file or
//! combination that is not understood ends the start, it is never ignored; quota is never asked of the server that the
//! process runs on, unless a setting names that server.

mod credentials;
mod environment;
mod settings;
mod validation;

pub use credentials::{Certificate, Credentials};
pub use environment::{ProcessEnvironment, System};
pub use popcell_client::config::{
    Address, ConfigError, DiscoveryConfig, Host, Listen, MetricsServer, Mode, ServerConfig, TlsFiles, WebhookServer,
};
pub use settings::{Connections, Controllers, Discovery, LeaseSettings, Metrics, Milo, Quota, Settings, Webhook};
