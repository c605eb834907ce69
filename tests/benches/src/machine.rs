//! The machine of a run.

use std::fs;

use anyhow::{Context, Result};
use serde::Serialize;

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
