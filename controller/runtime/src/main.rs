//! `popcell-controller`: carries Workloads to the cells, and brings status and instances back.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use popcell_controller_runtime::flags::Flags;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    popcell_controller_runtime::run(&Flags::read())
}
