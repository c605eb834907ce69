//! The stand-ins at work on real API servers: a provider and network services in a cell, quota in a project.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::{self, INSTANCE, Kind, NETWORK_BINDING, NETWORK_CONTEXT, RESOURCE_CLAIM, SUBNET, SUBNET_CLAIM};
use popcell_api::{finalizers, quota, resource_manager};
use popcell_test_support::definitions::define;
use popcell_test_support::stand_ins::{self, Budget, FAIL, Networks, Pace, Provider, Quota};
use popcell_test_support::{Lab, LabSpec, Plane, always, eventually, objects};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_mins(1);
/// How long to watch for what must not happen: many passes of a stand-in.
const WATCHED: Duration = Duration::from_secs(2);
const NAMESPACE: &str = "ns-1";

/// One lab for all checks: starting it is what takes time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_do_on_real_servers_what_popcell_expects_of_them() -> Result<()> {
    let lab = Lab::start(&LabSpec::planes(&["cell", "project"])).await?;
    let (cell, project) = (lab.plane("cell").await?, lab.plane("project").await?);
    define(&cell, &stand_ins::IN_CELLS).await?;
    define(&project, &stand_ins::IN_PROJECTS).await?;
    for plane in [&cell, &project] {
        plane.apply(&objects::namespace(NAMESPACE)).await?;
    }
    the_provider_waits_for_gates_and_tears_down(&cell).await?;
    failures_are_reported_and_end_with_their_annotation(&cell).await?;
    networks_and_subnets_are_made_shared_and_healed(&cell).await?;
    a_budget_is_never_exceeded_and_what_is_given_back_is_granted(&project).await?;
    quota_that_is_off_leaves_claims_as_they_were_born(&project).await?;
    a_project_may_use_what_it_is_granted(&project).await?;
    lab.expect_alive().await?;
    lab.end().await
}

fn instance(name: &str, gates: &[&str], failure: Option<&str>) -> Value {
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    let mut instance = objects::instance_copy(NAMESPACE, "web", 0, "");
    instance["metadata"] = json!({ "namespace": NAMESPACE, "name": name });
    instance["spec"]["controller"] = json!({ "templateHash": "h1", "schedulingGates": gates });
    if let Some(failure) = failure {
        objects::annotate(&mut instance, FAIL, failure);
    }
    instance
}

/// Waits until a condition has status and reason, and answers its object.
async fn reported(plane: &Plane, kind: Kind, name: &str, type_: &str, expected: (&str, &str)) -> Result<DynamicObject> {
    let what = format!("{} {name}: {type_} is {expected:?}", kind.kind);
    eventually(&what, SOON, async || {
        let object = plane.expect(kind, Some(NAMESPACE), name).await?;
        let found = condition(&object, type_);
        ensure!(
            (found["status"].as_str(), found["reason"].as_str()) == (Some(expected.0), Some(expected.1)),
            "{found}"
        );
        Ok(object)
    })
    .await
}

fn condition(object: &DynamicObject, type_: &str) -> Value {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = all.and_then(|all| all.iter().find(|one| one["type"] == type_));
    found.cloned().unwrap_or_default()
}

async fn gone(plane: &Plane, kind: Kind, name: &str) -> Result<()> {
    eventually(&format!("{name} is gone"), SOON, async || {
        ensure!(plane.get(kind, Some(NAMESPACE), name).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

async fn annotate(plane: &Plane, kind: Kind, name: &str, failure: &Value) -> Result<()> {
    let patch = json!({ "metadata": { "annotations": { FAIL: failure } } });
    plane.merge(kind, Some(NAMESPACE), name, &patch).await.map(|_| ())
}

async fn the_provider_waits_for_gates_and_tears_down(cell: &Plane) -> Result<()> {
    let provider = Provider::start(cell.client(), Pace::INSTANT);
    cell.create(&instance("gated", &["Network", "Quota"], None), false)
        .await?;
    // One that runs proves that the provider has looked at all.
    cell.create(&instance("free", &[], None), false).await?;
    let free = reported(cell, INSTANCE, "free", "Available", ("True", "Available")).await?;
    assert_eq!(condition(&free, "Programmed")["status"], "True");
    assert_eq!(
        free.data["status"]["controller"],
        json!({ "observedTemplateHash": "h1" })
    );
    assert!(free.data["status"]["networkInterfaces"][0]["assignments"]["networkIP"].is_string());
    assert_eq!(
        free.metadata.finalizers,
        Some(vec![finalizers::UNIKRAFT_PROVIDER.to_owned()])
    );
    let born = ["Ready", "QuotaGranted"].map(|type_| condition(&free, type_)["lastTransitionTime"].clone());
    assert_eq!(born, ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"]);
    let gated = cell.expect(INSTANCE, Some(NAMESPACE), "gated").await?;
    assert_eq!(
        (
            gated.metadata.finalizers.as_ref(),
            condition(&gated, "Available")["status"].as_str()
        ),
        (None, Some("Unknown"))
    );

    // An idle provider writes nothing.
    always("the instance stays as it is", WATCHED, async || {
        let now = cell.expect(INSTANCE, Some(NAMESPACE), "free").await?;
        ensure!(
            now.metadata.resource_version == free.metadata.resource_version,
            "{:?}",
            now.data["status"]
        );
        Ok(())
    })
    .await?;
    let open = json!({ "spec": { "controller": { "schedulingGates": null } } });
    cell.merge(INSTANCE, Some(NAMESPACE), "gated", &open).await?;
    reported(cell, INSTANCE, "gated", "Available", ("True", "Available")).await?;

    // What runs outlives the provider, whose finalizer holds it until there is one again.
    drop(provider);
    cell.delete(INSTANCE, Some(NAMESPACE), "free").await?;
    always("the instance is held", WATCHED, async || {
        cell.expect(INSTANCE, Some(NAMESPACE), "free").await.map(|_| ())
    })
    .await?;
    let _provider = Provider::start(cell.client(), Pace::INSTANT);
    gone(cell, INSTANCE, "free").await?;
    cell.delete(INSTANCE, Some(NAMESPACE), "gated").await?;
    gone(cell, INSTANCE, "gated").await
}

async fn failures_are_reported_and_end_with_their_annotation(cell: &Plane) -> Result<()> {
    let _provider = Provider::start(cell.client(), Pace::INSTANT);
    for (failure, type_, expected) in [
        ("image-unavailable", "Available", ("Unknown", "ImageUnavailable")),
        ("crash-loop", "Available", ("Unknown", "InstanceCrashing")),
        ("configuration-error", "Available", ("Unknown", "ConfigurationError")),
        ("network-failure", "Available", ("Unknown", "NetworkFailedToCreate")),
        ("flapping", "Available", ("False", "Failed")),
        ("writes-ready", "Ready", ("True", "Available")),
        ("old-contract", "Running", ("True", "Running")),
    ] {
        cell.create(&instance(failure, &[], Some(failure)), false).await?;
        reported(cell, INSTANCE, failure, type_, expected).await?;
        annotate(cell, INSTANCE, failure, &Value::Null).await?;
        reported(cell, INSTANCE, failure, "Available", ("True", "Available")).await?;
        cell.delete(INSTANCE, Some(NAMESPACE), failure).await?;
        gone(cell, INSTANCE, failure).await?;
    }
    let mut slow = instance("slow", &[], None);
    objects::annotate(&mut slow, stand_ins::START_SECONDS, "3600");
    cell.create(&slow, false).await?;
    reported(cell, INSTANCE, "slow", "Available", ("Unknown", "Provisioning")).await?;
    let sooner = json!({ "metadata": { "annotations": { stand_ins::START_SECONDS: "1" } } });
    cell.merge(INSTANCE, Some(NAMESPACE), "slow", &sooner).await?;
    reported(cell, INSTANCE, "slow", "Available", ("True", "Available")).await?;

    annotate(cell, INSTANCE, "slow", &json!("stuck-teardown")).await?;
    cell.delete(INSTANCE, Some(NAMESPACE), "slow").await?;
    reported(cell, INSTANCE, "slow", "Available", ("False", "Stopping")).await?;
    always("the teardown is stuck", WATCHED, async || {
        cell.expect(INSTANCE, Some(NAMESPACE), "slow").await.map(|_| ())
    })
    .await?;
    annotate(cell, INSTANCE, "slow", &Value::Null).await?;
    gone(cell, INSTANCE, "slow").await
}

fn binding(name: &str, network: &str) -> Value {
    json!({
        "apiVersion": kind::NETWORK_BINDING.api_version(),
        "kind": "NetworkBinding",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "network": { "name": network }, "location": { "name": "dfw" } },
    })
}

fn subnet_claim(context: &str) -> Value {
    json!({
        "apiVersion": kind::SUBNET_CLAIM.api_version(),
        "kind": "SubnetClaim",
        "metadata": { "namespace": NAMESPACE, "name": format!("{context}-0") },
        "spec": { "subnetClass": "private", "networkContext": { "name": context }, "location": { "name": "dfw" },
            "ipFamily": "IPv4" },
    })
}

async fn networks_and_subnets_are_made_shared_and_healed(cell: &Plane) -> Result<()> {
    let _networks = Networks::start(cell.client());
    for (name, network) in [("a-net-0", "default"), ("b-net-0", "default"), ("c-net-0", "other")] {
        cell.create(&binding(name, network), false).await?;
        let ready = reported(cell, NETWORK_BINDING, name, "Ready", ("True", "Ready")).await?;
        let context = format!("{network}-dfw");
        assert_eq!(
            ready.data["status"]["networkContextRef"],
            json!({ "namespace": NAMESPACE, "name": context })
        );
        reported(cell, NETWORK_CONTEXT, &context, "Ready", ("True", "Ready")).await?;
    }
    assert_eq!(cell.list(NETWORK_CONTEXT, Some(NAMESPACE), "").await?.len(), 2);
    let mut ranges = Vec::new();
    for context in ["default-dfw", "other-dfw"] {
        cell.create(&subnet_claim(context), false).await?;
        let ready = reported(cell, SUBNET_CLAIM, &format!("{context}-0"), "Ready", ("True", "Ready")).await?;
        let subnet = ready.data["status"]["subnetRef"]["name"]
            .as_str()
            .context("no subnetRef")?;
        let subnet = reported(cell, SUBNET, subnet, "Ready", ("True", "Ready")).await?;
        ranges.push(subnet.data["spec"]["startAddress"].clone());
    }
    assert_ne!(ranges[0], ranges[1]);
    // What is deleted by hand comes back.
    cell.delete(NETWORK_CONTEXT, Some(NAMESPACE), "default-dfw").await?;
    reported(cell, NETWORK_CONTEXT, "default-dfw", "Ready", ("True", "Ready")).await?;
    cell.delete(SUBNET, Some(NAMESPACE), "default-dfw-0").await?;
    reported(cell, SUBNET, "default-dfw-0", "Ready", ("True", "Ready")).await?;

    cell.create(&binding("d-net-0", stand_ins::FAILING), false).await?;
    cell.create(&binding("e-net-0", stand_ins::NEVER_READY), false).await?;
    let failed = reported(
        cell,
        NETWORK_BINDING,
        "d-net-0",
        "Ready",
        ("False", "NetworkFailedToCreate"),
    )
    .await?;
    let message = condition(&failed, "Ready")["message"].clone();
    assert!(
        message.as_str().context("no message")?.contains(stand_ins::FAILING),
        "{message}"
    );
    reported(cell, NETWORK_BINDING, "e-net-0", "Ready", ("Unknown", "Pending")).await?;
    for name in ["d-net-0", "e-net-0"] {
        annotate(cell, NETWORK_BINDING, name, &json!("none")).await?;
        reported(cell, NETWORK_BINDING, name, "Ready", ("True", "Ready")).await?;
    }
    Ok(())
}

fn claim(name: &str) -> Value {
    let project = json!({ "apiGroup": resource_manager::GROUP, "kind": "Project", "name": "p1" });
    let request = |resource_type: &str, amount: i64| json!({ "resourceType": resource_type, "amount": amount });
    json!({
        "apiVersion": RESOURCE_CLAIM.api_version(),
        "kind": "ResourceClaim",
        "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "consumerRef": project, "resourceRef": project,
            "requests": [request(quota::INSTANCES, 1), request(quota::VCPUS, 1000), request(quota::MEMORY, 2048)] },
    })
}

/// Names of the claims that are granted, and how many others are refused.
async fn outcome(project: &Plane) -> Result<(Vec<String>, usize)> {
    let claims = project.list(RESOURCE_CLAIM, Some(NAMESPACE), "").await?;
    let granted = |claim: &&DynamicObject| condition(claim, quota::GRANTED)["reason"] == "QuotaAvailable";
    let refused = |claim: &&DynamicObject| condition(claim, quota::GRANTED)["reason"] == "QuotaExceeded";
    let count = claims.iter().filter(refused).count();
    let names = claims
        .iter()
        .filter(granted)
        .filter_map(|claim| claim.metadata.name.clone());
    Ok((names.collect(), count))
}

/// Waits until so many claims are granted and so many refused.
async fn settled(project: &Plane, granted: usize, refused: usize) -> Result<Vec<String>> {
    eventually(&format!("{granted} granted, {refused} refused"), SOON, async || {
        let (names, others) = outcome(project).await?;
        ensure!(
            (names.len(), others) == (granted, refused),
            "granted {names:?}, {others} refused"
        );
        Ok(names)
    })
    .await
}

async fn a_budget_is_never_exceeded_and_what_is_given_back_is_granted(project: &Plane) -> Result<()> {
    let three = Quota::start(project.client(), Budget::instances(3));
    let names: Vec<String> = (0..8).map(|number| format!("instance-web-{number}")).collect();
    let claims: Vec<Value> = names.iter().map(|name| claim(name)).collect();
    futures::future::try_join_all(claims.iter().map(|claim| project.create(claim, false))).await?;
    let mut granted = settled(project, 3, 5).await?;
    // Each share that is given back goes to one who waits.
    for left in (0..5).rev() {
        let last = granted.pop().context("none is granted")?;
        project.delete(RESOURCE_CLAIM, Some(NAMESPACE), &last).await?;
        granted = settled(project, 3, left).await?;
    }
    eventually("the audit has seen it all", SOON, async || {
        let audit = three.audit();
        ensure!((audit.claims, audit.granted.vcpus) == (3, 3000), "{audit:?}");
        Ok(())
    })
    .await?;
    assert_eq!(three.audit().most.instances, 3);

    // What was granted stays, for a smaller budget and for another who judges.
    drop(three);
    let two = Quota::start(project.client(), Budget::instances(2));
    project.create(&claim("instance-late"), false).await?;
    settled(project, 3, 1).await?;
    two.set_budget(Budget::SHIPPED);
    settled(project, 4, 0).await?;
    let mut wrong = claim("instance-wrong");
    wrong["spec"]["requests"][0]["resourceType"] = json!("example.com/gpus");
    project.create(&wrong, false).await?;
    let wrong = reported(
        project,
        RESOURCE_CLAIM,
        "instance-wrong",
        quota::GRANTED,
        ("False", "ValidationFailed"),
    )
    .await?;
    let message = condition(&wrong, quota::GRANTED)["message"].clone();
    assert!(
        message.as_str().context("no message")?.contains("example.com/gpus"),
        "{message}"
    );
    Ok(())
}

async fn quota_that_is_off_leaves_claims_as_they_were_born(project: &Plane) -> Result<()> {
    let system = Quota::start(project.client(), Budget::SHIPPED);
    // It is at work before it is switched off.
    project.create(&claim("instance-before"), false).await?;
    reported(
        project,
        RESOURCE_CLAIM,
        "instance-before",
        quota::GRANTED,
        ("True", "QuotaAvailable"),
    )
    .await?;
    system.set_on(false);
    project.create(&claim("instance-after"), false).await?;
    always("the claim waits", WATCHED, async || {
        let claim = project
            .expect(RESOURCE_CLAIM, Some(NAMESPACE), "instance-after")
            .await?;
        let found = condition(&claim, quota::GRANTED);
        ensure!(found["reason"] == "PendingEvaluation", "{found}");
        Ok(())
    })
    .await?;
    system.set_on(true);
    reported(
        project,
        RESOURCE_CLAIM,
        "instance-after",
        quota::GRANTED,
        ("True", "QuotaAvailable"),
    )
    .await?;
    Ok(())
}

async fn a_project_may_use_what_it_is_granted(project: &Plane) -> Result<()> {
    for claim in project.list(RESOURCE_CLAIM, Some(NAMESPACE), "").await? {
        let name = claim.metadata.name.context("a claim without name")?;
        project.delete(RESOURCE_CLAIM, Some(NAMESPACE), &name).await?;
    }
    let _quota = Quota::by_grants(project.client());
    for name in ["instance-one", "instance-two"] {
        project.create(&claim(name), false).await?;
    }
    always("the claims wait", WATCHED, async || {
        let (granted, refused) = outcome(project).await?;
        ensure!(
            (granted.len(), refused) == (0, 0),
            "granted {granted:?}, {refused} refused"
        );
        Ok(())
    })
    .await?;
    let mut budget = Budget::SHIPPED;
    for (instances, granted) in [(1, 1), (2, 2)] {
        budget.instances = Some(instances);
        let grant = objects::resource_grant(NAMESPACE, "p1", &budget);
        project.apply(&grant).await?;
        settled(project, granted, 2 - granted).await?;
    }
    Ok(())
}
