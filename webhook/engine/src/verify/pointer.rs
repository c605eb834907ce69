//! JSON pointers (RFC 6901).

use popcell_protocol::MAX_DEPTH;

use super::Violation;

/// The longest pointer, in bytes.
const MAX_POINTER: usize = 4096;

/// The steps of a pointer, unescaped. The whole document ("") has none.
pub(super) fn steps(pointer: &str) -> Result<Vec<String>, Violation> {
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

    #[test]
    fn unescapes_as_rfc_6901() {
        assert_eq!(steps("").unwrap(), Vec::<String>::new());
        assert_eq!(steps("/a~1b/m~0n/~01/").unwrap(), ["a/b", "m~n", "~1", ""]);
        assert_eq!(steps("/").unwrap(), [""]);
        assert!(steps(&"/a".repeat(MAX_DEPTH)).is_ok());
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
            assert!(steps(wrong).is_err(), "{wrong}");
        }
    }
}
