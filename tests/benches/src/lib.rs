//! What benchmarks share: where they ran, what processes take, and what was seen when.
#![forbid(unsafe_code)]

pub mod counted;
mod machine;
pub mod shapes;
mod sight;
mod times;

pub use machine::{Machine, load_average};
pub use sight::{Sight, is};
pub use times::{MillisSince, percentile};

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

/// How a benchmark ends: an error is told with its causes in one line.
#[must_use]
pub fn ended(outcome: &Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Writes figures as JSON; the directory is made when it is missing.
pub fn write_json(figures: &impl Serialize, file: &Path) -> Result<()> {
    let context = || format!("failed to write {}", file.display());
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir).with_context(context)?;
    }
    let mut text = serde_json::to_string_pretty(figures).with_context(context)?;
    text.push('\n');
    fs::write(file, text).with_context(context)
}
