//! Arguments of the commands that talk to Karmada.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{
    DataFormat, DoctorFormat,
    reach::{Cluster, Names, duration},
};

/// `popcell register`
#[allow(
    clippy::struct_excessive_bools,
    reason = "each one is a flag of its own on the command line"
)]
#[derive(Args, Debug)]
#[command(after_help = "\
Registering is idempotent: run it again after every change of modules or of the CA. Webhooks of others in the same object
are kept. A dead webhook blocks the propagation of its kinds: before uninstalling it, run `popcell register --remove`.

Examples:
  popcell register --module-dir target/modules --service popcell-system/popcell-webhook --ca-file ca.crt
  popcell register --module-dir target/modules --url https://interpreter.example.org:8443/interpret --ca-file ca.crt
  popcell register --module-dir target/modules --url https://10.0.0.7:8443/interpret --ca-file ca.crt --dry-run
  popcell register --remove")]
pub struct Register {
    /// Folder of modules: the same that the webhook serves
    #[arg(
        long,
        value_name = "DIR",
        env = "POPCELL_MODULE_DIR",
        required_unless_present = "remove"
    )]
    pub module_dir: Option<PathBuf>,
    // Where Karmada finds the webhook.
    #[command(flatten)]
    pub endpoint: Endpoint,
    // Names of our entry.
    #[command(flatten)]
    pub names: Names,
    /// Deadline of each of Karmada's calls, 1 to 30
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub timeout_seconds: u8,
    /// Register an operation that the module implements but does not register itself
    #[arg(long, value_name = "KIND=OPERATION")]
    pub add_operation: Vec<String>,
    /// Serve kinds of the core, apps, admission and Karmada groups (as the webhook's flag of that name)
    #[arg(long)]
    pub allow_core_kinds: bool,
    /// Register although a customization or another webhook takes an operation of ours
    #[arg(long)]
    pub allow_shadowed: bool,
    /// Do not call the webhook before it is registered
    #[arg(long)]
    pub skip_probe: bool,
    /// Drop the certificates of the registered bundle instead of keeping those that are still valid beside the new ones
    #[arg(long)]
    pub replace_ca: bool,
    /// Take our webhook away; other webhooks in the object stay
    #[arg(long, conflicts_with_all = ["url", "service", "ca_file", "add_operation", "module_dir"])]
    pub remove: bool,
    /// Read and probe, print what would be written, write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How --dry-run prints the object
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DataFormat,
    // Which Karmada.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// Where Karmada finds the webhook.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Webhook")]
pub struct Endpoint {
    /// URL of the webhook; needed as soon as one member cluster is in Pull mode, since its agent calls too
    #[arg(long, value_name = "URL", required_unless_present_any = ["service", "remove"], conflicts_with = "service")]
    pub url: Option<String>,
    /// Service of the webhook as namespace/name[:port][/path]; port 443 and path /interpret unless said
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub service: Option<String>,
    /// PEM file with the CA of the webhook's certificate [default: keep the registered one; else the system's]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

/// `popcell doctor`
#[derive(Args, Debug)]
#[command(after_help = "\
Looks at the webhook from where it runs: run it where Karmada's controller-manager runs, and where an agent runs. Each check
has an id, which is an anchor in docs/troubleshooting.md.

Examples:
  popcell doctor --kubeconfig karmada.config
  popcell doctor --module-dir target/modules -o short
  popcell doctor --wait 2m && echo 'the webhook works'
  popcell doctor -o json | jq '.checks[] | select(.verdict == \"fail\")'")]
pub struct Doctor {
    /// Folder of modules to compare the rules with
    #[arg(long, value_name = "DIR", env = "POPCELL_MODULE_DIR")]
    pub module_dir: Option<PathBuf>,
    /// Modules in it may serve kinds of the core, apps, admission and Karmada groups
    #[arg(long)]
    pub allow_core_kinds: bool,
    // Names of our entry.
    #[command(flatten)]
    pub names: Names,
    /// Label of Karmada Clusters that names their city
    #[arg(long, value_name = "LABEL", default_value = "topology.datum.net/city-code")]
    pub city_label: String,
    /// Warn when a certificate ends within so many days
    #[arg(long, value_name = "DAYS", default_value_t = 14)]
    pub expiry_days: u32,
    /// Look again until no check fails, for so long at most, as in 90s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub wait: Option<Duration>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DoctorFormat,
    // Which Karmada.
    #[command(flatten)]
    pub cluster: Cluster,
}
