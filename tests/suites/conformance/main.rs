//! Whether Karmada's own client understands our server: karmada.md 1.9, over HTTP/2 and over HTTP/1.1.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod draining;
mod faults;
mod karmadactl;
mod objects;
mod operations;
mod patches;
mod room;
mod same;
mod wire;
mod world;

use std::process::ExitCode;

use popcell_suites::suite::{Manner, Suite};

fn main() -> anyhow::Result<ExitCode> {
    use Manner::{Alone, Beside};
    let suite = Suite::<world::World>::new()?
        .test("l1::every_operation_over_h1_and_h2", Beside, wire::every_operation)
        .test("l1::fields_and_parameters_that_nobody_knows", Beside, wire::amended)
        .test("l1::numbers_arrive_exact", Beside, wire::exact_numbers)
        .test("l1::unchanged_is_an_answer_without_a_patch", Beside, wire::unchanged)
        .test("l1::zero_replicas_are_an_answer", Beside, wire::zero_replicas)
        .test(
            "l1::absent_aggregated_status_means_no_clusters",
            Beside,
            wire::no_clusters,
        )
        .test("l1::large_objects_arrive", Beside, wire::large)
        .test("l1::refusals_arrive_with_their_text", Beside, faults::refusals)
        .test("l1::lies_are_refused_before_karmada_sees_them", Beside, faults::lies)
        .test("l1::an_unknown_kind_is_named", Beside, faults::unknown_kind)
        .test("l1::c07_five_causes_five_reasons", Beside, faults::causes)
        .test("l1::c08_a_loop_ends_inside_the_timeout", Beside, faults::loops)
        .test("l1::c12_overload_is_repeated_by_the_client", Alone, room::overload)
        .test(
            "l1::c21_no_call_fails_while_one_of_two_replicas_stops",
            Beside,
            draining::one_of_two,
        )
        .test(
            "l2::example_answers_as_karmadas_own_webhook",
            Beside,
            operations::like_the_example,
        )
        .test(
            "l2::cases_of_every_module_hold_over_the_wire",
            Beside,
            operations::cases,
        )
        .test("l2::patches_of_odd_keys_apply", Beside, patches::odd_keys)
        .test(
            "l2::popcell_interpret_prints_as_karmadactl",
            Beside,
            karmadactl::interpret,
        )
        .test(
            "l3::compute_answers_alike_natively_and_in_webassembly",
            Beside,
            same::compute,
        )
        .test(
            "l3::karmada_example_answers_alike_natively_and_in_webassembly",
            Beside,
            same::karmada_example,
        )
        .test(
            "l3::cloneset_answers_alike_natively_and_in_webassembly",
            Beside,
            same::cloneset,
        );
    Ok(suite.run())
}
