//! What others do to what a cell keeps elsewhere.

use popcell_api::{annotations, kind, labels};
use proptest::sample::Index;
use serde_json::{Value, json};

use super::{Driver, NS, project};
use crate::object::{Fields, Object};
use crate::plan::{CONFIG_MAP, Plane};
use crate::testing::{Key, object};

impl Driver {
    pub(in crate::remote::laws) fn delete_by_hand(&mut self, victim: Index) {
        let ours: Vec<(Plane, kind::Kind, String, String)> = [
            (Plane::Hub, kind::INSTANCE),
            (project(), kind::RESOURCE_CLAIM),
            (Plane::Cell, CONFIG_MAP),
        ]
        .into_iter()
        .flat_map(|(plane, kind)| {
            let all = self.servers.list(&plane, kind).into_iter();
            let found = all.map(|one| (plane.clone(), kind, one.namespace().to_owned(), one.name().to_owned()));
            found.collect::<Vec<_>>()
        })
        .collect();
        if !ours.is_empty() {
            let (plane, kind, namespace, name) = victim.get(&ours);
            self.servers.delete(plane, *kind, namespace, name);
        }
    }

    /// Objects of others that hold names of ours; the bits of `which` choose.
    pub(in crate::remote::laws) fn add_foreign(&mut self, which: u8) -> Vec<(Key, Object)> {
        let foreign = |name: &str, namespace: &str, labels: Value, uid: &str| {
            object(
                json!({ "metadata": { "name": name, "namespace": namespace, "uid": format!("theirs-{name}"),
                "resourceVersion": "1", "labels": labels, "annotations": { annotations::SOURCE_UID: uid } },
                "spec": {} }),
            )
        };
        let marker = labels::MANAGED_BY;
        let all = [
            (
                Plane::Hub,
                kind::INSTANCE,
                foreign(
                    "web-0",
                    NS,
                    json!({ labels::SOURCE_CLUSTER: "ord-01", marker: "popcell" }),
                    "uid-ord",
                ),
            ),
            (
                Plane::Hub,
                kind::INSTANCE,
                foreign(
                    "web-1",
                    NS,
                    json!({ labels::SOURCE_CLUSTER: "dfw-01", marker: "popcell" }),
                    "uid-old",
                ),
            ),
            (
                project(),
                kind::RESOURCE_CLAIM,
                foreign(
                    "instance-web-1",
                    "default",
                    json!({ labels::SOURCE_CLUSTER: "ord-01", labels::INSTANCE_NAMESPACE: NS }),
                    "uid-ord",
                ),
            ),
            (
                project(),
                kind::RESOURCE_CLAIM,
                foreign(
                    "instance-web-2",
                    "default",
                    json!({ labels::SOURCE_CLUSTER: "dfw-01", labels::INSTANCE_NAMESPACE: NS }),
                    "uid-old",
                ),
            ),
        ];
        let mut added = Vec::new();
        for (bit, (plane, kind, one)) in all.into_iter().enumerate() {
            if which & (1 << bit) != 0 {
                let key = (
                    plane.clone(),
                    kind.kind,
                    one.namespace().to_owned(),
                    one.name().to_owned(),
                );
                self.servers.put(&plane, kind, one.clone());
                added.push((key, one));
            }
        }
        added
    }
}
