//! Flags of `popcell-controller`. Each is also an environment variable of its name in upper case, which are the names that
//! upstream's manifests set; a flag wins.
//!
//! Invariants: an empty variable or value is as if it were not given, since manifests pass on what may be unset; what is
//! given twice counts the last time, as in Go, since overlays append.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::error::ErrorKind;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches, Parser, ValueEnum};
use popcell_contract::quantity;
use popcell_core::limits::Limits;
use popcell_https::timeout::parse_duration;

use crate::config::Listen;

const FEDERATION: &str = "FEDERATION_KUBECONFIG";
/// Its names in versions of upstream's manifests, the newest first.
const FEDERATION_NAMES: [&str; 4] = [
    FEDERATION,
    "UPSTREAM_KUBECONFIG",
    "DOWNSTREAM_KUBECONFIG",
    "KARMADA_KUBECONFIG",
];

/// Carries Workloads to the cells, and runs them there
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
#[derive(Clone, Debug, Parser)]
#[command(name = "popcell-controller", version, after_help = EXAMPLES, args_override_self = true)]
pub struct Flags {
    /// Run the controllers of the management plane: Workloads to the hub, status and instances back
    #[arg(long, env = "ENABLE_MANAGEMENT_CONTROLLERS", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub enable_management_controllers: bool,

    /// Run the controllers of a cell: WorkloadDeployments to instances
    #[arg(long, env = "ENABLE_CELL_CONTROLLERS", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub enable_cell_controllers: bool,

    /// Kubeconfig of the hub, Karmada's API server; also UPSTREAM_KUBECONFIG, DOWNSTREAM_KUBECONFIG and KARMADA_KUBECONFIG
    #[arg(
        long,
        visible_aliases = ["upstream-kubeconfig", "downstream-kubeconfig", "karmada-kubeconfig"],
        env = "FEDERATION_KUBECONFIG",
        value_name = "FILE"
    )]
    pub federation_kubeconfig: Option<PathBuf>,

    /// Context in that kubeconfig [default: its current context]
    #[arg(long, env = "FEDERATION_CONTEXT", value_name = "NAME")]
    pub federation_context: Option<String>,

    /// Kubeconfig of the API server that this process runs on [default: the pod's own, else $KUBECONFIG]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// The configuration file, of kind WorkloadOperator
    #[arg(long, env = "SERVER_CONFIG", value_name = "FILE")]
    pub server_config: Option<PathBuf>,

    /// Log and count what would be written, and write nothing; takes no Lease
    #[arg(long, env = "DRY_RUN", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub dry_run: bool,

    /// Write only while holding the Lease. With =false this must be the only process that writes
    #[arg(long, env = "LEADER_ELECT", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub leader_elect: bool,

    /// Namespace of the Lease [default: the pod's own, else compute-system]
    #[arg(long, env = "LEADER_ELECT_NAMESPACE", value_name = "NAME")]
    pub leader_elect_namespace: Option<String>,

    /// Address of the plain port with /healthz, /livez, /readyz and /metrics; 0 turns it off
    #[arg(
        long,
        env = "HEALTH_PROBE_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = ":8081"
    )]
    pub health_probe_bind_address: Listen,

    /// How long a project must have been gone before what is left of it in the hub is deleted
    #[arg(long, env = "PROJECT_GRACE", value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub project_grace: Duration,

    /// How long the Cluster of a cell must have been absent from the hub before the cell's claims and copies are deleted; those
    /// of a cell that `popcell cell remove` has recorded go at once
    #[arg(long, env = "CELL_GRACE", value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub cell_grace: Duration,

    /// Delete from the hub what are orphaned, instead of only counting it (see popcell orphans)
    #[arg(long, env = "RECLAIM_ORPHANS", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub reclaim_orphans: bool,

    /// Size of the largest Workload, WorkloadDeployment or Instance that is carried, in bytes of JSON, such as 256Ki
    #[arg(long, env = "MAX_OBJECT_SIZE", value_name = "QUANTITY", default_value = in_units(Limits::DEFAULT.object_bytes), value_parser = bytes)]
    pub max_object_size: usize,

    /// How many objects of one project are kept whole, of all kinds that are watched there, 1 to 1000000
    #[arg(long, env = "MAX_PROJECT_OBJECTS", value_name = "NUMBER", default_value = Limits::DEFAULT.project_objects.to_string(),
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_project_objects: u32,

    /// Size of these objects together, such as 64Mi
    #[arg(long, env = "MAX_PROJECT_SIZE", value_name = "QUANTITY", default_value = in_units(Limits::DEFAULT.project_bytes), value_parser = bytes)]
    pub max_project_size: usize,

    /// Size of the ConfigMaps and Secrets of one project that are carried, together, such as 16Mi
    #[arg(long, env = "MAX_REFERENCED_DATA_SIZE", value_name = "QUANTITY", default_value = in_units(Limits::DEFAULT.data_bytes),
          value_parser = bytes)]
    pub max_referenced_data_size: usize,

    /// Size of what one cell writes to the hub, or the cells of one city together, such as 128Mi
    #[arg(long, env = "MAX_CELL_SIZE", value_name = "QUANTITY", default_value = in_units(Limits::DEFAULT.cell_bytes), value_parser = bytes)]
    pub max_cell_size: usize,

    /// How many Instances a namespace on the hub may have, by a ResourceQuota that the controllers of the management plane
    /// keep there, up to 1000000; 0 is any number, without one [default: that of --max-project-objects]
    #[arg(long, env = "HUB_INSTANCES_PER_NAMESPACE", value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub hub_instances_per_namespace: Option<u32>,

    /// Carry the ConfigMaps and Secrets that templates name from the projects to the cells. With =false they have to be in the
    /// namespaces of the cells
    #[arg(long, env = "REFERENCED_DATA", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub referenced_data: bool,

    /// Let Instances of a cell wait for their networks: true, false, or auto, which is true where the cell serves Network and
    /// NetworkBinding. With false they get no gate Network, and nothing of networking.datumapis.com is read or written
    #[arg(long, env = "NETWORKING", value_name = "AUTO|TRUE|FALSE", num_args = 0..=1, require_equals = true,
          default_value = "auto", default_missing_value = "true", value_parser = networking)]
    pub networking: Networking,

    /// How many reconciles of each controller may run at once, 1 to 256
    #[arg(long, env = "WORKERS", value_name = "NUMBER", default_value_t = 16,
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: u16,

    /// Form of the log lines. What is logged is set by RUST_LOG, such as RUST_LOG=popcell_controller_runtime=debug
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

const EXAMPLES: &str = "\
Examples:
  Management plane, projects from milo (discovery.mode in the file):
    popcell-controller --enable-management-controllers --federation-kubeconfig hub.kubeconfig --server-config config.yaml
  A cell that reports to the hub (discovery.clusterName in the file):
    popcell-controller --enable-cell-controllers --federation-kubeconfig hub.kubeconfig --server-config config.yaml
  Everything on one cluster, without a hub:
    popcell-controller --enable-management-controllers --enable-cell-controllers";

/// Whether Instances of a cell wait for their networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networking {
    /// Where the cell serves what they wait for.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

impl Flags {
    /// How large objects and projects may be that are carried.
    pub fn limits(&self) -> Limits {
        Limits {
            object_bytes: self.max_object_size,
            project_objects: usize::try_from(self.max_project_objects).unwrap_or(usize::MAX),
            project_bytes: self.max_project_size,
            data_bytes: self.max_referenced_data_size,
            cell_bytes: self.max_cell_size,
        }
    }

    /// From the command line and the environment of the process. Ends it where they are wrong, and for `--help`.
    pub fn read() -> Self {
        Self::read_from(std::env::args_os()).unwrap_or_else(|error| error.exit())
    }

    /// From a command line, the program's name first, and the environment of the process.
    ///
    /// # Errors
    /// What is wrong, and the fix; also `--help` and `--version`.
    pub fn read_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let command = command(|name| std::env::var_os(name))?;
        let arguments: Vec<_> = arguments
            .into_iter()
            .filter(|argument| !is_empty_flag(&command, argument))
            .collect();
        let mut command = command;
        let matches = command.try_get_matches_from_mut(arguments)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The command, which reads no variable that is empty.
fn command(variable: impl Fn(&str) -> Option<OsString>) -> Result<Command, clap::Error> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let mut given = FEDERATION_NAMES.into_iter().filter_map(|name| Some((name, set(name)?)));
    let federation = given.next();
    if let Some((newer, value)) = &federation
        && let Some((older, _)) = given.find(|(_, other)| other != value)
    {
        let message = format!("{older} and {newer} differ, and they mean the same: unset {older}");
        return Err(Flags::command().error(ErrorKind::ArgumentConflict, message));
    }
    let federation = federation.map(|(name, _)| name);
    Ok(
        Flags::command().mut_args(|argument| match argument.get_env().and_then(OsStr::to_str) {
            Some(FEDERATION) if federation.is_some() => argument.env(federation),
            Some(name) if variable(name).is_some_and(|value| value.is_empty()) => argument.env(None::<&'static str>),
            _ => argument,
        }),
    )
}

/// Whether an argument is a flag of ours with an empty value, `--name=`.
fn is_empty_flag(command: &Command, argument: &OsStr) -> bool {
    let name = argument
        .to_str()
        .and_then(|text| text.strip_prefix("--")?.strip_suffix('='));
    name.is_some_and(|name| {
        command
            .get_arguments()
            .any(|one| one.get_long() == Some(name) || one.get_all_aliases().is_some_and(|all| all.contains(&name)))
    })
}

/// A number of bytes as people write it.
fn in_units(bytes: usize) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{}Mi", bytes >> 20)
    } else {
        format!("{}Ki", bytes >> 10)
    }
}

/// A size of at least 4 KiB, below which no object fits, and at most 1 GiB.
fn bytes(text: &str) -> Result<usize, String> {
    let read = quantity::nano(text).and_then(|parsed| usize::try_from(parsed / quantity::ONE).ok());
    read.filter(|bytes| (4 << 10..=1 << 30).contains(bytes))
        .ok_or_else(|| "not a size between 4Ki and 1Gi, such as 256Ki".to_owned())
}

/// A switch as other switches are written, or `auto`.
fn networking(text: &str) -> Result<Networking, String> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Ok(Networking::Auto),
        "y" | "yes" | "t" | "true" | "on" | "1" => Ok(Networking::On),
        "n" | "no" | "f" | "false" | "off" | "0" => Ok(Networking::Off),
        _ => Err("not auto, true or false".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "not a duration such as 90s, 30m or 1h".to_owned())
}

#[cfg(test)]
mod tests;
