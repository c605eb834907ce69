//! Arguments of the commands for users of a project: they talk to its API alone, with kubectl's words.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, Subcommand};
use popcell_core::{names::is_dns_subdomain, slots};
use popcell_https::timeout::parse_duration;

use super::{ListFormat, planes::plain, reach::duration};
use crate::exit::Failure;

/// Which project, and where in it.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Project")]
pub struct Project {
    /// Kubeconfig of the project [default: $KUBECONFIG, then ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Id of the project, where the kubeconfig leads to milo's API server
    #[arg(long, value_name = "ID")]
    pub project: Option<String>,
}

/// A Workload as kubectl takes one.
#[derive(Args, Clone, Debug)]
pub struct Target {
    /// The Workload: workload/NAME, workload NAME or NAME; wl is short for workload
    #[arg(value_name = "WORKLOAD", required = true, num_args = 1..=2)]
    pub words: Vec<String>,
    /// Its namespace [default: that of the context]
    #[arg(short, long, value_name = "NAME", value_parser = plain)]
    pub namespace: Option<String>,
}

impl Target {
    /// The name of the Workload.
    pub(crate) fn name(&self) -> Result<&str, Failure> {
        let (kind, name) = match self.words.as_slice() {
            [one] => one
                .split_once('/')
                .map_or((None, one.as_str()), |(kind, name)| (Some(kind), name)),
            [kind, name] => (Some(kind.as_str()), name.as_str()),
            _ => (None, ""),
        };
        let kind = kind.map(str::to_ascii_lowercase);
        match kind.as_deref() {
            Some(other) if !WORKLOAD.contains(&other) => {
                let why = if DEPLOYMENT.contains(&other) {
                    ": a WorkloadDeployment follows its Workload"
                } else {
                    ""
                };
                Err(Failure::Usage(format!(
                    "{other} is no Workload{why}; give workload/NAME"
                )))
            }
            _ if !is_dns_subdomain(name) => Err(Failure::Usage(format!(
                "\"{name}\" is no name of a Workload: give workload/NAME, workload NAME or NAME"
            ))),
            _ => Ok(name),
        }
    }
}

/// Spellings of the kind that kubectl takes, in lower case.
const WORKLOAD: [&str; 5] = [
    "workload",
    "workloads",
    "wl",
    "workload.compute.datumapis.com",
    "workloads.compute.datumapis.com",
];
/// Spellings of the kind that is derived from it.
const DEPLOYMENT: [&str; 3] = ["workloaddeployment", "workloaddeployments", "wd"];

/// `popcell scale`
#[derive(Args, Debug)]
#[command(after_help = "\
Sets minReplicas of one placement: so many Instances run in each of its cities. Nothing else of the Workload is written, and
nothing at all when the number has changed since it was read. Where the placement has maxReplicas, an autoscaler may run more.
To run none, delete the placement or the Workload.

Exit codes: 0 scaled, or it was so already; 1 --current-replicas does not match, or the Workload is being deleted; 2 no such
Workload or placement; 4 the server rejected it, or could not be reached.

Examples:
  popcell scale workload/web --replicas=3
  popcell scale wl web -n shop --placement us --replicas=5
  popcell scale web --current-replicas=2 --replicas=3 && popcell rollout status web")]
pub struct Scale {
    // Which Workload.
    #[command(flatten)]
    pub target: Target,
    /// How many Instances run in each city, 1 to 1000
    #[arg(long, value_name = "COUNT", value_parser = replicas)]
    pub replicas: i64,
    /// Name of the placement; optional where there is one only
    #[arg(long, value_name = "NAME")]
    pub placement: Option<String>,
    /// Scale only if the placement asks for so many now
    #[arg(long, value_name = "COUNT")]
    pub current_replicas: Option<i64>,
    // Where it is.
    #[command(flatten)]
    pub project: Project,
}

/// Reads a number that admission accepts.
fn replicas(text: &str) -> Result<i64, String> {
    let number: Option<i64> = text.parse().ok();
    number
        .filter(|number| (1..=slots::MOST).contains(number))
        .ok_or_else(|| format!("expected a number from 1 to {}", slots::MOST))
}

/// `popcell restart`
#[derive(Args, Debug)]
#[command(after_help = "\
Sets the annotation compute.datumapis.com/restartedAt in the template of the Workload to the present time: every Instance is
recreated, in each city one after the other, each after the one before it is ready.

Exit codes: 0 the restart has begun; 1 the Workload is paused, or is being deleted; 2 no such Workload; 4 the server rejected
it, or could not be reached.

Examples:
  popcell restart workload/web
  popcell restart wl web -n shop && popcell rollout status wl web -n shop --timeout=10m")]
pub struct Restart {
    // Which Workload.
    #[command(flatten)]
    pub target: Target,
    // Where it is.
    #[command(flatten)]
    pub project: Project,
}

/// `popcell rollout`
#[derive(Args, Debug)]
pub struct Rollout {
    /// What to do
    #[command(subcommand)]
    pub command: RolloutCommand,
}

/// The commands of `popcell rollout`.
#[derive(Debug, Subcommand)]
pub enum RolloutCommand {
    /// Wait until every city runs what the Workload says
    Status(Status),
    /// List the templates that Instances in each city were made from
    History(History),
}

/// `popcell rollout status`
#[derive(Args, Debug)]
#[command(after_help = "\
Prints a line for each placement and city whenever it changes: how many Instances are of the present template and ready, and
what is waited for, such as a gate, quota, or an annotation that pauses. It ends when all cities are done.

Exit codes: 0 rolled out, or --watch=false and nothing has failed; 1 timed out, the Workload was deleted, or a condition says
that only a change of the Workload helps; 2 no such Workload; 4 the server could not be asked.

Examples:
  popcell rollout status workload/web
  popcell rollout status wl web -n shop --timeout=10m
  popcell rollout status web --watch=false -o json | jq -r .state")]
pub struct Status {
    // Which Workload.
    #[command(flatten)]
    pub target: Target,
    /// Wait until it is done; --watch=false shows how it is now
    #[arg(
        short,
        long,
        action = ArgAction::Set,
        num_args = 0..=1,
        require_equals = true,
        default_value_t = true,
        default_missing_value = "true",
        value_name = "BOOL"
    )]
    pub watch: bool,
    /// How long to wait at most, as in 90s or 5m; 0s is without end
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = limit)]
    pub timeout: Limit,
    /// How to print; JSON is one document for each change
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where it is.
    #[command(flatten)]
    pub project: Project,
}

/// How long something may last; `None` = without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Option<Duration>);

/// Reads a duration, where zero is none.
fn limit(text: &str) -> Result<Limit, String> {
    if parse_duration(text).is_some_and(|limit| limit.is_zero()) {
        return Ok(Limit(None));
    }
    duration(text).map(|limit| Limit(Some(limit)))
}

/// `popcell rollout history`
#[derive(Args, Debug)]
#[command(after_help = "\
This is no list of revisions: the project keeps none, so nothing that has been replaced everywhere is shown, and there is
nothing to roll back to. Keep manifests in version control, and apply an older one to go back.

What is shown is which templates Instances were made from, by hash: of the present template always, of an earlier one as long as
an Instance of it runs. While a rollout is on its way a city has two.

Examples:
  popcell rollout history workload/web
  popcell rollout history wl web -n shop -o json")]
pub struct History {
    // Which Workload.
    #[command(flatten)]
    pub target: Target,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where it is.
    #[command(flatten)]
    pub project: Project,
}

/// `popcell quota`
#[derive(Args, Debug)]
#[command(after_help = "\
Lists the ResourceClaims of Instances in the project, those that are denied first, then those that wait, and the sums by
resource type over all of them. Each Instance has one claim; without a grant it does not start. A claim that stays waiting
usually has no budget: ask the operator of the project's quota.

Exit codes: 0 listed; 4 the server could not be asked.

Examples:
  popcell quota
  popcell quota -n shop --limit=1000
  popcell quota -o json | jq '.claims[] | select(.state == \"denied\")'")]
pub struct Quota {
    /// Claims of this namespace only [default: all namespaces of the project]
    #[arg(short, long, value_name = "NAME", value_parser = plain)]
    pub namespace: Option<String>,
    /// List so many claims of each state at most, up to 10000; sums are over all
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub limit: u16,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where it is.
    #[command(flatten)]
    pub project: Project,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(words: &[&str]) -> Option<String> {
        let target = Target {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            namespace: None,
        };
        target.name().ok().map(str::to_owned)
    }

    #[test]
    fn a_workload_is_named_as_kubectl_takes_it() {
        for words in [
            &["web"][..],
            &["workload/web"],
            &["workload", "web"],
            &["wl", "web"],
            &["wl/web"],
            &["workloads/web"],
            &["Workload/web"],
            &["workloads.compute.datumapis.com", "web"],
        ] {
            assert_eq!(name(words).as_deref(), Some("web"), "{words:?}");
        }
        for words in [
            &[""][..],
            &["workload/"],
            &["/web"],
            &["wd/web"],
            &["deployment", "web"],
            &["workload/web/scale"],
            &["workload", "workload/web"],
            &["WEB"],
            &[".."],
            &["wl", "a?b"],
        ] {
            assert_eq!(name(words), None, "{words:?}");
        }
    }

    #[test]
    fn only_numbers_that_admission_accepts_are_read() {
        assert_eq!((replicas("1"), replicas("1000")), (Ok(1), Ok(1000)));
        for wrong in ["", "0", "-1", "1001", "1.5", "two", "99999999999999999999"] {
            assert!(replicas(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_time_at_all_is_no_limit() {
        assert_eq!(limit("0s"), Ok(Limit(None)));
        assert_eq!(limit("0"), Ok(Limit(None)));
        assert_eq!(limit("90s"), Ok(Limit(Some(Duration::from_secs(90)))));
        for wrong in ["", "s", "0d", "5", "-1s"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
