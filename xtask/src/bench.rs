//! `bench`: benchmarks are the programs `bench-<name>` of tests/benches.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use popcell_test_support::workspace;

use crate::steps::Steps;
use crate::test::cargo;

const PREFIX: &str = "bench-";

/// Arguments of `bench`.
#[derive(Args)]
pub(crate) struct Bench {
    /// The benchmark to run; without it they are listed
    name: Option<String>,
    /// Arguments for the benchmark, such as --short or --help
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Bench {
    /// Builds everything optimised and runs the benchmark.
    pub(crate) fn run(&self) -> Result<()> {
        let known = names(&workspace::root().join("tests/benches/src/bin"))?;
        let Some(name) = &self.name else {
            println!("cargo xtask bench NAME [--short], where NAME is one of");
            for name in known {
                println!("  {name}");
            }
            return Ok(());
        };
        ensure!(
            known.contains(name),
            "there is no benchmark {name}; there are: {}",
            known.join(", ")
        );
        let program = format!("{PREFIX}{name}");
        let mut steps = Steps::new();
        // With the whole workspace the features of shared libraries are those of the benchmark's own builds, so that
        // nothing is compiled a second time.
        let mut build = cargo(&["build", "--release", "--workspace"]);
        let programs = ["popcell-webhook", "popcell-controller", "echo", &program];
        build.args(programs.map(|name| format!("--bin={name}")));
        steps.run("optimised build", &mut build)?;
        let mut run = Command::new(workspace::target_dir().join("release").join(&program));
        run.args(&self.arguments).current_dir(workspace::root());
        steps.run(&program, &mut run)
    }
}

/// Names of the benchmarks, sorted.
fn names(dir: &Path) -> Result<Vec<String>> {
    let context = || format!("failed to list {}", dir.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(context)? {
        let file_name = entry.with_context(context)?.file_name();
        if let Some(name) = file_name.to_string_lossy().strip_prefix(PREFIX) {
            names.push(name.trim_end_matches(".rs").to_owned());
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhook_has_a_benchmark() {
        let names = names(&workspace::root().join("tests/benches/src/bin")).unwrap();
        assert!(names.contains(&"webhook".to_owned()), "{names:?}");
        assert!(!names.contains(&"echo".to_owned()), "{names:?}");
    }
}
