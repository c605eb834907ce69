//! What an object of an overlay names comes with it, or is among the few things that an operator gives.

use std::collections::BTreeSet;

use anyhow::Result;
use popcell_test_support::manifests;
use serde_json::Value;

/// What docs/operations.md has the operator make before the overlay: credentials, and the CA of the hub.
const GIVEN: [&str; 4] = [
    "ConfigMap compute-system/compute-karmada-ca",
    "Secret compute-system/compute-hub-credentials",
    "Secret compute-system/compute-quota-credentials",
    "Secret popcell-system/popcell-karmada-kubeconfig",
];

/// The namespace of an object that has none.
static NONE: Value = Value::Null;

/// An object as a reference names it.
fn reference(kind: &str, namespace: &Value, name: &Value) -> String {
    let name = name.as_str().unwrap_or("(no name)");
    namespace.as_str().map_or_else(
        || format!("{kind} {name}"),
        |namespace| format!("{kind} {namespace}/{name}"),
    )
}

/// What an overlay makes: its objects, and the Secrets that cert-manager writes for its Certificates.
fn made(objects: &[Value]) -> BTreeSet<String> {
    let mut made = BTreeSet::new();
    for object in objects {
        let (kind, metadata) = (object["kind"].as_str().unwrap_or_default(), &object["metadata"]);
        made.insert(reference(kind, &metadata["namespace"], &metadata["name"]));
        if kind == "Certificate" {
            made.insert(reference(
                "Secret",
                &metadata["namespace"],
                &object["spec"]["secretName"],
            ));
        }
    }
    made
}

fn named(object: &Value) -> Vec<String> {
    let (namespace, spec) = (&object["metadata"]["namespace"], &object["spec"]);
    let mut found = Vec::new();
    if namespace.is_string() {
        found.push(reference("Namespace", &NONE, namespace));
    }
    match object["kind"].as_str().unwrap_or_default() {
        "Deployment" | "CronJob" => found.extend(of_pods(namespace, &manifests::pod_template(object)["spec"])),
        "RoleBinding" | "ClusterRoleBinding" => found.extend(of_a_binding(object)),
        "Certificate" => {
            let kind = spec["issuerRef"]["kind"].as_str().unwrap_or("Issuer");
            found.push(reference(kind, namespace, &spec["issuerRef"]["name"]));
        }
        "Issuer" => {
            let secret = &spec["ca"]["secretName"];
            found.extend(secret.is_string().then(|| reference("Secret", namespace, secret)));
        }
        "ValidatingAdmissionPolicyBinding" => {
            found.push(reference("ValidatingAdmissionPolicy", &NONE, &spec["policyName"]));
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            let authority = object["metadata"]["annotations"]["cert-manager.io/inject-ca-from"].as_str();
            found.extend(authority.map(|authority| format!("Certificate {authority}")));
            for webhook in object["webhooks"].as_array().into_iter().flatten() {
                let service = &webhook["clientConfig"]["service"];
                let called = || reference("Service", &service["namespace"], &service["name"]);
                found.extend(service.is_object().then(called));
            }
        }
        _ => {}
    }
    found
}

fn of_pods(namespace: &Value, pod: &Value) -> Vec<String> {
    let mut found = vec![reference("ServiceAccount", namespace, &pod["serviceAccountName"])];
    for volume in pod["volumes"].as_array().into_iter().flatten() {
        for (kind, name) in [
            ("ConfigMap", &volume["configMap"]["name"]),
            ("Secret", &volume["secret"]["secretName"]),
        ] {
            found.extend(name.is_string().then(|| reference(kind, namespace, name)));
        }
    }
    found
}

fn of_a_binding(binding: &Value) -> Vec<String> {
    let (role, namespace) = (&binding["roleRef"], &binding["metadata"]["namespace"]);
    let kind = role["kind"].as_str().unwrap_or_default();
    let of_role = if kind == "Role" { namespace } else { &NONE };
    let mut found = vec![reference(kind, of_role, &role["name"])];
    for subject in binding["subjects"].as_array().into_iter().flatten() {
        if subject["kind"] == "ServiceAccount" {
            found.push(reference("ServiceAccount", &subject["namespace"], &subject["name"]));
        }
    }
    found
}

#[test]
fn no_overlay_names_an_object_that_is_neither_shipped_nor_given() -> Result<()> {
    let mut given = BTreeSet::new();
    for overlay in manifests::overlays()? {
        let shipped = manifests::build(&overlay)?;
        let made = made(&shipped);
        for object in &shipped {
            for name in named(object).into_iter().filter(|name| !made.contains(name)) {
                assert!(
                    GIVEN.contains(&name.as_str()),
                    "{}: {} {} names {name}, which nothing makes",
                    overlay.display(),
                    object["kind"],
                    object["metadata"]["name"]
                );
                given.insert(name);
            }
        }
    }
    let needed: Vec<&str> = given.iter().map(String::as_str).collect();
    assert_eq!(needed, GIVEN, "an operator is asked for no more than is used");
    Ok(())
}
