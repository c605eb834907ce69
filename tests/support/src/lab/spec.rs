//! What a lab consists of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use popcell_api::labels;
use serde::Serialize;

/// Extra command line flags by program; they follow the lab's own, so that the last wins.
pub type Flags = BTreeMap<String, Vec<String>>;

/// What a lab consists of: a Karmada hub, members, and plain API servers beside them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LabSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    hub: Option<Hub>,
    members: Vec<Member>,
    crd_dirs: Vec<PathBuf>,
    extra_planes: Vec<ExtraPlane>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Hub {
    extra_flags: Flags,
    #[serde(skip_serializing_if = "is_false")]
    own_etcd: bool,
}

impl LabSpec {
    /// A Karmada hub without members. The CRDs that we ship are served by the hub and by every member.
    #[must_use]
    pub fn karmada() -> Self {
        Self {
            hub: Some(Hub::default()),
            crd_dirs: vec![crate::workspace::crds_dir()],
            ..Self::default()
        }
    }

    /// Plain API servers only.
    #[must_use]
    pub fn planes(names: &[&str]) -> Self {
        names.iter().fold(Self::default(), |spec, name| spec.plane(name))
    }

    /// Adds a member.
    #[must_use]
    pub fn member(mut self, member: Member) -> Self {
        self.members.push(member);
        self
    }

    /// Adds a plain API server that joins nothing.
    #[must_use]
    pub fn plane(mut self, name: &str) -> Self {
        self.extra_planes.push(ExtraPlane {
            name: name.to_owned(),
            crds: false,
            own_etcd: false,
        });
        self
    }

    /// Gives a plane an etcd of its own, of which [`super::Lab::snapshot`] can be taken.
    #[must_use]
    pub fn own_etcd(mut self, plane: &str) -> Self {
        if let Some(hub) = self.hub.as_mut().filter(|_| plane == super::HUB) {
            hub.own_etcd = true;
        }
        for member in self.members.iter_mut().filter(|one| one.name == plane) {
            member.own_etcd = true;
        }
        for extra in self.extra_planes.iter_mut().filter(|one| one.name == plane) {
            extra.own_etcd = true;
        }
        self
    }

    /// Adds a directory of CRDs for the hub and every member.
    #[must_use]
    pub fn crds(mut self, dir: impl Into<PathBuf>) -> Self {
        self.crd_dirs.push(dir.into());
        self
    }

    /// Karmada notices within some seconds that a Push member does not answer, that it answers again, and which kinds it
    /// serves: with its defaults each takes half a minute.
    #[must_use]
    pub fn notices_soon(self) -> Self {
        [
            "--cluster-status-update-frequency=3s",
            "--cluster-failure-threshold=10s",
            "--cluster-success-threshold=3s",
        ]
        .iter()
        .fold(self, |spec, flag| spec.hub_flag("karmada-controller-manager", flag))
    }

    /// Adds a flag to a program of the hub, such as `karmada-controller-manager`.
    #[must_use]
    pub fn hub_flag(mut self, program: &str, flag: &str) -> Self {
        add_flag(&mut self.hub.get_or_insert_default().extra_flags, program, flag);
        self
    }
}

/// A cluster that joins the hub.
#[derive(Clone, Debug, Serialize)]
pub struct Member {
    name: String,
    mode: &'static str,
    labels: BTreeMap<String, String>,
    extra_flags: Flags,
    #[serde(skip_serializing_if = "is_false")]
    own_etcd: bool,
}

impl Member {
    /// A member that Karmada's controllers write to.
    #[must_use]
    pub fn push(name: &str) -> Self {
        Self::new(name, "Push")
    }

    /// A member whose agent fetches from the hub.
    #[must_use]
    pub fn pull(name: &str) -> Self {
        Self::new(name, "Pull")
    }

    fn new(name: &str, mode: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            mode,
            labels: BTreeMap::new(),
            extra_flags: Flags::new(),
            own_etcd: false,
        }
    }

    /// Labels the Cluster object with the city.
    #[must_use]
    pub fn city(self, code: &str) -> Self {
        self.label(labels::CITY_CODE, code)
    }

    /// Labels the Cluster object.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a flag to a program of the member, such as `karmada-agent`.
    #[must_use]
    pub fn flag(mut self, program: &str, flag: &str) -> Self {
        add_flag(&mut self.extra_flags, program, flag);
        self
    }
}

#[derive(Clone, Debug, Serialize)]
struct ExtraPlane {
    name: String,
    crds: bool,
    #[serde(skip_serializing_if = "is_false")]
    own_etcd: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !*value
}

fn add_flag(flags: &mut Flags, program: &str, flag: &str) {
    flags.entry(program.to_owned()).or_default().push(flag.to_owned());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn is_written_as_the_supervisor_reads_it() {
        let spec = LabSpec::karmada()
            .hub_flag("karmada-controller-manager", "--feature-gates=Failover=true")
            .member(Member::push("dfw").city("DFW"))
            .member(Member::pull("ord").city("ORD").flag("karmada-agent", "--v=4"))
            .plane("project")
            .plane("other");
        let spec = ["hub", "dfw", "other"]
            .iter()
            .fold(spec, |spec, plane| spec.own_etcd(plane));
        let written = serde_json::to_value(&spec).unwrap();
        assert_eq!(
            written,
            json!({
                "hub": {
                    "extra_flags": { "karmada-controller-manager": ["--feature-gates=Failover=true"] },
                    "own_etcd": true,
                },
                "members": [
                    {
                        "name": "dfw", "mode": "Push",
                        "labels": { "topology.datum.net/city-code": "DFW" }, "extra_flags": {}, "own_etcd": true,
                    },
                    {
                        "name": "ord", "mode": "Pull",
                        "labels": { "topology.datum.net/city-code": "ORD" },
                        "extra_flags": { "karmada-agent": ["--v=4"] },
                    },
                ],
                "crd_dirs": [crate::workspace::crds_dir()],
                "extra_planes": [
                    { "name": "project", "crds": false },
                    { "name": "other", "crds": false, "own_etcd": true },
                ],
            })
        );
    }
}
