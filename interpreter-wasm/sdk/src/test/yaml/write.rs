//! From a node back to YAML that a person can paste into a test file.

use super::{Node, Value, json_text, scalar};

/// The node as block style YAML, two spaces deep per level, ending in a line break. Reading it again gives the node.
pub fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match inline(node) {
        Some(text) => {
            out.push_str(&text);
            out.push('\n');
        }
        None => block(node, 0, &mut out),
    }
    out
}

/// The node on one line, where that is the usual way to write it.
fn inline(node: &Node) -> Option<String> {
    Some(match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(digits) => digits.clone(),
        Value::Text(text) => text_scalar(text),
        Value::Items(items) if items.is_empty() => "[]".to_owned(),
        Value::Fields(fields) if fields.is_empty() => "{}".to_owned(),
        Value::Items(_) | Value::Fields(_) => return None,
    })
}

fn block(node: &Node, depth: usize, out: &mut String) {
    match &node.value {
        Value::Fields(fields) => {
            for (index, field) in fields.iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                out.push_str(&text_scalar(&field.key));
                out.push(':');
                nested(&field.value, depth, out);
            }
        }
        Value::Items(items) => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    indent(depth, out);
                }
                out.push_str("- ");
                match inline(item) {
                    Some(text) => {
                        out.push_str(&text);
                        out.push('\n');
                    }
                    None => block(item, depth + 1, out),
                }
            }
        }
        _ => {}
    }
}

/// What follows `key:`. A list stands at the depth of its key, as Kubernetes writes it.
fn nested(value: &Node, depth: usize, out: &mut String) {
    if let Some(text) = inline(value) {
        out.push(' ');
        out.push_str(&text);
        out.push('\n');
        return;
    }
    let depth = if matches!(value.value, Value::Items(_)) {
        depth
    } else {
        depth + 1
    };
    out.push('\n');
    indent(depth, out);
    block(value, depth, out);
}

fn indent(depth: usize, out: &mut String) {
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// The text without quotes where it would be read as the same text again, else as a JSON string.
fn text_scalar(text: &str) -> String {
    let harmless = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '/' | '_' | '-');
    let plain = text.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '.' | '/' | '_'))
        && text.chars().all(harmless)
        && matches!(scalar::resolve(text, true, None), Ok(scalar::Scalar::Text(_)));
    if plain { text.to_owned() } else { json_text(text) }
}

#[cfg(test)]
mod tests {
    use super::super::documents;
    use super::*;

    #[test]
    fn writes_what_it_would_read() {
        let text = "apiVersion: example.io/v1\nspec:\n  none: {}\n  list:\n  - a: 1\n    b: \"2\"\n  - - x\n    - null\n  \
                    \"on\": true\n  empty: \"\"\n  dash: \"-\"\n  big: 9007199254740993\n";
        let node = documents(text).unwrap().remove(0);
        assert_eq!(to_yaml(&node), text);
        assert_eq!(documents(&to_yaml(&node)).unwrap()[0].to_json(), node.to_json());
    }

    #[test]
    fn quotes_what_would_change_its_meaning() {
        for (text, written) in [
            ("yes", "\"yes\""),
            ("1e3", "\"1e3\""),
            ("a: b", "\"a: b\""),
            ("a\nb", "\"a\\nb\""),
        ] {
            assert_eq!(text_scalar(text), written);
        }
    }
}
