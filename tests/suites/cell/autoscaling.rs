//! The number of Instances in a city, as an autoscaler of its cell asks for it.

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use kube::api::{DynamicObject, Patch, PatchParams};
use popcell_api::kind::{HORIZONTAL_POD_AUTOSCALER, Kind, Scope};
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_suites::read;
use popcell_suites::steps::{awaited, gone};
use popcell_suites::tenant::Tenant;
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, eventually};
use serde_json::{Value, json};

use crate::environment::{Environment, P1, WATCHED};

/// Bounds, and the average that each Instance may use.
fn settings(least: i32, most: i32) -> Value {
    json!({ "minReplicas": least, "maxReplicas": most,
        "metrics": [{ "resource": { "name": "cpu", "target": { "averageValue": "500m" } } }] })
}

/// Waits until the cell's autoscaler has these bounds.
async fn bounds(cell: &Plane, tenant: &Tenant, name: &str, least: i32, most: i32) -> Result<()> {
    let found = awaited(cell, HORIZONTAL_POD_AUTOSCALER, &tenant.below, name, |one| {
        read::expect_at(one, "/spec/maxReplicas", &json!(most))
    });
    read::expect_at(&found.await?, "/spec/minReplicas", &json!(least))
}

/// `kubectl scale` in the cell, as an autoscaler writes: Karmada's template does not take it back, every plane counts it, and
/// changes from above go on.
pub(crate) async fn scaled_in_its_cell(environment: &Environment, namespace: &str) -> Result<()> {
    const CITY: &[&str] = &["ORD"];
    // No autoscaler works there.
    let cell = environment.lab.plane(ORD).await?;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant
        .deploy("web", CITY, 1, |one| {
            one["spec"]["placements"][0]["scaleSettings"] = settings(1, 3);
        })
        .await?;
    tenant.ready("web", 1).await?;
    bounds(&cell, &tenant, "web-us-ord", 1, 3).await?;
    let api = cell.api(WORKLOAD_DEPLOYMENT, Some(&tenant.below));
    let scale = async |replicas: i32| -> Result<()> {
        let patch = Patch::Merge(json!({ "spec": { "replicas": replicas } }));
        let scaled = api.patch_scale("web-us-ord", &PatchParams::default(), &patch).await;
        scaled.map(|_| ()).context("failed to scale in the cell")
    };

    // An autoscaler reads before it writes, which a server refuses without a number.
    let scale_at_first = api
        .get_scale("web-us-ord")
        .await
        .context("failed to read the scale at first")?;
    let asked = scale_at_first.spec.and_then(|spec| spec.replicas);
    ensure!(asked == Some(1), "{asked:?}");
    scale(2).await?;
    tenant.ready("web", 2).await?;
    tenant.in_project(INSTANCE, "web-us-ord-1", read::is_ready).await?;
    let subresource = api.get_scale("web-us-ord").await.context("failed to read the scale")?;
    let status = subresource.status.context("the scale has no status")?;
    let uid = read::uid(&tenant.in_cell(&cell, "web-us-ord", |_| Ok(())).await?);
    let selector = format!("compute.datumapis.com/workload-deployment-uid={uid}");
    ensure!(
        (status.replicas, status.selector.as_deref()) == (2, Some(selector.as_str())),
        "{status:?}"
    );

    // What changes above arrives, and the number stays; it is nowhere but in the cell.
    let placement = json!({ "name": "us", "cityCodes": CITY, "scaleSettings": settings(1, 4) });
    tenant.edit("web", &json!({ "placements": [placement] })).await?;
    bounds(&cell, &tenant, "web-us-ord", 1, 4).await?;
    let before = tenant.instances(&cell).await?;
    tenant.restart("web").await?;
    tenant.all_are_others(&cell, &before).await?;
    tenant.ready("web", 2).await?;
    let stays = |one: &DynamicObject| {
        read::expect_at(one, "/spec/scaleSettings/maxReplicas", &json!(4))?;
        read::expect_at(one, "/spec/replicas", &json!(2))
    };
    tenant.in_cell(&cell, "web-us-ord", stays).await?;
    let on_hub = tenant.now_in_hub("web-us-ord").await?;
    let in_project = tenant.in_project(WORKLOAD_DEPLOYMENT, "web-us-ord", |_| Ok(())).await?;
    for one in [&on_hub, &in_project] {
        ensure!(read::at(one, "/spec/replicas").is_null(), "{one:?}");
        read::expect_at(one, "/status/desiredReplicas", &json!(2))?;
    }

    rests(
        &[cell.clone(), environment.lab.hub().await?],
        &tenant.below,
        "web-us-ord",
    )
    .await?;
    rests(&[environment.lab.plane(P1).await?], namespace, "web-us-ord").await?;

    // A tenant's scale in its project adds nothing.
    let in_project = environment
        .lab
        .plane(P1)
        .await?
        .api(WORKLOAD_DEPLOYMENT, Some(namespace));
    let patch = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    in_project
        .patch_scale("web-us-ord", &PatchParams::default(), &patch)
        .await?;
    tokio::time::sleep(WATCHED).await;
    tenant.in_cell(&cell, "web-us-ord", stays).await?;
    ensure!(
        tenant.instances(&cell).await?.len() == 2,
        "the scale of the project counts"
    );
    let on_hub = tenant.now_in_hub("web-us-ord").await?;
    ensure!(read::at(&on_hub, "/spec/replicas").is_null(), "{on_hub:?}");

    // More than the most is the most; then the highest goes first.
    scale(9).await?;
    tenant.ready("web", 4).await?;
    let before = tenant.instances(&cell).await?;
    scale(1).await?;
    tenant.ready("web", 1).await?;
    let left = tenant.instances(&cell).await?;
    ensure!(left == before[..1], "{left:?} of {before:?}");
    tenant.gone_from_project(INSTANCE, "web-us-ord-3").await
}

/// Waits until no client writes a WorkloadDeployment on these planes any more.
async fn rests(planes: &[Plane], namespace: &str, name: &str) -> Result<()> {
    let versions = async || {
        let read = planes.iter().map(async |plane| {
            let one = plane.expect(WORKLOAD_DEPLOYMENT, Some(namespace), name).await?;
            anyhow::Ok((plane.name().to_owned(), one.metadata.resource_version))
        });
        try_join_all(read).await
    };
    eventually("nothing is written any more", SOON, async || {
        let before = versions().await?;
        tokio::time::sleep(WATCHED).await;
        let after = versions().await?;
        ensure!(before == after, "{before:?} became {after:?}");
        Ok(())
    })
    .await
}

/// Pods of a cell, and what they use; a CRD stands in for the API of metrics.
const POD: Kind = Kind::of("", "v1", "Pod", "pods", Scope::Namespaced);

/// The autoscaler of the cell's own Kubernetes adds Instances up to the most, and takes them away down to the least.
pub(crate) async fn by_metrics(environment: &Environment, namespace: &str) -> Result<()> {
    let cell = environment.lab.plane(DFW).await?;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant
        .deploy("web", &["DFW"], 1, |one| {
            one["spec"]["placements"][0]["scaleSettings"] = settings(1, 3);
        })
        .await?;
    tenant.ready("web", 1).await?;
    let first = tenant.instances(&cell).await?;
    cell.apply(&metrics()).await?;
    let uid = read::uid(&tenant.in_cell(&cell, "web-us-dfw", |_| Ok(())).await?);
    let pod = OnePod {
        cell: &cell,
        namespace: &tenant.below,
        uid: &uid,
    };
    pod.runs().await?;
    for (used, expected) in [("1000m", 2), ("20", 3), ("10m", 1)] {
        pod.uses(used).await?;
        tenant
            .ready("web", expected)
            .await
            .with_context(|| format!("{used} used on average"))?;
    }
    let left = tenant.instances(&cell).await?;
    ensure!(left == first, "{left:?}, not {first:?}");
    tenant.gone_from_project(INSTANCE, "web-us-dfw-1").await?;
    let on_hub = tenant.now_in_hub("web-us-dfw").await?;
    ensure!(read::at(&on_hub, "/spec/replicas").is_null(), "{on_hub:?}");
    read::says(&on_hub, "Autoscaling", "True", "AutoscalerCreated")?;
    // The server wrote its own spelling of the autoscaler; nothing of it is written again.
    rests(
        &[cell.clone(), environment.lab.hub().await?],
        &tenant.below,
        "web-us-dfw",
    )
    .await?;
    let autoscaler = cell
        .expect(HORIZONTAL_POD_AUTOSCALER, Some(&tenant.below), "web-us-dfw")
        .await?;
    let mut writers = autoscaler.metadata.managed_fields.iter().flatten();
    let ours = writers.find(|one| one.manager.as_deref().is_some_and(|name| name.starts_with("popcell")));
    let ours = ours.context("popcell wrote no field of the autoscaler")?;
    let created = autoscaler.metadata.creation_timestamp.as_ref();
    ensure!(ours.time.as_ref() == created, "{ours:?}, created {created:?}");

    // Without room it goes, with its number.
    tenant.place("web", &[("us", &["DFW"], 1)]).await?;
    gone(&cell, HORIZONTAL_POD_AUTOSCALER, &tenant.below, "web-us-dfw").await?;
    tenant
        .in_cell(&cell, "web-us-dfw", |one| {
            ensure!(read::at(one, "/spec/replicas").is_null(), "a number is left");
            Ok(())
        })
        .await
        .map(|_| ())
}

/// What a metrics server serves, as objects that a test writes.
fn metrics() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "pods.metrics.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "unapproved, a stand-in of a test" } },
        "spec": {
            "group": "metrics.k8s.io", "scope": "Namespaced",
            "names": { "kind": "PodMetrics", "listKind": "PodMetricsList", "plural": "pods", "singular": "pod" },
            "versions": [{ "name": "v1beta1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// The one Pod that a provider would run: all that an autoscaler averages over.
struct OnePod<'a> {
    cell: &'a Plane,
    namespace: &'a str,
    uid: &'a str,
}

impl OnePod<'_> {
    fn metadata(&self) -> Value {
        json!({ "namespace": self.namespace, "name": "one",
            "labels": { "compute.datumapis.com/workload-deployment-uid": self.uid } })
    }

    async fn runs(&self) -> Result<()> {
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": { "namespace": self.namespace, "name": "default" } });
        self.cell.apply(&account).await?;
        let containers = json!([{ "name": "main", "image": "none" }]);
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": self.metadata(),
            "spec": { "automountServiceAccountToken": false, "containers": containers } });
        self.cell.apply(&pod).await?;
        let status = json!({ "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z" }] });
        let set = self.cell.set_status(POD, Some(self.namespace), "one", &status);
        set.await.map(|_| ())
    }

    async fn uses(&self, cpu: &str) -> Result<()> {
        let metrics = json!({ "apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": self.metadata(),
            "timestamp": "2026-06-01T00:00:00Z", "window": "30s",
            "containers": [{ "name": "main", "usage": { "cpu": cpu } }] });
        // The definition is served a moment later.
        eventually("metrics can be written", SOON, async || self.cell.apply(&metrics).await)
            .await
            .map(|_| ())
    }
}
