//! The schema of `metav1.Condition`, as API servers check it for every CRD that uses the type
//! (k8s.io/apimachinery pkg/apis/meta/v1/types.go).

const TYPE_LIMIT: usize = 316;
const REASON_LIMIT: usize = 1024;

/// `Name` or `dns.subdomain/Name`, at most 316 bytes; a name begins and ends with a letter or digit and has `-_.` inside.
pub(crate) fn is_type(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    text.len() <= TYPE_LIMIT
        && framed(
            name,
            |byte| byte.is_ascii_alphanumeric(),
            |byte| matches!(byte, b'-' | b'_' | b'.'),
        )
        && prefix.is_none_or(|prefix| prefix.split('.').all(is_dns_label))
}

fn is_dns_label(text: &str) -> bool {
    framed(
        text,
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

/// Not empty, begins and ends with `edge`, has `edge` or `inner` between.
fn framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| edge(*byte))
        && bytes.last().is_some_and(|byte| edge(*byte))
        && bytes.iter().all(|byte| edge(*byte) || inner(*byte))
}

/// One of the three values of a condition's status.
pub(crate) fn is_status(text: &str) -> bool {
    matches!(text, "True" | "False" | "Unknown")
}

/// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, at most 1,024 bytes.
pub(crate) fn is_reason(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= REASON_LIMIT
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && framed(text, is_word, |byte| matches!(byte, b',' | b':'))
}

/// RFC 3339 as Go parses it: a real day, no leap second, upper-case `T` and `Z`.
pub(crate) fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once('T') else {
        return false;
    };
    let Some((time, offset)) = rest.split_at_checked(8) else {
        return false;
    };
    is_date(date) && is_time(time) && is_offset(without_fraction(offset))
}

fn is_date(text: &str) -> bool {
    let Some([year, month, day]) = numbers(text, "-", [4, 2, 2]) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn is_time(text: &str) -> bool {
    numbers(text, ":", [2, 2, 2]).is_some_and(|[hour, minute, second]| hour < 24 && minute < 60 && second < 60)
}

fn is_offset(text: &str) -> bool {
    text == "Z"
        || text
            .strip_prefix(['+', '-'])
            .and_then(|text| numbers(text, ":", [2, 2]))
            .is_some_and(|[hours, minutes]| hours < 24 && minutes < 60)
}

/// What follows `.123`; the text itself when there is no fraction.
fn without_fraction(text: &str) -> &str {
    match text.strip_prefix('.') {
        Some(fraction) => {
            let rest = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
            if rest.len() == fraction.len() { text } else { rest }
        }
        None => text,
    }
}

/// Exactly N decimal numbers of the given widths between separators.
fn numbers<const N: usize>(text: &str, separator: &str, widths: [usize; N]) -> Option<[u32; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, width) in numbers.iter_mut().zip(widths) {
        let part = parts
            .next()
            .filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types() {
        for good in [
            "Available",
            "a",
            "A-b_c.D9",
            "example.io/Ready",
            "a-1.b2/X",
            &"x".repeat(316),
        ] {
            assert!(is_type(good), "{good}");
        }
        for bad in [
            "",
            "-a",
            "a-",
            "a b",
            "a/b/c",
            "/Ready",
            "Example.io/Ready",
            "a..b/Ready",
            "a/",
            "ä",
            &"x".repeat(317),
        ] {
            assert!(!is_type(bad), "{bad}");
        }
    }

    #[test]
    fn statuses() {
        for good in ["True", "False", "Unknown"] {
            assert!(is_status(good), "{good}");
        }
        for bad in ["", "true", "FALSE", "Maybe"] {
            assert!(!is_status(bad), "{bad}");
        }
    }

    #[test]
    fn reasons() {
        for good in ["A", "StableInstanceFound", "a:b,c_", "A9", &"R".repeat(1024)] {
            assert!(is_reason(good), "{good}");
        }
        for bad in ["", "9A", "_A", "A:", "A,", "two words", "A-b", "Ä", &"R".repeat(1025)] {
            assert!(!is_reason(bad), "{bad}");
        }
    }

    #[test]
    fn date_times() {
        let good = [
            "1970-01-01T00:00:00Z",
            "2026-11-28T23:59:59Z",
            "2024-02-29T00:00:00.123456789Z",
            "2000-02-29T12:00:00+05:30",
            "2026-12-31T12:00:00.5-08:00",
        ];
        for good in good {
            assert!(is_date_time(good), "{good}");
        }
        let bad = [
            "",
            "2026-11-28",
            "2026-11-28 10:00:00Z",
            "2026-11-28T10:00:00",
            "2026-11-28T10:00Z",
            "2026-11-28t10:00:00z",
            "2026-13-01T10:00:00Z",
            "2026-00-01T10:00:00Z",
            "2026-11-31T10:00:00Z",
            "2025-02-29T10:00:00Z",
            "1900-02-29T10:00:00Z",
            "2026-11-28T24:00:00Z",
            "2026-11-28T10:60:00Z",
            "2026-11-28T10:00:60Z",
            "2026-11-28T10:00:00.Z",
            "2026-11-28T10:00:00+5:30",
            "2026-11-28T10:00:00+24:00",
            "2026-11-28T10:00:00ZZ",
            "26-11-28T10:00:00Z",
            "+026-11-28T10:00:00Z",
            "2026-11-28T10:00:0ä",
            "yesterday",
        ];
        for bad in bad {
            assert!(!is_date_time(bad), "{bad}");
        }
    }
}
