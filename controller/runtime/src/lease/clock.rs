//! The clock of the Lease.
//!
//! `std` and tokio measure time by a clock that stands while the machine sleeps. A holder that was suspended for a minute
//! would find its permission almost whole, after another has begun to write. CLOCK_BOOTTIME goes on.

use std::ops::{Add, AddAssign};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// A time on the clock of the Lease: since the start of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Duration);

impl Time {
    /// How long after an earlier time; nothing where that is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(after))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

/// Says what time it is.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// CLOCK_BOOTTIME of the kernel.
    Boot,
    /// Tokio's, which tests stop, since this time.
    #[cfg(test)]
    Stopped(tokio::time::Instant),
}

impl Clock {
    /// The clock of tests with paused time.
    #[cfg(test)]
    pub(super) fn stopped() -> Self {
        Self::Stopped(tokio::time::Instant::now())
    }

    /// The present time.
    pub fn now(self) -> Time {
        match self {
            Self::Boot => {
                let now = clock_gettime(ClockId::Boottime);
                let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
                let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or_default();
                Time(Duration::new(seconds, nanoseconds))
            }
            #[cfg(test)]
            Self::Stopped(start) => Time(start.elapsed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_time_since_the_machine_started_sleep_included() {
        // The kernel computes the first number of this file by CLOCK_BOOTTIME too.
        let uptime = || {
            let text = std::fs::read_to_string("/proc/uptime").unwrap();
            Duration::from_secs_f64(text.split(' ').next().unwrap().parse().unwrap())
        };
        let (before, now, after) = (uptime(), Clock::Boot.now(), uptime());
        let tick = Duration::from_millis(20);
        assert!(
            before.saturating_sub(tick) <= now.0 && now.0 <= after + tick,
            "{before:?} {now:?} {after:?}"
        );
    }

    #[test]
    fn it_continues_while_the_machine_sleeps() {
        use std::process::Command;

        // For whom the kernel adds a day to CLOCK_BOOTTIME and to no other clock, as a day of sleep does.
        let slept = |program: &std::path::Path| {
            let mut unshare = Command::new("unshare");
            unshare.args(["-rT", "--boottime", "86400"]).arg(program);
            unshare
        };
        let is_permitted = slept("true".as_ref())
            .output()
            .is_ok_and(|ended| ended.status.success());
        if !is_permitted {
            eprintln!("skipped: time namespaces are not permitted here");
            return;
        }
        let other = "lease::clock::tests::it_shows_the_time_since_the_machine_started_sleep_included";
        let ended = slept(&std::env::current_exe().unwrap())
            .args(["--exact", other])
            .output();
        let ended = ended.unwrap();
        let text = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    }

    #[test]
    fn times_do_not_wrap() {
        let late = Time(Duration::MAX) + Duration::from_secs(1);
        assert_eq!(
            (late, Time::default().since(late)),
            (Time(Duration::MAX), Duration::ZERO)
        );
    }
}
