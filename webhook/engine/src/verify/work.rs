//! How much the check of one patch may cost, so that a module cannot make the host work longer than it may itself.

use std::time::Instant;

/// What any check may cost.
const BASE: usize = 16 << 20;
/// What it may cost beyond that for each byte of the object and of the patch. A patch that reads an object level by level
/// costs its size for each level; one that moves the items of a long array costs their number for each step.
const PER_BYTE: usize = 16;
/// How much is done between two looks at the clock. Ordinary patches never look.
const LOOK: usize = 256 << 10;

/// Why a step of a patch is not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// Karmada's patch library would refuse it, for this reason.
    Refused(String),
    /// It takes more work than any patch of this size needs.
    TooMuchWork,
    /// The time of the call is over.
    Deadline,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// What is left to one check.
#[derive(Debug)]
pub(super) struct Work {
    left: usize,
    until_look: usize,
    deadline: Option<Instant>,
}

impl Work {
    /// For an object and a patch of so many bytes together.
    pub(super) fn new(bytes: usize, deadline: Option<Instant>) -> Self {
        Self {
            left: BASE.saturating_add(bytes.saturating_mul(PER_BYTE)),
            until_look: LOOK,
            deadline,
        }
    }

    /// Pays for bytes that are read or items that are moved, before that is done.
    pub(super) fn pay(&mut self, units: usize) -> Result<(), Failure> {
        self.left = self.left.checked_sub(units).ok_or(Failure::TooMuchWork)?;
        if let Some(until_look) = self.until_look.checked_sub(units) {
            self.until_look = until_look;
            return Ok(());
        }
        self.until_look = LOOK;
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Failure::Deadline),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_limit_grows_with_the_object() {
        let mut work = Work::new(10, None);
        assert_eq!(work.pay(BASE), Ok(()));
        assert_eq!(work.pay(10 * PER_BYTE), Ok(()));
        assert_eq!(work.pay(1), Err(Failure::TooMuchWork));
    }

    #[test]
    fn a_deadline_that_is_over_ends_what_is_long_and_not_what_is_short() {
        let over = Instant::now().checked_sub(Duration::from_secs(1));
        let mut work = Work::new(0, over);
        assert_eq!(work.pay(LOOK), Ok(()));
        assert_eq!(work.pay(1), Err(Failure::Deadline));
        let later = Instant::now().checked_add(Duration::from_mins(1));
        let mut work = Work::new(0, later);
        assert_eq!(work.pay(LOOK), Ok(()));
        assert_eq!(work.pay(1), Ok(()));
    }
}
