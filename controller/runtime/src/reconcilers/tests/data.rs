//! ConfigMaps and Secrets that the template of a WorkloadDeployment names: what is read for them, and when.

use std::time::Duration;

use popcell_api::annotations::{DATA_PENDING, EXPECTED_REFERENCED_DATA};
use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_core::deployment;
use popcell_core::plan::CONFIG_MAP;

use super::requests::{AtWork, is_ready};
use super::*;
use crate::cell::testing::cell;
use crate::queue::Urgency;
use crate::reconcilers::cell as reconcilers;

const HELD: &str = "cell GET /api/v1/namespaces/ns-1";

fn key(name: &str) -> Key {
    Key::new(&Plane::Cell, "ns-1", name)
}

/// A WorkloadDeployment that names a ConfigMap and a Secret.
fn naming() -> Value {
    let mut one = deployment("ns-1", "web", "wd");
    one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
    one["spec"]["template"]["spec"] = json!({ "runtime": { "sandbox": {
        "containers": [{ "name": "a", "image": "i", "envFrom": [{ "configMapRef": { "name": "settings" } }] }],
        "imagePullSecrets": [{ "name": "registry" }],
    } } });
    one
}

/// Its only Instance, with these gates.
fn instance(gates: &[&str]) -> Value {
    let gates: Vec<Value> = gates.iter().map(|name| json!({ "name": name })).collect();
    let hash = deployment::hash(&naming()["spec"]["template"]);
    let mut one = naming()["spec"]["template"].clone();
    one["apiVersion"] = json!("compute.datumapis.com/v1alpha");
    one["kind"] = json!("Instance");
    one["metadata"] = json!({ "name": "web-0", "namespace": "ns-1", "uid": "i0", "resourceVersion": "1",
        "creationTimestamp": k8s_openapi::jiff::Timestamp::now().to_string(),
        "labels": { "compute.datumapis.com/workload-uid": "w", "compute.datumapis.com/workload-name": "web",
            "compute.datumapis.com/placement-name": "us", "compute.datumapis.com/city-code": "DFW",
            "compute.datumapis.com/workload-deployment-uid": "wd", "compute.datumapis.com/workload-deployment-name": "web",
            "compute.datumapis.com/instance-index": "0" },
        "ownerReferences": [{ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": "web",
            "uid": "wd", "controller": true }] });
    one["spec"]["controller"] = json!({ "templateHash": hash, "schedulingGates": gates });
    one["status"] = json!({ "conditions": [] });
    one
}

async fn fixture(script: &Arc<Script>, gates: &[&str]) -> Fixture {
    let mut cell = cell(Some("p"));
    cell.quota = false;
    let fixture = Fixture::in_cell(reconcilers(&Arc::new(cell)), &[], script.answer()).await;
    fixture.event_router.lead();
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![naming()]);
    fixture.list(&Plane::Cell, INSTANCE, vec![instance(gates)]);
    fixture.list(&Plane::Cell, NAMESPACE, vec![hub_namespace("ns-1", "p")]);
    script.asked();
    fixture
}

fn there(script: &Script, plural: &str, name: &str) {
    let held = json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": { "name": name, "namespace": "ns-1", "uid": name, "resourceVersion": "1" } });
    script.say(&format!("{HELD}/{plural}/{name}"), 200, held);
}

/// Something else that is to be done: the Instance is not asked for any more.
fn shrink(fixture: &Fixture) {
    let mut fewer = naming();
    fewer["metadata"]["resourceVersion"] = json!("2");
    fewer["spec"]["scaleSettings"]["minReplicas"] = json!(0);
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, fewer);
}

/// What was read of ConfigMaps and Secrets, in order.
fn reads(asked: &[String]) -> Vec<&str> {
    let reads = asked.iter().filter_map(|line| line.strip_prefix(HELD));
    reads.collect()
}

/// The message of a condition in the last status that was written of an object.
fn said(sent: &[(String, Value)], path: &str, type_: &str) -> Option<[String; 2]> {
    let line = format!("cell PATCH {DEPLOYMENTS}/ns-1/{path}/status");
    let (_, body) = sent.iter().rev().find(|(asked, _)| asked.starts_with(&line))?;
    let status = &body.as_array()?.iter().find(|one| one["path"] == "/status")?["value"];
    let one = status["conditions"]
        .as_array()?
        .iter()
        .find(|one| one["type"] == type_)?;
    Some(["reason", "message"].map(|field| one[field].as_str().unwrap_or_default().to_owned()))
}

#[tokio::test]
async fn a_reconcile_without_a_waiting_instance_reads_nothing() {
    for gates in [&[][..], &["Quota"]] {
        let script = Arc::<Script>::default();
        let fixture = fixture(&script, gates).await;
        fixture.reconcile("deployment", &key("web")).await;
        assert_eq!(reads(&script.asked()), [""; 0]);
    }
    // What it is to have is not known yet.
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["ReferencedData"]).await;
    let mut pending = naming();
    pending["metadata"]["resourceVersion"] = json!("2");
    pending["metadata"]["annotations"] = json!({ EXPECTED_REFERENCED_DATA: DATA_PENDING });
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, pending);
    fixture.reconcile("deployment", &key("web")).await;
    assert_eq!(reads(&script.asked()), [""; 0]);
}

#[tokio::test]
async fn the_gate_goes_after_the_status_that_says_what_is_there() {
    let script = Arc::<Script>::default();
    there(&script, "configmaps", "settings");
    there(&script, "secrets", "registry");
    let fixture = fixture(&script, &["ReferencedData"]).await;
    fixture.reconcile("deployment", &key("web")).await;
    let sent = script.sent();
    let asked: Vec<String> = sent.iter().map(|(line, _)| line.clone()).collect();
    assert_eq!(reads(&asked), ["/configmaps/settings", "/secrets/registry"]);
    let writes: Vec<&(String, Value)> = sent
        .iter()
        .filter(|(line, _)| line.contains("/instances/web-0"))
        .collect();
    assert!(writes[0].0.contains("/instances/web-0/status"), "{asked:?}");
    assert!(writes[0].1.to_string().contains("referencedDataHash"));
    assert!(!writes[1].0.contains("/status") && writes[1].1.to_string().contains("schedulingGates/0"));
    assert_eq!(writes.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_said_by_the_instance_and_read_up_to_it_only() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["ReferencedData"]).await;
    let requeue = fixture.reconcile("deployment", &key("web")).await;
    assert_eq!(requeue, Requeue::After(Duration::from_secs(1)), "the Instance is new");
    assert_eq!(reads(&script.asked()), ["/configmaps/settings"]);
    fixture.reconcile("instance", &key("web-0")).await;
    let message = "ConfigMap settings is not in city DFW".to_owned();
    let expected = Some(["ReferencedDataNotReady".to_owned(), message]);
    assert_eq!(said(&script.sent(), "instances/web-0", "Ready"), expected);
}

#[tokio::test]
async fn what_is_optional_and_missing_holds_up_nothing() {
    let script = Arc::<Script>::default();
    there(&script, "secrets", "registry");
    let fixture = fixture(&script, &["ReferencedData"]).await;
    let (mut one, mut instance) = (naming(), instance(&["ReferencedData"]));
    one["metadata"]["resourceVersion"] = json!("2");
    one["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"][0]["configMapRef"]["optional"] =
        json!(true);
    instance["metadata"]["resourceVersion"] = json!("2");
    instance["spec"]["controller"]["templateHash"] = json!(deployment::hash(&one["spec"]["template"]));
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, one);
    fixture.put(&Plane::Cell, INSTANCE, instance);
    fixture.reconcile("deployment", &key("web")).await;
    let asked = script.asked();
    assert_eq!(reads(&asked), ["/configmaps/settings", "/secrets/registry"]);
    let opened = format!("cell PATCH {DEPLOYMENTS}/ns-1/instances/web-0");
    assert!(asked.contains(&opened), "{asked:?}");
}

#[tokio::test]
async fn what_is_found_of_data_is_news_once_and_goes_with_its_deployment() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &["ReferencedData"]).await;
    let memory = fixture.context.memory(&Plane::Cell).unwrap();
    for (found, is_new) in [
        (Some("a"), true),
        (Some("a"), false),
        (Some("b"), true),
        (None, true),
        (None, false),
    ] {
        assert_eq!(memory.data_waits.put("ns-1", "web", found), is_new, "{found:?}");
    }
    fixture.remove(&Plane::Cell, WORKLOAD_DEPLOYMENT, naming());
    assert_eq!(
        memory.data_waits.of("ns-1", "web").known(),
        None,
        "it went with its WorkloadDeployment"
    );
}

#[tokio::test(start_paused = true)]
async fn without_the_right_the_gate_stays_and_all_else_goes_on() {
    let script = Arc::<Script>::default();
    there(&script, "configmaps", "settings");
    script.say(&format!("{HELD}/secrets/"), 403, refusal(403));
    let fixture = fixture(&script, &["ReferencedData"]).await;
    let requeue = fixture.reconcile("deployment", &key("web")).await;
    assert_eq!(requeue, Requeue::After(Duration::from_secs(1)));
    let asked = script.asked();
    assert!(!asked.iter().any(|line| line.contains("/instances/")), "{asked:?}");
    fixture.reconcile("instance", &key("web-0")).await;
    let message = "Secret registry cannot be read in city DFW: the city's controller has no right to".to_owned();
    let expected = Some(["ReferencedDataNotReady".to_owned(), message]);
    assert_eq!(said(&script.sent(), "instances/web-0", "Ready"), expected);
    shrink(&fixture);
    fixture.reconcile("deployment", &key("web")).await;
    let deleted = format!("cell DELETE {DEPLOYMENTS}/ns-1/instances/web-0");
    assert!(script.asked().contains(&deleted));
}

#[tokio::test]
async fn a_read_that_fails_is_repeated_and_all_else_goes_on() {
    let script = Arc::<Script>::default();
    script.say(&format!("{HELD}/configmaps/"), 500, refusal(500));
    let fixture = fixture(&script, &["ReferencedData"]).await;
    shrink(&fixture);
    let requeue = fixture.reconcile("deployment", &key("web")).await;
    assert!(matches!(requeue, Requeue::WithBackoff(_)), "{requeue:?}");
    let deleted = format!("cell DELETE {DEPLOYMENTS}/ns-1/instances/web-0");
    assert!(script.asked().contains(&deleted));
    let memory = fixture.context.memory(&Plane::Cell).unwrap();
    assert_eq!(
        memory.data_waits.of("ns-1", "web").known(),
        None,
        "nothing is said of it"
    );
}

#[tokio::test]
async fn a_new_instance_and_what_its_city_is_to_have_are_looked_at_at_once() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script, &[]).await;
    let urgency = |gates: &[&str]| {
        let reconciler = &fixture.queued("deployment").reconciler;
        let change = came(instance(gates));
        reconciler.urgency(&fixture.context, &Plane::Cell, INSTANCE, &change, &key("web"))
    };
    assert_eq!(urgency(&["Quota", "ReferencedData"]), Urgency::AtOnce);
    assert_eq!(urgency(&["Quota"]), Urgency::Progress);
    let mut said = naming();
    said["metadata"]["annotations"] = json!({ EXPECTED_REFERENCED_DATA: "0123456789abcdef" });
    let change = Change::Applied {
        before: Some(read(naming())),
        now: read(said),
    };
    let keys = fixture.keys_for_event("deployment", &Plane::Cell, WORKLOAD_DEPLOYMENT, &change);
    assert_eq!(keys, [key("web")]);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_data_costs_one_read_a_look_and_data_that_change_cost_nothing() {
    let cell = AtWork::begin(Duration::from_millis(10)).await;
    cell.bring("web", 1).await;
    cell.take();
    cell.change(&Plane::Cell, WORKLOAD_DEPLOYMENT, "web", |one| {
        one["spec"]["template"]["spec"]["volumes"] = json!([{ "name": "a", "configMap": { "name": "settings" } }]);
    })
    .await;
    let of =
        |counts: &std::collections::BTreeMap<String, usize>, line: &str| counts.get(line).copied().unwrap_or_default();
    let (first, _) = cell.take();
    assert!((10..=30).contains(&of(&first, "cell GET configmaps")), "{first:#?}");
    let (status, waits) = (
        cell.at(&Plane::Cell, INSTANCE, "web-0")["status"].to_string(),
        "ConfigMap settings is not in city DFW",
    );
    assert!(status.contains(waits), "{status}");
    for (plane, kind, name) in [
        (Plane::Hub, INSTANCE, "web-0"),
        (Plane::Cell, WORKLOAD_DEPLOYMENT, "web"),
    ] {
        let status = cell.at(&plane, kind, name)["status"].to_string();
        assert!(status.contains(waits), "{plane} {status}");
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (second, _) = cell.take();
    assert!(second.keys().all(|line| line == "cell GET configmaps"), "{second:#?}");

    cell.change(&Plane::Cell, CONFIG_MAP, "settings", |one| {
        one["data"] = json!({ "a": "1" });
    })
    .await;
    let instance = cell.at(&Plane::Cell, INSTANCE, "web-0");
    assert!(is_ready(&instance), "{instance:#}");
    let hash = instance["status"]["referencedDataHash"].clone();
    assert!(hash.is_string());
    assert_eq!(
        cell.at(&Plane::Hub, INSTANCE, "web-0")["status"]["referencedDataHash"],
        hash
    );
    cell.take();
    cell.change(&Plane::Cell, CONFIG_MAP, "settings", |one| {
        one["data"] = json!({ "a": "2" });
    })
    .await;
    let (third, reconciles) = cell.take();
    assert!(third.is_empty() && reconciles.is_empty(), "{third:#?} {reconciles:#?}");
    assert_eq!(cell.at(&Plane::Cell, INSTANCE, "web-0"), instance);
}
