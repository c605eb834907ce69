//! Objects that no tenant should make, and no cell should report: nested beyond what JSON readers take, and larger than all
//! others together. They harm themselves only, also when the programs start with them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::core::Request;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_suites::steps::awaited;
use popcell_test_support::kind::{INSTANCE, Kind, WORKLOAD_DEPLOYMENT};
use popcell_test_support::process::peak_kib;
use popcell_test_support::{Plane, eventually, objects};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::environment::{Environment, P1, P2};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
/// So soon another project's Workload is in its cell, whatever this one's do.
const CARRIED: Duration = Duration::from_secs(10);
const LARGE: usize = 1_100_000;
const LARGE_ONES: usize = 20;
/// The memory that the manifests allow.
const MEMORY_KIB: f64 = 1024.0 * 1024.0;

/// Lists within each other, as text: no library here reads them back.
fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// An object's text with this text at a place of its own.
fn with_text(mut object: Value, path: &str, text: &str) -> Result<String> {
    const MARK: &str = "here";
    *object.pointer_mut(path).context("there is no such place")? = json!(MARK);
    Ok(object.to_string().replace(&json!(MARK).to_string(), text))
}

/// Sends a text; the answer is as deep, and is not read.
async fn send(plane: &Plane, method: http::Method, path: String, body: String) -> Result<()> {
    let kind = if method == http::Method::PATCH {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body.into_bytes())?;
    plane.client().request_text(request).await.map(drop)?;
    Ok(())
}

async fn create(plane: &Plane, kind: Kind, namespace: &str, body: String) -> Result<()> {
    let url = Request::new(plane.api(kind, Some(namespace)).resource_url());
    let path = url
        .create(&kube::api::PostParams::default(), Vec::new())?
        .uri()
        .to_string();
    send(plane, http::Method::POST, path, body).await
}

fn direct(namespace: &str, name: &str) -> Value {
    let mut deployment = objects::workload_deployment(namespace, name, "DFW", 1);
    deployment["spec"]["pad"] = json!(null);
    deployment
}

/// A new Workload of another project is in its cell soon.
async fn another_is_carried(tenant: &Tenant, cell: &Plane, name: &str) -> Result<()> {
    let start = Instant::now();
    tenant.deploy(name, CITY, 1, |_| {}).await?;
    let deployment = format!("{name}-us-dfw");
    timeout(CARRIED, tenant.in_cell(cell, &deployment, |_| Ok(())))
        .await
        .with_context(|| format!("{deployment} is not in its cell after {CARRIED:?}"))??;
    eprintln!("oversized: {deployment} was in its cell after {:?}", start.elapsed());
    Ok(())
}

async fn says_so(tenant: &Tenant, name: &str, words: &str) -> Result<()> {
    let what = format!("{name} says that it has too much");
    let path = format!(
        "/apis/compute.datumapis.com/v1alpha/namespaces/{}/workloaddeployments/{name}/status",
        tenant.namespace
    );
    eventually(&what, SOON, async || {
        let request = http::Request::get(&path).body(Vec::new())?;
        let text = tenant.project.client().request_text(request).await?;
        ensure!(
            text.contains("LimitExceeded") && text.contains(words),
            "no such condition"
        );
        Ok(())
    })
    .await
}

pub(crate) async fn harmless(environment: &Environment, namespace: &str) -> Result<()> {
    let hostile = Tenant::new(&environment.lab, P1, namespace).await?;
    let other = Tenant::new(&environment.lab, P2, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    // Something of the hostile tenant that runs, and goes on.
    hostile.runs("web", CITY, 1).await?;
    let running = hostile.instances(&cell).await?;

    for levels in [122, 126, 200] {
        let deep = direct(namespace, &format!("deep-{levels}"));
        let text = with_text(deep, "/spec/pad", &nested(levels))?;
        create(&hostile.project, WORKLOAD_DEPLOYMENT, namespace, text).await?;
    }
    for index in 0..LARGE_ONES {
        let large = direct(namespace, &format!("large-{index}"));
        let text = with_text(large, "/spec/pad", &json!("x".repeat(LARGE)).to_string())?;
        create(&hostile.project, WORKLOAD_DEPLOYMENT, namespace, text).await?;
    }
    // As a cell may report, and as one with rights on the hub may write.
    let status = format!(
        "/apis/compute.datumapis.com/v1alpha/namespaces/{}/workloaddeployments/web-us-dfw/status",
        hostile.below
    );
    send(
        &cell,
        http::Method::PATCH,
        status,
        format!("{{\"status\":{{\"deep\":{}}}}}", nested(200)),
    )
    .await?;
    let mut copy = objects::instance_copy(&hostile.below, "web-us-dfw", 7, DFW);
    copy["spec"]["pad"] = json!(null);
    create(
        &hostile.hub,
        INSTANCE,
        &hostile.below,
        with_text(copy, "/spec/pad", &nested(200))?,
    )
    .await?;

    another_is_carried(&other, &cell, "before").await?;
    for controller in [&environment.management, &environment.cells[0]] {
        let mut controller = controller.lock().await;
        controller.kill()?;
        controller.start_again().await?;
    }
    another_is_carried(&other, &cell, "after").await?;

    says_so(&hostile, "deep-122", "levels deep, the limit is 64").await?;
    says_so(&hostile, "large-0", "bytes, the limit is 262144").await?;
    let management = environment.management.lock().await;
    let of_project = format!("plane=\"project {P1}\"");
    // Its objects are listed again after the restart, which takes longer than what another project waits for.
    eventually("they are counted", SOON, async || {
        let over = management.metric("popcell_objects_over_limit", &[&of_project]).await?;
        ensure!(over >= 23.0, "{over} objects over the limit");
        Ok(())
    })
    .await?;
    let pid = management.pid().context("the management plane does not run")?;
    let peak = peak_kib(pid)?;
    eprintln!("oversized: the management plane used {peak} KiB at most since its start");
    ensure!(peak < MEMORY_KIB, "{peak} KiB");
    for controller in [&*management, &*environment.cells[0].lock().await] {
        let (code, body) = controller.health("/readyz").await?;
        ensure!(code == 200, "/readyz answers {code}: {body}");
        ensure!(
            !controller.log().contains("xxxxxxxx") && !controller.log().contains("[[[["),
            "a spec is in the log"
        );
    }
    drop(management);
    let now = hostile.instances(&cell).await?;
    ensure!(now == running, "{now:?} run, not {running:?}");
    awaited(&hostile.project, WORKLOAD_DEPLOYMENT, namespace, "web-us-dfw", |one| {
        read::expect_at(one, "/status/readyReplicas", &json!(1))
    })
    .await?;

    for name in (0..LARGE_ONES)
        .map(|index| format!("large-{index}"))
        .chain([122, 126, 200].map(|one| format!("deep-{one}")))
    {
        let path = format!("/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/workloaddeployments/{name}");
        send(&hostile.project, http::Method::DELETE, path, String::new()).await?;
    }
    other.clean("before").await?;
    other.clean("after").await?;
    hostile.clean("web").await?;
    eventually("nothing of it is left", SOON, async || {
        let list = format!("/apis/compute.datumapis.com/v1alpha/namespaces/{namespace}/workloaddeployments");
        let text = hostile
            .project
            .client()
            .request_text(http::Request::get(&list).body(Vec::new())?)
            .await?;
        ensure!(text.contains("\"items\":[]"), "{} bytes are left", text.len());
        Ok(())
    })
    .await
}
