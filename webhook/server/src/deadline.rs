//! How long a request may take.
//!
//! Karmada sends `?timeout=` with what its client will wait, in Go's duration syntax. A tenth of it is left for the way
//! back. A module's own cap holds always, whatever the client says.

use std::time::{Duration, Instant};

/// The time of one request.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    received: Instant,
    asked: Option<Duration>,
    cap: Duration,
}

impl Deadline {
    /// For a request whose head arrived at `received`. `0s` and what cannot be read count as no wish at all. `cap` is the
    /// longest time of a call in a module.
    pub fn new(received: Instant, query: Option<&str>, cap: Duration) -> Self {
        let asked = query
            .and_then(timeout_parameter)
            .and_then(parse_duration)
            .filter(|asked| !asked.is_zero());
        Self {
            received,
            asked: asked.map(|asked| asked / 10 * 9),
            cap,
        }
    }

    /// How long the client waits, less a tenth, counted from the request's head; `None` when it did not say.
    pub fn asked(&self) -> Option<Duration> {
        self.asked
    }

    /// The longest time from a complete request to its answer. A call waits at most a quarter of its time for room, so
    /// with a third more than the cap a module still gets all of the cap.
    pub fn longest(cap: Duration) -> Duration {
        cap + cap / 3
    }

    /// When the answer has to be there, for a request that was complete at `complete`. A call waits at most a quarter of
    /// its time for room, so with a third more than the cap a module still gets all of it.
    pub fn answer_by(&self, complete: Instant) -> Instant {
        let own = complete + Self::longest(self.cap);
        self.asked.map_or(own, |asked| own.min(self.received + asked))
    }

    /// What a module gets when nothing was lost before: one that had (nearly) as much is to blame when it was too slow.
    pub fn fair_share(&self) -> Duration {
        self.asked.map_or(self.cap, |asked| asked.min(self.cap)) / 10 * 9
    }
}

fn timeout_parameter(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

/// Reads what Go's `time.Duration` prints: `3s`, `1m30s`, `500ms`, `1.5h`, `0`. Negative durations, unknown units and
/// what does not fit are `None`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let number = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (value, after) = rest.split_at_checked(number)?;
        let unit_end = after
            .find(|letter: char| letter.is_ascii_digit() || letter == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(unit_end)?;
        total = total.checked_add(term(value, unit)?)?;
        rest = next;
    }
    Some(total)
}

/// One number with its unit, exact to the nanosecond.
fn term(value: &str, unit: &str) -> Option<Duration> {
    let nanos: u64 = match unit {
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut part = 0;
    let mut scale = nanos;
    for digit in fraction.chars() {
        scale /= 10;
        part += u64::from(digit.to_digit(10)?) * scale;
    }
    Some(Duration::from_nanos(whole.checked_mul(nanos)?.checked_add(part)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c08_go_durations() {
        let ms = Duration::from_millis;
        for (text, expected) in [
            ("3s", Some(ms(3000))),
            ("1m30s", Some(ms(90_000))),
            ("500ms", Some(ms(500))),
            ("1.5s", Some(ms(1500))),
            (".5s", Some(ms(500))),
            ("1h0m0.25s", Some(ms(3_600_250))),
            ("0s", Some(ms(0))),
            ("0", Some(ms(0))),
            ("1\u{b5}s", Some(Duration::from_micros(1))),
            ("", None),
            ("3", None),
            ("s", None),
            (".s", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("+1s", None),
            ("abc", None),
            ("1d", None),
            ("99999999999999999999s", None),
            ("9999999999h", None),
            ("1s ", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text:?}");
        }
    }

    #[test]
    fn c08_zero_unreadable_and_absent_mean_the_cap_only() {
        let now = Instant::now();
        let cap = Duration::from_millis(1500);
        for query in [
            None,
            Some(""),
            Some("timeout="),
            Some("timeout=0s"),
            Some("timeout=abc"),
            Some("x=1"),
        ] {
            let deadline = Deadline::new(now, query, cap);
            assert_eq!(deadline.asked(), None, "{query:?}");
            assert_eq!(deadline.answer_by(now), now + Duration::from_secs(2), "{query:?}");
            assert_eq!(deadline.fair_share(), Duration::from_millis(1350), "{query:?}");
        }
    }

    #[test]
    fn c08_the_smaller_of_wish_and_cap_holds() {
        let now = Instant::now();
        let cap = Duration::from_secs(3);
        let short = Deadline::new(now, Some("a=b&timeout=1s"), cap);
        assert_eq!(short.answer_by(now), now + Duration::from_millis(900));
        let long = Deadline::new(now, Some("timeout=30s"), cap);
        assert_eq!(long.answer_by(now), now + Duration::from_secs(4));
    }

    #[test]
    fn c07_the_client_waits_from_the_head_and_the_cap_runs_from_the_end_of_the_body() {
        let head = Instant::now();
        let complete = head + Duration::from_millis(1200);
        let cap = Duration::from_secs(3);
        assert_eq!(
            Deadline::new(head, Some("timeout=2s"), cap).answer_by(complete),
            head + Duration::from_millis(1800)
        );
        assert_eq!(
            Deadline::new(head, None, cap).answer_by(complete),
            complete + Duration::from_secs(4)
        );
    }
}
