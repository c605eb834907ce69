//! What the test of each corpus does: every file of it, and variants.
//!
//! It is compiled into the tests of the crates that are fuzzed, beside `checks` and `mutate`; `FOLDER` names the corpus.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{FOLDER, checks, mutate};

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(FOLDER);
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// Shows the input that a check fails on.
fn check(text: &[u8]) {
    struct Shown<'a>(&'a [u8]);
    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("fails on {}", self.0.escape_ascii());
            }
        }
    }
    let _shown = Shown(text);
    checks::check(text);
}

#[test]
fn every_file_of_the_corpus() {
    let corpus = corpus();
    assert!(corpus.len() > 5, "only {} files", corpus.len());
    for text in &corpus {
        check(text);
    }
}

#[test]
fn variants_of_the_corpus() {
    vary(1, 3000, Duration::from_mins(1));
}

#[test]
#[ignore = "runs as long as POPCELL_FUZZ_SECONDS says"]
fn variants_for_a_while() {
    let seconds = std::env::var("POPCELL_FUZZ_SECONDS").unwrap().parse().unwrap();
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    println!(
        "seed {seed}, {} variants",
        vary(seed, usize::MAX, Duration::from_secs(seconds))
    );
}

fn vary(seed: u64, rounds: usize, time: Duration) -> usize {
    let (corpus, mut mutator) = (corpus(), mutate::Mutator::new(seed));
    let started = Instant::now();
    let mut round = 0;
    while round < rounds && started.elapsed() < time {
        let (one, other) = (&corpus[round % corpus.len()], &corpus[round / 7 % corpus.len()]);
        check(&mutator.mutated(one, other));
        round += 1;
    }
    round
}
