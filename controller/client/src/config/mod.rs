//! The controller's configuration file, which says where projects are, also to the command line.

mod address;
mod error;
mod file;

pub use address::{Address, Host, Listen};
pub use error::ConfigError;
pub use file::{DiscoveryConfig, MetricsServer, Mode, ServerConfig, TlsFiles, WebhookServer};
