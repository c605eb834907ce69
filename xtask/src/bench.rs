//! `bench`: benchmarks are the bench targets of tests/benches.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::Args;
use popcell_test_support::workspace;

use crate::module;
use crate::steps::Steps;

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct Bench {
    /// One benchmark; all of them without it
    name: Option<String>,
    /// Arguments for the benchmark
    #[arg(last = true)]
    arguments: Vec<String>,
}

impl Bench {
    /// Runs the benchmarks one after the other.
    pub(crate) fn run(&self) -> Result<()> {
        let known = names()?;
        let chosen = match &self.name {
            Some(name) => {
                ensure!(
                    known.contains(name),
                    "there is no benchmark {name}; there are: {}",
                    known.join(", ")
                );
                vec![name.clone()]
            }
            None => known,
        };
        let mut steps = Steps::new();
        steps.call("modules", "cargo xtask module", module::build_all)?;
        for name in chosen {
            let mut cargo = crate::test::cargo(&["bench", "--package=popcell-benches", "--bench", &name]);
            cargo.arg("--").args(&self.arguments);
            steps.run(&format!("bench {name}"), &mut cargo)?;
        }
        Ok(())
    }
}

fn names() -> Result<Vec<String>> {
    let dir = workspace::root().join("tests/benches/benches");
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("failed to list {}", dir.display()))? {
        let path = entry
            .with_context(|| format!("failed to list {}", dir.display()))?
            .path();
        let is_bench = if path.is_dir() {
            path.join("main.rs").is_file()
        } else {
            path.extension().is_some_and(|e| e == "rs")
        };
        if is_bench && let Some(name) = path.file_stem() {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
