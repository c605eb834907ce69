//! Karmada's interpreter operations (config.karmada.io/v1alpha1).

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
}
