//! Starts real control planes and stand-ins for tests.
#![forbid(unsafe_code)]

pub mod workspace;
