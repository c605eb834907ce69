//! What begins together must not go on together, as when a server went away: each waits for a time of its own.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A part of `whole`, from none to all of it, that depends on the subject alone.
pub(crate) fn part(whole: Duration, subject: &impl Hash) -> Duration {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let share = u32::from(hasher.finish().to_le_bytes()[0]);
    whole * share / u32::from(u8::MAX)
}
