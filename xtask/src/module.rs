//! `module`: interpreter modules as components in target/modules.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use popcell_test_support::artifacts;

use crate::install;

/// Arguments of `module`.
#[derive(Args)]
pub(crate) struct Module {
    /// One module, by the name of its folder under interpreter-wasm or of its crate; all of them without it
    #[arg(long = "crate", value_name = "NAME")]
    name: Option<String>,
}

impl Module {
    /// Builds, and says what came out.
    pub(crate) fn run(&self) -> Result<()> {
        match &self.name {
            Some(name) => {
                install::wasm()?;
                build(&find(name)?)
            }
            None => build_all(),
        }
    }
}

/// Builds every module of this repository.
pub(crate) fn build_all() -> Result<()> {
    install::wasm()?;
    artifacts::module_crates()?.iter().try_for_each(|dir| build(dir))
}

fn build(manifest_dir: &Path) -> Result<()> {
    let built = artifacts::build_module(manifest_dir, &mut |line| println!("{line}"))?;
    println!(
        "{}: {} bytes, sha256 {}, by {}",
        built.output.display(),
        built.bytes,
        built.sha256,
        built.toolchain
    );
    Ok(())
}

fn find(name: &str) -> Result<PathBuf> {
    let crates = artifacts::module_crates()?;
    let folder = name.strip_suffix("-interpreter").unwrap_or(name);
    let folders: Vec<String> = crates
        .iter()
        .filter_map(|dir| dir.file_name())
        .map(|folder| folder.to_string_lossy().into_owned())
        .collect();
    match crates.into_iter().find(|dir| dir.ends_with(folder)) {
        Some(dir) => Ok(dir),
        None => bail!("there is no module {name}; there are: {}", folders.join(", ")),
    }
}
