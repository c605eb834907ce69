//! What a real Karmada does with our modules and policies.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asleep;
mod catalog;
mod cells;
mod city;
mod compute;
mod crds;
mod definition;
mod disturbance;
mod example;
mod failover;
mod iam;
mod manifests;
mod manifests_pod;
mod manifests_rights;
mod orphans;
mod planes;
mod pods;
mod registration;
mod reinterpret;
mod stand_ins;
mod stolen;

use std::process::ExitCode;

use popcell_suites::environment::Environment;
use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;

fn main() -> anyhow::Result<ExitCode> {
    let parts = [
        definitions,
        examples,
        deployments,
        registrations,
        shipped_cells,
        commands,
        cities,
        disturbances,
        pods,
    ];
    let suite = parts
        .iter()
        .fold(Suite::<Environment>::new()?, |suite, part| part(suite));
    Ok(suite.run())
}

#[rustfmt::skip]
fn definitions(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("crds::no_field_is_dropped", Beside, crds::whole)
        .test("crds::unknown_fields_of_what_controllers_carry_are_kept", Beside, crds::unknown_fields)
        .test("crds::nulls_are_dropped", Beside, crds::nulls)
        .test("crds::the_examples_are_taken", Beside, crds::examples)
        .test("crds::what_upstream_left_is_taken_and_kept_as_it_is", Beside, crds::of_upstream)
        .test("crds::a_new_instance_has_a_default_status", Beside, crds::unobserved)
        .test("crds::printer_columns_show_what_they_say", Beside, crds::columns)
        .test("crds::invalid_objects_are_refused", Beside, crds::invalid)
        .test("crds::incomplete_statuses_are_refused", Beside, crds::wrong_status)
        .test("crds::what_identifies_a_deployment_is_immutable", Beside, crds::changed)
}

#[rustfmt::skip]
fn examples(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("example::retain_keeps_what_the_member_owns", Beside, example::retain)
        .test("example::revise_replica_divides_by_weight", Beside, example::revise)
        .test("example::dependencies_follow_the_workload", Beside, example::dependencies)
}

#[rustfmt::skip]
fn deployments(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("compute::replicas_and_requirements_reach_the_binding", Beside, compute::replicas)
        .test("compute::zero_replicas_and_back_keep_the_cells_object", Beside, compute::zero_and_back)
        .test("compute::status_arrives_with_translated_generations", Beside, compute::status)
        .test("compute::health_asks_whether_moving_would_help", Beside, compute::health)
        .test("compute::failover_moves_only_what_it_can_help", Beside, failover::only_where_moving_helps)
        .test("compute::unknown_status_fields_arrive", Beside, compute::unknown_fields)
}

#[rustfmt::skip]
fn registrations(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("registration::a_healthy_registration_has_no_complaint", Alone, registration::healthy)
        .test("registration::what_others_removed_is_restored", Alone, registration::reapplied)
        .test("registration::a_customization_in_front_is_refused", Alone, registration::shadowed)
        .test("registration::a_pull_member_needs_a_url", Alone, registration::pull_needs_url)
        .test("registration::what_is_ours_is_taken_away_and_nothing_else", Alone, registration::removed)
        .test("manifests::a_real_api_server_takes_them", Beside, manifests::webhook)
        .test("manifests::the_management_plane_starts_as_it_is_shipped", Beside, manifests::management_plane)
        .test("manifests::a_developers_api_server_takes_the_dev_overlay", Beside, manifests::dev)
        .test("manifests::the_user_may_do_in_projects_what_it_needs", Beside, manifests_rights::project)
}

#[rustfmt::skip]
fn shipped_cells(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("manifests::a_process_that_only_admits_reads_instance_types", Beside, manifests_rights::where_it_only_admits)
        .test("manifests::a_cell_starts_as_it_is_shipped", Beside, manifests::cell)
        .test("manifests::one_cluster_runs_both_controller_groups_as_shipped", Beside, manifests::single_cluster)
        .test("manifests::the_program_may_do_in_its_cell_what_it_needs", Beside, manifests_rights::in_its_cell)
        .test("manifests::a_cell_may_do_on_the_hub_what_it_needs", Beside, manifests_rights::of_a_cell_on_the_hub)
        .test("manifests::the_hub_user_may_do_its_work_and_no_more", Beside, manifests_rights::of_the_hub_user)
        .test("stolen::a_stolen_identity_reaches_nothing_of_others_on_the_hub", Alone, stolen::on_the_hub)
        .test("stolen::a_stolen_identity_reaches_nothing_of_others_in_projects", Beside, stolen::in_a_project)
        .test("catalog::the_service_catalog_takes_the_configuration", Beside, catalog::configuration)
        .test("catalog::every_claimed_resource_type_is_registered", Beside, catalog::registrations)
        .test("catalog::a_new_project_is_granted_its_default_quota", Beside, catalog::default_quota)
        .test("stand_ins::milos_kinds_refuse_what_milo_refuses", Beside, stand_ins::refused_as_by_milo)
        .test("stand_ins::network_kinds_refuse_what_the_network_services_refuse", Beside, stand_ins::refused_as_by_network_services)
        .test("iam::every_kind_is_protected_and_roles_have_what_they_say", Beside, iam::roles)
}

#[rustfmt::skip]
fn commands(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("commands::orphans_lists_and_deletes_what_a_project_lost", Beside, orphans::lost_deployment)
        .test("commands::orphans_takes_a_namespace_that_was_outlived", Beside, orphans::outlived_namespace)
        .test("commands::reinterpret_makes_karmada_aggregate_a_status_again", Beside, reinterpret::aggregated_anew)
        .test("commands::reinterpret_says_how_far_it_came", Beside, reinterpret::interrupted)
}

#[rustfmt::skip]
fn cities(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("city::dfw_goes_only_to_dfw", Beside, city::only_to_its_city)
        .test("city::a_city_without_a_cell_waits_for_one", Alone, city::waits_for_a_cell)
        .test("city::a_second_cluster_does_not_double_the_work", Alone, city::not_doubled)
        .test("city::moving_the_label_moves_the_object", Alone, city::label_moves)
        .test("city::a_no_execute_taint_does_not_evict", Alone, city::no_execute)
}

#[rustfmt::skip]
fn disturbances(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("disturbance::webhook_down_and_up_loses_nothing", Alone, disturbance::webhook_outage)
        .test("asleep::without_the_flag_nothing_is_done_and_no_network_needed", Beside, asleep::nothing_is_done)
        .test("cells::a_cell_keeps_finalizers_and_owners", Beside, cells::keeps_its_own)
        .test("cells::a_deletion_waits_for_the_cells_finalizer", Beside, cells::lets_go_itself)
        .test("cells::works_are_projects_by_cells_and_deployments", Beside, cells::works)
        .test("cells::labels_of_a_cells_namespace_stay", Beside, cells::keeps_labels)
        .test("cells::after_an_outage_edits_are_reverted_and_statuses_arrive", Alone, cells::watched_again)
        .test("definition::a_cell_that_gets_the_kind_late_takes_its_work_then", Alone, definition::late)
        .test("disturbance::a_restart_of_karmada_leaves_no_health_unknown_and_moves_nothing", Alone, disturbance::restart_storm)
}

/// At last: what they run on the hub and in cells might disturb other tests.
#[rustfmt::skip]
fn pods(suite: Suite<Environment>) -> Suite<Environment> {
    suite
        .test("pods::the_pod_of_the_webhook_serves_as_shipped", Alone, pods::webhook)
        .test("pods::the_pod_of_the_management_plane_serves_as_shipped", Alone, pods::management_plane)
        .test("pods::the_pods_of_a_cell_serve_as_shipped", Alone, pods::cell)
        .test("pods::the_pods_of_one_cluster_serve_as_shipped", Alone, pods::one_cluster)
        .test("pods::every_deployment_of_the_manifests_is_started", Beside, pods::all)
}
