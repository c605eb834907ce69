//! Arguments of the commands that look after cells.

use clap::{Args, Subcommand};

use super::cluster::Cluster;

/// `popcell cell`
#[derive(Args, Debug)]
pub struct Cell {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Declare a cell gone for good: what it holds in projects and on the hub is released
    Remove(Remove),
}

/// `popcell cell remove`
#[derive(Args, Debug)]
#[command(after_help = "\
A cell that is away keeps its claims and its copies: it may come back, and Karmada moves nothing. This says that it will not.
It is recorded on the hub, in the ConfigMap popcell-removed-cells of the program's namespace, and its Karmada Cluster is
deleted. Then the management plane deletes its claims in every project, and after them its copies; Karmada places its objects
on another Cluster of the city. A cell that comes back after all finds the record and writes nothing. Repeating it is safe.

Where Karmada still reaches the cell, it deletes there what it brought.

Exit codes: 0 removed, now or before; 1 its Cluster is Ready and --force is not given; 2 no such Cluster; 4 the hub refused, or
could not be asked.

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
    #[allow(missing_docs, reason = "a text here would become part of the help")]
    pub cluster: Cluster,
}

/// What can be a part of a URL and of a key in the record.
fn plain(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if !text.is_empty() && text.chars().all(fits) && text.starts_with(is_edge) && text.ends_with(is_edge) {
        return Ok(text.to_owned());
    }
    Err("expected lower-case letters, digits, '-' and '.', with a letter or a digit at both ends".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
