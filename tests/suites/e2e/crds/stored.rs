//! What the server takes and keeps.

use std::fs;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::Environment;
use popcell_suites::read;
use popcell_test_support::kind::{INSTANCE, Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, objects, workspace};
use serde_json::{Value, json};

use super::{new_object, plane_with_namespace};

const OURS: [Kind; 3] = [WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE];

/// What is stored is what was sent: no field of our kinds is dropped.
pub(crate) async fn whole(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in OURS {
        let (object, status) = new_object(kind.kind, namespace)?;
        stored_whole(&plane, kind, namespace, &object, &status).await?;
    }
    Ok(())
}

async fn stored_whole(plane: &Plane, kind: Kind, namespace: &str, object: &Value, status: &Value) -> Result<()> {
    plane.create(object, false).await?;
    plane.set_status(kind, Some(namespace), "whole", status).await?;
    let stored = plane.expect(kind, Some(namespace), "whole").await?;
    read::expect_at(&stored, "/spec", &object["spec"])?;
    read::expect_at(&stored, "/status", status)
}

/// What is shipped for people to begin with.
pub(crate) async fn examples(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    let directory = workspace::root().join("docs/examples");
    let mut workloads = 0;
    for entry in fs::read_dir(&directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let file = entry.context("failed to list the examples")?.path();
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        let mut object: Value = serde_saphyr::from_str(&text).with_context(|| file.display().to_string())?;
        object["metadata"]["namespace"] = json!(namespace);
        let created = plane
            .create(&object, false)
            .await
            .with_context(|| file.display().to_string())?;
        if object["kind"] == "Workload" {
            workloads += 1;
            let policy = "/spec/placements/0/scaleSettings/instanceManagementPolicy";
            read::expect_at(&created, policy, &json!("OrderedReady"))?;
        }
    }
    ensure!(workloads == 2, "{workloads} Workloads in {}", directory.display());
    Ok(())
}

/// An Instance has a status before any controller has looked, and only an Instance.
pub(crate) async fn unobserved(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in OURS {
        let (object, _) = new_object(kind.kind, namespace)?;
        let created = plane.create(&object, false).await?;
        if kind != INSTANCE {
            read::expect_at(&created, "/status", &Value::Null)?;
            continue;
        }
        let conditions: Vec<Value> = [
            ("Programmed", "Pending", "Waiting for controller"),
            ("Available", "Pending", "Waiting for controller"),
            ("Ready", "Pending", "Waiting for controller"),
            ("QuotaGranted", "PendingEvaluation", "Waiting for quota evaluation"),
        ]
        .map(|(type_, reason, message)| {
            json!({
                "type": type_, "status": "Unknown", "reason": reason, "message": message,
                "lastTransitionTime": "1970-01-01T00:00:00Z",
            })
        })
        .to_vec();
        read::expect_at(&created, "/status", &json!({ "conditions": conditions }))?;
    }
    Ok(())
}

/// Controllers carry what a newer release has written; people are told of it.
pub(crate) async fn unknown_fields(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for (kind, places) in [
        (
            WORKLOAD_DEPLOYMENT,
            [
                "/spec",
                "/spec/scaleSettings",
                "/spec/template",
                "/spec/template/spec/runtime/sandbox/containers/0",
                "/spec/template/spec/volumes/0/disk/template/spec",
                "/status",
                "/status/location",
                "/status/conditions/0",
            ],
        ),
        (
            INSTANCE,
            [
                "/spec",
                "/spec/runtime/resources",
                "/spec/runtime/sandbox/containers/0/env/1/valueFrom",
                "/spec/controller/schedulingGates/0",
                "/status",
                "/status/controller",
                "/status/conditions/0",
                "/status/networkInterfaces/0/assignments",
            ],
        ),
    ] {
        let (mut object, status) = new_object(kind.kind, namespace)?;
        object["status"] = status;
        for place in places {
            let parent = object.pointer_mut(place).with_context(|| format!("no {place}"))?;
            parent["newer"] = json!({ "release": [1, "two", null] });
        }
        let status = object["status"].clone();
        stored_whole(&plane, kind, namespace, &object, &status).await?;
    }
    Ok(())
}

/// A null means the same as nothing, and is not kept for others to stumble over.
pub(crate) async fn nulls(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    let (mut object, mut status) = new_object(WORKLOAD_DEPLOYMENT.kind, namespace)?;
    object["spec"]["template"]["metadata"] = Value::Null;
    object["spec"]["template"]["spec"]["volumes"] = Value::Null;
    object["spec"]["scaleSettings"]["instanceManagementPolicy"] = Value::Null;
    status["conditions"] = Value::Null;
    plane.create(&object, false).await?;
    let stored = plane
        .set_status(WORKLOAD_DEPLOYMENT, Some(namespace), "whole", &status)
        .await?;
    for dropped in [
        "/spec/template/metadata",
        "/spec/template/spec/volumes",
        "/status/conditions",
    ] {
        let found = stored.data.pointer(dropped);
        ensure!(found.is_none(), "{dropped} is {found:?}");
    }
    let policy = "/spec/scaleSettings/instanceManagementPolicy";
    read::expect_at(&stored, policy, &json!("OrderedReady"))
}

/// What `kubectl get -o wide` shows.
pub(crate) async fn columns(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    let expected: [(Kind, &[(&str, Value)]); 3] = [
        (
            WORKLOAD,
            &[
                ("Available", json!("True")),
                ("Reason", json!("AvailablePlacementFound")),
                ("Deployments", json!(2)),
                ("Replicas", json!(4)),
                ("Ready", json!(3)),
                ("Desired", json!(4)),
                ("Up-to-date", json!(4)),
            ],
        ),
        (
            WORKLOAD_DEPLOYMENT,
            &[
                ("Available", json!("True")),
                ("Reason", json!("StableInstanceFound")),
                ("Replicas", json!(2)),
                ("Ready", json!(1)),
                ("Desired", json!(2)),
                ("Up-to-date", json!(2)),
                ("Location Namespace", json!("default")),
                ("Location Name", json!("dfw-a")),
            ],
        ),
        (
            INSTANCE,
            &[
                ("Ready", json!("False")),
                ("Reason", json!("Stopped")),
                ("Network IP", json!("10.0.0.2")),
                ("External IP", json!("192.0.2.2")),
                ("Message", json!("The machine was stopped")),
                ("Quota", json!("QuotaAvailable")),
            ],
        ),
    ];
    for (kind, expected) in expected {
        let (object, status) = new_object(kind.kind, namespace)?;
        plane.create(&object, false).await?;
        plane.set_status(kind, Some(namespace), "whole", &status).await?;
        let mut shown = plane.columns(kind, Some(namespace), "whole").await?;
        for (column, cell) in expected {
            let found = shown.remove(*column);
            ensure!(found.as_ref() == Some(cell), "{} {column}: {found:?}", kind.kind);
        }
        ensure!(shown.keys().eq(["Age", "Name"]), "{}: also {shown:?}", kind.kind);
    }
    let bare = objects::workload_deployment(namespace, "bare", "DFW", 1);
    plane.create(&bare, false).await?;
    let shown = plane.columns(WORKLOAD_DEPLOYMENT, Some(namespace), "bare").await?;
    ensure!(shown["Available"].is_null(), "nobody has looked: {shown:?}");
    Ok(())
}
