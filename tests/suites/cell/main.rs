//! Cells on real control planes: Workloads of projects run in two cities and come back (design.md 7.5, issue C).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alone;
mod churn;
mod coming;
mod copies;
mod definitions;
mod identity;
mod karmada;
mod odd;
mod outages;
mod oversized;
mod quota;
mod replaced;
mod rollout;
mod single;
mod spare;
mod starved;
mod tenant;
mod token;
mod tree;
mod upgrade;
mod whole;
mod world;

use std::process::ExitCode;

use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;
use world::World;

fn main() -> anyhow::Result<ExitCode> {
    let parts = [mission, rollouts, quotas, outages, identities, oddities];
    let suite = parts.iter().fold(Suite::<World>::new()?, |suite, part| part(suite));
    Ok(suite.run())
}

#[rustfmt::skip]
fn mission(suite: Suite<World>) -> Suite<World> {
    suite
        .test("whole::e6_c4_one_workload_runs_in_two_cities_and_comes_back", Beside, whole::runs)
        .test("whole::c6_deletion_takes_everything_along", Beside, whole::deleted)
        .test("tree::a_workload_is_followed_over_every_plane", Beside, tree::followed)
        .test("single::c72_one_server_is_project_and_cell", Beside, single::runs)
        .test("copies::e5_an_instance_without_a_deployment_is_copied", Beside, copies::bare)
        .test("copies::w5_a_copy_that_is_deleted_by_hand_comes_back", Beside, copies::deleted)
        .test("copies::d6_a_slot_that_lost_its_instance_is_shown_without", Beside, copies::of_an_empty_slot)
}

#[rustfmt::skip]
fn rollouts(suite: Suite<World>) -> Suite<World> {
    suite
        .test("rollout::b10_c10_a_restart_rolls_one_by_one_from_the_highest", Beside, rollout::restarted)
        .test("rollout::g4_c12_a_bad_image_is_told_and_repaired_by_a_new_template", Beside, rollout::repaired)
        .test("rollout::c11_c14_a_roll_that_stops_shows_how_far_it_came_and_why", Beside, rollout::stopped)
        .test("rollout::scale_down_goes_past_a_broken_instance", Beside, rollout::scaled_down)
        .test("rollout::a_provider_that_fights_over_ready_makes_no_storm", Alone, rollout::fought_over)
        .test("rollout::d10_a_teardown_that_does_not_end_is_told", Beside, rollout::stuck)
        .test("rollout::d18_what_is_paused_in_its_cell_stays_as_it_is", Beside, rollout::paused)
}

#[rustfmt::skip]
fn quotas(suite: Suite<World>) -> Suite<World> {
    suite
        .test("quota::c61_two_cells_share_a_budget_and_never_exceed_it", Alone, quota::shared)
        .test("quota::a_roll_under_a_full_budget_loses_no_slot", Alone, quota::full)
}

#[rustfmt::skip]
fn outages(suite: Suite<World>) -> Suite<World> {
    suite
        .test("alone::c7_while_the_project_is_away_a_lost_instance_comes_back", Alone, alone::project_away)
        .test("outages::c7_while_the_hub_is_away_the_cell_heals_rolls_and_grows", Alone, outages::hub_away)
        .test("outages::c7_while_hub_and_project_are_away_a_lost_instance_comes_back", Alone, outages::both_away)
        .test("upgrade::c87_what_upstream_left_runs_on_as_it_is", Alone, upgrade::taken_over)
        .test("churn::killed_at_random_moments_the_right_state_comes", Alone, churn::killed)
        .test("karmada::restarted_in_the_middle_of_a_roll_nothing_is_replaced_twice", Alone, karmada::restarted)
        .test("karmada::a_second_cell_of_the_city_never_doubles_the_work", Alone, karmada::second_cell)
        .test("karmada::g27_deleted_while_the_cell_is_cut_off_it_goes_afterwards", Alone, karmada::deleted_meanwhile)
        .test("alone::killed_in_the_middle_of_a_roll_it_goes_on", Alone, alone::killed)
        .test("alone::a_minute_without_a_writing_request", Alone, alone::idle)
}

#[rustfmt::skip]
fn identities(suite: Suite<World>) -> Suite<World> {
    suite
        .test("identity::d5_a_cell_under_the_name_of_another_writes_nothing", Alone, identity::mistaken)
        .test("replaced::c32_d8_a_cell_is_removed_and_another_serves_its_city", Alone, replaced::by_another)
}

#[rustfmt::skip]
fn oddities(suite: Suite<World>) -> Suite<World> {
    suite
        .test("token::c34_one_that_is_garbage_for_a_while_needs_no_restart", Alone, token::garbage_for_a_while)
        .test("starved::c27_a_project_that_refuses_claims_holds_up_no_other", Alone, starved::refused)
        .test("coming::c34_nothing_is_left_of_projects_that_came_and_went", Beside, coming::many)
        .test("definitions::c37_what_is_taken_away_and_given_back_is_served_on", Alone, definitions::taken_away)
        .test("oversized::objects_that_are_too_deep_or_too_large_harm_themselves_only", Alone, oversized::harmless)
        .test("odd::a_provider_that_flaps_makes_no_storm", Alone, odd::flapping)
        .test("odd::d7_stamps_that_are_taken_off_come_back", Beside, odd::stamps_taken_off)
        .test("odd::fm11_a_claim_that_was_there_before_its_instance_is_never_adopted", Beside, odd::claimed_before)
}
