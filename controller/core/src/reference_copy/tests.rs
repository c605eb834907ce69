use popcell_api::annotations;
use popcell_api::kind::{self, NETWORK};
use popcell_api::labels::{MANAGED_BY, UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE};

use super::*;
use crate::limits::Excess;
use crate::plan::NAMESPACE;
use crate::references;
use crate::spec_echoes::SpecEchoes;
use crate::testing::{FakeServers, enlarged, object};

type Change = Box<dyn Fn(&mut Object)>;

const PROJECT: Project<'_> = Project {
    id: "p",
    uid: Some("p-1"),
    server: None,
};

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

fn reference() -> Reference {
    Reference::of_key("networks/default").unwrap()
}

fn network(namespace: &str, spec: Value, labels: Value) -> Object {
    object(
        json!({ "apiVersion": "networking.datumapis.com/v1alpha", "kind": "Network", "metadata": {
        "name": "default", "namespace": namespace, "uid": format!("uid-{namespace}"), "resourceVersion": "1",
        "labels": labels, "annotations": { "more": "1" } }, "spec": spec, "status": { "conditions": [] } }),
    )
}

fn source() -> Object {
    network(
        "default",
        json!({ "ipam": { "mode": "Auto" }, "new": [1] }),
        json!({ "app": "mine" }),
    )
}

fn ours(spec: Value) -> Object {
    network("ns-n1", spec, json!({ MANAGED_BY: "popcell" }))
}

/// The hub namespace with WorkloadDeployments that name these networks, and the project with its Network.
fn servers(networks: &[&str]) -> FakeServers {
    let mut servers = FakeServers::default();
    let namespace = object(
        json!({ "metadata": { "name": "ns-n1", "uid": "hub-n1", "resourceVersion": "1",
        "labels": { MANAGED_BY: "popcell", UPSTREAM_CLUSTER_NAME: "cluster-p", UPSTREAM_NAMESPACE: "default" },
        "annotations": { annotations::UPSTREAM_PROJECT_UID: "p-1" } } }),
    );
    servers.put(&Plane::Hub, NAMESPACE, namespace);
    for (index, name) in networks.iter().enumerate() {
        servers.put(
            &Plane::Hub,
            kind::WORKLOAD_DEPLOYMENT,
            deployment(&format!("web-{index}"), name),
        );
    }
    servers.put(&project(), NETWORK, source());
    servers
}

fn deployment(name: &str, network: &str) -> Object {
    object(
        json!({ "metadata": { "name": name, "namespace": "ns-n1", "uid": name, "resourceVersion": "1" },
        "spec": { "template": { "spec": { "networkInterfaces": [{ "network": { "name": network } }] } } } }),
    )
}

fn with(mut servers: FakeServers, copy: Object) -> FakeServers {
    servers.put(&Plane::Hub, NETWORK, copy);
    servers
}

fn copy(servers: &FakeServers) -> Option<&Object> {
    servers.get(&Plane::Hub, NETWORK, "ns-n1", "default")
}

fn reconcile(servers: &FakeServers) -> Plan {
    let found = Observed::Known(servers.get(&project(), NETWORK, "default", "default"));
    reconciled(servers, Some(PROJECT), found)
}

fn reconciled(servers: &FakeServers, project: Option<Project<'_>>, source: Observed<Option<&Object>>) -> Plan {
    let deployments = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    decide(&Observation {
        project,
        namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
        reference: &reference(),
        is_named: references::is_named(deployments, &reference()),
        source,
        copy: copy(servers),
        spec_echoes: &SpecEchoes::default(),
    })
}

#[test]
fn what_a_deployment_of_the_hub_names_is_copied_whole_and_once() {
    let mut servers = servers(&["other", "default", "default"]);
    servers.settle(reconcile);
    let copy = copy(&servers).unwrap();
    assert_eq!(copy.at("/spec"), source().at("/spec"));
    assert!(copy.marked() && copy.metadata.annotations.is_none() && copy.at("/status").is_none());
    assert_eq!(copy.metadata.labels.as_ref().unwrap().len(), 1);
    assert_eq!(servers.writes, 1);
    // What no one names is not copied.
    assert!(reconcile(&super::tests::servers(&["other"])).is_unchanged());
}

#[test]
fn a_changed_source_and_an_edit_by_hand_end_as_the_source() {
    for spec in [json!({ "ipam": { "mode": "Policy" } }), json!({}), json!(null)] {
        let mut servers = with(servers(&["default"]), ours(spec));
        servers.settle(reconcile);
        assert_eq!(copy(&servers).unwrap().at("/spec"), source().at("/spec"));
    }
}

#[test]
fn what_a_server_made_of_the_spec_is_not_sent_again() {
    let mut stored = source().at("/spec").unwrap().clone();
    stored["mtu"] = json!(1460);
    let servers = with(servers(&["default"]), ours(stored.clone()));
    let echoes = SpecEchoes::default();
    let target = Target::namespaced(&Plane::Hub, NETWORK, "ns-n1", "default");
    echoes.record(&target, source().at("/spec").unwrap(), &stored);
    let plan = decide(&Observation {
        project: Some(PROJECT),
        namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
        reference: &reference(),
        is_named: Observed::Known(true),
        source: Observed::Known(Some(&source())),
        copy: copy(&servers),
        spec_echoes: &echoes,
    });
    assert!(plan.is_unchanged());
    assert_eq!(plan.notes, [Note::Skew(target)]);
}

#[test]
fn another_clients_object_is_noted_and_never_changed() {
    for networks in [&["default"][..], &[]] {
        let servers = with(
            servers(networks),
            network("ns-n1", json!({}), json!({ "app": "theirs" })),
        );
        let plan = reconcile(&servers);
        assert!(plan.is_unchanged());
        let target = Target::of(&Plane::Hub, NETWORK, copy(&servers).unwrap());
        let noted = if networks.is_empty() {
            vec![]
        } else {
            vec![Note::Foreign(target)]
        };
        assert_eq!(plan.notes, noted);
    }
}

#[test]
fn a_copy_goes_by_a_live_list_once_no_deployment_names_it() {
    let mut servers = with(servers(&["other"]), ours(json!({})));
    // Also while its project is unreachable: what is carried is on the hub.
    for plan in [reconcile(&servers), reconciled(&servers, None, Observed::Unknown)] {
        let [Action::Delete(delete)] = plan.actions.as_slice() else {
            panic!("{plan:?}")
        };
        let unnamed = Proof::NotNamed {
            namespace: "ns-n1".to_owned(),
            reference: reference(),
        };
        assert_eq!(
            (&delete.proofs, &delete.deletion_guard),
            (&vec![unnamed], &DeletionGuard::Exempt)
        );
    }
    // One comes between the decision and the write.
    let late = reconcile(&servers);
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, deployment("late", "default"));
    servers.apply(&late);
    assert!(copy(&servers).is_some());
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "late");
    servers.settle(reconcile);
    assert!(copy(&servers).is_none());
}

#[test]
fn a_source_that_is_gone_going_unknown_or_too_large_changes_nothing() {
    let mut going = source();
    going.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        crate::testing::now(),
    ));
    let excess = Excess::Bytes {
        bytes: 1 << 20,
        limit: 1 << 18,
    };
    let large = enlarged(&source(), NETWORK, "spec", 1 << 20, excess);
    let too_large = vec![Note::Excess(Target::of(&project(), NETWORK, &large), excess)];
    for (found, notes) in [
        (Observed::Known(None), vec![]),
        (Observed::Known(Some(&going)), vec![]),
        (Observed::Unknown, vec![Note::Unknown(project())]),
        (Observed::Known(Some(&large)), too_large),
    ] {
        for servers in [servers(&["default"]), with(servers(&["default"]), ours(json!({})))] {
            let plan = reconciled(&servers, Some(PROJECT), found);
            assert!(plan.is_unchanged(), "{found:?}");
            assert_eq!(plan.notes, notes);
        }
    }
}

#[test]
fn while_a_large_deployment_may_name_it_a_copy_stays() {
    let mut servers = with(servers(&["other"]), ours(json!({})));
    let large = deployment("large", "other");
    let excess = Excess::Bytes {
        bytes: 1 << 20,
        limit: 1,
    };
    let large = enlarged(&large, kind::WORKLOAD_DEPLOYMENT, "spec", 1 << 20, excess);
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, large);
    assert!(reconcile(&servers).is_unchanged());
}

#[test]
fn nothing_is_written_to_a_namespace_that_is_going_or_not_of_the_project() {
    let set = |servers: &mut FakeServers, change: &dyn Fn(&mut Object)| {
        servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| change(one));
    };
    let label = |key: &'static str, value: &'static str| {
        move |one: &mut Object| {
            drop(
                one.metadata
                    .labels
                    .as_mut()
                    .unwrap()
                    .insert(key.to_owned(), value.to_owned()),
            )
        }
    };
    let uid = |one: &mut Object| {
        let stamps = one.metadata.annotations.as_mut().unwrap();
        stamps.insert(annotations::UPSTREAM_PROJECT_UID.to_owned(), "p-0".to_owned());
    };
    let going = |one: &mut Object| {
        one.metadata.finalizers = Some(vec!["kubernetes".to_owned()]);
        one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            crate::testing::now(),
        ));
    };
    let changes: [Change; 4] = [
        Box::new(going),
        Box::new(label(MANAGED_BY, "other")),
        Box::new(label(UPSTREAM_CLUSTER_NAME, "cluster-q")),
        Box::new(uid),
    ];
    for (index, change) in changes.iter().enumerate() {
        for mut servers in [servers(&["default"]), with(servers(&["default"]), ours(json!({})))] {
            set(&mut servers, change);
            assert!(reconcile(&servers).is_unchanged(), "{index}");
        }
    }
}
