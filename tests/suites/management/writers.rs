//! The optional policy of manifests/components/instance-writers: who may write Instances in a project.

use anyhow::{Result, ensure};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::steps::refused;
use popcell_test_support::kind::{
    ADMISSION_POLICY, ADMISSION_POLICY_BINDING, INSTANCE, NAMESPACE, WORKLOAD, WORKLOAD_DEPLOYMENT,
};
use popcell_test_support::{Plane, eventually, manifests, objects, users};
use serde_json::{Value, json};

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

/// The namespaces that the policy of this test is for: other tests write Instances by hand.
const GUARDED: &str = "popcell.test/guarded";
const POLICY: &str = "compute-instance-writers";
/// How the policy refuses.
const WORDS: [&str; 2] = [POLICY, "Change the Workload"];
const JO: &str = "jo@example.com";
const PROVIDER: &str = "provider@example.com";
const FIRST: &str = "web-us-dfw-0";

/// As what the lab's kube-controller-manager works, which deletes what goes with its owner.
const CLEANER: &str = "system:admin";

/// What an operator applies to a project, with the writers that the operator names.
async fn apply(project: &Plane, writers: Option<&[&str]>) -> Result<()> {
    // A list of texts is the same in CEL.
    let value = |index: usize, users: &[&str]| {
        let path = format!("/spec/variables/{index}/expression");
        json!({ "op": "replace", "path": path, "value": format!("{users:?}") })
    };
    let cleaners = value(1, &[CLEANER]);
    let values = writers.map_or_else(|| json!([cleaners]), |users| json!([cleaners, value(0, users)]));
    let target = json!({ "kind": "ValidatingAdmissionPolicy", "name": POLICY });
    let shipped = manifests::build_own(&json!({
        "resources": ["../project-rbac"],
        "components": ["../components/instance-writers"],
        "patches": [{ "target": target, "patch": values.to_string() }],
    }))?;
    let mut applied = 0;
    for mut object in shipped {
        if object["kind"] == "ValidatingAdmissionPolicyBinding" {
            let selector = json!({ "matchLabels": { GUARDED: "true" } });
            object["spec"]["matchResources"] = json!({ "namespaceSelector": selector });
        }
        project.apply(&object).await?;
        applied += usize::from(object["metadata"]["name"] == POLICY);
    }
    ensure!(applied == 2, "{applied} objects of the component");
    Ok(())
}

fn own(namespace: &str, name: &str) -> Value {
    let mut object = objects::instance_copy(namespace, name, 0, DFW);
    object["metadata"]["labels"] = json!({});
    object
}

pub(crate) async fn ours_only(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let label = json!({ "metadata": { "labels": { GUARDED: "true" } } });
    tenant.project.merge(NAMESPACE, None, namespace, &label).await?;
    let rule = json!({
        "apiGroups": ["compute.datumapis.com"], "resources": ["instances", "instances/status"], "verbs": ["*"],
    });
    for (name, user) in [("jo", JO), ("provider", PROVIDER)] {
        tenant.grant(name, user, &rule).await?;
    }
    let outcome = with_policy(environment, &tenant).await;
    for kind in [ADMISSION_POLICY_BINDING, ADMISSION_POLICY] {
        tenant.project.delete(kind, None, POLICY).await?;
    }
    outcome
}

async fn with_policy(environment: &Environment, tenant: &Tenant) -> Result<()> {
    let namespace = tenant.namespace.as_str();
    apply(&tenant.project, None).await?;
    let jo = environment.as_user(P1, JO).await?;
    let provider = environment.as_user(P1, PROVIDER).await?;
    for (user, name) in [(&jo, "jo"), (&provider, "the provider that nobody named")] {
        eventually("the policy is in force", SOON, async || {
            refused(user.create(&own(namespace, "own"), true).await, &WORDS, name)
        })
        .await?;
    }

    // Ours passes, and stays as it is.
    tenant.workload("web", &[("us", &["DFW"], 1)]).await?;
    let copy = objects::instance_copy(&tenant.below, "web-us-dfw", 0, DFW);
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "web-us-dfw", |_| Ok(())).await?;
    tenant.hub.create(&copy, false).await?;
    tenant.in_project(INSTANCE, FIRST, |_| Ok(())).await?;
    let edit = json!({ "metadata": { "labels": { "jo": "was-here" } } });
    refused(
        jo.merge(INSTANCE, Some(namespace), FIRST, &edit).await,
        &WORDS,
        "an update",
    )?;
    refused(jo.delete(INSTANCE, Some(namespace), FIRST).await, &WORDS, "a delete")?;
    let status = json!({ "conditions": [objects::condition("Ready", "True", "Jo", "", 1)] });
    let set = jo.set_status(INSTANCE, Some(namespace), FIRST, &status).await;
    refused(set, &WORDS, "a status")?;

    apply(&tenant.project, Some(&[users::USER, PROVIDER])).await?;
    eventually("the provider may write", SOON, async || {
        provider.create(&own(namespace, "own"), true).await
    })
    .await?;
    provider.create(&own(namespace, "own"), false).await?;
    provider.set_status(INSTANCE, Some(namespace), "own-0", &status).await?;
    provider.delete(INSTANCE, Some(namespace), "own-0").await?;
    refused(jo.create(&own(namespace, "own"), true).await, &WORDS, "jo, still")?;
    // The projection is still written, and Kubernetes takes it along with its owner.
    tenant
        .hub
        .set_status(INSTANCE, Some(&tenant.below), FIRST, &status)
        .await?;
    tenant
        .in_project(INSTANCE, FIRST, |one| {
            popcell_suites::read::condition(one, "Ready").map(|_| ())
        })
        .await?;
    tenant.delete(WORKLOAD, "web").await?;
    tenant.gone_from_project(INSTANCE, FIRST).await
}
