use popcell_api::annotations;
use popcell_api::labels::{MANAGED_BY, UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE};

use super::*;
use crate::plan::NAMESPACE;
use crate::testing::{FakeServers, object};

const PROJECT: Project<'_> = Project {
    id: "p",
    uid: Some("p-1"),
    server: None,
};

type Change = Box<dyn Fn(&mut Object)>;

/// The hub with a namespace of the project.
fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    let namespace = object(
        json!({ "metadata": { "name": "ns-n1", "uid": "hub-n1", "resourceVersion": "1",
        "labels": { MANAGED_BY: "popcell", UPSTREAM_CLUSTER_NAME: "cluster-p", UPSTREAM_NAMESPACE: "default" },
        "annotations": { annotations::UPSTREAM_PROJECT_UID: "p-1" } } }),
    );
    servers.put(&Plane::Hub, NAMESPACE, namespace);
    servers
}

/// The same with a ResourceQuota of our name.
fn with_quota(marked: bool, spec: Value) -> FakeServers {
    let mut servers = servers();
    let labels = if marked {
        json!({ MANAGED_BY: "popcell" })
    } else {
        json!({ "app": "other" })
    };
    let quota = object(
        json!({ "metadata": { "name": HUB_QUOTA, "namespace": "ns-n1", "uid": "q", "resourceVersion": "1",
        "labels": labels }, "spec": spec }),
    );
    servers.put(&Plane::Hub, RESOURCE_QUOTA, quota);
    servers
}

fn of(servers: &FakeServers) -> Option<&Object> {
    servers.get(&Plane::Hub, RESOURCE_QUOTA, "ns-n1", HUB_QUOTA)
}

fn reconcile(servers: &FakeServers, instances: u32) -> Plan {
    decide(&Observation {
        project: PROJECT,
        namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
        quota: of(servers),
        instances,
    })
}

fn edit_namespace(servers: &mut FakeServers, change: impl FnOnce(&mut Object)) {
    servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", change);
}

#[test]
fn a_namespace_of_ours_gets_a_quota_once() {
    let mut servers = servers();
    servers.settle(|servers| reconcile(servers, 20_000));
    let quota = of(&servers).unwrap();
    assert!(quota.marked());
    assert_eq!(quota.at("/spec"), Some(&json!({ "hard": { COUNTED: "20000" } })));
    assert!(reconcile(&servers, 20_000).is_unchanged());
}

#[test]
fn edits_are_reverted_and_equal_values_are_kept() {
    let counted = |value: &str| json!({ "hard": { COUNTED: value } });
    for (spec, is_left) in [
        (counted("20000"), true),
        // As API servers keep it.
        (counted("20k"), true),
        (counted("1000"), false),
        (counted("many"), false),
        (json!({ "hard": { COUNTED: "20k", "count/configmaps": "1" } }), false),
        (json!({ "hard": {} }), false),
        (json!({}), false),
        (json!(null), false),
    ] {
        let mut servers = with_quota(true, spec.clone());
        assert_eq!(reconcile(&servers, 20_000).is_unchanged(), is_left, "{spec}");
        servers.settle(|servers| reconcile(servers, 20_000));
        let hard = of(&servers).unwrap().at("/spec/hard").unwrap();
        let expected = if is_left {
            &spec["hard"]
        } else {
            &counted("20000")["hard"]
        };
        assert_eq!(hard, expected, "{spec}");
    }
}

#[test]
fn another_number_is_written_and_scopes_are_kept() {
    let mut servers = with_quota(true, json!({ "hard": { COUNTED: "20k" }, "scopes": ["BestEffort"] }));
    servers.settle(|servers| reconcile(servers, 300));
    let spec = of(&servers).unwrap().at("/spec");
    assert_eq!(
        spec,
        Some(&json!({ "hard": { COUNTED: "300" }, "scopes": ["BestEffort"] }))
    );
}

#[test]
fn one_of_another_owner_is_kept_and_noted() {
    let servers = with_quota(false, json!({ "hard": { COUNTED: "1" } }));
    let plan = reconcile(&servers, 20_000);
    assert!(plan.is_unchanged());
    assert_eq!(plan.notes, [Note::Foreign(target(of(&servers).unwrap()))]);
    assert_eq!(plan.requeue, Some(FOREIGN_AGAIN));
    // Nothing of ours is meant to be there.
    assert_eq!(reconcile(&servers, 0), Plan::default());
}

#[test]
fn without_a_number_ours_goes_by_its_uid_and_no_other() {
    let mut servers = with_quota(true, json!({ "hard": { COUNTED: "20k" } }));
    let plan = reconcile(&servers, 0);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}")
    };
    assert_eq!(
        (delete.on.uid.as_str(), &delete.deletion_guard),
        ("q", &DeletionGuard::Exempt)
    );
    servers.settle(|servers| reconcile(servers, 0));
    assert!(of(&servers).is_none());
    assert_eq!(reconcile(&servers, 0), Plan::default());
}

#[test]
fn one_that_is_going_is_waited_for() {
    for instances in [0, 20_000] {
        let mut servers = with_quota(true, json!({ "hard": { COUNTED: "20k" } }));
        servers.change(&Plane::Hub, RESOURCE_QUOTA, "ns-n1", HUB_QUOTA, |quota| {
            quota.metadata.finalizers = Some(vec!["example.com/held".to_owned()]);
        });
        servers.delete(&Plane::Hub, RESOURCE_QUOTA, "ns-n1", HUB_QUOTA);
        let plan = reconcile(&servers, instances);
        assert!(plan.is_unchanged());
        assert_eq!(plan.notes, [Note::WaitsFor(target(of(&servers).unwrap()))]);
    }
}

#[test]
fn nothing_is_written_to_a_namespace_that_is_going_or_not_of_the_project() {
    let set = |key: &'static str, value: &'static str| {
        move |one: &mut Object| {
            let labels = one.metadata.labels.as_mut().unwrap();
            labels.insert(key.to_owned(), value.to_owned());
        }
    };
    let stamp = |key: &'static str, value: &'static str| {
        move |one: &mut Object| {
            let stamps = one.metadata.annotations.as_mut().unwrap();
            stamps.insert(key.to_owned(), value.to_owned());
        }
    };
    let going = |one: &mut Object| {
        one.metadata.finalizers = Some(vec!["kubernetes".to_owned()]);
        one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            crate::testing::now(),
        ));
    };
    let changes: [Change; 5] = [
        Box::new(going),
        Box::new(set(MANAGED_BY, "somebody")),
        Box::new(set(UPSTREAM_CLUSTER_NAME, "cluster-q")),
        Box::new(set(UPSTREAM_NAMESPACE, "")),
        // An earlier Project of the same name.
        Box::new(stamp(annotations::UPSTREAM_PROJECT_UID, "p-0")),
    ];
    for (number, change) in changes.iter().enumerate() {
        for instances in [0, 20_000] {
            for mut servers in [servers(), with_quota(true, json!({ "hard": { COUNTED: "1" } }))] {
                edit_namespace(&mut servers, change);
                assert!(reconcile(&servers, instances).is_unchanged(), "{number}, {instances}");
            }
        }
    }
    // Of two installations of mode `single` on one hub each has its own.
    let mut servers = servers();
    edit_namespace(&mut servers, stamp(annotations::UPSTREAM_SERVER_UID, "s-1"));
    for (server, writes) in [("s-1", true), ("s-2", false)] {
        let plan = decide(&Observation {
            project: Project {
                uid: None,
                server: Some(server),
                ..PROJECT
            },
            namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
            quota: None,
            instances: 1,
        });
        assert_eq!(!plan.is_unchanged(), writes, "{server}");
    }
}
