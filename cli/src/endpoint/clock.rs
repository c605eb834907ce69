//! How far the clock of a server is from ours, by the `Date` of its answer.

use hyper::{HeaderMap, header};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser};

/// Seconds by which the server's clock is certainly ahead of ours (negative: behind). The header counts whole seconds, and
/// the answer was made at some moment between `asked` and `answered`: what these can explain is no difference. `None`
/// when there is no `Date` that can be read.
pub fn skew(headers: &HeaderMap, asked: Timestamp, answered: Timestamp) -> Option<i64> {
    let date = headers.get(header::DATE)?;
    let date = DateTimeParser::new().parse_timestamp(date.as_bytes()).ok()?;
    let least = date.duration_since(answered);
    let most = date.duration_since(asked).saturating_add(SignedDuration::from_secs(1));
    Some(if least.is_positive() {
        least.as_secs()
    } else if most.is_negative() {
        most.as_secs()
    } else {
        0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(date: &str, asked: &str, answered: &str) -> Option<i64> {
        let headers = HeaderMap::from_iter([(header::DATE, date.parse().unwrap())]);
        let time = |time: &str| format!("2026-11-28T{time}Z").parse().unwrap();
        skew(&headers, time(asked), time(answered))
    }

    #[test]
    fn what_rounding_and_the_way_can_explain_is_no_difference() {
        let date = "Sat, 28 Nov 2026 05:00:10 GMT";
        assert_eq!(seconds(date, "05:00:10.2", "05:00:10.3"), Some(0));
        // The header says :10 until just before :11, and the answer was on its way for four seconds.
        assert_eq!(seconds(date, "05:00:10.9", "05:00:14.9"), Some(0));
        assert_eq!(seconds(date, "05:00:06", "05:00:10"), Some(0));
    }

    #[test]
    fn a_clock_that_is_ahead_or_behind_is_seen() {
        assert_eq!(
            seconds("Sat, 28 Nov 2026 06:00:00 GMT", "05:00:00", "05:00:01"),
            Some(3599)
        );
        assert_eq!(
            seconds("Sat, 28 Nov 2026 04:00:00 GMT", "05:00:00", "05:00:01"),
            Some(-3599)
        );
    }

    #[test]
    fn an_answer_without_a_readable_date_says_nothing() {
        assert_eq!(seconds("yesterday", "05:00:00", "05:00:01"), None);
        let now = Timestamp::now();
        assert_eq!(skew(&HeaderMap::new(), now, now), None);
    }
}
