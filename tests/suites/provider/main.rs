//! The provider of Pods on a real API server and scheduler: Instances of a cell become Pods, whose containers KWOK plays; where the
//! machine can run containers, a kubelet runs some.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod containers;
mod environment;
mod instances;
mod lifetime;
mod rights;

use std::process::ExitCode;

use environment::Environment;
use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;
use popcell_test_support::missing_for_containers;

#[rustfmt::skip]
fn main() -> anyhow::Result<ExitCode> {
    let mut suite = Suite::<Environment>::new()?;
    match missing_for_containers() {
        None => suite = suite.test("containers::a_real_one_has_its_data_and_answers_on_its_port", Beside, containers::answer),
        Some(missing) => eprintln!("no container is run: {missing}"),
    }
    let suite = suite
        .test("lifetime::a_pod_of_another_owner_is_named_and_kept", Beside, lifetime::foreign)
        .test("instances::an_instance_is_ready_once_its_gates_are_gone_and_its_pod_runs", Beside, instances::ready)
        .test("instances::what_keeps_a_pod_from_running_is_the_reason_of_the_instance", Beside, instances::reasons)
        .test("lifetime::a_pod_that_is_evicted_or_deleted_by_hand_is_made_again", Beside, lifetime::made_again)
        .test("rights::the_provider_makes_no_other_pods_and_opens_no_gate", Beside, rights::held)
        .test("lifetime::an_instance_deleted_while_the_provider_is_down_is_released_afterwards", Alone, lifetime::down)
        .test("lifetime::an_unchanged_cell_gets_no_request_but_a_look_for_a_restore", Alone, lifetime::quiet);
    Ok(suite.run())
}
