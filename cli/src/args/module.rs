//! Arguments of the commands that need no cluster.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kube::core::GroupVersionKind;

use super::{
    CheckFormat, DataFormat, TestFormat,
    reach::{Source, Trust, kind},
};

/// `popcell new`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  popcell new widget-interpreter
  popcell new widget-interpreter --sdk ../popcell
  popcell new widget-interpreter --sdk https://github.com/example/popcell --template aggregate
  cd widget-interpreter && cargo test")]
pub struct New {
    /// Name of the crate and of its folder: lower-case letters, digits and dashes
    pub name: String,
    /// What the module starts with
    #[arg(long, value_enum, default_value_t)]
    pub template: Template,
    /// Where popcell-sdk is: a folder, or the URL of a Git repository [default: the popcell repository that this folder, or
    /// this program, lies in]
    #[arg(long, value_name = "PATH|GIT-URL", env = "POPCELL_SDK")]
    pub sdk: Option<String>,
}

/// The starting points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// InterpretHealth only
    #[default]
    Health,
    /// InterpretReplica and ReviseReplica
    Replicas,
    /// InterpretStatus and AggregateStatus
    Aggregate,
    /// Every common operation
    Full,
}

/// `popcell build`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  popcell build
  popcell build widget-interpreter -o /tmp/widget.wasm")]
pub struct Build {
    /// Folder of the module crate
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Where to write the component [default: modules/<folder>.wasm in cargo's target folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `popcell test`
#[derive(Args, Debug)]
#[command(after_help = "\
Test files are Karmada's own: YAML documents with name, operation, desiredObj, observedObj, statusItems, inputReplicas and
output. Beside a Cargo.toml the module is built, and every case also runs natively: a difference is a failure.

Examples:
  popcell test
  popcell test ./... --fail-only
  popcell test testdata --module target/modules/widget-interpreter.wasm -k Health
  popcell test --bless -k aggregate
  popcell test tests --url https://127.0.0.1:8443/interpret --ca-file ca.crt
  popcell test -o junit > report.xml")]
pub struct Test {
    /// Folder of a module crate or of test files, or one file; `./...` takes every module crate below
    #[arg(default_value = ".", value_name = "DIR|./...")]
    pub path: String,
    /// Module to test [default: the one built from the Cargo.toml]
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Running webhook to test instead; the laws need a module and are skipped
    #[arg(long, value_name = "URL", conflicts_with = "module")]
    pub url: Option<String>,
    // How the webhook is reached.
    #[command(flatten)]
    pub trust: Trust,
    /// Run only the tests whose name contains FILTER
    #[arg(short = 'k', long = "filter", value_name = "FILTER")]
    pub filter: Option<String>,
    /// Print only what failed
    #[arg(long)]
    pub fail_only: bool,
    /// Write the answers got into the test files as the expected ones, and keep the rest of their text
    #[arg(long)]
    pub bless: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: TestFormat,
}

/// `popcell interpret`
#[derive(Args, Debug)]
#[command(after_help = "\
The output is that of `karmadactl interpret`. Files may hold YAML or JSON; `-` is standard input.

Examples:
  popcell interpret --module widget.wasm --operation InterpretHealth -f widget.yaml
  popcell interpret --module widget.wasm --operation ReviseReplica -f widget.yaml --desired-replica 3
  popcell interpret --module widget.wasm --operation Retain --desired-file new.yaml --observed-file old.yaml
  popcell interpret --url https://127.0.0.1:8443/interpret --ca-file ca.crt --operation InterpretStatus -f widget.yaml")]
pub struct Interpret {
    // What is asked.
    #[command(flatten)]
    pub source: Source,
    /// Karmada's name of the operation, in any case
    #[arg(long, value_name = "OPERATION")]
    pub operation: popcell_protocol::Operation,
    /// The object: the desired one (resource template), or for InterpretStatus and InterpretHealth the observed one
    #[arg(short = 'f', long = "desired-file", visible_alias = "filename", value_name = "FILE")]
    pub desired_file: Option<PathBuf>,
    /// The object as the member cluster has it
    #[arg(long, value_name = "FILE")]
    pub observed_file: Option<PathBuf>,
    /// Status items for AggregateStatus: a stream of AggregatedStatusItem documents
    #[arg(long, value_name = "FILE")]
    pub status_file: Option<PathBuf>,
    /// Replicas for ReviseReplica
    #[arg(long, value_name = "N")]
    pub desired_replica: Option<i32>,
    /// Where the module trapped, print its whole call stack, innermost first
    #[arg(short, long)]
    pub verbose: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: DataFormat,
}

/// `popcell check`
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  popcell check target/modules/widget-interpreter.wasm
  popcell check target/modules
  popcell check --url https://127.0.0.1:8443/interpret --ca-file ca.crt --kind example.io/v1/Widget")]
pub struct Check {
    /// A module, or a folder of modules
    #[arg(value_name = "FILE|DIR", required_unless_present_any = ["url", "module"], conflicts_with = "url")]
    pub path: Option<PathBuf>,
    /// The same, as `interpret` and `test` take it
    #[arg(long, value_name = "FILE|DIR", conflicts_with_all = ["url", "path"])]
    pub module: Option<PathBuf>,
    /// Running webhook to ask instead
    #[arg(long, value_name = "URL", requires = "kind")]
    pub url: Option<String>,
    /// Kind to ask the webhook for, as group/version/Kind (a webhook does not list its kinds)
    #[arg(long, value_name = "GROUP/VERSION/KIND", requires = "url", value_parser = kind)]
    pub kind: Vec<GroupVersionKind>,
    // How the webhook is reached.
    #[command(flatten)]
    pub trust: Trust,
    /// Object to time the operations with, YAML or JSON [default: a minimal one of each kind]
    #[arg(long, value_name = "FILE")]
    pub sample: Option<PathBuf>,
    /// Calls of each operation to time (0 = do not time)
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub calls: u32,
    /// How to print
    #[arg(short, long, value_enum, default_value_t)]
    pub output: CheckFormat,
}
