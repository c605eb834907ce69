//! Arguments of the commands that talk to planes: to Karmada, to projects and to cells.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use kube::core::GroupVersionKind;
use popcell_core::names::is_dns_subdomain;

use super::{
    DataFormat, DoctorFormat, ListFormat,
    reach::{Cluster, Names, duration, kind},
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

/// `popcell orphans`
#[allow(
    clippy::struct_excessive_bools,
    reason = "each one is a flag of its own on the command line"
)]
#[derive(Args, Debug)]
#[command(after_help = "\
An orphan is an object of ours on the hub whose project, whose Namespace or whose WorkloadDeployment is gone, by a live
answer of the server that would have it. Objects of an unreachable project are listed as unknown and never deleted. Before
each delete the server is asked again; objects that changed meanwhile are kept. In mode single each hub namespace says on
which server its project is; what another server does not have is no orphan.

In mode milo a server that lists less than half of the projects that namespaces of ours on the hub name is taken for the
wrong one, and nothing is noted or deleted on its word, whatever --namespace says. Who has deleted so many projects confirms
how many with --projects-gone.

Exit codes: 0 no orphans, or all were deleted; 1 there are orphans; 2 --yes or --projects-gone has another number than there
are, --project-kubeconfig leads to another server than the project's, or discovery does not know half of the projects; 4 a
server or a project could not be asked.

Examples:
  popcell orphans --kubeconfig karmada.config --project-kubeconfig project.config
  popcell orphans --kubeconfig karmada.config --mode milo --project-kubeconfig milo.config -o json
  popcell orphans --kubeconfig karmada.config --project-kubeconfig project.config --delete --dry-run
  popcell orphans --kubeconfig karmada.config --project-kubeconfig project.config --namespace ns-1d2e --delete --yes=28")]
pub struct Orphans {
    /// Look at this namespace of the hub only
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Delete what is found; asks before on a terminal
    #[arg(long)]
    pub delete: bool,
    /// Delete without asking, if exactly so many objects are orphans: the number that the list says
    #[arg(long, value_name = "COUNT", requires = "delete")]
    pub yes: Option<usize>,
    /// Delete although discovery lists less than half of the projects, if exactly so many are missing: they were deleted
    #[arg(long, value_name = "COUNT", requires = "delete")]
    pub projects_gone: Option<usize>,
    /// Say what --delete would do, and do nothing
    #[arg(long, requires = "delete")]
    pub dry_run: bool,
    /// How long --delete retries while objects that must be deleted first still exist, as in 30s or 5m
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub wait: Duration,
    /// How long a project must have been known to be gone before its objects are deleted, as in 60m; at least 1m
    #[arg(long, value_name = "DURATION", default_value = "60m", value_parser = grace)]
    pub project_grace: Duration,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where the projects are.
    #[command(flatten)]
    pub projects: Projects,
    // The hub.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// Where projects come from, as in the controller's configuration.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Projects")]
pub struct Projects {
    /// Where projects come from, as the controller's discovery.mode [default: that of --server-config, else single]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Kubeconfig of the project; in mode milo, of milo's API server, below which projects are
    #[arg(long, value_name = "FILE", required_unless_present_any = ["discovery_kubeconfig", "server_config"])]
    pub project_kubeconfig: Option<PathBuf>,
    /// Kubeconfig of the server that lists the Projects, in mode milo [default: that of --project-kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub discovery_kubeconfig: Option<PathBuf>,
    /// The controller's configuration file: its discovery holds where no flag says otherwise
    #[arg(long, value_name = "FILE")]
    pub server_config: Option<PathBuf>,
}

/// `discovery.mode` of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One API server is the one project
    Single,
    /// Milo lists the projects and serves each below a path
    Milo,
}

/// `popcell reinterpret`
#[derive(Args, Debug)]
#[command(after_help = "\
Karmada asks an interpreter when an object changes, and only then: after a module upgrade, or an outage of the webhook,
answers of before stay in place. This sets the annotation compute.datumapis.com/reinterpreted-at on each object on the hub,
which Karmada takes as a change: it runs every operation again. Each object costs some 10 calls: mind the rate.

An interrupted run is taken up with --since and the time that it said at its beginning.

Examples:
  popcell reinterpret --kubeconfig karmada.config
  popcell reinterpret --kubeconfig karmada.config --namespace ns-1d2e -l topology.datum.net/city-code=DFW --dry-run
  popcell reinterpret --kubeconfig karmada.config --since 2026-11-28T09:00:00Z --rate 50/s
  popcell reinterpret --kubeconfig karmada.config --kind apps.kruise.io/v1alpha1/CloneSet")]
pub struct Reinterpret {
    /// Kind of the objects, as group/version/kind, or version/kind in the core group
    #[arg(
        long,
        value_name = "KIND",
        default_value = "compute.datumapis.com/v1alpha/WorkloadDeployment",
        value_parser = kind
    )]
    pub kind: GroupVersionKind,
    /// Objects of this namespace only
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Objects with these labels only, as in a=b,c!=d
    #[arg(
        short = 'l',
        long,
        value_name = "SELECTOR",
        default_value = "",
        hide_default_value = true
    )]
    pub selector: String,
    /// How many at most in a time, as in 10/s or 100/m
    #[arg(long, value_name = "RATE", default_value = "10/s", value_parser = pace)]
    pub rate: Pace,
    /// Skip objects that were re-interpreted at this time (RFC 3339) or later
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// List what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    // The hub.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// The time from one write to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(pub Duration);

/// The shortest `--project-grace`: who sees that a note is wrong can take it away.
const LEAST_GRACE: Duration = Duration::from_mins(1);

/// Reads a duration of [`LEAST_GRACE`] or more.
fn grace(text: &str) -> Result<Duration, String> {
    let grace = duration(text)?;
    if grace < LEAST_GRACE {
        return Err("expected 1m or more: within this time a note that is wrong can be taken away".to_owned());
    }
    Ok(grace)
}

/// Reads `10/s` or `100/m`.
fn pace(text: &str) -> Result<Pace, String> {
    let wrong = || "expected a number from 1 to 1000 and a unit: 10/s, 100/m".to_owned();
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let time = match unit {
        "s" => Duration::from_secs(1),
        "m" => Duration::from_mins(1),
        _ => return Err(wrong()),
    };
    match number {
        1..=1000 => Ok(Pace(time / number)),
        _ => Err(wrong()),
    }
}

/// `popcell tree`
#[derive(Args, Debug)]
#[command(after_help = "\
Follows a Workload from the project over the hub into its cells: Workload, WorkloadDeployment, its copy on the hub, policy,
binding, Work, the cell's object, Instances, and their claims back in the project. Where something is stuck, one reason
is given. Nothing is written. A cell that no kubeconfig is given for is shown by its Instances' copies on the hub.

Exit codes: 0 nothing is broken; 1 something is; 4 a server could not be asked; 130 -w was interrupted.

Examples:
  popcell tree web -n shop --kubeconfig karmada.config --project-kubeconfig project.config --cell dfw-01=dfw.config
  popcell tree web -n shop --kubeconfig karmada.config --mode milo --project-kubeconfig milo.config --project shop-prod -w
  popcell tree web --kubeconfig karmada.config --project-kubeconfig project.config -o json | jq -r .state")]
pub struct Tree {
    /// Name of the Workload
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    /// Its namespace in the project
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    pub namespace: String,
    /// Id of the project, in mode milo
    #[arg(long, value_name = "ID")]
    pub project: Option<String>,
    /// Kubeconfig of a cell, by the name of its Karmada Cluster; may be given for each cell
    #[arg(long = "cell", value_name = "CLUSTER=FILE", value_parser = cell)]
    pub cells: Vec<(String, PathBuf)>,
    /// The project is its own cell, and there is no hub
    #[arg(long, conflicts_with_all = ["cells", "kubeconfig", "context"])]
    pub single_cluster: bool,
    /// Look again every 2 seconds until interrupted, and show what has changed
    #[arg(short, long)]
    pub watch: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where the projects are.
    #[command(flatten)]
    pub projects: Projects,
    // The hub.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// Reads `dfw-01=dfw.config`.
fn cell(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected the name of a Cluster and a kubeconfig: dfw-01=dfw.config".to_owned()),
    }
}

/// `popcell cell`
#[derive(Args, Debug)]
pub struct Cell {
    /// What to do
    #[command(subcommand)]
    pub command: CellCommand,
}

/// The commands of `popcell cell`.
#[derive(Debug, Subcommand)]
pub enum CellCommand {
    /// Declare a cell gone for good: what it holds in projects and on the hub is released
    Remove(Remove),
}

/// `popcell cell remove`
#[derive(Args, Debug)]
#[command(after_help = "\
An unreachable cell keeps its claims and its copies, and Karmada moves nothing: it may come back. This command declares that
it will not. It is recorded on the hub, in the ConfigMap popcell-removed-cells of the program's namespace, and its Karmada
Cluster is deleted. Then the management plane deletes its claims in every project, and after them its copies; Karmada places
its objects on another Cluster of the city. A cell that comes back after all finds the record and writes nothing. Repeating
it is safe.

Where Karmada still reaches the cell, it deletes there what it brought.

Exit codes: 0 removed, now or before; 1 its Cluster is Ready and --force is not given; 2 no such Cluster; 4 the hub refused,
or could not be asked.

Examples:
  popcell cell remove dfw-01 --kubeconfig karmada.config --dry-run
  popcell cell remove dfw-01 --kubeconfig karmada.config
  popcell cell remove dfw-01 --kubeconfig karmada.config --id 5f7c0a52-3c1e-4a0b-9f0e-2f6d1c9b7e11")]
pub struct Remove {
    /// Name of its Karmada Cluster
    #[arg(value_name = "CLUSTER", value_parser = plain)]
    pub name: String,
    /// Remove it although its Cluster is Ready
    #[arg(long)]
    pub force: bool,
    /// Uid of the cell's kube-system namespace, where its Cluster is gone, or is another cell's by now [default: spec.id of the
    /// Cluster]
    #[arg(long, value_name = "UID", value_parser = plain)]
    pub id: Option<String>,
    /// The program's namespace on the hub
    #[arg(long, value_name = "NAME", default_value = "compute-system", value_parser = plain)]
    pub namespace: String,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    // The hub.
    #[command(flatten)]
    pub cluster: Cluster,
}

/// What can be a part of a URL and of a key in the record.
pub(super) fn plain(text: &str) -> Result<String, String> {
    if is_dns_subdomain(text) {
        return Ok(text.to_owned());
    }
    Err("expected lower-case letters, digits, '-' and '.', with a letter or a digit at both ends".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_leaves_time_to_take_a_note_away() {
        assert_eq!(grace("1m"), Ok(LEAST_GRACE));
        assert_eq!(grace("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(grace("1h"), Ok(Duration::from_hours(1)));
        for wrong in ["59s", "1ms", "0m", "1"] {
            assert!(grace(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_becomes_the_time_between_two_writes() {
        assert_eq!(pace("10/s"), Ok(Pace(Duration::from_millis(100))));
        assert_eq!(pace("1/m"), Ok(Pace(Duration::from_mins(1))));
        assert_eq!(pace("1000/s"), Ok(Pace(Duration::from_millis(1))));
        for wrong in ["", "10", "0/s", "1001/s", "-1/s", "10/h", "/s", "1.5/s"] {
            assert!(pace(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_become_parts_of_urls() {
        for right in ["dfw-01", "a", "1.b", "5f7c0a52-3c1e-4a0b-9f0e-2f6d1c9b7e11"] {
            assert_eq!(plain(right).as_deref(), Ok(right));
        }
        for wrong in ["", "DFW", "a/b", "..", "a_b", "-a", "a-", "a b", "a?x", "ä"] {
            assert!(plain(wrong).is_err(), "{wrong}");
        }
    }
}
