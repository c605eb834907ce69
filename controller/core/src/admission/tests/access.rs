//! Networks and projects.

use super::*;

fn with_networks(networks: Value) -> Object {
    let mut whole = workload();
    let interfaces: Vec<Value> = networks
        .as_array()
        .unwrap()
        .iter()
        .map(|network| json!({ "network": network }))
        .collect();
    whole["spec"]["template"]["spec"]["networkInterfaces"] = json!(interfaces);
    object(whole)
}

#[test]
fn an_access_review_carries_every_extra_of_the_user() {
    let extra = json!({
        "iam.miloapis.com/parent-name": ["p"],
        "iam.miloapis.com/parent-type": ["Project"],
        "iam.miloapis.com/parent-api-group": ["resourcemanager.miloapis.com"],
        "example.com/many": ["a", "b"],
    });
    let user = json!({ "username": "me", "uid": "1", "groups": ["g1", "g2"], "extra": extra });
    let network = networks_to_review(None, &with_networks(json!([{ "name": "n" }])), None).remove(0);
    assert_eq!(
        access_review(&user, &network),
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "me", "uid": "1", "groups": ["g1", "g2"], "extra": extra,
                "resourceAttributes": { "verb": "use", "group": "networking.datumapis.com", "version": "v1alpha",
                    "resource": "networks", "name": "n", "namespace": "default" },
            },
        })
    );
    assert_eq!(
        access_denied(&network).to_string(),
        "spec.template.spec.networkInterfaces[0].network: Forbidden: permission to use the network was denied"
    );
    assert!(
        access_failed(&network, "away")
            .to_string()
            .ends_with("Internal error: away")
    );
}

#[test]
fn each_new_network_is_reviewed_once_in_its_own_namespace() {
    let new =
        with_networks(json!([{ "name": "a" }, { "name": "a" }, { "name": "a", "namespace": "net" }, { "name": "b" }]));
    let asked = |old: Option<&Object>| -> Vec<String> {
        let uses = networks_to_review(old, &new, None);
        uses.iter()
            .map(|one| format!("{}/{} {}", one.namespace, one.name, one.path))
            .collect()
    };
    let path = |index: usize| format!("spec.template.spec.networkInterfaces[{index}].network");
    assert_eq!(
        asked(None),
        [
            format!("default/a {}", path(0)),
            format!("net/a {}", path(2)),
            format!("default/b {}", path(3))
        ]
    );
    let old = with_networks(json!([{ "name": "a" }, { "name": "a", "namespace": "net" }]));
    assert_eq!(asked(Some(&old)), [format!("default/b {}", path(3))]);
    assert!(asked(Some(&new)).is_empty());
}

#[test]
fn a_request_without_project_is_denied() {
    let user = |value: Value| json!({ "extra": { "iam.miloapis.com/parent-name": value } });
    assert_eq!(project_of(&user(json!(["p1", "p2"]))), Ok("p1"));
    for bad in [
        json!([]),
        json!([""]),
        json!(null),
        json!("p1"),
        json!(["../x"]),
        json!(["A"]),
    ] {
        assert!(project_of(&user(bad.clone())).is_err(), "{bad}");
    }
    assert!(
        project_of(&json!({}))
            .unwrap_err()
            .contains("iam.miloapis.com/parent-name")
    );
}
