//! A run of a benchmark: its arguments, and what becomes of its values.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use popcell_test_support::workspace;
use serde::Serialize;

use crate::{Machine, load_average};

/// What every benchmark with figures is told.
#[derive(Args, Debug)]
pub struct Run {
    /// Little of everything, to see that it runs; the figures mean nothing
    #[arg(long)]
    short: bool,
    /// Where the figures go as JSON [default: target/bench/NAME.json]
    #[arg(long)]
    json: Option<PathBuf>,
}

/// All figures, and where and under which load they were taken.
#[derive(Debug, Serialize)]
struct Report<F> {
    machine: Machine,
    load_before: String,
    load_after: String,

    #[serde(flatten)]
    figures: F,
}

impl Run {
    /// Measures, prints the figures for people, and writes them as JSON, in a directory that is made when it is missing.
    pub async fn of<F: Serialize>(
        self,
        name: &str,
        measure: impl AsyncFnOnce(bool) -> Result<F>,
        print: impl FnOnce(&F),
    ) -> Result<()> {
        let load_before = load_average()?;
        println!("load average at the start: {load_before}");
        let figures = measure(self.short).await?;
        let report = Report {
            machine: Machine::this()?,
            load_before,
            load_after: load_average()?,
            figures,
        };
        let machine = &report.machine;
        println!(
            "\n{}: {} cores, {}, Linux {}; load average {} at the start, {} at the end",
            machine.date, machine.cores, machine.processor, machine.kernel, report.load_before, report.load_after
        );
        print(&report.figures);
        let file = self
            .json
            .unwrap_or_else(|| workspace::target_dir().join(format!("bench/{name}.json")));
        let context = || format!("failed to write {}", file.display());
        if let Some(dir) = file.parent() {
            fs::create_dir_all(dir).with_context(context)?;
        }
        let text = serde_json::to_string_pretty(&report).with_context(context)?;
        fs::write(&file, text + "\n").with_context(context)?;
        println!("\nwritten to {}", file.display());
        Ok(())
    }
}
