//! What is shipped names what is served.

use std::fs;
use std::path::Path;

use popcell_api::admission::{
    DEPLOYMENT_CONDITION, MUTATE_WORKLOAD_PATH, MUTATING_CONFIGURATION, MUTATING_WEBHOOK, PORT, SERVICE,
    VALIDATE_DEPLOYMENT_PATH, VALIDATE_WORKLOAD_PATH, VALIDATING_CONFIGURATION, VALIDATING_DEPLOYMENT_WEBHOOK,
    VALIDATING_SCALE_WEBHOOK, VALIDATING_WEBHOOK,
};
use popcell_api::kind::{Kind, WORKLOAD, WORKLOAD_DEPLOYMENT};
use serde_json::{Value, json};

use crate::admission::LONGEST;

fn shipped(file: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests");
    let text = fs::read_to_string(root.join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn webhook(name: &str, path: &str, kind: Kind) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "name": SERVICE, "namespace": "compute-system", "path": path, "port": PORT } },
        "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": LONGEST.as_secs() + 1,
        "rules": [{ "apiGroups": [kind.group], "apiVersions": [kind.version],
            "operations": ["CREATE", "UPDATE"], "resources": [kind.plural], "scope": "Namespaced" }],
    })
}

#[test]
fn the_shipped_configurations_match_the_served_webhooks() {
    let mut deployments = webhook(
        VALIDATING_DEPLOYMENT_WEBHOOK,
        VALIDATE_DEPLOYMENT_PATH,
        WORKLOAD_DEPLOYMENT,
    );
    deployments["matchConditions"] = json!([{ "name": "spec-changes", "expression": DEPLOYMENT_CONDITION }]);
    let mut scales = webhook(VALIDATING_SCALE_WEBHOOK, VALIDATE_DEPLOYMENT_PATH, WORKLOAD_DEPLOYMENT);
    (scales["failurePolicy"], scales["timeoutSeconds"]) = (json!("Ignore"), json!(3));
    scales["rules"][0]["operations"] = json!(["UPDATE"]);
    scales["rules"][0]["resources"] = json!(["workloaddeployments/scale"]);
    for (file, kind, configuration, webhooks) in [
        (
            "base/admission/mutating.yaml",
            "MutatingWebhookConfiguration",
            MUTATING_CONFIGURATION,
            json!([webhook(MUTATING_WEBHOOK, MUTATE_WORKLOAD_PATH, WORKLOAD)]),
        ),
        (
            "base/admission/validating.yaml",
            "ValidatingWebhookConfiguration",
            VALIDATING_CONFIGURATION,
            json!([
                webhook(VALIDATING_WEBHOOK, VALIDATE_WORKLOAD_PATH, WORKLOAD),
                deployments,
                scales
            ]),
        ),
    ] {
        assert_eq!(
            shipped(file),
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": { "name": configuration },
                "webhooks": webhooks,
            })
        );
    }
    let service = shipped("base/admission/service.yaml");
    assert_eq!(
        service["metadata"],
        json!({ "name": SERVICE, "namespace": "compute-system" })
    );
    assert_eq!(
        service["spec"]["ports"],
        json!([{ "name": "webhook", "port": PORT, "targetPort": PORT }])
    );
}

#[test]
fn the_dev_overlay_calls_the_same_paths() {
    let overlay = shipped("overlays/dev/kustomization.yaml").to_string();
    for path in [MUTATE_WORKLOAD_PATH, VALIDATE_WORKLOAD_PATH, VALIDATE_DEPLOYMENT_PATH] {
        assert!(
            overlay.contains(&format!("https://host.docker.internal:{PORT}{path}")),
            "{path}"
        );
    }
    assert_eq!(
        overlay.matches(VALIDATE_DEPLOYMENT_PATH).count(),
        2,
        "the objects, and their subresource"
    );
}

#[test]
fn a_single_cluster_does_not_review_what_its_autoscalers_write() {
    let overlay = shipped("overlays/single-cluster/kustomization.yaml");
    let patches = overlay["patches"].as_array().unwrap();
    let of_webhooks = patches
        .iter()
        .find(|one| one["target"]["name"] == VALIDATING_CONFIGURATION);
    let removed: Value = serde_saphyr::from_str(of_webhooks.unwrap()["patch"].as_str().unwrap()).unwrap();
    let path = "/webhooks/2";
    assert_eq!(
        removed,
        json!([
            { "op": "test", "path": format!("{path}/name"), "value": VALIDATING_SCALE_WEBHOOK },
            { "op": "remove", "path": path },
        ])
    );
}
