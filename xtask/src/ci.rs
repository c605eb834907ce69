//! `ci`: what a fresh machine of a Debian kind lacks, and then everything that must pass.

use anyhow::Result;
use clap::Args;
use popcell_test_support::artifacts;

use crate::install;
use crate::test::Test;

/// Arguments of `ci`.
#[derive(Args)]
pub(crate) struct Ci {
    /// Install only
    #[arg(long)]
    prepare: bool,
}

impl Ci {
    /// Installs what is missing, and runs the tests unless told not to.
    pub(crate) fn run(&self) -> Result<()> {
        if let Err(missing) = artifacts::go::version() {
            println!("{missing:#}");
            // Go from Debian fetches the toolchain that the lab names by itself.
            install::packages(&["golang-go"])?;
        }
        println!("the lab is built by {}", artifacts::go::version()?);
        install::wasm()?;
        install::deny()?;
        install::faketime()?;
        install::room_for_labs();
        if self.prepare { Ok(()) } else { Test::default().run() }
    }
}
