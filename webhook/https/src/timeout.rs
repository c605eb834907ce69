//! How long the client of a webhook waits.
//!
//! API servers and Karmada send `?timeout=` with every call, in Go's duration syntax.

use std::time::Duration;

/// What a client that sent this query will wait, less a tenth for the way back. `0s` and what cannot be read count as no
/// wish at all.
pub fn asked(query: Option<&str>) -> Option<Duration> {
    query
        .and_then(timeout_parameter)
        .and_then(parse_duration)
        .filter(|asked| !asked.is_zero())
        .map(|asked| asked / 10 * 9)
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
    fn c08_a_tenth_is_left_and_zero_is_no_wish() {
        let seconds = |query| asked(query).map(|asked| asked.as_secs_f64());
        assert_eq!(seconds(Some("a=b&timeout=10s")), Some(9.0));
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
