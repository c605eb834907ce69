//! JSON values and pointers inside answers.

use std::fmt;

use popcell_protocol::{MAX_DEPTH, kind_name, within_depth};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Violation;

/// A value of at most `max` bytes, kept as the text that the module wrote.
pub(super) fn value(path: impl fmt::Display + Copy, bytes: Vec<u8>, max: usize) -> Result<Box<RawValue>, Violation> {
    if bytes.len() > max {
        return Err(Violation::new(
            path,
            format!("has {} bytes, more than the limit of {max}", bytes.len()),
        ));
    }
    if !within_depth(&bytes) {
        return Err(Violation::new(path, format!("nests deeper than {MAX_DEPTH} levels")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Violation::new(path, "is not UTF-8"))?;
    RawValue::from_string(text).map_err(|error| Violation::new(path, format!("is no JSON: {error}")))
}

/// A [`value`] that is an object: Karmada's own types have no room for anything else.
pub(super) fn object(path: impl fmt::Display + Copy, bytes: Vec<u8>, max: usize) -> Result<Box<RawValue>, Violation> {
    let value = value(path, bytes, max)?;
    match kind_name(value.get()) {
        "an object" => Ok(value),
        found => Err(Violation::new(path, format!("must be a JSON object, is {found}"))),
    }
}

/// A [`value`] that Karmada will decode into the Go type that `T` mirrors.
pub(super) fn typed<'a, T: Deserialize<'a>>(path: impl fmt::Display, value: &'a RawValue) -> Result<T, Violation> {
    serde_json::from_str(value.get()).map_err(|error| Violation::new(path, error.to_string()))
}

/// The longest pointer, in bytes.
const MAX_POINTER: usize = 4096;

/// The steps of a JSON pointer (RFC 6901), unescaped. The whole document ("") has none.
pub(super) fn pointer_steps(pointer: &str) -> Result<Vec<String>, Violation> {
    if pointer.len() > MAX_POINTER {
        return Err(Violation::new(
            pointer,
            format!("is a pointer of more than {MAX_POINTER} bytes"),
        ));
    }
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer
        .strip_prefix('/')
        .ok_or_else(|| Violation::new(pointer, "is no JSON pointer: it must begin with /"))?;
    let steps = rest.split('/');
    if steps.clone().count() > MAX_DEPTH {
        return Err(Violation::new(
            pointer,
            format!("leads deeper than {MAX_DEPTH} levels, the limit of an object"),
        ));
    }
    // Karmada's patch library takes an empty name on the way for the object that it is in, and would go on elsewhere.
    if rest.starts_with('/') || rest.contains("//") {
        return Err(Violation::new(
            pointer,
            "leads through an empty key, which Karmada's patch library does not follow: replace what is above it",
        ));
    }
    steps
        .map(|step| unescape(step).ok_or_else(|| Violation::new(pointer, "is no JSON pointer: ~ must be ~0")))
        .collect()
}

fn unescape(step: &str) -> Option<String> {
    let mut parts = step.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (escaped, rest) = part.split_at_checked(1)?;
        out.push_str(match escaped {
            "0" => "~",
            "1" => "/",
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(json: &str) -> Result<String, String> {
        object("/rawStatus", json.as_bytes().to_vec(), 100)
            .map(|value| value.get().to_owned())
            .map_err(|violation| violation.message)
    }

    #[test]
    fn numbers_keep_their_digits() {
        let json = r#"{"a":9007199254740993,"b":1.50,"c":1e400}"#;
        assert_eq!(status(json).as_deref(), Ok(json));
    }

    #[test]
    fn only_objects_of_sound_size() {
        assert_eq!(status(" {} ").as_deref(), Ok("{}"));
        assert_eq!(status("[1]").unwrap_err(), "must be a JSON object, is an array");
        assert_eq!(status("null").unwrap_err(), "must be a JSON object, is null");
        assert_eq!(status("5").unwrap_err(), "must be a JSON object, is a number");
        assert!(status("{").unwrap_err().contains("no JSON"));
        assert!(status("").unwrap_err().contains("no JSON"));
        assert!(
            status(&format!("{{\"a\":\"{}\"}}", "x".repeat(100)))
                .unwrap_err()
                .contains("limit of 100")
        );
        assert_eq!(
            object("", b"{\"\xff\":1}".to_vec(), 100).unwrap_err().message,
            "is not UTF-8"
        );
    }

    #[test]
    fn unescapes_as_rfc_6901() {
        assert_eq!(pointer_steps("").unwrap(), Vec::<String>::new());
        assert_eq!(pointer_steps("/a~1b/m~0n/~01/").unwrap(), ["a/b", "m~n", "~1", ""]);
        assert_eq!(pointer_steps("/").unwrap(), [""]);
        assert!(pointer_steps(&"/a".repeat(MAX_DEPTH)).is_ok());
        for wrong in [
            "a",
            "/a~",
            "/a~2",
            "/~\u{e9}",
            "//",
            "//a",
            "/a//b",
            &"/a".repeat(MAX_DEPTH + 1),
        ] {
            assert!(pointer_steps(wrong).is_err(), "{wrong}");
        }
    }
}
