//! Command line of popcell.
fn main() {}
