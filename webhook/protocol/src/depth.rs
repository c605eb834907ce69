//! How deep JSON may nest.
//!
//! The decoder of the envelope does not recurse into objects, but whoever reads them afterwards may.

/// Levels of objects and arrays that one Kubernetes object, or one JSON value of a module, may nest. The SDK of modules
/// reads as many: the interface text (`wit/interpreter.wit`) names the number, and both sides are tested against it.
/// Real Kubernetes objects stay below 50.
pub const MAX_DEPTH: usize = 64;

/// The longest place in a message, in bytes: the beginning says which field it is.
const MAX_PLACE: usize = 100;

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

/// Where `json` first nests deeper than [`MAX_DEPTH`]: a JSON pointer, cut after 100 bytes. `None` where it does not.
pub fn too_deep(json: &[u8]) -> Option<String> {
    if within_depth(json) {
        return None;
    }
    first_deeper(json, MAX_DEPTH).map(|end| place(json.get(..end).unwrap_or_default()))
}

fn openings(chunk: &[u8]) -> usize {
    chunk.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

/// The first bracket that opens more than so many levels.
fn first_deeper(json: &[u8], levels: usize) -> Option<usize> {
    let (mut depth, mut at) = (0usize, 0usize);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = text_end(json, at);
                continue;
            }
            b'{' | b'[' => {
                depth += 1;
                if depth > levels {
                    return Some(at);
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// After the closing quote of the string that begins at `at`, or the end of the text.
fn text_end(json: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = json.get(at..).unwrap_or_default();
        let Some(next) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return json.len();
        };
        match rest.get(next) {
            Some(b'"') => return at + next + 1,
            _ => at += next + 2,
        }
    }
}

/// One level that is open where a text is cut.
enum Level {
    Object { key: (usize, usize) },
    Array { index: usize },
}

/// The pointer to where a beginning of a JSON text ends.
fn place(json: &[u8]) -> String {
    let (mut levels, mut at) = (Vec::new(), 0);
    // The string that was read last, which is a key once a colon follows.
    let mut text = (0, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                let end = text_end(json, at);
                text = (at + 1, end.saturating_sub(1));
                at = end;
                continue;
            }
            b':' => {
                if let Some(Level::Object { key }) = levels.last_mut() {
                    *key = text;
                }
            }
            b',' => {
                if let Some(Level::Array { index }) = levels.last_mut() {
                    *index += 1;
                }
            }
            b'{' => levels.push(Level::Object { key: (0, 0) }),
            b'[' => levels.push(Level::Array { index: 0 }),
            b'}' | b']' => drop(levels.pop()),
            _ => {}
        }
        at += 1;
    }
    let mut place = String::new();
    for level in &levels {
        place.push('/');
        match level {
            Level::Object { key: (start, end) } => {
                // As it is written, escapes and all: a message has to be found in the text.
                let key = String::from_utf8_lossy(json.get(*start..*end).unwrap_or_default());
                place.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Level::Array { index } => place.push_str(&index.to_string()),
        }
        if place.len() > MAX_PLACE {
            place.truncate(place.floor_char_boundary(MAX_PLACE));
            place.push_str("...");
            break;
        }
    }
    place
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
    fn the_interface_text_names_the_depth() {
        let text = include_str!("../../../wit/interpreter.wit");
        assert!(text.contains(&format!("at most {MAX_DEPTH} levels")));
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
        assert!(place.ends_with("...") && place.len() <= MAX_PLACE + 3, "{place}");
        assert_eq!(too_deep(b"[[[[").map(drop), None);
        assert_eq!(too_deep(&nested(MAX_DEPTH)), None);
    }
}
