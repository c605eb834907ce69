//! From text to nodes: anchors, aliases and merge keys resolved, limits kept.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::scalar::{self, Scalar};
use super::{Field, Node, Position, Value, YamlError};

/// No test file needs more; a few aliases of aliases make any number of values.
const MAX_NODES: usize = 1_000_000;

/// The documents of a text, those that hold nothing (comments only) left out.
pub fn documents(text: &str) -> Result<Vec<Node>, YamlError> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        left: MAX_NODES,
    };
    let mut documents = Vec::new();
    while let Some((event, at)) = reader.next()? {
        match event {
            Event::DocumentStart(..) => reader.anchors.clear(),
            Event::StreamStart | Event::DocumentEnd | Event::StreamEnd => {}
            first => {
                let node = reader.node(first, at)?;
                if !node.is_null() {
                    documents.push(node);
                }
            }
        }
    }
    Ok(documents)
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    left: usize,
}

impl<'a> Reader<'a> {
    /// The next event that is not a comment.
    fn next(&mut self) -> Result<Option<(Event<'a>, Position)>, YamlError> {
        loop {
            let Some(next) = self.parser.next_event() else {
                return Ok(None);
            };
            let (event, span) = next.map_err(|error| unreadable(&error))?;
            if !matches!(event, Event::Comment(..)) {
                return Ok(Some((event, start(&span))));
            }
        }
    }

    fn inside(&mut self, at: Position) -> Result<(Event<'a>, Position), YamlError> {
        self.next()?
            .ok_or_else(|| YamlError::new(at, "the text ends inside this value"))
    }

    /// The node that `event` begins.
    fn node(&mut self, event: Event<'a>, at: Position) -> Result<Node, YamlError> {
        self.spend(1, at)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.as_deref().map(|tag| tag.core_suffix().unwrap_or("unknown"));
                let scalar = scalar::resolve(&text, style == ScalarStyle::Plain, tag);
                (
                    scalar.map(Value::from).map_err(|message| YamlError::new(at, message))?,
                    anchor,
                )
            }
            Event::SequenceStart(_, anchor, _) => (Value::Items(self.items(at)?), anchor),
            Event::MappingStart(_, anchor, _) => (Value::Fields(self.fields(at)?), anchor),
            Event::Alias(id) => return self.alias(id, at),
            other => return Err(YamlError::new(at, format!("unexpected {other:?}"))),
        };
        let node = Node { value, at };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, at: Position) -> Result<Node, YamlError> {
        let Some(node) = self.anchors.get(&id).cloned() else {
            return Err(YamlError::new(at, "the alias stands inside the value that it names"));
        };
        self.spend(node.count(), at)?;
        Ok(node)
    }

    fn items(&mut self, at: Position) -> Result<Vec<Node>, YamlError> {
        let mut items = Vec::new();
        loop {
            match self.inside(at)? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, at) => items.push(self.node(event, at)?),
            }
        }
    }

    fn fields(&mut self, at: Position) -> Result<Vec<Field>, YamlError> {
        let mut fields: Vec<Field> = Vec::new();
        let mut merged: Vec<Field> = Vec::new();
        loop {
            let (event, at) = match self.inside(at)? {
                (Event::MappingEnd, _) => break,
                next => next,
            };
            let Event::Scalar(written, style, _, tag) = event else {
                return Err(YamlError::new(at, "a key has to be text"));
            };
            let is_plain = style == ScalarStyle::Plain;
            let tag = tag.as_deref().map(|tag| tag.core_suffix().unwrap_or("unknown"));
            let key = scalar::key(&written, is_plain, tag).map_err(|message| YamlError::new(at, message))?;
            let (event, value_at) = self.inside(at)?;
            let value = self.node(event, value_at)?;
            if key == "<<" && is_plain {
                merge(&mut merged, value)?;
                continue;
            }
            if let Some(first) = fields.iter().find(|field| field.key == key) {
                let message = format!("key {key:?} is written twice, first on line {}", first.at.line);
                return Err(YamlError::new(at, message));
            }
            fields.push(Field { key, at, value });
        }
        // A key of the mapping itself wins over a merged one.
        merged.retain(|merged| !fields.iter().any(|field| field.key == merged.key));
        fields.append(&mut merged);
        Ok(fields)
    }

    fn spend(&mut self, nodes: usize, at: Position) -> Result<(), YamlError> {
        let left = self.left.checked_sub(nodes);
        self.left = left.ok_or_else(|| YamlError::new(at, format!("more than {MAX_NODES} values in one file")))?;
        Ok(())
    }
}

/// `<<: *base` and `<<: [*first, *second]`: the first mapping that has a key wins.
fn merge(merged: &mut Vec<Field>, value: Node) -> Result<(), YamlError> {
    let sources = match value.value {
        Value::Items(items) => items,
        _ => vec![value],
    };
    for source in sources {
        let Value::Fields(fields) = source.value else {
            return Err(YamlError::new(source.at, "`<<` takes a mapping or a list of mappings"));
        };
        for field in fields {
            if !merged.iter().any(|known| known.key == field.key) {
                merged.push(field);
            }
        }
    }
    Ok(())
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Bool(value) => Self::Bool(value),
            Scalar::Number(digits) => Self::Number(digits),
            Scalar::Text(text) => Self::Text(text),
        }
    }
}

fn unreadable(error: &ScanError) -> YamlError {
    let marker = error.marker();
    let at = Position {
        line: marker.line(),
        column: marker.col() + 1,
    };
    YamlError::new(at, format!("not readable as YAML: {}", error.info()))
}

fn start(span: &Span) -> Position {
    Position {
        line: span.start.line(),
        column: span.start.col() + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let documents = documents(text).unwrap();
        assert_eq!(documents.len(), 1, "{text}");
        documents[0].to_json()
    }

    fn refused(text: &str) -> String {
        let error = documents(text).unwrap_err();
        format!("{}:{}: {error}", error.at.line, error.at.column)
    }

    #[test]
    fn keeps_digits_beyond_two_to_the_53() {
        assert_eq!(
            one("{a: 9007199254740993, b: 18446744073709551616, c: 2.0}"),
            r#"{"a":9007199254740993,"b":18446744073709551616,"c":2.0}"#
        );
    }

    #[test]
    fn leaves_quoted_numbers_text() {
        assert_eq!(
            one("a: \"1\"\nb: '2.0'\nc: !!str 3\nd: \"true\""),
            r#"{"a":"1","b":"2.0","c":"3","d":"true"}"#
        );
    }

    #[test]
    fn leaves_out_documents_of_comments_only() {
        let found = documents("# head\n---\na: 1\n---\n# tail\n").unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].at, Position { line: 3, column: 1 });
    }

    #[test]
    fn resolves_aliases_and_merge_keys() {
        assert_eq!(
            one("a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}"),
            r#"{"a":{"p":1,"q":2},"b":{"p":1,"q":2},"c":{"q":3,"p":1}}"#
        );
    }

    #[test]
    fn names_the_place_of_what_it_refuses() {
        assert_eq!(
            refused("a: 1\na: 2"),
            "2:1: key \"a\" is written twice, first on line 1"
        );
        assert_eq!(refused("a: 1\n? [x]\n: 2"), "2:3: a key has to be text");
        assert_eq!(refused("a: .inf"), "1:4: .inf cannot be written as JSON");
        assert_eq!(
            refused("a: &x [*x]"),
            "1:8: the alias stands inside the value that it names"
        );
        assert!(refused("a: [1").starts_with("2:1: not readable") || refused("a: [1").starts_with("1:"));
    }

    #[test]
    fn keys_and_values_follow_one_rule() {
        assert_eq!(
            one("{y: n, \"on\": on, 1: 0x10, 'no': 'no'}"),
            r#"{"true":false,"on":true,"1":16,"no":"no"}"#
        );
        assert_eq!(
            refused("yes: 1\non: 2"),
            "2:1: key \"true\" is written twice, first on line 1"
        );
        assert!(refused("a:\n  1.5: x").starts_with("2:3: the key 1.5 is a number"));
        assert!(refused("~: x").starts_with("1:1: the key \"~\" is null"));
    }

    #[test]
    fn bounds_what_aliases_can_make() {
        let tens = |name: &str, of: &str| format!("{name}: &{name} [{}]\n", [of; 10].join(","));
        let text = [
            tens("a", "1"),
            tens("b", "*a"),
            tens("c", "*b"),
            tens("d", "*c"),
            tens("e", "*d"),
            tens("f", "*e"),
            tens("g", "*f"),
        ]
        .concat();
        assert!(refused(&text).contains("more than 1000000 values"));
    }

    #[test]
    fn finds_the_nearest_place_of_a_pointer() {
        let document = documents("spec:\n  a/b:\n  - x: 1\n").unwrap().remove(0);
        assert_eq!(document.nearest("/spec/a~1b/0/x").at, Position { line: 3, column: 8 });
        assert_eq!(document.nearest("/spec/a~1b/0/missing").at.line, 3);
        assert_eq!(document.nearest("/status").at.line, 1);
    }
}
