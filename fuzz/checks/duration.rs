//! Durations are read exactly, by another way of counting, and what is printed is read back.

use std::time::Duration;

use popcell_https::timeout::{asked, parse_duration};

pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let read = parse_duration(&text);
    if text.len() < 200 {
        assert_eq!(read, exact(&text), "{text:?}");
    }
    if let Some(read) = read {
        let (seconds, nanos) = (read.as_secs(), read.subsec_nanos());
        assert_eq!(parse_duration(&format!("{seconds}s{nanos}ns")), Some(read), "{text:?}");
        assert_eq!(
            parse_duration(&format!("{seconds}.{nanos:09}s")),
            Some(read),
            "{text:?}"
        );
    }
    let waits = asked(Some(&format!("dryRun=All&timeout={text}")));
    if !text.contains('&') {
        assert_eq!(waits.is_some(), read.is_some_and(|read| !read.is_zero()), "{text:?}");
    }
    assert!(
        waits.is_none_or(|waits| !waits.is_zero()),
        "no time at all is left of {text:?}"
    );
}

/// Number by number, each as a whole number of the smallest part that it is written in; all together are what Go can hold.
fn exact(text: &str) -> Option<Duration> {
    let mut total = 0_u128;
    let mut rest = text;
    if text.is_empty() || text == "0" {
        return (text == "0").then_some(Duration::ZERO);
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|one: char| one.is_ascii_digit() || one == '.');
        let number = &rest[..rest.len() - unit.len()];
        rest = unit.trim_start_matches(|one: char| !(one.is_ascii_digit() || one == '.'));
        let nanos: u128 = match &unit[..unit.len() - rest.len()] {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        let mut parts = number.split('.');
        let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
        if parts.next().is_some() || whole.len() + fraction.len() == 0 {
            return None;
        }
        // A nanosecond is seen 13 digits after the point, at most; what follows is less.
        let fraction = &fraction[..fraction.len().min(20)];
        let digits = format!("{}{fraction}", whole.trim_start_matches('0'));
        let wide = u32::try_from(fraction.len()).ok()?;
        // More digits than this are too much in any unit.
        if digits.len() - fraction.len() > 20 {
            return None;
        }
        let (high, low) = digits.split_at(digits.len() - fraction.len());
        let number = |text: &str| {
            if text.is_empty() {
                Some(0_u128)
            } else {
                text.parse().ok()
            }
        };
        total += number(high)? * nanos + number(low)? * nanos / 10_u128.pow(wide);
    }
    // What Go's type holds.
    (total < 1 << 63)
        .then(|| u64::try_from(total).ok())
        .flatten()
        .map(Duration::from_nanos)
}
