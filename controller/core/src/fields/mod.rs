//! What popcell does with each field of a Workload and of a WorkloadDeployment, as data: done, refused, or accepted with a
//! warning.
//!
//! The rows are in `table.rs`, docs/reference/fields.md is made from them, and a test holds them to the CRDs: no field is
//! without a row, and no row without a field. At admission what is set and warned about becomes warnings; on the object it is
//! the condition `UnsupportedFields`, which is there while such a field is set. So is a field that the schema of this version
//! does not describe, which WorkloadDeployments carry from newer planes.

mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use popcell_api::conditions::UNSUPPORTED_FIELDS;
use popcell_api::crds;
use popcell_api::kind::{self, Kind};
use serde_json::{Map, Value};

use crate::conditions::{self, Condition};
use crate::deployment::is_nothing;
use crate::object::{Fields, Object};
use crate::plan::cut;
pub use table::{Actor, Handling};
pub(crate) use table::{NO_AMOUNTS, NO_ITEMS};

/// Most bytes of one warning. A client may cut longer ones (`AdmissionResponse.warnings`, admission.k8s.io/v1).
pub const WARNING_BYTES: usize = 256;
/// Most warnings about one object: with as many of the longest an API server passes on all of them.
pub const WARNINGS: usize = 16;

/// A field that the schema does not describe.
const UNKNOWN: &str = "unknown field: popcell does nothing with it";

/// A field of disks that a Workload without a machine has.
const OF_MACHINES: &str = "done for virtual machines only: leave it out of a sandbox";

/// The fields of a kind, as its CRD describes them. A list is its items.
#[derive(Clone, Debug, Default)]
struct Node {
    fields: BTreeMap<String, Node>,
    /// Of a map: every key that is not in `fields`.
    any: Option<Box<Node>>,
    handling: Option<Handling>,
}

static WORKLOAD: LazyLock<Node> = LazyLock::new(|| Node::of_kind(kind::WORKLOAD));
static WORKLOAD_DEPLOYMENT: LazyLock<Node> = LazyLock::new(|| Node::of_kind(kind::WORKLOAD_DEPLOYMENT));

impl Node {
    fn of_kind(kind: Kind) -> Self {
        let crds = crds();
        let versions = crds
            .iter()
            .filter(|crd| crd.spec.names.kind == kind.kind)
            .flat_map(|crd| &crd.spec.versions);
        let schema = versions.filter_map(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        let mut root = schema.map(Self::of).next().unwrap_or_default();
        for (path, handling) in table::rows(kind) {
            if let Some(node) = path.split('.').try_fold(&mut root, Self::at) {
                node.handling = Some(handling);
            }
        }
        root
    }

    fn of(schema: &JSONSchemaProps) -> Self {
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
            return Self::of(item);
        }
        let fields = schema.properties.iter().flatten();
        let any = match &schema.additional_properties {
            Some(JSONSchemaPropsOrBool::Schema(values)) => Some(Box::new(Self::of(values))),
            _ => None,
        };
        Self {
            fields: fields.map(|(name, one)| (name.clone(), Self::of(one))).collect(),
            any,
            handling: None,
        }
    }

    /// The node of one step of a row's path.
    fn at(&mut self, step: &str) -> Option<&mut Self> {
        let step = step.trim_end_matches("[]");
        match (&mut self.any, step) {
            (Some(any), "*") => Some(any.as_mut()),
            (Some(any), _) => Some(self.fields.entry(step.to_owned()).or_insert_with(|| (**any).clone())),
            (None, _) => self.fields.get_mut(step),
        }
    }
}

/// Where a value is.
struct Place<'a> {
    above: Option<&'a Place<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Item(usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Key(key) => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
                match (self.above, key.bytes().all(is_plain)) {
                    (None, _) => f.write_str(key),
                    (Some(_), true) => write!(f, ".{key}"),
                    // An API server drops a warning with control characters.
                    (Some(_), false) => write!(f, "[{key:?}]"),
                }
            }
        }
    }
}

/// Calls `found` for each field that is set and has a warning, or is done for virtual machines only, and, with no node, for each that
/// the schema does not describe.
fn walk<'t>(node: &'t Node, value: &Value, place: &Place<'_>, found: &mut dyn FnMut(&Place<'_>, Option<&'t Node>)) {
    let below = |step| Place {
        above: Some(place),
        step,
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(node, item, &below(Step::Item(index)), found);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(_, value)| !is_nothing(value)) {
                let place = below(Step::Key(key));
                let Some(child) = node.fields.get(key).or(node.any.as_deref()) else {
                    found(&place, None);
                    continue;
                };
                if let Some(Handling::Warned(_) | Handling::Done(Actor::MachineProvider, _)) = child.handling {
                    found(&place, Some(child));
                }
                walk(child, value, &place, found);
            }
        }
        _ => {}
    }
}

fn walk_spec(kind: Kind, spec: &Value, found: &mut dyn FnMut(&Place<'_>, Option<&'static Node>)) {
    let root = if kind == kind::WORKLOAD {
        &*WORKLOAD
    } else {
        &*WORKLOAD_DEPLOYMENT
    };
    let place = Place {
        above: None,
        step: Step::Key("spec"),
    };
    if let Some(node) = root.fields.get("spec") {
        walk(node, spec, &place, found);
    }
}

/// Calls `found` with the path of each field of a spec that the schema of a Workload or WorkloadDeployment does not describe.
/// What is empty is not there.
pub(crate) fn each_unknown(kind: Kind, spec: &Value, mut found: impl FnMut(String)) {
    walk_spec(kind, spec, &mut |place: &Place<'_>, node| {
        if node.is_none() {
            found(place.to_string());
        }
    });
}

/// Something in a spec that popcell accepts without doing all of it. Its text is a warning of at most [`WARNING_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it is first.
    path: String,
    text: &'static str,
    /// In how many more places.
    more: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = match self.more {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let room = WARNING_BYTES.saturating_sub(self.text.len() + more.len() + ": ".len());
        let path = match cut(&self.path, room) {
            whole if whole.len() == self.path.len() => whole.to_owned(),
            _ => format!("{}...", cut(&self.path, room.saturating_sub(3))),
        };
        write!(f, "{path}: {}{more}", self.text)
    }
}

/// All findings in the spec of a Workload or WorkloadDeployment, at most [`WARNINGS`], by path.
pub fn findings(kind: Kind, object: &Object) -> Vec<Finding> {
    let mut found: Vec<(Option<&'static Node>, Finding)> = Vec::new();
    if let Some(spec) = object.at("/spec") {
        let is_sandbox = spec
            .pointer("/template/spec/runtime/sandbox")
            .is_some_and(|one| !is_nothing(one));
        walk_spec(kind, spec, &mut |place: &Place<'_>, node: Option<&'static Node>| {
            let text = match node.and_then(|node| node.handling) {
                Some(Handling::Warned(text)) => text,
                Some(Handling::Done(Actor::MachineProvider, _)) if is_sandbox => OF_MACHINES,
                Some(_) => return,
                None => UNKNOWN,
            };
            let address = |one: Option<&Node>| one.map(std::ptr::from_ref);
            if let Some((_, finding)) = found.iter_mut().find(|(one, _)| address(*one) == address(node)) {
                finding.more += 1;
                return;
            }
            let path = place.to_string();
            found.push((node, Finding { path, text, more: 0 }));
        });
    }
    let mut findings: Vec<Finding> = found.into_iter().map(|(_, finding)| finding).collect();
    findings.sort_by(|left, right| left.path.cmp(&right.path));
    findings.truncate(WARNINGS);
    findings
}

/// Puts the condition into a status of the object that is rendered, or takes it out. Of an object that exceeds a limit the
/// spec is not kept, and the condition stays as it is.
pub(crate) fn show(
    status: &mut Map<String, Value>,
    kind: Kind,
    object: &Object,
    observed: Option<i64>,
    now: Timestamp,
) {
    if object.excess().is_some() {
        return;
    }
    let findings: Vec<String> = findings(kind, object).iter().map(ToString::to_string).collect();
    if findings.is_empty() {
        conditions::take_out(status, UNSUPPORTED_FIELDS);
        return;
    }
    let condition = Condition::new(UNSUPPORTED_FIELDS, true, UNSUPPORTED_FIELDS, findings.join("; "));
    conditions::put_in(status, condition.render(object.at("/status"), observed, now));
}
