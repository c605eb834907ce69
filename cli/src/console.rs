//! Where a command reads and writes, so that tests can stand in for the terminal; and what an interrupted one says.

use std::{
    io::{Read, Write},
    sync::{Mutex, PoisonError},
};

/// Standard streams of one run.
pub struct Console {
    /// Results: what scripts read.
    pub out: Box<dyn Write>,
    /// Progress and remarks: what people read.
    pub err: Box<dyn Write>,
    /// Read by `-`.
    pub stdin: Box<dyn Read>,
}

impl Console {
    /// The streams of this process.
    pub fn standard() -> Self {
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            stdin: Box::new(std::io::stdin()),
        }
    }
}

static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on an interrupt says this before the process ends.
pub fn leave(words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// What was last left to be said.
pub fn last_words() -> Option<String> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
