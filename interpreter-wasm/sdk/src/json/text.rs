//! JSON strings and JSON pointers (RFC 6901): quoting, and the reverse.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{Error, Result};

/// Appends `text` as a JSON string.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '\\' || c < ' ') {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = special.chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(control) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// The text of a JSON string, given what is between its quotes. A lone surrogate becomes U+FFFD, as in Go.
pub(super) fn unquote(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut chars = escape.chars();
        match chars.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => {
                let (decoded, after) = unicode(chars.as_str());
                text.push(decoded);
                rest = after;
                continue;
            }
            Some(itself) => text.push(itself),
            None => {}
        }
        rest = chars.as_str();
    }
    text.push_str(rest);
    text
}

/// Decodes the digits after `\u`, and a second escape where both make one character.
fn unicode(digits: &str) -> (char, &str) {
    let (first, rest) = unit(digits);
    if let Some(decoded) = char::from_u32(first) {
        return (decoded, rest);
    }
    if let Some(low) = rest.strip_prefix("\\u").filter(|_| (0xD800..0xDC00).contains(&first)) {
        let (second, after) = unit(low);
        if (0xDC00..0xE000).contains(&second) {
            let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), after);
        }
    }
    (char::REPLACEMENT_CHARACTER, rest)
}

fn unit(digits: &str) -> (u32, &str) {
    let (unit, rest) = digits.split_at_checked(4).unwrap_or((digits, ""));
    (u32::from_str_radix(unit, 16).unwrap_or(0xFFFD), rest)
}

/// The unescaped tokens of a pointer, each with the pointer to what contains it.
pub(super) fn tokens(pointer: &str) -> Result<impl Iterator<Item = (&str, Cow<'_, str>)>> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(Error::failed(format!(
            "{pointer:?} is not a JSON pointer: it has to start with a slash"
        )));
    }
    let mut parent_end = 0;
    Ok(pointer.split('/').skip(1).map(move |token| {
        let parent = pointer.get(..parent_end).unwrap_or_default();
        parent_end += token.len() + 1;
        (parent, unescape(token))
    }))
}

/// A token as text: `~1` is a slash, `~0` a tilde.
pub(crate) fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

/// An array index: digits without leading zeros.
pub(super) fn index(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit()) && (token.len() == 1 || !token.starts_with('0'));
    if plain { token.parse().ok() } else { None }
}
