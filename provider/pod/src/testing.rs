//! Objects that the tests of this crate begin with.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::DynamicObject;
use popcell_api::finalizers;
use serde_json::{Value, json};

use crate::pod::{Settings, manifest};

/// A time of the tests, so many seconds after they begin.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + seconds).unwrap()
}

/// An Instance of one container with our finalizer and without gates, once it was changed.
pub(crate) fn instance(change: impl FnOnce(&mut Value)) -> DynamicObject {
    let mut object = json!({
        "apiVersion": "compute.datumapis.com/v1alpha",
        "kind": "Instance",
        "metadata": {
            "namespace": "ns-1", "name": "web-0", "uid": "u1", "generation": 2, "resourceVersion": "9",
            "finalizers": [finalizers::POD_PROVIDER],
            "labels": { "compute.datumapis.com/instance-index": "0", "app": "tenants", "karmada.io/managed": "x" },
            "annotations": { "sidecar.istio.io/inject": "true" },
        },
        "spec": {
            "runtime": {
                "resources": { "instanceType": "datumcloud/d1-standard-2" },
                "sandbox": { "containers": [{ "name": "web", "image": "registry.example.com/web:1" }] },
            },
            "networkInterfaces": [{ "network": { "name": "default" } }],
            "controller": { "templateHash": "h1", "schedulingGates": [] },
        },
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

/// The Pod of an Instance as a server returns it, with this status.
pub(crate) fn pod(instance: &DynamicObject, status: &Value) -> Pod {
    let mut pod = manifest(instance, &Settings::default(), 0).unwrap().pod;
    pod.metadata.uid = Some("p1".to_owned());
    pod.metadata.creation_timestamp = Some(at(0).into());
    pod.status = serde_json::from_value(status.clone()).unwrap();
    pod
}

/// A container's status in this state.
pub(crate) fn container(state: &Value) -> Value {
    json!({ "name": "web", "image": "i", "imageID": "", "ready": false, "restartCount": 3, "state": state })
}

/// A condition of a Pod that changed at the beginning.
pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({ "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": at(0).to_string() })
}

/// Whether a text names nothing that stands between a project and its cities: tenants do not know that it is there.
pub(crate) fn is_neutral(text: &str) -> bool {
    let text = text.to_lowercase();
    ["karmada", "cluster", "hub", "federat", "serviceaccount"]
        .iter()
        .all(|unknown| !text.contains(unknown))
}
