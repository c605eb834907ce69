//! Arguments of `popcell project`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hyper::Uri;

use super::{
    ListFormat,
    planes::{Projects, plain},
};

/// `popcell project`
#[derive(Args, Debug)]
pub struct Project {
    /// What to do
    #[command(subcommand)]
    pub command: ProjectCommand,
}

/// The commands of `popcell project`.
#[derive(Debug, Subcommand)]
pub enum ProjectCommand {
    /// Apply CRDs, rights, policies and admission webhooks to one project or to all
    Apply(Apply),
}

/// `popcell project apply`
#[allow(
    clippy::struct_excessive_bools,
    reason = "each one is a flag of its own on the command line"
)]
#[derive(Args, Debug)]
#[command(after_help = "\
Each project gets the CRDs and the objects of manifests/project-rbac: the rights of popcell-controller there, and the policy
that leaves WorkloadDeployments to it. With --webhook-url its API server also calls the admission webhook. To give cells rights
to claims, or to change anything else, build a kustomization over project-rbac and give its objects with --manifests.

An object that lacks the label app.kubernetes.io/part-of=popcell belongs to another owner and is never changed; to hand it
over, set the label. A CRD that describes fields which this version does not have is not replaced. In a project where one
object is refused, none is written. A second run writes nothing. Repeat an interrupted run, and run the command again for new
projects.

Exit codes: 0 every project has everything; 1 a project was refused: an object of another owner, a newer CRD, not Ready, or no
such project; 2 invalid arguments or input; 4 a server refused, or could not be asked.

Examples:
  popcell project apply --mode milo --project-kubeconfig milo.config --all-projects --dry-run
  popcell project apply --mode milo --project-kubeconfig milo.config --project shop-prod --user jo@example.com
  popcell project apply --mode milo --project-kubeconfig milo.config --all-projects \\
    --webhook-url https://compute.example.com:9443 --ca-file ca.crt
  kustomize build my-project | popcell project apply --mode milo --project-kubeconfig milo.config --all-projects -f -")]
pub struct Apply {
    /// Id of a project, in mode milo; may be given for each project
    #[arg(long = "project", value_name = "ID", value_parser = plain, conflicts_with = "all_projects")]
    pub ids: Vec<String>,
    /// Every project that discovery lists, in mode milo
    #[arg(long)]
    pub all_projects: bool,
    /// User that popcell-controller has in projects
    #[arg(
        long,
        value_name = "NAME",
        default_value = "system:serviceaccount:compute-system:compute",
        value_parser = user
    )]
    pub user: String,
    /// Where API servers of projects reach the admission webhook, as in https://compute.example.com:9443 [default: no webhook is
    /// registered]
    #[arg(long, value_name = "URL", value_parser = origin)]
    pub webhook_url: Option<String>,
    /// PEM file with the CA of the webhook's certificate [default: keep the registered one; else the system's]
    #[arg(long, value_name = "FILE", requires = "webhook_url")]
    pub ca_file: Option<PathBuf>,
    /// Built kustomization, or - for standard input: its objects in place of the rights, policies and webhooks of the flags above
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["user", "webhook_url", "ca_file"])]
    pub manifests: Option<PathBuf>,
    /// Apply no CRDs: projects have them from elsewhere
    #[arg(long)]
    pub skip_crds: bool,
    /// Replace a CRD although it describes fields that this version does not have: their values are dropped
    #[arg(long, conflicts_with = "skip_crds")]
    pub allow_dropped_fields: bool,
    /// Have the servers check what would be written, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: ListFormat,
    // Where the projects are.
    #[command(flatten)]
    pub projects: Projects,
}

/// What can stand in a text of the Common Expression Language as it is.
fn user(text: &str) -> Result<String, String> {
    let breaks_out = |c: char| c.is_control() || matches!(c, '\'' | '\\');
    if text.is_empty() || text.contains(breaks_out) {
        return Err("expected the name of a user, without quotes, backslashes and control characters".to_owned());
    }
    Ok(text.to_owned())
}

/// Scheme, host and port.
fn origin(text: &str) -> Result<String, String> {
    let wrong = || "expected https:// with a host and perhaps a port: https://compute.example.com:9443".to_owned();
    let url: Uri = text.parse().map_err(|_| wrong())?;
    let authority = url.authority().ok_or_else(wrong)?;
    let is_plain =
        url.path() == "/" && url.query().is_none() && !authority.as_str().contains('@') && !text.contains('#');
    if url.scheme_str() != Some("https") || !is_plain {
        return Err(wrong());
    }
    Ok(format!("https://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_cannot_leave_the_quotes_of_a_policy() {
        for right in [
            "jo@example.com",
            "system:serviceaccount:compute-system:compute",
            "CN=jo doe",
        ] {
            assert_eq!(user(right).as_deref(), Ok(right));
        }
        for wrong in ["", "jo'", "jo\\", "jo\n", "x'] || true || 'x' in ['"] {
            assert!(user(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_webhook_is_named_by_host_and_port_only() {
        for right in ["https://compute.example.com:9443", "https://10.0.0.7:9443/"] {
            assert_eq!(origin(right).as_deref(), Ok(right.trim_end_matches('/')));
        }
        for wrong in [
            "",
            "compute.example.com:9443",
            "http://compute.example.com",
            "https://",
            "https://a/b",
            "https://a?b",
            "https://a#b",
            "https://a@b",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }
}
