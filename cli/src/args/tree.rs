//! Arguments of `popcell tree`.

use std::path::PathBuf;

use clap::Args;

use super::{ListFormat, cluster::Cluster, hub::Projects};

/// `popcell tree`
#[derive(Args, Debug)]
#[command(after_help = "\
Follows a Workload from the project over the hub into its cells: Workload, WorkloadDeployment, its copy on the hub, policy,
binding, Work, the cell's object, Instances, and their claims back in the project. Where something does not go on, one reason
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
    #[allow(missing_docs, reason = "a text here would become part of the help")]
    pub projects: Projects,
    // The hub.
    #[command(flatten)]
    #[allow(missing_docs, reason = "a text here would become part of the help")]
    pub cluster: Cluster,
}

/// Reads `dfw-01=dfw.config`.
fn cell(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.to_owned(), file.into())),
        _ => Err("expected the name of a Cluster and a kubeconfig: dfw-01=dfw.config".to_owned()),
    }
}
