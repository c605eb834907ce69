//! The CRDs that are shipped, on a real API server: what it takes and keeps, and what it refuses.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::INSTANCE_TYPE;
use popcell_suites::environment::{Environment, SPARE};
use popcell_suites::read;
use popcell_suites::steps::refused;
use popcell_test_support::definitions::catalogue;
use popcell_test_support::kind::{INSTANCE, Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, objects, workspace};
use serde_json::{Value, json};

const OURS: [Kind; 3] = [WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE];

/// A place, the JSON that is put there (`""` takes away what is there), and what the server says of it.
type Row = (&'static str, &'static str, &'static str);

/// Places are below the object.
#[rustfmt::skip]
const WORKLOADS: &[Row] = &[
    ("/spec", "", "spec: Required value"),
    ("/spec/template", "", "spec.template: Required value"),
    ("/spec/placements", "", "spec.placements: Required value"),
    ("/spec/placements", "null", "spec.placements: Required value"),
    ("/spec/placements", "[]", "spec.placements in body should have at least 1 items"),
    ("/spec/placements/0/name", "", "spec.placements[0].name: Required value"),
    ("/spec/placements/0/cityCodes", "", "spec.placements[0].cityCodes: Required value"),
    ("/spec/placements/0/scaleSettings", "", "spec.placements[0].scaleSettings: Required value"),
    ("/spec/placement", "[]", r#"unknown field "spec.placement""#),
];

/// Places are below the scale settings, of a Workload's placement and of a WorkloadDeployment.
#[rustfmt::skip]
const SCALE_SETTINGS: &[Row] = &[
    ("/minReplicas", "", "scaleSettings.minReplicas: Required value"),
    ("/minReplicas", r#""2""#, "scaleSettings.minReplicas in body must be of type integer"),
    ("/instanceManagementPolicy", r#""Parallel""#, r#"Unsupported value: "Parallel": supported values: "OrderedReady""#),
    ("/metrics/0/resource/name", r#""memory""#, r#"Unsupported value: "memory": supported values: "cpu""#),
    ("/metrics/0/resource/target", "", "metrics[0].resource.target: Required value"),
];

/// Places are below the spec of an Instance, and of both templates of one.
#[rustfmt::skip]
const INSTANCE_SPECS: &[Row] = &[
    ("/runtime", "", "spec.runtime: Required value"),
    ("/runtime/resources", "", "runtime.resources: Required value"),
    ("/runtime/resources/instanceType", "", "runtime.resources.instanceType: Required value"),
    ("/runtime/sandbox/containers", "[]", "sandbox.containers in body should have at least 1 items"),
    ("/runtime/sandbox/containers/0/image", "", "sandbox.containers[0].image: Required value"),
    ("/runtime/sandbox/containers/-", r#"{"name":"web","image":"other"}"#, "sandbox.containers[1]: Duplicate value"),
    ("/runtime/sandbox/containers/0/env/-", r#"{"name":"PLAIN"}"#, "env[5]: Duplicate value"),
    ("/runtime/sandbox/containers/0/ports/0/port", "0", "ports[0].port in body should be greater than or equal to 1"),
    ("/runtime/sandbox/containers/0/ports/0/port", "65536", "ports[0].port in body should be less than or equal to 65535"),
    ("/runtime/sandbox/containers/0/ports/0/protocol", r#""ICMP""#, r#"Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP""#),
    ("/runtime/sandbox/containers/0/resources/limits/memory", r#""lots""#, "resources.limits.memory in body should match"),
    ("/runtime/virtualMachine/volumeAttachments", "[]", "virtualMachine.volumeAttachments in body should have at least 1 items"),
    ("/networkInterfaces", "", "spec.networkInterfaces: Required value"),
    ("/networkInterfaces", "[]", "networkInterfaces in body should have at least 1 items"),
    ("/networkInterfaces/0/network/name", "", "networkInterfaces[0].network.name: Required value"),
    ("/volumes/-", r#"{"name":"data"}"#, "volumes[4]: Duplicate value"),
    ("/volumes/0/disk/template", "", "volumes[0].disk.template: Required value"),
    ("/volumes/1/disk/template/spec/populator/filesystem/type", r#""xfs""#, r#"Unsupported value: "xfs": supported values: "ext4""#),
    ("/location/name", "", "location.name: Required value"),
    ("/controller/templateHash", "", "controller.templateHash: Required value"),
    ("/controller/schedulingGates/-", r#"{"name":"Quota"}"#, "controller.schedulingGates[2]: Duplicate value"),
];

/// Places are below the object.
#[rustfmt::skip]
const DEPLOYMENTS: &[Row] = &[
    ("/spec/workloadRef", "", "spec.workloadRef: Required value"),
    ("/spec/workloadRef/uid", "", "spec.workloadRef.uid: Required value"),
    ("/spec/workloadRef/namespace", r#""default""#, r#"unknown field "spec.workloadRef.namespace""#),
    ("/spec/placementName", "", "spec.placementName: Required value"),
    ("/spec/cityCode", "", "spec.cityCode: Required value"),
    ("/spec/template", "", "spec.template: Required value"),
    ("/spec/scaleSettings", "", "spec.scaleSettings: Required value"),
];

/// Places are below the status.
#[rustfmt::skip]
const STATUSES: &[(Kind, Row)] = &[
    (WORKLOAD, ("/deployments", "", "status.deployments: Required value")),
    (WORKLOAD, ("/updatedReplicas", "", "status.updatedReplicas: Required value")),
    (WORKLOAD, ("/placements/0/readyReplicas", "", "status.placements[0].readyReplicas: Required value")),
    (WORKLOAD_DEPLOYMENT, ("/replicas", "", "status.replicas: Required value")),
    (WORKLOAD_DEPLOYMENT, ("/updatedReplicas", "", "status.updatedReplicas: Required value")),
    (WORKLOAD_DEPLOYMENT, ("/conditions/0/status", r#""Yes""#, r#"Unsupported value: "Yes": supported values: "True", "False", "Unknown""#)),
    (WORKLOAD_DEPLOYMENT, ("/conditions/0/reason", r#""it rains""#, r#"status.conditions[0].reason: Invalid value: "it rains""#)),
    (WORKLOAD_DEPLOYMENT, ("/conditions/0/lastTransitionTime", "", "status.conditions[0].lastTransitionTime: Required value")),
    (INSTANCE, ("/conditions/-", r#"{"type":"Ready","status":"True","reason":"Available","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}"#, "status.conditions[3]: Duplicate value")),
    (INSTANCE, ("/controller/observedTemplateHash", "", "status.controller.observedTemplateHash: Required value")),
];

/// The object that has every field of its kind, in a namespace and without the status, which is written apart.
fn new_object(kind: &str, namespace: &str) -> Result<(Value, Value)> {
    let mut object = workspace::whole_object(kind)?;
    object["metadata"]["namespace"] = json!(namespace);
    let status = object["status"].take();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    Ok((object, status))
}

/// A plane that has our CRDs and nothing else of ours, with a namespace of the test's own.
async fn plane_with_namespace(environment: &Environment, namespace: &str) -> Result<Plane> {
    let plane = environment.lab.plane(SPARE).await?;
    plane.apply(&objects::namespace(namespace)).await?;
    Ok(plane)
}

/// What is stored is what was sent: no field of our kinds is dropped.
pub(crate) async fn whole(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in OURS {
        let (object, status) = new_object(kind.kind, namespace)?;
        stored_whole(&plane, kind, namespace, &object, &status).await?;
    }
    Ok(())
}

async fn stored_whole(
    plane: &Plane,
    kind: Kind,
    namespace: &str,
    object: &Value,
    status: &Value,
) -> Result<DynamicObject> {
    let created = plane.create(object, false).await?;
    let name = created.metadata.name.unwrap_or_default();
    plane.set_status(kind, Some(namespace), &name, status).await?;
    let stored = plane.expect(kind, Some(namespace), &name).await?;
    read::expect_at(&stored, "/spec", &object["spec"])?;
    read::expect_at(&stored, "/status", status)?;
    Ok(stored)
}

/// The objects in upstream's shape that tests of the core crate take over.
pub(crate) async fn of_upstream(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    let mut owner = None;
    for kind in [WORKLOAD_DEPLOYMENT, INSTANCE] {
        let file = format!("controller/core/src/testing/upstream/{}.yaml", kind.kind.to_lowercase());
        let mut object = workspace::yaml(&workspace::root().join(file))?;
        object["metadata"]["namespace"] = json!(namespace);
        let fields = object["metadata"].as_object_mut().context("no metadata")?;
        for given in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
            fields.remove(given);
        }
        if let Some(uid) = &owner {
            fields["ownerReferences"][0]["uid"] = json!(uid);
        }
        let status = object.as_object_mut().and_then(|all| all.remove("status"));
        let status = status.context("it has no status")?;
        let stored = stored_whole(&plane, kind, namespace, &object, &status).await?;
        owner = Some(read::uid(&stored));
    }
    Ok(())
}

/// What is shipped for people to begin with.
pub(crate) async fn examples(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    catalogue(&plane).await?;
    let directory = workspace::root().join("docs/examples");
    let mut workloads = 0;
    for entry in fs::read_dir(&directory).with_context(|| format!("failed to list {}", directory.display()))? {
        let file = entry.context("failed to list the examples")?.path();
        let mut object = workspace::yaml(&file)?;
        if object["kind"] != INSTANCE_TYPE.kind {
            object["metadata"]["namespace"] = json!(namespace);
        }
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
                ("City", json!("DFW")),
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
                ("City", json!("DFW")),
                ("Cell", json!("dfw")),
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

pub(crate) async fn invalid(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for (kind, below, rows) in [
        (WORKLOAD, "", WORKLOADS),
        (WORKLOAD, "/spec/placements/0/scaleSettings", SCALE_SETTINGS),
        (WORKLOAD, "/spec/template/spec", INSTANCE_SPECS),
        (WORKLOAD_DEPLOYMENT, "", DEPLOYMENTS),
        (WORKLOAD_DEPLOYMENT, "/spec/scaleSettings", SCALE_SETTINGS),
        (WORKLOAD_DEPLOYMENT, "/spec/template/spec", INSTANCE_SPECS),
        (INSTANCE, "/spec", INSTANCE_SPECS),
    ] {
        for (place, value, message) in rows {
            let (mut object, _) = new_object(kind.kind, namespace)?;
            change(&mut object, &format!("{below}{place}"), value)?;
            let what = format!("{} with {below}{place} = {value:?}", kind.kind);
            refused(plane.create(&object, true).await, &[message], &what)?;
        }
    }
    instance_types(&plane).await?;
    a_misspelt_field_is_named(&plane, namespace).await
}

/// A type has a name and a size above zero, and never changes.
async fn instance_types(plane: &Plane) -> Result<()> {
    catalogue(plane).await?;
    let of = |name: &str, cpu: Value, memory: Value| {
        json!({ "apiVersion": INSTANCE_TYPE.api_version(), "kind": INSTANCE_TYPE.kind, "metadata": { "name": "tried" },
            "spec": { "name": name, "cpu": cpu, "memory": memory } })
    };
    for (name, cpu, memory, message) in [
        ("acme/Large", json!("1"), json!("1Gi"), "spec.name in body should match"),
        ("", json!("1"), json!("1Gi"), "spec.name"),
        ("acme/a", json!("0"), json!("1Gi"), "must be above 0"),
        ("acme/a", json!(-1), json!("1Gi"), "must be above 0"),
        ("acme/a", json!("10001"), json!("1Gi"), "must be at most 10k"),
        ("acme/a", json!("1"), json!("1025Ti"), "must be at most 1Pi"),
        ("acme/a", json!("1"), json!("lots"), "spec.memory in body should match"),
        ("acme/a", json!("1"), Value::Null, "spec.memory"),
    ] {
        let what = format!("{name} {cpu} {memory}");
        refused(plane.create(&of(name, cpu, memory), true).await, &[message], &what)?;
    }
    for (cpu, memory) in [(json!(2), json!(1024)), (json!("500m"), json!("1.5Gi"))] {
        plane.create(&of("acme/a", cpu, memory), true).await?;
    }
    let kept = objects::instance_type("acme/kept", "1", "1Gi");
    plane.create(&kept, false).await?;
    let mut larger = kept.clone();
    larger["spec"]["cpu"] = json!("2");
    refused(
        plane.apply(&larger).await,
        &["spec is immutable: a type never changes its size"],
        "a larger one",
    )
}

/// Deep in a Workload, where people make mistakes.
async fn a_misspelt_field_is_named(plane: &Plane, namespace: &str) -> Result<()> {
    let (mut object, _) = new_object(WORKLOAD.kind, namespace)?;
    let container = "/spec/template/spec/runtime/sandbox/containers/0";
    change(&mut object, &format!("{container}/imag"), r#""web:1""#)?;
    let message = r#"unknown field "spec.template.spec.runtime.sandbox.containers[0].imag""#;
    refused(plane.create(&object, true).await, &[message], "a container with imag")
}

/// Writers of statuses give all counts, and conditions that are conditions.
pub(crate) async fn wrong_status(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    for kind in [WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE] {
        let (object, _) = new_object(kind.kind, namespace)?;
        plane.create(&object, false).await?;
    }
    for (kind, (place, value, message)) in STATUSES {
        let (_, mut status) = new_object(kind.kind, namespace)?;
        change(&mut status, place, value)?;
        let outcome = plane.set_status(*kind, Some(namespace), "whole", &status).await;
        let what = format!("a status of {} with {place} = {value:?}", kind.kind);
        refused(outcome, &[*message], &what)?;
    }
    Ok(())
}

/// Another city, placement or workload is another WorkloadDeployment; how many of what is not.
pub(crate) async fn changed(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = plane_with_namespace(environment, namespace).await?;
    let (object, _) = new_object(WORKLOAD_DEPLOYMENT.kind, namespace)?;
    plane.create(&object, false).await?;
    for (field, value) in [
        ("cityCode", json!("ORD")),
        ("cityCode", json!("dfw")),
        ("placementName", json!("eu")),
        ("workloadRef", json!({ "name": "other" })),
        ("workloadRef", json!({ "uid": "00000000-0000-0000-0000-000000000000" })),
    ] {
        let patch = json!({ "spec": { field: value } });
        let outcome = plane.merge(WORKLOAD_DEPLOYMENT, Some(namespace), "whole", &patch).await;
        let message = format!("{field} is immutable: create another WorkloadDeployment");
        refused(outcome, &[&message], &patch.to_string())?;
    }
    let allowed = json!({ "spec": { "scaleSettings": { "minReplicas": 3 }, "template": { "metadata": null } } });
    plane
        .merge(WORKLOAD_DEPLOYMENT, Some(namespace), "whole", &allowed)
        .await?;
    Ok(())
}

fn change(object: &mut Value, place: &str, value: &str) -> Result<()> {
    let (parent, name) = place.rsplit_once('/').context("no pointer")?;
    let parent = object.pointer_mut(parent).with_context(|| format!("no {parent}"))?;
    if value.is_empty() {
        let removed = parent.as_object_mut().and_then(|fields| fields.remove(name));
        removed.with_context(|| format!("{place} is missing by itself"))?;
        return Ok(());
    }
    let value = serde_json::from_str(value).with_context(|| format!("{value} is no JSON"))?;
    match parent {
        Value::Array(items) if name == "-" => items.push(value),
        Value::Object(fields) => {
            fields.insert(name.to_owned(), value);
        }
        _ => bail!("{place} cannot be changed"),
    }
    Ok(())
}
