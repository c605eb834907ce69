//! What benchmarks share: where they ran, what processes take, and what was seen when.
#![forbid(unsafe_code)]

pub mod counted;
mod effort;
mod run;
pub mod shapes;
mod status_watch;
mod times;

pub use effort::{Counters, Effort, FLOW};
pub use run::{Machine, Run, load_average};
pub use status_watch::{StatusWatch, is};
pub use times::{MillisSince, Times};

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use popcell_test_support::workspace;

/// Requests that a benchmark has under way itself.
const AT_ONCE: usize = 16;

/// How a benchmark ends: an error is reported with its causes in one line.
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

/// Acts on many, some at once.
pub async fn for_each<T>(all: impl IntoIterator<Item = T>, act: impl AsyncFn(T) -> Result<()>) -> Result<()> {
    let act = &act;
    stream::iter(all)
        .map(|one| async move { act(one).await })
        .buffer_unordered(AT_ONCE)
        .try_collect()
        .await
}

/// The controller in its optimised build, which `cargo xtask bench` has made.
pub fn controller() -> Result<PathBuf> {
    let program = workspace::target_dir().join("release/popcell-controller");
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}
