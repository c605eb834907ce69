//! Benchmarks against peers in the same run.
