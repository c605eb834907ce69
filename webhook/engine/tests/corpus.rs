//! What was found by fuzzing, and what it began with: see `fuzz/README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test ends where it fails")]

use std::fs;
use std::path::Path;

#[path = "../../../fuzz/checks/patch.rs"]
#[expect(unreachable_pub, reason = "it is public where it is shared from")]
mod checks;

#[test]
fn every_file_of_the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/patch");
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        checks::check(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "only {files} files");
}
