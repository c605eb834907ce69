//! The tree that is shown. What planes and kinds are called in it, and how instances are counted. Pure.

use jiff::Timestamp;
use popcell_core::object::{Fields as _, Object};

use crate::table::address;

pub(super) const PROJECT: &str = "project";
pub(super) const HUB: &str = "hub";

pub(super) const WORKLOAD: &str = "Workload";
pub(super) const DEPLOYMENT: &str = "WorkloadDeployment";
pub(super) const POLICY: &str = "PropagationPolicy";
pub(super) const BINDING: &str = "ResourceBinding";
pub(super) const WORK: &str = "Work";
pub(super) const INSTANCE: &str = "Instance";
pub(super) const CLAIM: &str = "ResourceClaim";

/// City and ready instances.
pub(super) fn counts(deployment: &Object) -> String {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    let of = |field: &str| deployment.int(&format!("/status/{field}")).unwrap_or_default();
    format!("{city} {}/{} ready", of("readyReplicas"), of("desiredReplicas"))
}

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
