//! What is said when a person interrupts a command that has done a part of its work.

use std::sync::{Mutex, PoisonError};

static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on an interrupt says this before the process ends.
pub fn leave(words: String) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// What was last left to be said.
pub fn last_words() -> Option<String> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
