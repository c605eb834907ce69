//! The management plane on real control planes: Workloads of many projects to the hub and back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod admission;
mod churn;
mod cities;
mod conflicts;
mod environment;
mod handover;
mod idle;
mod namespaces;
mod outages;
mod projections;
mod projects;
mod quotas;
mod self_healing;
mod single;
mod starts;
mod takeover;
mod trust;
mod unusual_deletions;
mod waiting;
mod writers;

use std::process::ExitCode;

use environment::Environment;
use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;

fn main() -> anyhow::Result<ExitCode> {
    let parts = [workloads, hub, projects, faults, processes];
    let suite = parts
        .iter()
        .fold(Suite::<Environment>::new()?, |suite, part| part(suite));
    Ok(suite.run())
}

/// Those that take long begin first, and those that wait for the same lock are apart.
#[rustfmt::skip]
fn workloads(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("cities::a_city_that_loses_its_only_cell_says_so", Beside, cities::loses_its_cell)
        .test("deployments::equal_names_in_two_projects_do_not_mix", Beside, projects::apart)
        .test("waiting::kubectl_waits_for_available_on_every_kind_and_plane", Beside, waiting::available)
        .test("conflicts::after_a_conflict_the_state_of_that_moment_is_written", Beside, conflicts::stale)
        .test("cities::a_city_needs_its_binding_only_to_begin", Beside, cities::bindings)
        .test("unusual_deletions::in_whatever_way_a_workload_is_deleted_all_of_it_ends", Beside, unusual_deletions::in_any_way)
        .test("unusual_deletions::the_oldest_deletion_has_an_age", Beside, unusual_deletions::age)
        .test("single::a_deployment_reaches_the_hub_is_shown_and_goes_with_its_policy", Beside, single::whole)
        .test("outages::a_hub_that_refuses_loses_nothing_and_is_not_stormed", Beside, outages::refusing)
}

#[rustfmt::skip]
fn hub(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("self_healing::a_policy_that_is_deleted_or_edited", Beside, self_healing::policy)
        .test("projections::copies_are_shown_with_owner_and_marker", Beside, projections::shown)
        .test("projections::copies_of_another_citys_cell_are_not_shown", Beside, projections::of_its_city_only)
        .test("projections::what_users_do_to_projections_is_undone", Beside, projections::undone)
        .test("admission::a_project_reviews_who_asks_and_for_what", Beside, admission::reviewed)
        .test("writers::instances_are_written_by_us_and_named_users_only", Beside, writers::ours_only)
        .test("takeover::objects_of_upstream_are_stamped_and_nothing_is_recreated", Beside, takeover::stamped)
        .test("takeover::what_is_of_others_is_kept", Beside, takeover::foreign)
}

#[rustfmt::skip]
fn projects(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("projects::a_deleted_project_is_cleaned_after_its_grace", Beside, projects::deleted)
        .test("namespaces::a_recreated_namespace_shows_nothing_of_the_old", Beside, namespaces::again)
}

#[rustfmt::skip]
fn faults(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("outages::a_hub_in_trouble_loses_nothing_and_is_not_stormed", Alone, outages::in_trouble)
}

/// At last nothing has happened for a while to what is in a city without a cell.
#[rustfmt::skip]
fn processes(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("churn::killed_at_twenty_moments_it_ends_in_the_right_state", Alone, churn::killed)
        .test("handover::a_leader_that_is_cut_off_writes_no_more_and_ends", Alone, handover::cut_off_from_all)
        .test("trust::the_hub_takes_tokens_of_another_cluster_and_survives_new_keys", Alone, trust::of_another_issuer)
        .test("quotas::a_stolen_cell_makes_no_more_instances_than_the_quota_of_the_namespace", Alone, quotas::stolen)
        .test("starts::a_dry_run_says_everything_and_writes_nothing", Alone, starts::dry_run)
        .test("starts::orphans_are_deleted_when_the_flag_says_so", Alone, starts::reclaiming)
        .test("idle::a_minute_without_a_request", Alone, idle::quiet)
}
