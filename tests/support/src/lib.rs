//! Starts real control planes and stand-ins for tests.
