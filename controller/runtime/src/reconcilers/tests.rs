//! Reconcilers against servers that give scripted answers.

mod autoscalers;
mod broken;
mod cities;
mod claims;
mod data;
mod data_copy;
mod deletion;
mod elsewhere;
mod forbidden;
mod granted;
mod hub_quota;
mod instance_types;
mod mirror;
mod namespaces;
mod noisy;
mod orphans;
mod projection;
mod reference_copy;
mod refused;
mod rejected;
mod remote;
mod removed_cells;
mod repeated;
mod requests;
mod single;
mod stalled;
mod storm;
mod triggers;
mod unlogged;

use std::sync::{Arc, Mutex};

use popcell_api::kind::{
    CLUSTER, INSTANCE, LOCATION_BINDING, PROPAGATION_POLICY, RESOURCE_BINDING, RESOURCE_CLAIM, WORKLOAD,
    WORKLOAD_DEPLOYMENT,
};
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{NAMESPACE, Plane};
use serde_json::{Value, json};

use super::management;
use crate::context::testing::{Fixture, project};
use crate::planes::Change;
use crate::planes::testing::{Answer, Asked};
use crate::queue::{Backoff, Key, Requeue};

/// What servers say, and what they were asked.
#[derive(Default)]
struct Script {
    /// By the start of the line; the last that fits counts.
    rules: Mutex<Vec<(String, u16, Value)>>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Script {
    /// Answers requests whose line, which begins with the plane, begins so.
    fn say(&self, line: &str, code: u16, body: Value) {
        self.rules.lock().unwrap().push((line.to_owned(), code, body));
    }

    /// What was asked since the last call, without watches, queries and bodies.
    fn asked(&self) -> Vec<String> {
        let asked = self.sent().into_iter();
        let path = |line: String| line.split('?').next().unwrap_or_default().to_owned();
        asked.map(|(line, _)| path(line)).collect()
    }

    /// The same without what only reads.
    fn writes(&self) -> Vec<String> {
        let asked = self.asked().into_iter();
        asked.filter(|line| !line.contains(" GET ")).collect()
    }

    /// All of it, with queries and bodies.
    fn sent(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn answer(self: &Arc<Self>) -> Arc<Answer> {
        let script = Arc::clone(self);
        // Only watches, and the lists that they begin with, have these; nothing is said to them.
        let watches = |asked: &Asked| asked.line.contains("watch=") || asked.line.contains("limit=");
        Arc::new(move |asked| (!watches(&asked)).then(|| script.take(&asked)))
    }

    fn take(&self, asked: &Asked) -> (u16, Value) {
        let line = format!("{} {}", asked.plane, asked.line);
        self.asked.lock().unwrap().push((line.clone(), asked.body.clone()));
        let rules = self.rules.lock().unwrap();
        let rule = rules.iter().rev().find(|(start, ..)| line.starts_with(start.as_str()));
        match rule {
            Some((_, code, body)) => (*code, body.clone()),
            None if asked.line.starts_with("GET ") => absent(&asked.line),
            None => (200, json!({ "kind": "Status" })),
        }
    }
}

/// An object as a store keeps it.
fn read(object: Value) -> Arc<Object> {
    Arc::new(serde_json::from_value(object).unwrap())
}

/// An object came.
fn came(object: Value) -> Change {
    Change::Applied {
        before: None,
        now: read(object),
    }
}

/// An object went.
fn gone(object: Value) -> Change {
    let last = read(object);
    Change::Gone {
        namespace: last.namespace().to_owned(),
        name: last.name().to_owned(),
        last: Some(last),
    }
}

/// As an API server says that an object is not there.
fn absent(line: &str) -> (u16, Value) {
    let mut path = line.rsplit('/');
    let (name, plural) = (path.next().unwrap(), path.next().unwrap());
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": "not found", "details": { "name": name, "kind": plural } });
    (404, body)
}

fn refusal(code: u16) -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no" })
}

/// The hub and these projects, fully listed with nothing in them.
async fn fixture(script: &Arc<Script>, projects: &[&str]) -> Fixture {
    let fixture = Fixture::answering(management(true), projects, script.answer()).await;
    list_all(&fixture, projects);
    fixture
}

fn list_all(fixture: &Fixture, projects: &[&str]) {
    for kind in [
        NAMESPACE,
        WORKLOAD_DEPLOYMENT,
        PROPAGATION_POLICY,
        RESOURCE_BINDING,
        CLUSTER,
        INSTANCE,
    ] {
        fixture.list(&Plane::Hub, kind, Vec::new());
    }
    for id in projects {
        for kind in [WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE] {
            fixture.list(&project(id), kind, Vec::new());
        }
        fixture.list(&project(id), LOCATION_BINDING, vec![location_binding()]);
    }
}

fn hub_namespace(name: &str, project: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": format!("hub-{name}"),
        "resourceVersion": "1", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {
        "compute.datumapis.com/managed-by": "popcell", "meta.datumapis.com/upstream-cluster-name":
        format!("cluster-{project}"), "meta.datumapis.com/upstream-namespace": "default" } } })
}

/// The only city that a project may use.
fn location_binding() -> Value {
    json!({ "apiVersion": "networking.datumapis.com/v1alpha", "kind": "LocationBinding",
        "metadata": { "name": "dfw", "uid": "binding", "resourceVersion": "1" },
        "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } })
}

/// A WorkloadDeployment for DFW.
fn deployment(namespace: &str, name: &str, uid: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "metadata": {
        "name": name, "namespace": namespace, "uid": uid, "resourceVersion": "1", "generation": 1 },
        "spec": { "workloadRef": { "name": "web", "uid": "w" }, "placementName": "us", "cityCode": "DFW",
            "template": { "spec": {} }, "scaleSettings": { "minReplicas": 1 } } })
}

/// The one of the hub for a project's.
fn hub_deployment(namespace: &str, name: &str, upstream: &str) -> Value {
    let mut one = deployment(namespace, name, &format!("hub-{name}"));
    one["metadata"]["labels"] = json!({ "compute.datumapis.com/managed-by": "popcell",
        "topology.datum.net/city-code": "DFW", "meta.datumapis.com/upstream-namespace": "default" });
    one["metadata"]["annotations"] = json!({ "compute.datumapis.com/upstream-uid": upstream,
        "compute.datumapis.com/upstream-generation": "1" });
    one
}

const DEPLOYMENTS: &str = "/apis/compute.datumapis.com/v1alpha/namespaces";
