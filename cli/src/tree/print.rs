//! The tree as text and as JSON. Pure but for the writing.

use std::io::{self, Write};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::node::{Node, State};
use crate::table::{self, age};

const HEADS: [&str; 4] = ["OBJECT", "PLANE", "AGE", "STATE"];

/// One line for each node.
pub(super) fn text(tree: &Node, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines_of(tree, "", "", now, &mut lines);
    table::write(&lines, out)
}

/// `first` stands before the node, `rest` before what is below it.
fn lines_of(node: &Node, first: &str, rest: &str, now: Timestamp, lines: &mut Vec<[String; 4]>) {
    let state = match (node.state, node.text.as_str()) {
        (State::Fine, text) => text.to_owned(),
        (State::Unasked, text) => format!("not checked: {text}"),
        (state, text) => format!("{}: {text}", state.word()),
    };
    let object = format!("{first}{} {}", node.kind, node.name);
    // Messages of others may have several lines.
    let state = state.split_whitespace().collect::<Vec<_>>().join(" ");
    lines.push([object, node.plane.clone(), age(node.created, now), state]);
    let last = node.children.len();
    for (number, child) in node.children.iter().enumerate() {
        let (fork, line) = if number + 1 == last {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        lines_of(child, &format!("{rest}{fork}"), &format!("{rest}{line}"), now, lines);
    }
}

/// The whole tree. `state` at the top is the worst in it.
pub(super) fn json(tree: &Node) -> Value {
    json!({ "state": tree.worst().word(), "tree": node(tree) })
}

fn node(one: &Node) -> Value {
    let text = (!one.text.is_empty()).then_some(&one.text);
    json!({
        "plane": one.plane,
        "kind": one.kind,
        "name": one.name,
        "state": one.state.word(),
        "text": text,
        "created": one.created.map(|time| time.to_string()),
        "children": one.children.iter().map(node).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str, state: State, text: &str) -> Node {
        Node::place("hub", "Work", name.to_owned(), state, text)
    }

    #[test]
    fn branches_and_columns_line_up() {
        let mut root = child("a", State::Fine, "on dfw");
        root.created = Some("2026-01-01T12:00:00Z".parse().unwrap());
        let mut first = child("b", State::Broken, "NoClusterFit: 0/3\n clusters");
        first.children = vec![child("c", State::Unasked, "give --cell")];
        root.children = vec![first, child("d", State::Unknown, "no answer")];
        let mut out = Vec::new();
        text(&root, "2026-01-01T12:05:00Z".parse().unwrap(), &mut out).unwrap();
        let expected = "\
OBJECT        PLANE  AGE  STATE
Work a        hub    5m   on dfw
├─ Work b     hub    -    broken: NoClusterFit: 0/3 clusters
│  └─ Work c  hub    -    not checked: give --cell
└─ Work d     hub    -    unknown: no answer
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn json_says_the_worst_first() {
        let mut root = child("a", State::Fine, "");
        root.children = vec![child("b", State::Unknown, "x"), child("c", State::Unasked, "y")];
        let reported = json(&root);
        assert_eq!(reported["state"], "unknown");
        assert_eq!(reported["tree"]["text"], Value::Null);
        assert_eq!(reported["tree"]["children"][1]["state"], "not-looked-at");
    }
}
