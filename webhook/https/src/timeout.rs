//! How long the client of a webhook waits.
//!
//! API servers and Karmada send `?timeout=` with every call, in Go's duration syntax. Crates for durations of people, such as
//! `humantime` 2, read other spellings (`1min`) and say nothing of Go's; this reads what Go reads.

use std::time::Duration;

/// What a client that sent this query will wait, less a tenth for the way back. `0s` and what cannot be read count as no
/// wish at all.
pub fn asked(query: Option<&str>) -> Option<Duration> {
    query
        .and_then(timeout_parameter)
        .and_then(parse_duration)
        .filter(|asked| !asked.is_zero())
        .map(|asked| asked.saturating_sub(asked / 10))
}

fn timeout_parameter(query: &str) -> Option<&str> {
    query.split('&').find_map(|pair| pair.strip_prefix("timeout="))
}

/// Reads what Go's `time.Duration` prints: `3s`, `1m30s`, `500ms`, `1.5h`, `0`. Negative durations, unknown units and
/// what does not fit into Go's type, 292 years, are `None`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut total = 0_u128;
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
    // The sum has the limit, and not each number: the same time is read or refused however it is written.
    let nanos = i64::try_from(total).ok()?;
    Some(Duration::from_nanos(nanos.unsigned_abs()))
}

/// Digits after the point that count; what follows is less than a nanosecond in any unit.
const FRACTION: usize = 20;

/// One number with its unit, in whole nanoseconds.
fn term(value: &str, unit: &str) -> Option<u128> {
    let nanos: u128 = match unit {
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
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number = |digits: &str| {
        if digits.is_empty() {
            Some(0)
        } else {
            digits.parse::<u128>().ok()
        }
    };
    let fraction = fraction.get(..FRACTION).unwrap_or(fraction);
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = number(fraction)?.checked_mul(nanos)? / parts;
    number(whole)?.checked_mul(nanos)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations_are_read() {
        let ms = Duration::from_millis;
        let most = Some(Duration::from_nanos(i64::MAX.unsigned_abs()));
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
            ("0.000000000009h", Some(Duration::from_nanos(32))),
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
            ("9223372036854775807ns", most),
            ("9223372036s854775807ns", most),
            ("9223372036.854775808s", None),
            ("9223372036s854775808ns", None),
            ("5s9223372036s", None),
            ("1s ", None),
        ] {
            assert_eq!(parse_duration(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_tenth_of_the_timeout_is_left_and_zero_means_none() {
        let seconds = |query| asked(query).map(|asked| asked.as_secs_f64());
        assert_eq!(seconds(Some("a=b&timeout=10s")), Some(9.0));
        assert_eq!(
            asked(Some("timeout=1ns")),
            Some(Duration::from_nanos(1)),
            "who waits is answered in time"
        );
        for query in [
            None,
            Some(""),
            Some("timeout="),
            Some("timeout=0s"),
            Some("timeout=abc"),
            Some("x=1"),
        ] {
            assert_eq!(seconds(query), None, "{query:?}");
        }
    }
}
