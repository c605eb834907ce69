//! Planes that are set back to real snapshots of their etcd, while everything else goes on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod discovery;
mod environment;
mod fleet;
mod joins;
mod set_back;

use std::process::ExitCode;

use environment::Environment;
use popcell_suites::suite::Manner::Alone;
use popcell_suites::suite::Suite;

#[rustfmt::skip]
fn main() -> anyhow::Result<ExitCode> {
    let suite = Suite::<Environment>::new()?
        .test("joins::a_cell_that_is_unjoined_and_joined_keeps_everything", Alone, joins::unjoined)
        .test("joins::a_hub_that_is_older_than_a_join_takes_nothing_from_the_cell", Alone, joins::hub_set_back)
        .test("hub::one_that_is_older_than_a_workload_a_deletion_and_a_roll", Alone, set_back::hub)
        .test("project::one_that_is_older_than_a_workload_a_deletion_and_a_roll", Alone, set_back::project)
        .test("cell::one_that_is_older_than_a_workload_a_deletion_and_a_roll", Alone, set_back::cell)
        .test("discovery::one_that_is_older_than_a_project_lets_it_run_until_that_is_released", Alone, discovery::set_back);
    Ok(suite.run())
}
