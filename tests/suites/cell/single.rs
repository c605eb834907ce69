//! Project and cell on one API server, without a hub: the WorkloadDeployment of the project is that of the cell.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::definitions::define;
use popcell_suites::environment::SOON;
use popcell_suites::read::{at, expect_at, says, uid};
use popcell_suites::steps::{awaited, gone, warned};
use popcell_test_support::kind::{INSTANCE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::{Budget, IN_CELLS, IN_PROJECTS, Networks, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, Gateway, Lab, LabSpec, Nodes, PodProvider, PodProviderSpec, always, eventually,
    objects, users,
};
use serde_json::{Value, json};

use crate::environment::{Environment, WATCHED};
use popcell_suites::tenant::Tenant;

/// The server, and the project that it is.
const ONE: &str = "one";
const NAMES: [&str; 2] = ["web-us-dfw-0", "web-us-dfw-1"];

pub(crate) async fn runs(_: &Environment, namespace: &str) -> Result<()> {
    let lab = Lab::start(&LabSpec::planes(&[ONE])).await?;
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let one = lab.plane(ONE).await?;
    define(&one, &IN_PROJECTS).await?;
    one.apply(&objects::location_binding("DFW")).await?;
    one.apply(&objects::namespace(namespace)).await?;
    let network = objects::network(namespace, "default");
    eventually("the network can be made", SOON, async || one.apply(&network).await).await?;
    let nodes = Nodes::start(&one, Duration::ZERO).await?;
    let account = users::of_provider(&lab, ONE, files.path()).await?;
    let mut provider = PodProvider::start(PodProviderSpec::of(&account)).await?;
    let quota = Quota::by_grants(one.client());
    let budget = Budget {
        instances: Some(2),
        ..Budget::SHIPPED
    };

    let home = users::of_single_cluster(&lab, ONE, files.path()).await?;
    users::cells_in_project(&one, &["single"]).await?;
    let gateway = Gateway::of_planes(&lab, ONE, &[ONE]).await?;
    let milo = gateway.kubeconfig(files.path(), Some(&users::cell("single")))?;
    let spec = ControllerSpec::single_cluster(&home, ONE, &milo).flag("--networking=true");
    let mut controller = Controller::unstarted(spec.clone())?;
    controller.launch()?;
    let pid = controller.pid();
    let tenant = Tenant {
        project: lab.plane(ONE).await?,
        // There is none: project, hub and cell are one.
        hub: lab.plane(ONE).await?,
        namespace: namespace.to_owned(),
        below: namespace.to_owned(),
    };
    let grant = objects::resource_grant(namespace, ONE, &budget);
    let mission = async {
        let networks = unserved(&tenant, &mut controller).await?;
        mission(&tenant, &grant).await?;
        data(&tenant).await.map(|()| networks)
    };
    let mission = mission.await;
    let networks = mission.with_context(|| format!("the controller wrote:\n{}", controller.last_words()));
    let networks = networks?;
    ensure!(controller.pid() == pid, "it was restarted");
    controller.end()?;
    let mut without = Controller::start(spec.flag("--enable-management-controllers=false")).await?;
    let ran = cell_only(&tenant).await;
    ran.with_context(|| format!("the controller wrote:\n{}", without.last_words()))?;
    without.end()?;
    let log = controller.log() + &without.log();
    provider.end()?;
    drop((nodes, networks, gateway));
    ensure!(quota.audit().most.instances == 2, "{:?}", quota.audit());
    let refusal = log.lines().find(|line| line.contains(" cannot "));
    ensure!(refusal.is_none(), "a right is missing: {refusal:?}");
    drop(quota);
    lab.end().await
}

/// The server does not serve the kinds that `--networking=true` asks for: the Instance, its WorkloadDeployment and its Workload say
/// so, and the program is not ready. Once it serves them, what waits goes on.
async fn unserved(tenant: &Tenant, controller: &mut Controller) -> Result<Networks> {
    let one = &tenant.project;
    tenant.deploy("web", &["DFW"], 2, |_| {}).await?;
    let says_so = |type_: &'static str, reason: &'static str| {
        move |object: &DynamicObject| {
            says(object, type_, "False", reason)?;
            let text = object.data["status"]["conditions"].to_string();
            ensure!(text.contains("Network default is not served in city DFW"), "{text}");
            Ok(())
        }
    };
    let instance = says_so("Ready", "NetworkNotFound");
    awaited(one, INSTANCE, &tenant.namespace, NAMES[0], instance).await?;
    let deployment = says_so("Available", "NetworkNotFound");
    tenant.in_project(WORKLOAD_DEPLOYMENT, "web-us-dfw", deployment).await?;
    let workload = says_so("Available", "NoAvailablePlacements");
    tenant.in_project(WORKLOAD, "web", workload).await?;
    let (code, said) = controller.health("/readyz").await?;
    ensure!(code != 200 && said.contains("NetworkBinding"), "{code}: {said}");
    define(one, &IN_CELLS).await?;
    one.apply(&objects::location("DFW")).await?;
    let networks = Networks::start(one.client());
    controller.ready().await?;
    Ok(networks)
}

async fn mission(tenant: &Tenant, grant: &Value) -> Result<()> {
    let one = &tenant.project;
    warned(one, &tenant.namespace, NAMES[0], "QuotaNoBudget").await?;
    one.apply(grant).await?;
    tenant.ready("web", 2).await?;
    let before = tenant.instances(one).await?;
    let names: Vec<&str> = before.iter().map(|(name, _)| name.as_str()).collect();
    ensure!(names == NAMES, "{names:?}");
    let counts = |object: &DynamicObject| {
        for count in ["replicas", "readyReplicas", "updatedReplicas", "desiredReplicas"] {
            expect_at(object, &format!("/status/{count}"), &json!(2))?;
        }
        says(object, "Available", "True", "StableInstanceFound")
    };
    tenant.in_project(WORKLOAD_DEPLOYMENT, "web-us-dfw", counts).await?;
    tenant.claims_are(&NAMES).await?;
    tenant.restart("web").await?;
    tenant.all_are_others(one, &before).await?;
    tenant.ready("web", 2).await?;
    tenant.claims_are(&NAMES).await?;
    tenant.delete(WORKLOAD, "web").await?;
    gone(one, WORKLOAD, &tenant.namespace, "web").await?;
    gone(one, WORKLOAD_DEPLOYMENT, &tenant.namespace, "web-us-dfw").await?;
    for name in NAMES {
        gone(one, INSTANCE, &tenant.namespace, name).await?;
        gone(one, RESOURCE_CLAIM, &tenant.namespace, &format!("instance-{name}")).await?;
    }
    Ok(())
}

/// Without the management controllers a WorkloadDeployment runs as before, with quota of the same project; nothing is made of a
/// Workload.
async fn cell_only(tenant: &Tenant) -> Result<()> {
    const NAME: &str = "own-us-dfw";
    let (one, namespace) = (&tenant.project, tenant.namespace.as_str());
    tenant.deploy("idle", &["DFW"], 1, |_| {}).await?;
    one.apply(&tenant.direct(NAME, "DFW", 1)).await?;
    let runs = |count| move |object: &DynamicObject| expect_at(object, "/status/readyReplicas", &json!(count));
    awaited(one, WORKLOAD_DEPLOYMENT, namespace, NAME, runs(1)).await?;
    one.apply(&tenant.direct(NAME, "DFW", 2)).await?;
    awaited(one, WORKLOAD_DEPLOYMENT, namespace, NAME, runs(2)).await?;
    tenant.claims_are(&["own-us-dfw-0", "own-us-dfw-1"]).await?;
    one.delete(WORKLOAD_DEPLOYMENT, Some(namespace), NAME).await?;
    gone(one, WORKLOAD_DEPLOYMENT, namespace, NAME).await?;
    tenant.claims_are(&[]).await?;
    let made = one.get(WORKLOAD_DEPLOYMENT, Some(namespace), "idle-us-dfw").await?;
    ensure!(made.is_none(), "{made:?}");
    Ok(())
}

/// An Instance waits for the ConfigMap and the Secret that its template names; what they become afterwards is for the next.
async fn data(tenant: &Tenant) -> Result<()> {
    const NAME: &str = "data-us-dfw-0";
    let (one, namespace) = (&tenant.project, tenant.namespace.as_str());
    let named = json!([{ "name": "A", "valueFrom": { "configMapKeyRef": { "name": "settings", "key": "a" } } }]);
    let name_data = |workload: &mut Value| {
        let sandbox = &mut workload["spec"]["template"]["spec"]["runtime"]["sandbox"];
        sandbox["containers"][0]["env"] = named;
        sandbox["imagePullSecrets"] = json!([{ "name": "registry" }]);
    };
    let waits = |type_: &'static str, words: &'static str| {
        move |object: &DynamicObject| {
            says(object, type_, "False", "ReferencedDataNotReady")?;
            let text = object.data["status"]["conditions"].to_string();
            ensure!(text.contains(words), "{text}");
            Ok(())
        }
    };
    let held = |kind: &str, name: &str, value: &str| {
        json!({ "apiVersion": "v1", "kind": kind, "metadata": { "namespace": namespace, "name": name },
            "data": { "a": value } })
    };
    tenant.deploy("data", &["DFW"], 1, name_data).await?;
    let first = "ConfigMap settings is not in city DFW";
    awaited(one, INSTANCE, namespace, NAME, waits("Ready", first)).await?;
    tenant
        .in_project(WORKLOAD_DEPLOYMENT, "data-us-dfw", waits("Available", first))
        .await?;
    one.apply(&held("ConfigMap", "settings", "1")).await?;
    let second = waits("Ready", "Secret registry is not in city DFW");
    awaited(one, INSTANCE, namespace, NAME, second).await?;
    one.apply(&held("Secret", "registry", "MQ==")).await?;
    tenant.ready("data", 1).await?;
    let before = one.expect(INSTANCE, Some(namespace), NAME).await?;
    let hash = |object: &DynamicObject| at(object, "/status/referencedDataHash").clone();
    ensure!(hash(&before).is_string(), "{before:?}");

    one.apply(&held("Secret", "registry", "Mg==")).await?;
    always("changed data change no Instance", WATCHED, async || {
        let now = one.expect(INSTANCE, Some(namespace), NAME).await?;
        ensure!(
            now.metadata.resource_version == before.metadata.resource_version,
            "{now:?}"
        );
        Ok(())
    })
    .await?;
    tenant.restart("data").await?;
    let is_next = |now: &DynamicObject| {
        ensure!(uid(now) != uid(&before), "it is the same");
        ensure!(hash(now).is_string() && hash(now) != hash(&before), "{:?}", hash(now));
        says(now, "Ready", "True", "Available")
    };
    awaited(one, INSTANCE, namespace, NAME, is_next).await?;
    tenant.delete(WORKLOAD, "data").await?;
    gone(one, INSTANCE, namespace, NAME).await
}
