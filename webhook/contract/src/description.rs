//! Who a module is and what it can do.

use std::fmt;

use crate::Operation;

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
    fn a_kind_is_written_as_its_objects_carry_it() {
        for (api_version, group, version) in [("example.io/v1", "example.io", "v1"), ("v1", "", "v1")] {
            let kind = Gvk::of(api_version, "Widget");
            assert_eq!(kind, Gvk::new(group, version, "Widget"));
            assert_eq!(kind.api_version(), api_version);
            assert_eq!(kind.to_string(), format!("{api_version} Widget"));
        }
    }
}
