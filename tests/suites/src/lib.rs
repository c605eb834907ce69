//! Suites over real control planes and real programs.
