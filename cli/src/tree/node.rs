//! The tree that is shown, as text and as JSON; what planes and kinds are called in it. Pure but for the writing.

use std::io::{self, Write};

use itertools::Itertools as _;
use jiff::Timestamp;
use popcell_core::object::{Fields as _, Object};
use serde_json::{Value, json};

use crate::console::{address, age, write_table};

pub(super) const PROJECT: &str = "project";
pub(super) const HUB: &str = "hub";

pub(super) const WORKLOAD: &str = "Workload";
pub(super) const DEPLOYMENT: &str = "WorkloadDeployment";
pub(super) const POLICY: &str = "PropagationPolicy";
pub(super) const BINDING: &str = "ResourceBinding";
pub(super) const WORK: &str = "Work";
pub(super) const INSTANCE: &str = "Instance";
pub(super) const CLAIM: &str = "ResourceClaim";

/// How it is with one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// As it should be.
    Fine,
    /// Not checked.
    Unasked,
    /// Unknown: its plane did not answer.
    Unknown,
    /// It is not there, or not as it should be.
    Broken,
}

impl State {
    /// For programs.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unasked => "not-looked-at",
            Self::Unknown => "unknown",
            Self::Broken => "broken",
        }
    }
}

/// One object, or the place of one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    /// `project`, `hub`, or `cell` and the name of its Cluster.
    pub(super) plane: String,
    /// Kind.
    pub(super) kind: &'static str,
    /// Namespace and name, or the name alone.
    pub(super) name: String,
    /// How it is with it.
    pub(super) state: State,
    /// The one reason where it is not fine; elsewhere what is worth knowing, or nothing.
    pub(super) text: String,
    /// When it was created; `None` where it is not there.
    pub(super) created: Option<Timestamp>,
    /// What follows from it.
    pub(super) children: Vec<Node>,
}

impl Node {
    /// An object that is there.
    pub(super) fn of(plane: &str, kind: &'static str, object: &Object) -> Self {
        let name = address(object.namespace(), object.name());
        Self {
            created: object.created(),
            ..Self::place(plane, kind, name, State::Fine, "")
        }
    }

    /// The place of one that is absent or unknown.
    pub(super) fn place(plane: &str, kind: &'static str, name: String, state: State, text: impl Into<String>) -> Self {
        Self {
            plane: plane.to_owned(),
            kind,
            name,
            state,
            text: text.into(),
            created: None,
            children: Vec::new(),
        }
    }

    /// With what is wrong with it, if anything is.
    pub(super) fn with(mut self, wrong: Option<String>) -> Self {
        if let Some(reason) = wrong {
            self.state = State::Broken;
            self.text = reason;
        }
        self
    }

    /// With what is worth knowing, if nothing is wrong with it.
    pub(super) fn or_text(mut self, text: impl Into<String>) -> Self {
        if self.state == State::Fine {
            self.text = text.into();
        }
        self
    }

    /// Puts a place where the tree has it and nothing is there, with all that follows. Whether it does.
    pub(super) fn put(&mut self, place: &Self) -> bool {
        let is_it =
            self.created.is_none() && (&self.plane, self.kind, &self.name) == (&place.plane, place.kind, &place.name);
        if is_it {
            self.state = place.state;
            self.text.clone_from(&place.text);
        }
        is_it || self.children.iter_mut().any(|child| child.put(place))
    }

    /// The worst state in it.
    pub(super) fn worst(&self) -> State {
        let below = self.children.iter().map(Self::worst);
        below.fold(self.state, State::max)
    }
}

const HEADS: [&str; 4] = ["OBJECT", "PLANE", "AGE", "STATE"];

/// One line for each node.
pub(super) fn text(tree: &Node, now: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = vec![HEADS.map(str::to_owned)];
    lines_of(tree, "", "", now, &mut lines);
    write_table(&lines, out)
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
    let state = state.split_whitespace().join(" ");
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
