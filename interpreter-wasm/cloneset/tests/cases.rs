//! Every document below `tests/` (those in `tests/karmada` are Karmada's own), and the laws.

popcell_sdk::test_main!(cloneset_interpreter, "tests");
