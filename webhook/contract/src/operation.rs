//! What is asked about an object (Karmada's operations, config.karmada.io/v1alpha1), and who a module is that answers.

use std::fmt;
use std::str::FromStr;

/// An operation that Karmada asks an interpreter for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// How many replicas the template asks for and what one needs.
    InterpretReplica,
    /// The parts of a template with several pod templates.
    InterpretComponent,
    /// The template with another number of replicas.
    ReviseReplica,
    /// The desired object with the fields that belong to the member cluster.
    Retain,
    /// The template with its status made from what the members reported.
    AggregateStatus,
    /// The part of a member object's status that goes upward.
    InterpretStatus,
    /// Whether the member object is healthy.
    InterpretHealth,
    /// What has to go wherever the object goes.
    InterpretDependency,
}

impl Operation {
    /// Every operation, in the order of the interface text.
    pub const ALL: [Self; 8] = [
        Self::InterpretReplica,
        Self::InterpretComponent,
        Self::ReviseReplica,
        Self::Retain,
        Self::AggregateStatus,
        Self::InterpretStatus,
        Self::InterpretHealth,
        Self::InterpretDependency,
    ];

    /// Karmada's spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InterpretReplica => "InterpretReplica",
            Self::InterpretComponent => "InterpretComponent",
            Self::ReviseReplica => "ReviseReplica",
            Self::Retain => "Retain",
            Self::AggregateStatus => "AggregateStatus",
            Self::InterpretStatus => "InterpretStatus",
            Self::InterpretHealth => "InterpretHealth",
            Self::InterpretDependency => "InterpretDependency",
        }
    }

    /// The operation that Karmada spells exactly like this.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is none of Karmada's operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown operation {0:?}: expected one of InterpretReplica, InterpretComponent, ReviseReplica, Retain, \
     AggregateStatus, InterpretStatus, InterpretHealth, InterpretDependency"
)]
pub struct UnknownOperation(String);

impl UnknownOperation {
    /// Keeps the first 64 characters of the name.
    pub fn new(name: &str) -> Self {
        Self(name.chars().take(64).collect())
    }
}

impl FromStr for Operation {
    type Err = UnknownOperation;

    /// Reads Karmada's spelling in any letter case, as Karmada's own tools do.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownOperation::new(text))
    }
}

/// Group, version and kind of an object. The core group is the empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gvk {
    /// API group; empty for the core group.
    pub group: String,
    /// API version inside the group, such as `v1alpha1`.
    pub version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
}

impl Gvk {
    /// A kind from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
        }
    }

    /// The kind of an object that carries this `apiVersion` (`group/version`, or `version` in the core group) and `kind`.
    pub fn of(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// `group/version`, or `version` in the core group: what an object carries as `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for Gvk {
    /// `group/version Kind`, or `version Kind` in the core group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{} {}", self.version, self.kind)
    }
}

/// An operation that a module implements for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Implemented {
    /// The operation.
    pub operation: Operation,
    /// Whether it belongs into the webhook's rules unless the operator says otherwise.
    pub register: bool,
}

/// One kind and what a module can do for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The kind.
    pub kind: Gvk,
    /// The operations that are implemented, in the module's order.
    pub operations: Vec<Implemented>,
}

/// Who a module is and what it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name: that of its crate.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its kinds, in the module's order.
    pub targets: Vec<Target>,
}

impl Description {
    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Whether the module implements the operation for the kind.
    pub fn implements(&self, kind: &Gvk, operation: Operation) -> bool {
        self.targets.iter().filter(|target| target.kind == *kind).any(|target| {
            target
                .operations
                .iter()
                .any(|implemented| implemented.operation == operation)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_may_type_any_case() {
        for operation in Operation::ALL {
            assert_eq!(operation.to_string().to_lowercase().parse(), Ok(operation));
        }
        let unknown = "Prune".parse::<Operation>().unwrap_err().to_string();
        assert!(
            unknown.contains("\"Prune\"") && unknown.contains("InterpretHealth"),
            "{unknown}"
        );
    }

    #[test]
    fn the_wire_is_exact() {
        assert_eq!(Operation::from_wire("Retain"), Some(Operation::Retain));
        assert_eq!(Operation::from_wire("retain"), None);
    }

    #[test]
    fn a_kind_is_written_as_its_objects_carry_it() {
        for (api_version, group, version) in [("example.io/v1", "example.io", "v1"), ("v1", "", "v1")] {
            let kind = Gvk::of(api_version, "Widget");
            assert_eq!(kind, Gvk::new(group, version, "Widget"));
            assert_eq!(kind.api_version(), api_version);
            assert_eq!(kind.to_string(), format!("{api_version} Widget"));
        }
    }
}
