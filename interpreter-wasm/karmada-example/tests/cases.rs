//! Every document below `tests/`, and the laws.

popcell_sdk::test_main!(karmada_example_interpreter, "tests");
