//! Cells on real control planes: Workloads of projects run in two cities and come back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod autoscaling;
mod churn;
mod data;
mod definitions;
mod end_to_end;
mod environment;
mod identity;
mod isolation;
mod misuse;
mod networks;
mod outages;
mod oversized;
mod project_lifecycle;
mod quota;
mod replaced;
mod rollout;
mod single;
mod spare_cell;
mod token;
mod tree;
mod upgrade;

use std::process::ExitCode;

use environment::Environment;
use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;

fn main() -> anyhow::Result<ExitCode> {
    let parts = [mission, rollouts, oddities, outages];
    let suite = parts
        .iter()
        .fold(Suite::<Environment>::new()?, |suite, part| part(suite));
    Ok(suite.run())
}

/// Those that take long begin first, and those that wait for the same lock are apart.
#[rustfmt::skip]
fn mission(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("replaced::a_cell_is_removed_and_another_serves_its_city", Beside, replaced::by_another)
        .test("project_lifecycle::nothing_is_left_of_projects_that_came_and_went", Beside, project_lifecycle::many)
        .test("refused_claims::a_project_that_refuses_claims_holds_up_no_other", Beside, quota::refused)
        .test("end_to_end::one_workload_runs_in_two_cities_and_goes_from_everywhere", Beside, end_to_end::runs)
        .test("tree::a_workload_is_followed_over_every_plane", Beside, tree::followed)
        .test("single::one_server_is_project_and_cell", Beside, single::runs)
        .test("networks::a_cell_that_gets_or_loses_network_services_needs_no_setting", Beside, networks::served_or_not)
}

#[rustfmt::skip]
fn rollouts(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("rollout::a_bad_image_is_reported_and_repaired_by_a_new_template", Beside, rollout::repaired)
        .test("rollout::a_deployment_paused_in_its_cell_stays_as_it_is", Beside, rollout::paused)
        .test("autoscaling::a_scale_in_its_cell_is_kept_and_counted_everywhere", Beside, autoscaling::scaled_in_its_cell)
        .test("autoscaling::the_cells_autoscaler_works_between_least_and_most", Beside, autoscaling::by_metrics)
}

#[rustfmt::skip]
fn oddities(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("misuse::labels_that_are_taken_off_copies_and_claims_come_back", Beside, misuse::stamps_taken_off)
        .test("copies::a_copy_that_is_deleted_by_hand_is_recreated", Beside, misuse::copy_deleted)
        .test("networks::a_network_is_in_the_cities_that_need_it_and_goes_with_the_last", Beside, networks::carried)
        .test("data::a_secret_is_in_the_city_that_needs_it_and_goes_with_the_last", Beside, data::carried)
        .test("data::the_management_plane_reaches_no_secret_outside_of_projects", Beside, data::held)
        .test("networks::what_names_no_network_of_its_own_namespace_waits_alone_and_says_so", Beside, networks::missing)
        .test("identity::a_cell_under_the_name_of_another_writes_nothing", Beside, identity::mistaken)
        .test("quota::two_cells_share_a_budget_and_never_exceed_it", Beside, quota::shared)
        .test("quota::a_project_without_a_budget_says_so_and_starts_with_the_first_grant", Beside, quota::without_budget)
        .test("quota::a_roll_under_a_full_budget_loses_no_slot", Beside, quota::full)
        .test("misuse::providers_that_flap_or_fight_over_ready_make_no_storm", Alone, misuse::misbehaving)
        .test("token::a_token_that_is_garbage_for_a_while_needs_no_restart", Alone, token::garbage_for_a_while)
        .test("definitions::a_kind_that_is_deleted_and_restored_is_served_again", Alone, definitions::restored)
        .test("oversized::objects_that_are_too_deep_or_too_large_harm_themselves_only", Alone, oversized::harmless)
}

#[rustfmt::skip]
fn outages(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("outages::without_the_hub_the_cell_heals_rolls_and_grows", Alone, outages::hub_away)
        .test("outages::without_hub_and_project_a_lost_instance_is_recreated", Alone, outages::both_away)
        .test("upgrade::what_upstream_left_is_taken_over_as_it_runs", Alone, upgrade::taken_over)
        .test("churn::killed_at_random_moments_the_right_state_comes", Alone, churn::killed)
        .test("karmada::killed_with_its_etcd_in_the_middle_of_a_roll_the_cells_roll_and_heal", Alone, outages::restarted)
        .test("karmada::a_deletion_during_a_partition_reaches_the_cell_afterwards", Alone, outages::deleted_meanwhile)
        .test("isolation::killed_in_the_middle_of_a_roll_it_continues", Alone, isolation::killed)
        .test("isolation::a_minute_without_a_writing_request", Alone, isolation::idle)
}
