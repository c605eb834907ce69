//! How deep JSON may nest.
//!
//! The decoder of the envelope does not recurse into objects, but whoever reads them afterwards may.

/// Levels of nesting that are accepted. Real Kubernetes objects stay under 60.
pub const MAX_DEPTH: usize = 512;

/// Whether no value in `json` lies under more than [`MAX_DEPTH`] objects and arrays. `json` need not be valid.
pub fn within_depth(json: &[u8]) -> bool {
    // As many levels as opening brackets, at most: this counts many bytes at a time and settles nearly every object.
    let openings: usize = json.chunks(4096).map(openings).sum();
    openings <= MAX_DEPTH || deepest(json) <= MAX_DEPTH
}

fn openings(chunk: &[u8]) -> usize {
    chunk.iter().filter(|byte| matches!(byte, b'{' | b'[')).count()
}

fn deepest(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let (mut in_text, mut escaped) = (false, false);
    for byte in json {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
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
        let flat = format!("[{}{{}}]", "{},".repeat(10 * MAX_DEPTH));
        assert!(within_depth(flat.as_bytes()));
    }

    #[test]
    fn brackets_in_text_are_text() {
        let text = format!(r#"{{"a":"\"{}"}}"#, "[".repeat(10 * MAX_DEPTH));
        assert!(within_depth(text.as_bytes()));
    }
}
