//! Large objects of every shape, as text: what reading and changing them costs must grow with their size and no faster.

use std::fmt::Write as _;

/// How a large value is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One object of many fields.
    WideMap,
    /// One object of many fields, whose keys stand in no order.
    ShuffledMap,
    /// One list of many numbers.
    LongList,
    /// Many objects as deep as one may be.
    Deep,
    /// Few strings, all of them long.
    LongStrings,
    /// Long strings in which every third letter is an escape.
    EscapedStrings,
    /// A list of conditions of different types.
    Conditions,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::WideMap,
        Self::ShuffledMap,
        Self::LongList,
        Self::Deep,
        Self::LongStrings,
        Self::EscapedStrings,
        Self::Conditions,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WideMap => "wide map",
            Self::ShuffledMap => "shuffled map",
            Self::LongList => "long list",
            Self::Deep => "deep",
            Self::LongStrings => "long strings",
            Self::EscapedStrings => "escaped strings",
            Self::Conditions => "conditions",
        }
    }

    /// A JSON value of about so many bytes. Two with different `last` differ at their end only.
    pub fn value(self, bytes: usize, last: u32) -> String {
        match self {
            Self::WideMap => map(bytes, last, |number| number),
            // A multiplier that is odd visits every number of seven digits' worth once.
            Self::ShuffledMap => map(bytes, last, |number| number.wrapping_mul(0x9e37_79b1) % (1 << 24)),
            Self::LongList => {
                let mut text = String::from("[0");
                while text.len() < bytes {
                    text.push_str(",1");
                }
                let _ = write!(text, ",{last}]");
                text
            }
            Self::Deep => {
                // Below an object's own levels and what it stands in.
                const LEVELS: usize = 58;
                let one = |inner: u32| format!("{}{inner}{}", r#"{"a":"#.repeat(LEVELS), "}".repeat(LEVELS));
                let mut text = format!("[{}", one(0));
                while text.len() < bytes {
                    let _ = write!(text, ",{}", one(1));
                }
                let _ = write!(text, ",{}]", one(last));
                text
            }
            Self::LongStrings => strings(bytes, last, "letters of a long text "),
            Self::EscapedStrings => strings(bytes, last, r#"\"a\n\u00e9b\\"#),
            Self::Conditions => {
                let mut text = String::from("[");
                let mut number = 0_u32;
                while text.len() < bytes {
                    let _ = write!(text, "{},", condition(number, 1));
                    number += 1;
                }
                text.push_str(&condition(number, last));
                text.push(']');
                text
            }
        }
    }
}

fn map(bytes: usize, last: u32, key: impl Fn(u32) -> u32) -> String {
    let mut text = String::from("{");
    let mut number = 0_u32;
    while text.len() < bytes {
        let _ = write!(text, r#""k{:07}":1,"#, key(number));
        number += 1;
    }
    let _ = write!(text, r#""k{:07}":{last}}}"#, key(number));
    text
}

fn strings(bytes: usize, last: u32, part: &str) -> String {
    let one = part.repeat(bytes / 4 / part.len());
    format!(r#"{{"a":"{one}","b":["{one}","{one}"],"c":"{one}{last}"}}"#)
}

fn condition(number: u32, last: u32) -> String {
    format!(
        r#"{{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"m{last}","reason":"R","status":"True","type":"T{number}"}}"#
    )
}
