//! Every document of the YAML files in this folder, and the laws on every object in them.

popcell_sdk::test_main!(compute_interpreter, "tests");
