//! Whether Karmada's own client understands our server, over HTTP/2 and over HTTP/1.1.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod environment;
mod faults;
mod karmadactl;
mod objects;
mod operations;
mod patches;
mod same;
mod wire;

use std::process::ExitCode;

use popcell_suites::suite::Manner::{Alone, Beside};
use popcell_suites::suite::Suite;

#[rustfmt::skip]
fn main() -> anyhow::Result<ExitCode> {
    let suite = Suite::<environment::Environment>::new()?
        .test("wire::every_operation_over_h1_and_h2", Beside, wire::every_operation)
        .test("wire::unknown_fields_and_parameters_change_nothing", Beside, wire::amended)
        .test("wire::numbers_arrive_exact", Beside, wire::exact_numbers)
        .test("wire::large_objects_arrive", Beside, wire::large)
        .test("faults::refusals_arrive_with_their_text", Beside, faults::refusals)
        .test("faults::a_loop_ends_inside_the_timeout", Beside, faults::loops)
        .test("room::overload_is_repeated_by_the_client", Alone, faults::overload)
        .test("operations::the_example_answers_as_karmadas_own_webhook", Beside, operations::like_the_example)
        .test("operations::cases_of_every_module_hold_over_the_wire", Beside, operations::cases)
        .test("patches::patches_of_odd_keys_apply", Beside, patches::odd_keys)
        .test("karmadactl::popcell_interpret_prints_as_karmadactl", Beside, karmadactl::interpret)
        .test("same::compute_answers_alike_natively_and_in_webassembly", Beside, same::compute)
        .test("same::karmada_example_answers_alike_natively_and_in_webassembly", Beside, same::karmada_example)
        .test("same::cloneset_answers_alike_natively_and_in_webassembly", Beside, same::cloneset);
    Ok(suite.run())
}
