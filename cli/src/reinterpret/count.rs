//! How far a run has come.

use std::fmt;

/// What became of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The annotation is set.
    Bumped,
    /// It was deleted meanwhile.
    Gone,
    /// It was not written.
    Failed,
    /// It was not written, and no other could be.
    Forbidden,
}

/// Objects of one run, by what became of them.
#[derive(Clone, Debug)]
pub(super) struct Count {
    kind: String,
    all: usize,
    left_out: usize,
    bumped: usize,
    gone: usize,
    failed: usize,
}

impl Count {
    pub(super) fn new(kind: &str, all: usize, left_out: usize) -> Self {
        Self {
            kind: kind.to_owned(),
            all,
            left_out,
            bumped: 0,
            gone: 0,
            failed: 0,
        }
    }

    pub(super) fn note(&mut self, fate: Fate) {
        match fate {
            Fate::Bumped => self.bumped += 1,
            Fate::Gone => self.gone += 1,
            Fate::Failed | Fate::Forbidden => self.failed += 1,
        }
    }

    pub(super) fn failed(&self) -> usize {
        self.failed
    }

    /// One line while it runs.
    pub(super) fn progress(&self) -> String {
        let done = self.left_out + self.bumped + self.gone + self.failed;
        format!("{done} of {}", self.all)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            all,
            left_out,
            bumped,
            gone,
            failed,
        } = self;
        write!(
            f,
            "{kind}: {bumped} of {all} bumped, {left_out} left out, {gone} gone meanwhile, {failed} failed"
        )
    }
}
