//! Many projects on one real API server, watched by one process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apply;
mod cycles;
mod demand;
mod environment;
mod outage;
mod program;
mod project_lifecycle;
mod restart;
mod token;
mod watched;

use std::process::ExitCode;

use popcell_suites::suite::Manner::Alone;
use popcell_suites::suite::Suite;

#[rustfmt::skip]
fn main() -> anyhow::Result<ExitCode> {
    let suite = Suite::<environment::Environment>::new()?
        .test("streams::two_for_each_idle_project_and_none_after_it", Alone, project_lifecycle::counted)
        .test("demand::others_come_with_the_first_workload_and_go_with_the_last", Alone, demand::on_demand)
        .test("project_lifecycle::a_project_that_becomes_another_is_watched_again", Alone, project_lifecycle::another_uid)
        .test("cycles::nothing_is_left_of_a_project_that_came_and_went", Alone, cycles::nothing_is_left)
        .test("outage::nothing_is_known_while_the_servers_are_unreachable", Alone, outage::unknown)
        .test("program::one_process_serves_all_projects_while_one_floods", Alone, program::served)
        .test("apply::many_projects_get_crds_rights_and_policies_once", Alone, apply::applied)
        .test("restart::after_a_restart_unchanged_objects_are_neither_read_nor_written", Alone, restart::frugal)
        .test("token::a_token_that_is_garbage_for_a_while_needs_no_restart", Alone, token::garbage_for_a_while);
    Ok(suite.run())
}
