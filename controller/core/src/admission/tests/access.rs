//! Networks and projects.

use popcell_api::kind::NETWORK;

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
    let network = uses_to_review(None, &with_networks(json!([{ "name": "n" }])), None).remove(0);
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
            .ends_with("failed to review access to network \"n\": away")
    );
}

#[test]
fn each_new_network_is_reviewed_once_in_its_own_namespace() {
    let new =
        with_networks(json!([{ "name": "a" }, { "name": "a" }, { "name": "a", "namespace": "net" }, { "name": "b" }]));
    let asked = |old: Option<&Object>| -> Vec<String> {
        let uses = uses_to_review(old, &new, None);
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
fn who_writes_what_runs_may_read_what_it_is_given() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut whole = workload();
        let container = &mut whole["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
        container["env"] = json!([
            { "name": "A", "valueFrom": { "secretKeyRef": { "name": "db", "key": "k" } } },
            { "name": "B", "valueFrom": { "secretKeyRef": { "name": "db", "key": "other" } } },
        ]);
        container["envFrom"] = json!([{ "configMapRef": { "name": "db" } }]);
        change(&mut whole);
        object(whole)
    };
    let asked = |old: Option<&Object>, new: &Object, workload: Option<&Object>| -> Vec<String> {
        let uses = uses_to_review(old, new, workload);
        let data = uses.iter().filter(|one| one.kind != NETWORK);
        data.map(|one| format!("{}/{} {}", one.kind.plural, one.name, one.path))
            .collect()
    };
    let container = "spec.template.spec.runtime.sandbox.containers[0]";
    let both = [
        format!("secrets/db {container}.env[0].valueFrom.secretKeyRef.name"),
        format!("configmaps/db {container}.envFrom[0].configMapRef.name"),
    ];
    let first = with(&|_| ());
    assert_eq!(asked(None, &first, None), both);
    // Another program would read what is named already.
    let image =
        with(&|one| one["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["image"] = json!("other:1"));
    assert_eq!(asked(Some(&first), &image, None), both);
    let restarted = with(&|one| one["spec"]["template"]["metadata"]["annotations"]["a"] = json!("b"));
    let scaled = with(&|one| one["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(7));
    for new in [&restarted, &scaled, &first] {
        assert_eq!(asked(Some(&first), new, None), Vec::<String>::new());
    }
    let uses = uses_to_review(None, &first, None);
    let denied: Vec<String> = uses.iter().map(|one| access_denied(one).to_string()).collect();
    let says = |path: &str, kind: &str, plural: &str| {
        format!("{path}: Forbidden: permission to read the {kind} was denied: get the right to \"get\" {plural} \"db\"")
    };
    assert_eq!(
        denied[1..],
        [
            says(
                &format!("{container}.env[0].valueFrom.secretKeyRef.name"),
                "Secret",
                "secrets"
            ),
            says(
                &format!("{container}.envFrom[0].configMapRef.name"),
                "ConfigMap",
                "configmaps"
            ),
        ]
    );
    let review = access_review(&json!({ "username": "me" }), &uses[2]);
    assert_eq!(
        review["spec"]["resourceAttributes"],
        json!({ "verb": "get", "group": "", "version": "v1", "resource": "configmaps", "name": "db", "namespace": "default" })
    );
}

#[test]
fn more_names_than_a_review_asks_for_are_too_many() {
    let mut whole = workload();
    let sources: Vec<Value> = (0..=100)
        .map(|index| json!({ "secretRef": { "name": format!("s{index}") } }))
        .collect();
    whole["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = json!(sources);
    let fault = too_many_uses(&uses_to_review(None, &object(whole), None)).unwrap();
    assert_eq!(
        fault.to_string(),
        "spec.template.spec (ConfigMaps and Secrets): Too many: 101: must have at most 100 items"
    );
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
