//! The routes over a stand-in for the servers of projects that notes what it is asked.
#![allow(clippy::needless_pass_by_value, reason = "builders take json!(..) as it is written")]

mod deployments;
mod manifests;
mod outage;
mod projects;
mod rules;
mod serving;
mod stand_in;
mod wire;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use popcell_api::admission::VALIDATE_WORKLOAD_PATH;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::{Admission, Mode, router};
use crate::planes::InstanceTypes;
use stand_in::{Reply, Servers};

const LIST: &str = "GET /apis/networking.datumapis.com/v1alpha/locationbindings";
const ACCESS: &str = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews";
const NETWORK: &str = "spec.template.spec.networkInterfaces[0].network";

/// As `--max-object-size` by default.
const LARGEST: usize = popcell_core::limits::Limits::DEFAULT.object_bytes;

/// The webhooks over stand-ins.
struct Served {
    router: Router,
    servers: Servers,
}

impl Served {
    fn new(mode: Mode, servers: Servers) -> Self {
        let admission = Admission::new(mode, servers.transport(), servers.record(), LARGEST);
        Self {
            router: router(admission),
            servers,
        }
    }

    /// The same with a catalogue of instance types.
    fn with_types(types: InstanceTypes) -> Self {
        let servers = Servers::new(good);
        let admission = Admission::new(Mode::Milo, servers.transport(), servers.record(), LARGEST);
        Self {
            router: router(admission.with_types(types)),
            servers,
        }
    }

    /// In mode milo, over servers with bindings in DFW and ORD that allow every network.
    fn good() -> Self {
        Self::new(Mode::Milo, Servers::new(good))
    }

    /// Status and text of the answer to any request.
    async fn send(&self, request: Request<Body>) -> (StatusCode, String) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// The `response` to a review, at a path with query.
    async fn at(&self, path: &str, request: &Value) -> Value {
        let body = review(request).to_string();
        let (status, text) = self.send(Request::post(path).body(Body::from(body)).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{text}");
        let mut whole: Value = serde_json::from_str(&text).unwrap();
        let response = whole["response"].take();
        assert_eq!(
            whole,
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": null })
        );
        assert_eq!(response["uid"], request["uid"], "{text}");
        assert_eq!(
            response["allowed"] == json!(true),
            response["status"].is_null(),
            "{text}"
        );
        response
    }

    async fn validate(&self, request: &Value) -> Value {
        self.at(VALIDATE_WORKLOAD_PATH, request).await
    }

    /// Code, reason and message of a refusal.
    async fn refused(&self, request: &Value) -> (u64, String, String) {
        let status = self.validate(request).await["status"].take();
        assert_eq!(
            (&status["kind"], &status["status"]),
            (&json!("Status"), &json!("Failure"))
        );
        let text = |field: &str| status[field].as_str().unwrap().to_owned();
        (status["code"].as_u64().unwrap(), text("reason"), text("message"))
    }
}

fn review(request: &Value) -> Value {
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request })
}

fn binding(city: &str) -> Value {
    json!({ "metadata": { "name": city.to_lowercase(), "namespace": "default" },
        "spec": { "topology": { "topology.datum.net/city-code": city } } })
}

fn bindings(items: &[Value]) -> Reply {
    Reply::Json(
        json!({ "apiVersion": "networking.datumapis.com/v1alpha", "kind": "LocationBindingList",
        "metadata": { "resourceVersion": "1" }, "items": items }),
    )
}

fn access(allowed: bool) -> Reply {
    Reply::Json(
        json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {}, "status": { "allowed": allowed } }),
    )
}

fn good(asked: &str) -> Reply {
    match asked {
        LIST => bindings(&[binding("DFW"), binding("ORD")]),
        _ => access(true),
    }
}

fn workload() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": {
            "placements": [{ "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "web", "image": "i" }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
        },
    })
}

/// Another valid Workload: same cities and networks, another image.
fn rolled() -> Value {
    let mut whole = workload();
    whole["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!("j");
    whole
}

fn in_cities(cities: &[&str]) -> Value {
    let mut whole = workload();
    whole["spec"]["placements"][0]["cityCodes"] = json!(cities);
    whole
}

fn with_networks(networks: &[Value]) -> Value {
    let mut whole = workload();
    let interfaces: Vec<Value> = networks.iter().map(|network| json!({ "network": network })).collect();
    whole["spec"]["template"]["spec"]["networkInterfaces"] = json!(interfaces);
    whole
}

fn user(project: &str) -> Value {
    json!({ "username": "me", "uid": "1", "groups": ["g"], "extra": { "iam.miloapis.com/parent-name": [project] } })
}

/// A request as API servers send it.
fn request(operation: &str, old: Value, new: Value) -> Value {
    json!({
        "uid": format!("uid-{operation}"),
        "kind": { "group": "compute.datumapis.com", "version": "v1alpha", "kind": "Workload" },
        "resource": { "group": "compute.datumapis.com", "version": "v1alpha", "resource": "workloads" },
        "requestKind": { "group": "compute.datumapis.com", "version": "v1alpha", "kind": "Workload" },
        "name": "web", "namespace": "default", "operation": operation, "userInfo": user("p1"),
        "object": new, "oldObject": old, "dryRun": false, "options": { "kind": "CreateOptions" },
    })
}

fn create(new: Value) -> Value {
    request("CREATE", Value::Null, new)
}

fn update(old: Value, new: Value) -> Value {
    request("UPDATE", old, new)
}
