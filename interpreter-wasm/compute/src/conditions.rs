//! Conditions of several members as one list.
//!
//! A condition that breaks the schema of `metav1.Condition` is skipped, since the API server would refuse the whole
//! status for it, at every try; so is all but the first of one type, and a `conditions` that is no list. How many were
//! skipped is reported to the host, which counts them; the answer is not the place: a field for the number would be
//! pruned by the CRD and be written forever. The member's own API server refuses such conditions, so none is expected
//! here.
//!
//! Messages are cut to [`MESSAGE_LIMIT`] bytes between two characters. `observedGeneration` is the translated number of
//! the whole status, or absent.

use std::collections::{BTreeMap, BTreeSet};

use popcell_sdk::generation::OBSERVED_GENERATION;
use popcell_sdk::prelude::*;

/// Longest message that goes upward, in bytes of UTF-8.
pub(crate) const MESSAGE_LIMIT: usize = 1024;

/// How the statuses of one type in several clusters become one.
#[derive(Clone, Copy)]
enum Rule {
    /// True in one cluster is true.
    Any,
    /// True only where it is true in all.
    All,
    /// The first cluster by name speaks.
    First,
}

impl Rule {
    fn of(kind: &str) -> Self {
        match kind {
            "Available" => Self::Any,
            "ReplicasReady" => Self::All,
            _ => Self::First,
        }
    }

    /// The lowest rank decides; among equals the first cluster.
    fn rank(self, status: &str) -> u8 {
        match (self, status) {
            (Self::First, _) | (Self::Any, "True") | (Self::All, "False") => 0,
            (_, "Unknown") => 1,
            _ => 2,
        }
    }
}

/// A condition that keeps the schema.
#[derive(Clone, Copy)]
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    message: &'a str,
    json: &'a Json,
}

/// Merges the `conditions` fields of the members, given by cluster name, and adds to `left_out` what cannot go upward.
/// `None` when none of them is a list.
pub(crate) fn merge<'a>(
    lists: impl Iterator<Item = &'a Json>,
    generation: Option<i64>,
    left_out: &mut usize,
) -> Result<Option<Json>> {
    // In the order in which types were first seen.
    let mut deciding: Option<(Vec<Condition<'a>>, BTreeMap<&'a str, usize>)> = None;
    for list in lists {
        let Some(entries) = list.as_items() else {
            *left_out += 1;
            continue;
        };
        let (deciding, places) = deciding.get_or_insert_default();
        let readable = readable(entries);
        *left_out += entries.len() - readable.len();
        for condition in readable {
            let place = *places.entry(condition.kind).or_insert(deciding.len());
            match deciding.get_mut(place) {
                None => deciding.push(condition),
                Some(known) => {
                    let rule = Rule::of(condition.kind);
                    if rule.rank(condition.status) < rule.rank(known.status) {
                        *known = condition;
                    }
                }
            }
        }
    }
    let Some((deciding, _)) = deciding else {
        return Ok(None);
    };
    let merged = deciding
        .into_iter()
        .map(|condition| condition.upward(generation))
        .collect::<Result<Vec<_>>>()?;
    Ok(Some(Json::array(merged)))
}

/// The conditions of one list that can go upward, one of each type.
fn readable(entries: &[Json]) -> Vec<Condition<'_>> {
    let mut kinds = BTreeSet::new();
    entries
        .iter()
        .filter_map(Condition::read)
        .filter(|condition| kinds.insert(condition.kind))
        .collect()
}

impl<'a> Condition<'a> {
    /// `None` when the entry breaks the schema. Its `observedGeneration` is not looked at: it is replaced anyway.
    fn read(json: &'a Json) -> Option<Self> {
        // Not the readers that name what is wrong: it is not reported, and a list can be long.
        let text = |pointer: &str| json.get(pointer)?.as_text();
        let kind = text("/type").filter(|kind| is_type(kind))?;
        let status = text("/status").filter(|status| is_status(status))?;
        let message = text("/message")?;
        text("/reason").filter(|reason| is_reason(reason))?;
        text("/lastTransitionTime").filter(|time| is_date_time(time))?;
        Some(Self {
            kind,
            status,
            message,
            json,
        })
    }

    /// The condition as it stands on the hub.
    fn upward(self, generation: Option<i64>) -> Result<Json> {
        let mut json = self.json.clone();
        if self.message.len() > MESSAGE_LIMIT {
            let end = self.message.floor_char_boundary(MESSAGE_LIMIT);
            json.set("/message", self.message.get(..end).unwrap_or_default())?;
        }
        match generation {
            Some(generation) => json.set(OBSERVED_GENERATION, generation)?,
            None => {
                json.remove(OBSERVED_GENERATION)?;
            }
        }
        Ok(json)
    }
}

/// Limits of the schema of `metav1.Condition`, as API servers check it for every CRD that uses the type
/// (k8s.io/apimachinery pkg/apis/meta/v1/types.go).
const TYPE_LIMIT: usize = 316;
const REASON_LIMIT: usize = 1024;

/// `Name` or `dns.subdomain/Name`, at most 316 bytes; a name begins and ends with a letter or digit and has `-_.` inside.
fn is_type(text: &str) -> bool {
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
fn is_status(text: &str) -> bool {
    matches!(text, "True" | "False" | "Unknown")
}

/// `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, at most 1,024 bytes.
fn is_reason(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= REASON_LIMIT
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && framed(text, is_word, |byte| matches!(byte, b',' | b':'))
}

/// RFC 3339 as Go parses it: a real day, no leap second, upper-case `T` and `Z`.
fn is_date_time(text: &str) -> bool {
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
