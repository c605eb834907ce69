//! The least that ordered starts can take: the requests that depend on each other, and nothing between them.
//!
//! For each instance: it is created, claimed and granted, its gates go, the provider takes it and reports that it runs,
//! and that is written. Nothing watches or decides, no copy is made, and nothing else is written.

use std::time::Instant;

use anyhow::{Context, Result};
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use popcell_api::conditions::reasons;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::{finalizers, gates};
use popcell_benches::{MillisSince, Times};
use popcell_test_support::kind::INSTANCE;
use popcell_test_support::{Kind, Plane, objects};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::plan::Plan;
use crate::results::{Ordered, Who};

/// A namespace in cell and project that no other program uses.
const NAMESPACE: &str = "floor";

/// While no controller is at work.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Ordered> {
    for plane in [&environment.cell, &environment.project] {
        plane.apply(&objects::namespace(NAMESPACE)).await?;
    }
    let slots = 0..u32::try_from(plan.slots)?;
    let began = Instant::now();
    let (mut steps, mut before) = (Vec::new(), began);
    for ordinal in slots.clone() {
        create(&environment.cell, INSTANCE, instance(&name(ordinal))).await?;
        claim(environment, ordinal).await?;
        run(&environment.cell, ordinal).await?;
        let now = Instant::now();
        steps.push(now.millis_since(before));
        before = now;
    }
    let start_seconds = before.millis_since(began) / 1e3;

    // A slot keeps its claim.
    let began = Instant::now();
    for ordinal in slots.rev() {
        let name = name(ordinal);
        environment.cell.delete(INSTANCE, Some(NAMESPACE), &name).await?;
        let let_go = json!({ "metadata": { "finalizers": null } });
        environment
            .cell
            .merge(INSTANCE, Some(NAMESPACE), &name, &let_go)
            .await?;
        create(&environment.cell, INSTANCE, instance(&name)).await?;
        run(&environment.cell, ordinal).await?;
    }
    Ok(Ordered {
        who: Who::BareRequests,
        start_seconds,
        roll_seconds: began.elapsed().as_secs_f64(),
        steps: Times::of(steps),
    })
}

fn name(ordinal: u32) -> String {
    format!("web-{ordinal}")
}

fn instance(name: &str) -> Value {
    objects::instance(NAMESPACE, name, &[gates::NETWORK, gates::QUOTA])
}

/// A claim, and its grant.
async fn claim(environment: &Environment, ordinal: u32) -> Result<()> {
    let name = name(ordinal);
    let claim = objects::resource_claim(NAMESPACE, &name, environment.project.name());
    create(&environment.project, RESOURCE_CLAIM, claim).await?;
    let status = json!({ "conditions": [granted()] });
    environment
        .project
        .set_status(RESOURCE_CLAIM, Some(NAMESPACE), &name, &status)
        .await
        .map(|_| ())
}

/// What a quota system says that has room.
pub(crate) fn granted() -> Value {
    objects::condition(popcell_api::quota::GRANTED, "True", reasons::QUOTA_AVAILABLE, "", 1)
}

/// From an instance whose claim is granted to one that is told to be ready.
async fn run(cell: &Plane, ordinal: u32) -> Result<()> {
    let name = name(ordinal);
    let open = json!([
        { "op": "test", "path": "/spec/controller/schedulingGates/0/name", "value": gates::NETWORK },
        { "op": "replace", "path": "/spec/controller/schedulingGates", "value": [] },
    ]);
    let open: Patch<()> = Patch::Json(serde_json::from_value(open).context("failed to make a JSON patch")?);
    let api = cell.api(INSTANCE, Some(NAMESPACE));
    let opened = api.patch(&name, &PatchParams::default(), &open).await;
    opened.context("failed to open gates")?;
    let taken = json!({ "metadata": { "finalizers": [finalizers::UNIKRAFT_PROVIDER] } });
    cell.merge(INSTANCE, Some(NAMESPACE), &name, &taken).await?;
    let mut conditions: Vec<Value> = [
        ("Programmed", "Programmed", "The instance has been programmed"),
        ("Available", "Available", "The instance is available"),
    ]
    .map(|(type_, reason, message)| objects::condition(type_, "True", reason, message, 1))
    .into();
    let status = json!({ "conditions": conditions, "controller": { "observedTemplateHash": "6f8c9d7b4" } });
    cell.set_status(INSTANCE, Some(NAMESPACE), &name, &status).await?;
    for (type_, reason) in [("Ready", "Available"), ("QuotaGranted", "QuotaAvailable")] {
        conditions.push(objects::condition(type_, "True", reason, "", 1));
    }
    let mut status = status;
    status["conditions"] = json!(conditions);
    cell.set_status(INSTANCE, Some(NAMESPACE), &name, &status)
        .await
        .map(|_| ())
}

async fn create(plane: &Plane, kind: Kind, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object).context("failed to make an object")?;
    let created = plane
        .api(kind, Some(NAMESPACE))
        .create(&PostParams::default(), &object)
        .await;
    created
        .map(|_| ())
        .with_context(|| format!("failed to create a {} on {}", kind.kind, plane.name()))
}
