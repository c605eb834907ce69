//! What is shipped for milo's quota system and service catalog.

use anyhow::{Context, Result, ensure};
use popcell_api::{kind, quota};
use popcell_suites::environment::{Environment, SOON, SPARE};
use popcell_suites::steps::refused;
use popcell_test_support::{eventually, manifests};
use serde_json::{Value, json};

use crate::manifests::only;

const GROUP: &str = "services.miloapis.com";

fn built(component: &str) -> Result<Vec<Value>> {
    manifests::build_own(&json!({ "components": [format!("../components/{component}")] }))
}

/// As the service catalog checks a ServiceConfiguration: fields by its schema, and names of metrics by its webhook.
fn catalog() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required });
    let list = |items: Value| json!({ "type": "array", "maxItems": 32, "items": items });
    let consumer = object(json!({ "apiGroup": text, "kind": text }), &["apiGroup", "kind"]);
    let costs = json!({ "type": "object", "maxProperties": 32, "additionalProperties": { "type": "integer", "format": "int64" } });
    let limit = object(
        json!({
            "name": text, "metric": text, "displayName": text, "unit": text, "consumerType": consumer,
            "defaultLimit": { "type": "integer", "format": "int64", "minimum": 0 },
        }),
        &["name", "metric", "unit", "consumerType", "defaultLimit"],
    );
    let rule = object(
        json!({ "selector": consumer, "metricCosts": costs }),
        &["selector", "metricCosts"],
    );
    let mut metric = object(
        json!({ "name": text, "displayName": text, "unit": text, "kind": { "enum": ["Delta", "Gauge", "Cumulative"] } }),
        &["name", "kind", "unit"],
    );
    metric["properties"]["kind"]["type"] = json!("string");
    let quota = object(json!({ "limits": list(limit), "metricRules": list(rule) }), &[]);
    let mut spec = object(
        json!({
            "phase": { "type": "string", "enum": ["Draft", "Published", "Deprecated", "Retired"] },
            "serviceRef": object(json!({ "name": text }), &["name"]),
            "metrics": list(metric),
            "billing": object(json!({ "quotaGating": text }), &[]),
            "quota": quota,
        }),
        &["phase", "serviceRef", "metrics"],
    );
    let declared = "self.metrics.exists(metric, metric.name ==";
    spec["x-kubernetes-validations"] = json!([
        { "message": "a cost of an undeclared metric",
          "rule": format!("!has(self.quota) || !has(self.quota.metricRules) || self.quota.metricRules.all(rule, rule.metricCosts.all(name, {declared} name)))") },
        { "message": "a limit of an undeclared metric",
          "rule": format!("!has(self.quota) || !has(self.quota.limits) || self.quota.limits.all(limit, {declared} limit.metric))") },
    ]);
    // So that rules over lists and texts are known to be cheap.
    let text = spec
        .to_string()
        .replace("\"minLength\":1", "\"minLength\":1,\"maxLength\":128");
    let spec: Value = serde_json::from_str(&text).unwrap_or_default();
    definition("ServiceConfiguration", "serviceconfigurations", &spec)
}

fn definition(kind: &str, plural: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Cluster", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
            }],
        },
    })
}

/// Rules are quota's and not billing's, and every metric that they name is declared.
pub(crate) async fn configuration(environment: &Environment, _: &str) -> Result<()> {
    let plane = environment.lab.plane(SPARE).await?;
    plane.apply(&catalog()).await?;
    let shipped = built("service-catalog")?;
    let shipped = only(&shipped, "ServiceConfiguration")?;
    eventually("the shipped one is taken", SOON, async || {
        plane.create(shipped, true).await
    })
    .await?;

    let names = ["workloads", "instances", "vcpus", "memory"].map(|name| format!("compute.datumapis.com/{name}"));
    let metrics = shipped["spec"]["metrics"].as_array().context("no metrics")?;
    let declared: Vec<&str> = metrics.iter().filter_map(|metric| metric["name"].as_str()).collect();
    ensure!(declared == names, "{declared:?}");
    let rules = &shipped["spec"]["quota"]["metricRules"];
    ensure!(rules.as_array().is_some_and(|rules| !rules.is_empty()), "no rules");

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
pub(crate) async fn registrations(_: &Environment, _: &str) -> Result<()> {
    let shipped = built("quota")?;
    let mut types = Vec::new();
    for registration in &shipped {
        ensure!(registration["kind"] == "ResourceRegistration", "{registration}");
        ensure!(
            registration["apiVersion"] == kind::RESOURCE_CLAIM.api_version(),
            "{registration}"
        );
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
    Ok(())
}
