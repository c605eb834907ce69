//! The argument tree. Help texts and the generated reference come from here alone.
#![allow(
    missing_docs,
    reason = "a text at flags that several commands share would become part of the help"
)]

pub mod module;
pub mod planes;
pub mod project;
pub mod reach;
pub mod workloads;

use std::path::Path;

use clap::{CommandFactory as _, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{
    console::Console,
    exit::{Exit, Failure, Outcome},
};

const EXIT_CODES: &str = "\
Exit codes:
  0    everything asked for was done
  1    a test or a check failed
  2    invalid arguments or input
  3    a module was refused, or trapped
  4    a cluster, the network or the file system failed
  130  interrupted";

/// Interpreter modules for Karmada: write, test and build them, register their webhook, find out what is wrong.
#[derive(Debug, Parser)]
#[command(name = "popcell", version, propagate_version = true, arg_required_else_help = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a new module crate from a template
    New(module::New),
    /// Build a module crate into a WebAssembly component
    Build(module::Build),
    /// Run test files in Karmada's format, in WebAssembly and natively
    Test(module::Test),
    /// Run one operation on one object and print the answer
    Interpret(module::Interpret),
    /// Say what a module or a running webhook is and can do
    Check(module::Check),
    /// Register the webhook in Karmada
    Register(planes::Register),
    /// Find out why the webhook does not work
    Doctor(planes::Doctor),
    /// List orphaned hub objects; delete them with --delete
    Orphans(planes::Orphans),
    /// Have Karmada interpret objects again, after a module upgrade or an outage of the webhook
    Reinterpret(planes::Reinterpret),
    /// Trace a Workload through project, hub and cells, and show where it is stuck
    Tree(planes::Tree),
    /// Manage cells
    Cell(planes::Cell),
    /// Manage the control planes of projects
    Project(project::Project),
    /// Set how many Instances of a Workload run in each city of a placement
    Scale(workloads::Scale),
    /// Recreate the Instances of a Workload, one after the other
    Restart(workloads::Restart),
    /// Follow the rollout of a Workload
    Rollout(workloads::Rollout),
    /// List the claims of a project's Instances, and their sums by resource type
    Quota(workloads::Quota),
    /// Print the completion script for a shell
    #[command(
        after_help = "Examples:\n  popcell completion bash > /etc/bash_completion.d/popcell\n  popcell completion zsh > \"${fpath[1]}/_popcell\""
    )]
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Print what this program is and speaks: its version, its commit, and what it is built and tested with
    Version {
        /// Format
        #[arg(short, long, value_enum, default_value_t)]
        output: ListFormat,
    },
    /// Write man pages, one for each command
    #[command(hide = true)]
    ManPages {
        /// Folder to write them to
        directory: std::path::PathBuf,
    },
    /// Write docs/reference/cli.md
    #[command(hide = true)]
    Reference {
        /// File to write (standard output without it)
        #[arg(long, value_name = "FILE")]
        output: Option<std::path::PathBuf>,
        /// Write nothing; fail when FILE is not what would be written
        #[arg(long, requires = "output")]
        check: bool,
    },
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TestFormat {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
    /// JUnit XML
    Junit,
}

/// How the answers of `doctor` are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DoctorFormat {
    /// Every check, by category, with its fix
    #[default]
    Table,
    /// Only what is not in order
    Short,
    /// One JSON document
    Json,
}

/// How an object or a description is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// YAML, for people
    #[default]
    Yaml,
    /// JSON
    Json,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table, for people
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// How `check` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    #[default]
    Text,
    /// One JSON document
    Json,
}

/// Writes docs/reference/cli.md, which is made from the argument tree, or compares it with what it should be.
pub fn reference(output: Option<&Path>, check: bool, console: &mut Console) -> Outcome {
    let text = page();
    let Some(path) = output else {
        console.out.write_all(text.as_bytes())?;
        return Ok(Exit::Success);
    };
    if check {
        let found = std::fs::read_to_string(path).map_err(|error| Failure::file("read", path, &error))?;
        if found != text {
            let path = path.display();
            return Err(Failure::Failed(format!(
                "{path} is not what the argument tree says: run `popcell reference --output {path}`"
            )));
        }
        return Ok(Exit::Success);
    }
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    Ok(Exit::Success)
}

/// Writes a man page for each command into a folder, which is made.
pub fn man_pages(directory: &Path) -> Outcome {
    std::fs::create_dir_all(directory).map_err(|error| Failure::file("make", directory, &error))?;
    clap_mangen::generate_to(Cli::command(), directory)
        .map_err(|error| Failure::file("write to", directory, &error))?;
    Ok(Exit::Success)
}

fn page() -> String {
    let options = clap_markdown::MarkdownOptions::new()
        .title("popcell".to_owned())
        .show_footer(false);
    let text = clap_markdown::help_markdown_custom::<Cli>(&options);
    let mut page = "<!-- Generated by `popcell reference`; do not edit. -->\n\n".to_owned();
    let mut listing = false;
    let mut before = "";
    for line in text.lines() {
        // Examples and exit codes are listings; in the continuation of a list item indentation means something else.
        let indented = line.starts_with("  ") && !line.trim().is_empty();
        if indented && !listing && before.ends_with(':') && !before.starts_with(['*', ' ']) {
            page.push_str("\n```text\n");
            listing = true;
        } else if listing && !indented {
            page.push_str("```\n");
            listing = false;
        }
        page.push_str(if listing {
            line.strip_prefix("  ").unwrap_or(line).trim_end()
        } else {
            line.trim_end()
        });
        page.push('\n');
        before = line;
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}
