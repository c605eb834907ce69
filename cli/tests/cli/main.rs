//! The program as people run it: exit codes and outputs. What needs a Karmada is in tests/suites.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test ends where it fails"
)]

mod cell;
mod check;
mod differ;
mod doctor;
mod faults;
mod hello;
mod interpret;
mod interrupt;
mod orphans;
mod plane;
mod program;
mod project;
mod test;
mod tree;
mod usage;
mod webhook;
mod workloads;
