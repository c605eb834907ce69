//! What an operator can set.

use std::thread::available_parallelism;
use std::time::Duration;

use crate::engine::EngineError;

/// Limits of the engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The longest time one call may run in a module; 0.1 s to 30 s.
    pub call_timeout: Duration,
    /// The most linear memory one call may have, in bytes; 1 MiB to 1 GiB.
    pub max_memory: usize,
    /// How many calls may run at once after they have used up the short budget of the fast path; at least 1.
    pub slots: usize,
    /// Admit modules for kinds of the core, `apps`, admission and Karmada groups.
    pub allow_core_kinds: bool,
    /// The largest answer of a module, in bytes. Objects in etcd end at 1.5 MiB.
    pub max_answer: usize,
    /// How long a call may run on the thread that received it before it is run again on a slot.
    pub fast_budget: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(2),
            max_memory: 64 << 20,
            slots: cores().max(2),
            allow_core_kinds: false,
            max_answer: 3 << 20,
            fast_budget: Duration::from_millis(2),
        }
    }
}

impl Settings {
    /// The shortest and the longest [`Settings::call_timeout`].
    pub const CALL_TIMEOUT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

    pub(crate) fn check(&self) -> Result<(), EngineError> {
        let refuse = |setting, message: &str| {
            Err(EngineError::Setting {
                setting,
                message: message.to_owned(),
            })
        };
        if self.call_timeout < Self::CALL_TIMEOUT.0 || self.call_timeout > Self::CALL_TIMEOUT.1 {
            return refuse(
                "call-timeout",
                &format!("must be 0.1 s to 30 s, is {:?}", self.call_timeout),
            );
        }
        if self.max_memory < 1 << 20 || self.max_memory > 1 << 30 {
            return refuse(
                "max-memory",
                &format!("must be 1 MiB to 1 GiB, is {} bytes", self.max_memory),
            );
        }
        if self.slots == 0 || self.slots > 1000 {
            return refuse("slots", &format!("must be 1 to 1000, is {}", self.slots));
        }
        if self.max_answer == 0 || self.fast_budget.is_zero() {
            return refuse("max-answer, fast-budget", "must not be 0");
        }
        Ok(())
    }

    /// How many instances may live at once: those of the slots and those of the threads that receive calls.
    pub(crate) fn instances(&self) -> usize {
        self.slots + (2 * cores()).max(16)
    }
}

fn cores() -> usize {
    available_parallelism().map_or(2, usize::from)
}
