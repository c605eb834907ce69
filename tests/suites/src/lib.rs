//! What the suites share: an environment that is started once, tests that run in it, Karmada's own client.
#![forbid(unsafe_code)]

pub mod dice;
pub mod environment;
pub mod peer;
pub mod read;
pub mod steps;
pub mod suite;
pub mod tenant;
pub mod trust;
pub mod wire;

pub use popcell_test_support::definitions;
