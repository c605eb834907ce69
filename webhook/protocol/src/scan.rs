//! JSON text that is looked at and not decoded: how deep it nests, what it is, and the uid of a body that is broken.
//!
//! Invariant: nothing here recurses or allocates with the text, whatever the bytes are.

use popcell_contract::json::{MAX_DEPTH, Scan, Token, place};

/// The longest uid that is believed, in bytes: it goes into each answer. Karmada sends UUIDs of 36.
pub(crate) const MAX_UID: usize = 256;

/// What kind of value a JSON text without leading space is, in words for a message.
pub fn kind_name(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Whether no value in `json` lies under more than [`MAX_DEPTH`] objects and arrays. `json` need not be valid.
pub fn within_depth(json: &[u8]) -> bool {
    within_levels(json, MAX_DEPTH)
}

/// Whether no value in `json` lies under more than `levels` objects and arrays. `json` need not be valid.
pub fn within_levels(json: &[u8], levels: usize) -> bool {
    // As many levels as opening brackets, at most: this counts many bytes at a time and settles small objects.
    let openings: usize = json.chunks(4096).map(openings).sum();
    openings <= levels || first_deeper(json, levels).is_none()
}

/// Where `json` first nests deeper than [`MAX_DEPTH`]: a JSON pointer, cut to 103 bytes. `None` where it does not.
pub fn too_deep(json: &[u8]) -> Option<String> {
    if within_depth(json) {
        return None;
    }
    let begins = json.get(..first_deeper(json, MAX_DEPTH)?)?;
    Some(place(&String::from_utf8_lossy(begins)))
}

/// The `request.uid` of a body, even when the body is cut off or broken elsewhere, so that a refusal can carry it:
/// Karmada throws away answers with another uid. `None` where it cannot be seen.
///
/// Only that place counts: objects have uids of their own.
pub fn extract_uid(body: &[u8]) -> Option<String> {
    let mut depth = 0usize;
    let mut in_request = false;
    let mut text: &[u8] = &[];
    let mut key: Option<&[u8]> = None;
    for (_, token) in Scan::of(body) {
        match token {
            Token::Open(_) => {
                depth += 1;
                in_request |= depth == 2 && key == Some(b"\"request\"");
                key = None;
            }
            Token::Close => {
                depth = depth.checked_sub(1)?;
                in_request &= depth >= 2;
            }
            Token::Text(value) if in_request && depth == 2 && key == Some(b"\"uid\"") => {
                let uid = serde_json::from_slice::<String>(value).ok();
                return uid.filter(|uid| uid.len() <= MAX_UID);
            }
            Token::Text(found) => (text, key) = (found, None),
            Token::Colon => key = Some(text),
            Token::Comma => key = None,
        }
    }
    None
}

fn openings(chunk: &[u8]) -> usize {
    chunk.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

/// The first bracket that opens more than so many levels.
fn first_deeper(json: &[u8], levels: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in Scan::of(json) {
        match token {
            Token::Open(_) if depth == levels => return Some(at),
            Token::Open(_) => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Text(_) | Token::Colon | Token::Comma => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Vec<u8> {
        let mut json = vec![b'['; levels];
        json.extend(vec![b']'; levels]);
        json
    }

    #[test]
    fn counts_levels_and_not_brackets() {
        assert!(within_depth(&nested(MAX_DEPTH)));
        assert!(!within_depth(&nested(MAX_DEPTH + 1)));
        assert!(within_levels(&nested(3), 3) && !within_levels(&nested(4), 3));
        let flat = format!("[{}{{}}]", "{},".repeat(10 * MAX_DEPTH));
        assert!(within_depth(flat.as_bytes()));
    }

    #[test]
    fn brackets_in_text_are_text() {
        for end in ["", "\\\\", "\\\"", "\\u0041"] {
            let text = format!(r#"{{"a":"\"{}{end}"}}"#, "[".repeat(10 * MAX_DEPTH));
            assert!(within_depth(text.as_bytes()), "{end}");
            assert_eq!(too_deep(text.as_bytes()), None, "{end}");
        }
        let deep = format!(r#"["\\",{}]"#, String::from_utf8(nested(MAX_DEPTH)).unwrap());
        assert!(!within_depth(deep.as_bytes()));
    }

    #[test]
    fn the_place_is_the_first_that_is_too_deep() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let object = format!(
            r#"{{"a":[{{"b":{}}}, 2],"c/d":[1,"]",{{"x~":{}}}]}}"#,
            deep(MAX_DEPTH - 3),
            deep(MAX_DEPTH - 2)
        );
        let place = too_deep(object.as_bytes()).unwrap();
        assert!(place.starts_with("/c~1d/2/x~0/0/0"), "{place}");
        assert!(place.ends_with("...") && place.len() <= 103, "{place}");
        assert_eq!(too_deep(b"[[[[").map(drop), None);
        assert_eq!(too_deep(&nested(MAX_DEPTH)), None);
    }

    fn uid(body: &str) -> Option<String> {
        extract_uid(body.as_bytes())
    }

    #[test]
    fn survives_a_body_that_is_cut_off() {
        let body = r#"{"kind":"ResourceInterpreterContext","request":{"uid":"a-1","object":{"metadata":{"uid":"b"}}}}"#;
        let end_of_uid = body.find(r#","object""#).unwrap();
        for length in 0..body.len() {
            let expected = (length >= end_of_uid).then(|| "a-1".to_owned());
            assert_eq!(uid(&body[..length]), expected, "{}", &body[..length]);
        }
    }

    #[test]
    fn only_the_uid_of_the_request_counts() {
        assert_eq!(
            uid(r#"{"uid":"x","request":{"object":{"uid":"y","request":{"uid":"z"}}}}"#),
            None
        );
        assert_eq!(uid(r#"{"request":{"kind":{"uid":"y"},"uid":"a"}}"#), Some("a".into()));
        assert_eq!(uid(r#"{"request":{},"response":{"uid":"y"}}"#), None);
        assert_eq!(uid(r#"{"x":[{"request":{"uid":"y"}}]}"#), None);
        assert_eq!(uid(r#"{"x":"request","response":{"uid":"y"}}"#), None);
    }

    #[test]
    fn odd_values() {
        assert_eq!(uid(r#"{"request" : { "uid" : "\u0061\"b" }}"#), Some("a\"b".into()));
        assert_eq!(uid(r#"{"request":{"uid":5}}"#), None);
        assert_eq!(uid(r#"{"request":{"uid":5,"name":"n"}}"#), None);
        assert_eq!(
            uid(&format!(r#"{{"request":{{"uid":"{}"}}}}"#, "a".repeat(MAX_UID + 1))),
            None
        );
        assert_eq!(uid("}}}"), None);
        assert_eq!(uid(""), None);
    }
}
