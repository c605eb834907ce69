//! How to reach the Karmada API server, and what our object there is called.

use std::path::PathBuf;

use clap::Args;

/// Which API server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Karmada")]
pub struct Cluster {
    /// Kubeconfig of the Karmada API server [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// The names of our entry. Karmada consults webhooks in the order of `<config>/<webhook>`: the names decide precedence.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Names")]
pub struct Names {
    /// Name of the ResourceInterpreterWebhookConfiguration
    #[arg(long, value_name = "NAME", default_value = "popcell")]
    pub config_name: String,
    /// Name of our webhook in it: a domain name of at least three labels
    #[arg(long, value_name = "FQDN", default_value = "interpreter.popcell.datumapis.com")]
    pub webhook_name: String,
}
