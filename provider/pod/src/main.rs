//! `popcell-provider-pod`: runs the Instances of a cell as Pods.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use popcell_provider_pod::Flags;

fn main() -> ExitCode {
    popcell_provider_pod::run(&Flags::parse())
}
