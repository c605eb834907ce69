//! Karmada's interpreter operations.

use std::fmt;
use std::str::FromStr;

/// What Karmada asks about an object (pkg/apis/config/v1alpha1, `InterpreterOperation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// How many replicas a template asks for, and what one of them needs.
    InterpretReplica,
    /// The same for templates with several pod templates.
    InterpretComponent,
    /// The template with another number of replicas.
    ReviseReplica,
    /// The desired object with the fields that belong to the member cluster.
    Retain,
    /// The template with a status made from those of the member clusters.
    AggregateStatus,
    /// The part of a member object's status that goes upward.
    InterpretStatus,
    /// Whether a member object is healthy.
    InterpretHealth,
    /// What else has to go wherever the object goes.
    InterpretDependency,
}

impl Operation {
    /// Every operation, in the order of Karmada's documentation.
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
    pub(crate) fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.as_str() == name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that is none of Karmada's operations.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown operation {0:?}: expected one of InterpretReplica, InterpretComponent, ReviseReplica, Retain, \
     AggregateStatus, InterpretStatus, InterpretHealth, InterpretDependency"
)]
pub struct UnknownOperation(pub String);

impl FromStr for Operation {
    type Err = UnknownOperation;

    /// Case does not matter: people type this.
    fn from_str(name: &str) -> Result<Self, UnknownOperation> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownOperation(name.chars().take(64).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_may_type_any_case() {
        assert_eq!("interprethealth".parse(), Ok(Operation::InterpretHealth));
        for operation in Operation::ALL {
            assert_eq!(operation.as_str().parse(), Ok(operation));
        }
        assert!(
            "Prune"
                .parse::<Operation>()
                .unwrap_err()
                .to_string()
                .contains("\"Prune\"")
        );
    }

    #[test]
    fn the_wire_is_exact() {
        assert_eq!(Operation::from_wire("Retain"), Some(Operation::Retain));
        assert_eq!(Operation::from_wire("retain"), None);
    }
}
