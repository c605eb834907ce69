//! What is shipped for milo's quota system and service catalog.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use popcell_api::{kind, quota};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_suites::steps::refused;
use popcell_test_support::kind::{GRANT_CREATION_POLICY, RESOURCE_GRANT, RESOURCE_REGISTRATION, SERVICE_CONFIGURATION};
use popcell_test_support::{Plane, eventually, manifests, objects, stand_ins};
use serde_json::{Value, json};

use crate::manifests::only;

/// The project whose grant is rendered.
const PROJECT: &str = "shop";

/// What a component ships.
pub(crate) fn built(component: &str) -> Result<Vec<Value>> {
    manifests::build_own(&json!({ "components": [format!("../components/{component}")] }))
}

/// A server that has the CRD of a kind of milo's.
pub(crate) async fn serving(environment: &Environment, kinds: &[kind::Kind]) -> Result<Plane> {
    let plane = environment.lab.plane(SPARE).await?;
    for kind in kinds {
        plane.apply(&stand_ins::crd(kind)?).await?;
    }
    Ok(plane)
}

/// The server would take an object, as soon as it serves its kind.
pub(crate) async fn taken(plane: &Plane, object: &Value) -> Result<()> {
    let what = format!("{} {} is taken", object["kind"], object["metadata"]["name"]);
    eventually(&what, SOON, async || plane.create(object, true).await)
        .await
        .map(|_| ())
}

fn amounts<'a>(list: &'a Value, name: &str, amount: &str) -> Result<BTreeMap<&'a str, i64>> {
    let list = list.as_array().context("no list")?;
    let each = |one: &'a Value| {
        let amount = one.pointer(amount).and_then(Value::as_i64);
        Ok((one[name].as_str().context("no name")?, amount.context("no amount")?))
    };
    list.iter().map(each).collect()
}

/// Rules are quota's and not billing's, every metric that they name is declared, and each of the four is limited and ruled.
pub(crate) async fn configuration(environment: &Environment, _: &str) -> Result<()> {
    let plane = serving(environment, &[SERVICE_CONFIGURATION]).await?;
    let shipped = built("service-catalog")?;
    let shipped = only(&shipped, "ServiceConfiguration")?;
    taken(&plane, shipped).await?;

    let names = ["workloads", "instances", "vcpus", "memory"].map(|name| format!("compute.datumapis.com/{name}"));
    let spec = &shipped["spec"];
    let listed = |list: &Value, field: &str| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.filter_map(|one| one[field].as_str().map(str::to_owned)).collect()
    };
    ensure!(listed(&spec["metrics"], "name") == names, "{spec}");
    ensure!(listed(&spec["quota"]["limits"], "metric") == names, "{spec}");
    let rules = spec["quota"]["metricRules"].as_array().context("no rules")?;
    for name in &names {
        let costs = rules.iter().filter_map(|rule| rule["metricCosts"][name].as_i64());
        let costs: Vec<i64> = costs.collect();
        // What cells claim costs nothing at admission: a second claim would count it twice.
        let expected = i64::from(name.ends_with("/workloads"));
        ensure!(costs == [expected], "{name}: {costs:?}");
    }
    ensure!(
        rules.iter().all(|rule| rule["selector"]["kind"] == "Workload"),
        "a projection of an Instance would be a claim: {rules:?}"
    );

    let mut billed = shipped.clone();
    billed["spec"]["billing"] = json!({ "metricRules": rules });
    refused(
        plane.create(&billed, true).await,
        &["spec.billing.metricRules"],
        "billed",
    )?;
    let mut undeclared = shipped.clone();
    undeclared["spec"]["quota"]["metricRules"][0]["metricCosts"] = json!({ "compute.datumapis.com/disks": 1 });
    refused(
        plane.create(&undeclared, true).await,
        &["a cost of an undeclared metric"],
        "undeclared",
    )?;
    let mut unlimited = shipped.clone();
    unlimited["spec"]["metrics"]
        .as_array_mut()
        .context("no metrics")?
        .remove(0);
    refused(
        plane.create(&unlimited, true).await,
        &["a limit of an undeclared metric"],
        "unlimited",
    )
}

/// Each resource type that a claim asks for is registered, for Projects.
pub(crate) async fn registrations(environment: &Environment, _: &str) -> Result<()> {
    let plane = serving(environment, &[RESOURCE_REGISTRATION]).await?;
    let shipped = built("quota")?;
    let mut types = Vec::new();
    for registration in &shipped {
        ensure!(registration["kind"] == "ResourceRegistration", "{registration}");
        taken(&plane, registration).await?;
        let spec = &registration["spec"];
        let project = json!({ "apiGroup": kind::PROJECT.group, "kind": kind::PROJECT.kind });
        ensure!(spec["consumerType"] == project, "{spec}");
        ensure!(spec["claimingResources"] == json!([project]), "{spec}");
        types.push(spec["resourceType"].as_str().unwrap_or_default());
    }
    types.sort_unstable();
    let mut claimed = [quota::INSTANCES, quota::VCPUS, quota::MEMORY];
    claimed.sort_unstable();
    ensure!(types == claimed, "{types:?}");

    let mut wrong = shipped.first().context("no registration")?.clone();
    wrong["spec"]["type"] = json!("Feature");
    refused(plane.create(&wrong, true).await, &["spec.type"], "another type")
}

/// A new project is granted what the catalog names as its limits, in a grant that the quota system takes.
pub(crate) async fn default_quota(environment: &Environment, namespace: &str) -> Result<()> {
    let plane = serving(environment, &[GRANT_CREATION_POLICY, RESOURCE_GRANT]).await?;
    let shipped = built("default-quota")?;
    let policy = only(&shipped, "GrantCreationPolicy")?;
    ensure!(policy["metadata"]["name"] == "compute-default-quota", "{policy}");
    taken(&plane, policy).await?;
    let trigger = json!({ "apiVersion": kind::PROJECT.api_version(), "kind": kind::PROJECT.kind });
    ensure!(policy["spec"]["trigger"]["resource"] == trigger, "{policy}");

    // As the quota system renders it for a Project.
    let template = &policy["spec"]["target"]["resourceGrantTemplate"];
    let rendered = template.to_string().replace("{{ trigger.metadata.name }}", PROJECT);
    let mut grant: Value = serde_json::from_str(&rendered).context("the template is no object")?;
    grant["apiVersion"] = json!(RESOURCE_GRANT.api_version());
    grant["kind"] = json!(RESOURCE_GRANT.kind);
    ensure!(grant["metadata"]["name"] == "shop-compute-quota", "{grant}");
    let consumer = json!({ "apiGroup": kind::PROJECT.group, "kind": kind::PROJECT.kind, "name": PROJECT });
    ensure!(grant["spec"]["consumerRef"] == consumer, "{grant}");
    plane.apply(&objects::namespace(namespace)).await?;
    grant["metadata"]["namespace"] = json!(namespace);
    taken(&plane, &grant).await?;

    let granted = amounts(&grant["spec"]["allowances"], "resourceType", "/buckets/0/amount")?;
    let expected = BTreeMap::from([(quota::INSTANCES, 10), (quota::VCPUS, 40_000), (quota::MEMORY, 81_920)]);
    ensure!(granted == expected, "{granted:?}");
    let catalog = built("service-catalog")?;
    let limits = &only(&catalog, "ServiceConfiguration")?["spec"]["quota"]["limits"];
    let mut limits = amounts(limits, "metric", "/defaultLimit")?;
    limits.remove("compute.datumapis.com/workloads");
    ensure!(limits == expected, "{limits:?}");

    let mut wrong = policy.clone();
    wrong["spec"]["target"]["resourceGrantTemplate"]["spec"]["allowances"][0]["buckets"] = json!([]);
    refused(plane.create(&wrong, true).await, &["buckets"], "without an amount")
}
