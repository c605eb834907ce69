//! What a pass is about, and whose turn it is on.

use std::fmt;

use popcell_api::names::SINGLE;
use popcell_core::plan::Plane;

/// The object of a pass by address. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The server.
    pub plane: Plane,
    /// The namespace; empty for objects of the cluster.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// An object by address.
    pub fn new(plane: &Plane, namespace: &str, name: &str) -> Self {
        Self {
            plane: plane.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Whom the key is worked on for.
    pub fn tenant(&self) -> Tenant {
        match &self.plane {
            Plane::Project(id) if id == SINGLE => Tenant::Namespace(self.namespace.clone()),
            Plane::Project(id) => Tenant::Project(id.clone()),
            Plane::Hub | Plane::Cell | Plane::Discovery => Tenant::Namespace(self.namespace.clone()),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        write!(f, "{} in {}", self.name, self.plane)
    }
}

/// Those between whom the queue is fair: projects; on planes that projects share, the namespaces that stand for theirs; and
/// where there is one project only, its namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tenant {
    /// A project's own plane.
    Project(String),
    /// A namespace of the hub, of the cell or of the only project.
    Namespace(String),
}
