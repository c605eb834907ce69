//! What the suites share: a world that is started once, tests that run in it, Karmada's own client.
#![forbid(unsafe_code)]

pub mod dice;
pub mod failing;
pub mod peer;
pub mod read;
pub mod steps;
pub mod suite;
pub mod tenant;
pub mod wire;
pub mod world;

pub use popcell_test_support::definitions;
