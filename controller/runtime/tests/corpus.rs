//! What was found by fuzzing, and what it began with: see `fuzz/README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]
#![allow(clippy::indexing_slicing, reason = "likewise")]

#[path = "../../../fuzz/checks/config.rs"]
#[expect(unreachable_pub, reason = "it is public where it is shared from")]
mod checks;
#[path = "../../../fuzz/checks/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/mutate.rs"]
#[expect(unreachable_pub, reason = "it is public where it is shared from")]
mod mutate;

/// The corpus, below `fuzz/corpus`.
const FOLDER: &str = "config";
