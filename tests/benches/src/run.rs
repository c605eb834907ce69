//! A run of a benchmark: its arguments, its machine, and where its results go.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use popcell_test_support::workspace;
use serde::Serialize;

/// Arguments of every benchmark that has results.
#[derive(Args, Debug)]
pub struct Run {
    /// Little of everything, to see that it runs; the results mean nothing
    #[arg(long)]
    short: bool,
    /// Where the results go as JSON [default: target/bench/NAME.json]
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Where and when.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// When it was asked, in UTC.
    pub date: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// As the processor calls itself.
    pub processor: String,
    /// Release of Linux.
    pub kernel: String,
}

impl Machine {
    /// This machine, now.
    pub fn this() -> Result<Self> {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = processor.lines().find(|line| line.starts_with("model name"));
        let processor = processor
            .and_then(|line| line.split_once(": "))
            .map_or("", |parts| parts.1);
        Ok(Self {
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%MZ").to_string(),
            cores: std::thread::available_parallelism()?.get(),
            processor: processor.to_owned(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .unwrap_or_default()
                .trim()
                .to_owned(),
        })
    }
}

/// Of the last minute, as Linux counts it.
pub fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg").context("failed to read /proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// All results, and where and under which load they were taken.
#[derive(Debug, Serialize)]
struct Report<F> {
    machine: Machine,
    load_before: String,
    load_after: String,

    #[serde(flatten)]
    results: F,
}

impl Run {
    /// Measures, prints the results for people, and writes them as JSON, in a directory that is made when it is missing.
    pub async fn of<F: Serialize>(
        self,
        name: &str,
        measure: impl AsyncFnOnce(bool) -> Result<F>,
        print: impl FnOnce(&F),
    ) -> Result<()> {
        let load_before = load_average()?;
        println!("load average at the start: {load_before}");
        let results = measure(self.short).await?;
        let report = Report {
            machine: Machine::this()?,
            load_before,
            load_after: load_average()?,
            results,
        };
        let machine = &report.machine;
        println!(
            "\n{}: {} cores, {}, Linux {}; load average {} at the start, {} at the end",
            machine.date, machine.cores, machine.processor, machine.kernel, report.load_before, report.load_after
        );
        print(&report.results);
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
