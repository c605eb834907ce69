//! What the reconcilers' surroundings do: cells and the garbage collector.

use std::collections::{BTreeMap, BTreeSet};

use popcell_api::{kind, labels};
use serde_json::json;

use super::{Driver, HUB_NAMESPACE, cluster, project};
use crate::object::{Fields, Object};
use crate::plan::Plane;
use crate::testing::object;

impl Driver {
    /// Every cell says what it runs; whether it said anything new.
    pub(super) fn cells_report(&mut self) -> bool {
        let mut wanted: BTreeMap<String, Object> = BTreeMap::new();
        let mut news = false;
        let seen: Vec<Object> = self
            .servers
            .list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT)
            .into_iter()
            .cloned()
            .collect();
        for one in seen.iter().filter(|one| one.marked()) {
            let status = json!({ "replicas": self.running, "observedGeneration": one.generation(), "conditions": [
                { "type": "Available", "status": if self.running > 0 { "True" } else { "False" }, "reason": "R", "message": "m" }] });
            if one.at("/status") != Some(&status) {
                news = true;
                let name = one.name().to_owned();
                self.servers
                    .change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, HUB_NAMESPACE, &name, |one| {
                        one.data["status"] = status
                    });
            }
            for ordinal in 0..self.running {
                let copy = copy(one, ordinal);
                wanted.insert(copy.name().to_owned(), copy);
            }
        }
        let present: BTreeSet<String> = self
            .servers
            .list(&Plane::Hub, kind::INSTANCE)
            .iter()
            .map(|one| one.name().to_owned())
            .collect();
        for name in present.iter().filter(|name| !wanted.contains_key(*name)) {
            self.servers.remove(&Plane::Hub, kind::INSTANCE, HUB_NAMESPACE, name);
            news = true;
        }
        for (name, copy) in wanted {
            if !present.contains(&name) {
                self.servers.put(&Plane::Hub, kind::INSTANCE, copy);
                news = true;
            }
        }
        news
    }

    /// Objects whose only owners are gone go, as the garbage collector does it.
    pub(super) fn collect_garbage(&mut self) {
        let project = project();
        let living: BTreeSet<String> = self
            .servers
            .all()
            .filter(|(key, _)| key.0 == project)
            .map(|(_, one)| one.uid().to_owned())
            .collect();
        let orphaned = |one: &Object| {
            let owners = one.metadata.owner_references.as_deref().unwrap_or_default();
            !owners.is_empty() && owners.iter().all(|owner| !living.contains(&owner.uid))
        };
        for kind in [kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE] {
            let gone: Vec<String> = self
                .servers
                .list(&project, kind)
                .into_iter()
                .filter(|one| orphaned(one))
                .map(|one| one.name().to_owned())
                .collect();
            for name in gone {
                self.servers.delete(&project, kind, "default", &name);
            }
        }
    }
}

fn copy(deployment: &Object, ordinal: u8) -> Object {
    let name = format!("{}-{ordinal}", deployment.name());
    object(
        json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance",
        "metadata": { "name": name, "namespace": HUB_NAMESPACE, "uid": format!("copy-{name}"), "resourceVersion": "1",
            "generation": 1, "labels": { labels::WORKLOAD_DEPLOYMENT_NAME: deployment.name(),
            labels::SOURCE_CLUSTER: cluster(deployment.text("/spec/cityCode").unwrap()) } },
        "spec": { "of": "cell" },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Available", "observedGeneration": 1 }] } }),
    )
}
