//! `popcell-webhook`: hosts interpreter modules as a Karmada ResourceInterpreterWebhook.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use popcell_webhook::flags::Flags;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    popcell_webhook::run(&Flags::parse())
}
