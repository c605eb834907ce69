//! How large an object may be that is carried, and how large all objects of a project, and of a cell, may be together.
//!
//! What exceeds a limit is not carried further; what runs of it goes on. The depth is that of the modules' host
//! (`popcell_protocol`), so that what is carried can be interpreted.

use std::fmt;

use popcell_api::kind::{self, Kind};

/// Levels of objects and lists within each other, the object itself included.
pub const DEPTH: usize = 64;

/// Sizes, in bytes of JSON text without `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One object.
    pub object_bytes: usize,
    /// Objects of one project that are watched, of all kinds.
    pub project_objects: usize,
    /// Their bytes together.
    pub project_bytes: usize,
    /// ConfigMaps and Secrets of one project that are carried, together.
    pub data_bytes: usize,
    /// What one cell writes to the hub, or several of one city: Instances, and statuses of WorkloadDeployments.
    pub cell_bytes: usize,
}

impl Limits {
    /// The defaults: several projects at their limits fit the memory that the manifests allow, beside a thousand idle ones.
    pub const DEFAULT: Self = Self {
        object_bytes: 256 * 1024,
        project_objects: 20_000,
        project_bytes: 64 * 1024 * 1024,
        data_bytes: 16 * 1024 * 1024,
        cell_bytes: 128 * 1024 * 1024,
    };
    /// Of what no other client makes as large as they like.
    pub const NONE: Self = Self {
        object_bytes: usize::MAX,
        project_objects: usize::MAX,
        project_bytes: usize::MAX,
        data_bytes: usize::MAX,
        cell_bytes: usize::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where a WorkloadDeployment names its instance type.
pub const INSTANCE_TYPE: &str = "/spec/template/spec/runtime/resources/instanceType";

/// Of a WorkloadDeployment, the [`lookups`] behind the instance type.
const OF_DEPLOYMENT: &[&str] = &[
    INSTANCE_TYPE,
    "/spec/cityCode",
    "/spec/placementName",
    "/spec/replicas",
    "/spec/scaleSettings/maxReplicas",
    "/spec/scaleSettings/minReplicas",
    "/spec/workloadRef/name",
    "/spec/workloadRef/uid",
];

/// Fields that are kept decoded of every whole object of a kind, by JSON pointer: its [`lookups`], and of a WorkloadDeployment the
/// instance type, which is no lookup: of an object that exceeds a limit nothing of the template is there, so that it is not taken
/// for a whole one.
pub fn picked(kind: Kind) -> &'static [&'static str] {
    match kind {
        kind::WORKLOAD_DEPLOYMENT => OF_DEPLOYMENT,
        other => lookups(other),
    }
}

/// What an object is looked up by, and what says whether it is the one that was asked for, by JSON pointer. Of an object that
/// exceeds a limit it is there as well, so that it is not taken for another.
pub fn lookups(kind: Kind) -> &'static [&'static str] {
    match kind {
        kind::WORKLOAD_DEPLOYMENT => OF_DEPLOYMENT.split_first().map_or(&[], |(_, lookups)| lookups),
        kind::RESOURCE_BINDING => &["/spec/resource/kind", "/spec/resource/name"],
        kind::NETWORK_BINDING => &["/status/networkContextRef/namespace", "/status/networkContextRef/name"],
        kind::SUBNET_CLAIM => &["/spec/networkContext/name", "/status/subnetRef/name"],
        _ => &[],
    }
}

/// What an object has too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It nests deeper than [`DEPTH`].
    Depth {
        /// How deep.
        levels: usize,
    },
    /// It is larger than one object may be.
    Bytes {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Its project has more objects.
    ProjectObjects {
        /// The limit.
        limit: usize,
    },
    /// Its project's objects are larger together.
    ProjectBytes {
        /// The limit.
        limit: usize,
    },
    /// A ConfigMap or Secret: the copies of its project on the hub would be larger together.
    DataBytes {
        /// The limit.
        limit: usize,
    },
    /// A ConfigMap or Secret: not all copies of its project were counted since the process started.
    DataUncounted {
        /// Whether the hub gives no right to list those of a namespace.
        is_denied: bool,
    },
    /// What its cell or city writes to the hub is larger together.
    CellBytes {
        /// The limit.
        limit: usize,
    },
}

impl Excess {
    /// Whether it is there for want of room, which others take: it may end without a change of the object.
    pub const fn is_of_room(self) -> bool {
        !matches!(self, Self::Depth { .. } | Self::Bytes { .. })
    }

    /// The most that is kept of the data of an object that has too much of something.
    pub const MOST_KEPT: usize = 64 * 1024;

    /// How many bytes are kept of the data of an object that has it: where there are too many objects, of each little.
    pub const fn kept_bytes(self) -> usize {
        if self.is_of_room() { 2 * 1024 } else { Self::MOST_KEPT }
    }

    /// What its user can do, for the end of a message.
    pub const fn fix(self) -> &'static str {
        match self {
            Self::Depth { .. } | Self::Bytes { .. } => "make it smaller",
            Self::ProjectObjects { .. } | Self::ProjectBytes { .. } => {
                "delete objects of the project, or have its limit raised"
            }
            Self::DataBytes { .. } => {
                "name fewer or smaller ones, wait until what earlier templates name is gone, or have the limit raised"
            }
            Self::DataUncounted { is_denied: false } => "it is tried again",
            Self::DataUncounted { is_denied: true } => {
                "have an operator look into the controller's log, which names it"
            }
            Self::CellBytes { .. } => "have an operator look at what its city reports, or raise the limit of the city",
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth { levels } => write!(f, "nests {levels} levels deep, the limit is {DEPTH}"),
            Self::Bytes { bytes, limit } => write!(f, "has {bytes} bytes, the limit is {limit}"),
            Self::ProjectObjects { limit } => {
                write!(f, "is one more than the {limit} objects of its project that are kept")
            }
            Self::ProjectBytes { limit } => {
                write!(
                    f,
                    "makes the objects of its project larger than the limit of {limit} bytes"
                )
            }
            Self::DataBytes { limit } => write!(
                f,
                "is not carried: the ConfigMaps and Secrets of its project may have {limit} bytes on the platform"
            ),
            Self::DataUncounted { is_denied: false } => {
                write!(f, "is not carried yet: those of its project are being counted")
            }
            Self::DataUncounted { is_denied: true } => write!(
                f,
                "is not carried: those that its project has in a namespace of the platform cannot be listed"
            ),
            Self::CellBytes { limit } => {
                write!(f, "makes what its city reports larger than the limit of {limit} bytes")
            }
        }
    }
}

/// How deeply a JSON text nests: 0 for a string, number, bool or null. The text has to be valid.
pub fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

/// Skips the rest of a string, its closing quote included.
fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Fields, Object};

    #[test]
    fn who_looks_for_what_names_an_instance_type_decodes_none_of_ten_thousand() {
        let stored: Vec<Object> = (0..10_000)
            .map(|number| {
                let of = if number % 1000 == 0 { "acme/large" } else { "acme/small" };
                let text = format!(
                    r#"{{"metadata":{{"name":"web-{number}"}},"spec":{{"cityCode":"DFW","template":{{"spec":{{"runtime":{{"resources":
                    {{"instanceType":"{of}"}},"sandbox":{{"containers":[{{"name":"a"}}]}}}}}}}}}}}}"#
                );
                let mut one = Object::read(&text).unwrap();
                one.pick(picked(kind::WORKLOAD_DEPLOYMENT));
                one
            })
            .collect();
        let found = stored
            .iter()
            .filter(|one| one.text(INSTANCE_TYPE) == Some("acme/large"));
        assert_eq!(found.count(), 10);
        assert_eq!(stored.iter().filter(|one| one.data.is_decoded()).count(), 0);
        // Whoever looks at more does decode it.
        assert!(
            stored
                .iter()
                .any(|one| one.at("/spec/template").is_some() && one.data.is_decoded())
        );
    }

    /// Whoever looks for the template tells by it whether the object is whole.
    #[test]
    fn of_what_exceeds_a_limit_nothing_of_the_template_is_there() {
        let kind = kind::WORKLOAD_DEPLOYMENT;
        let large = "x".repeat(100_000);
        let text = format!(
            r#"{{"metadata":{{"name":"web"}},"spec":{{"cityCode":"DFW","template":{{"spec":{{"runtime":{{"resources":
            {{"instanceType":"acme/large"}},"large":"{large}"}}}}}}}}}}"#
        );
        let mut one = Object::read(&text).unwrap();
        one.pick(picked(kind));
        assert_eq!(one.text(INSTANCE_TYPE), Some("acme/large"));
        one.exceeds(Excess::ProjectObjects { limit: 1 }, kind).unwrap();
        one.pick(picked(kind));
        assert_eq!(
            (one.at("/spec/template"), one.text("/spec/cityCode")),
            (None, Some("DFW"))
        );
    }

    #[test]
    fn levels_are_counted_outside_of_strings() {
        for (text, levels) in [
            ("null", 0),
            ("\"[[{\"", 0),
            (r#""\"[""#, 0),
            ("{}", 1),
            (r#"{"a":[1,{"b":"}"}],"c":[]}"#, 3),
            (&format!("{}{}", "[".repeat(200), "]".repeat(200)), 200),
        ] {
            assert_eq!(depth(text), levels, "{text}");
        }
    }
}
