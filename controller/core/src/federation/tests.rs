mod cities;
mod gates;
mod identity;
mod limits;
mod previous;
mod rejections;
mod sizes;
mod status;

use super::*;
use crate::plan::{Action, NAMESPACE, Proof};
use crate::spec_echoes::SpecEchoes;
use crate::testing::{self, FakeServers, object};
use popcell_api::annotations;
use serde_json::json;

const P: Project<'static> = Project {
    id: "p",
    uid: Some("project-1"),
    server: None,
};

fn plane() -> Plane {
    Plane::Project("p".to_owned())
}

fn wd(name: &str, city: &str) -> Object {
    object(json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "workloadRef": { "name": "web", "uid": "w1" }, "placementName": "us", "cityCode": city,
            "template": { "spec": {} }, "scaleSettings": { "minReplicas": 1 } },
    }))
}

fn location_binding(city: &str) -> Object {
    object(json!({ "metadata": { "name": format!("binding-{city}") },
        "spec": { "topology": { "topology.datum.net/city-code": city } } }))
}

/// Planes with the Namespace `default` of uid `n1` and these WorkloadDeployments, made directly, in cities that the project
/// has bindings of.
pub(crate) fn servers(deployments: &[(&str, &str)]) -> FakeServers {
    let mut servers = FakeServers::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    servers.put(&plane(), NAMESPACE, object(namespace));
    for (name, city) in deployments {
        servers.put(&plane(), kind::WORKLOAD_DEPLOYMENT, wd(name, city));
        servers.put(&plane(), kind::LOCATION_BINDING, location_binding(city));
    }
    servers
}

pub(crate) fn reconcile(servers: &FakeServers, name: &str) -> Plan {
    pass_of(servers, name, P)
}

fn pass_of(servers: &FakeServers, name: &str, project: Project<'_>) -> Plan {
    pass_after(servers, name, project, &[])
}

/// A reconcile after one of which this was refused.
fn pass_after(servers: &FakeServers, name: &str, project: Project<'_>, rejected: &[Rejection]) -> Plan {
    let Some(deployment) = servers.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name) else {
        return Plan::default();
    };
    let policy_name = names::city_policy(deployment.text("/spec/cityCode").unwrap());
    decide(&Observation {
        project,
        deployment,
        siblings: &servers.list(&plane(), kind::WORKLOAD_DEPLOYMENT),
        workload: Observed::Known(servers.get(&plane(), kind::WORKLOAD, "default", "web")),
        bindings: Observed::Known(&servers.list(&plane(), kind::LOCATION_BINDING)),
        namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &servers.list(&Plane::Hub, NAMESPACE),
            deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            policy: servers.get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", &policy_name),
            binding: servers.get(&Plane::Hub, kind::RESOURCE_BINDING, "ns-n1", name),
            held: None,
        }),
        types: Observed::Known(&Catalogue::default()),
        carries_data: true,
        spec_echoes: &SpecEchoes::default(),
        rejected,
        elsewhere: None,
        now: testing::now(),
    })
}

fn settle(servers: &mut FakeServers, name: &str) {
    servers.settle(|servers| reconcile(servers, name));
}

fn in_hub<'w>(servers: &'w FakeServers, name: &str) -> Option<&'w Object> {
    servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name)
}

fn in_project<'w>(servers: &'w FakeServers, name: &str) -> &'w Object {
    servers
        .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name)
        .unwrap()
}

fn change(servers: &mut FakeServers, name: &str, change: impl FnOnce(&mut Object)) {
    servers.change(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name, change);
}

fn change_hub(servers: &mut FakeServers, name: &str, change: impl FnOnce(&mut Object)) {
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name, change);
}

fn available(object: &Object) -> (String, String) {
    let condition = crate::conditions::find(object.at("/status").unwrap(), "Available").unwrap();
    let text = |field| crate::conditions::text(condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn without_a_project_id_nothing_is_planned() {
    let servers = servers(&[("web", "DFW")]);
    let plan = pass_of(
        &servers,
        "web",
        Project {
            id: "",
            uid: None,
            server: None,
        },
    );
    assert!(plan.is_unchanged() && plan.requeue.is_none());
}

#[test]
fn the_finalizer_is_written_before_anything_on_the_hub() {
    let mut servers = servers(&[("web", "DFW")]);
    servers.apply(&reconcile(&servers.clone(), "web"));
    assert!(servers.list(&Plane::Hub, NAMESPACE).is_empty());
    assert!(in_project(&servers, "web").has_finalizer(finalizers::FEDERATOR));
    servers.apply(&reconcile(&servers.clone(), "web"));
    let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(namespace.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-p"));
    assert_eq!(namespace.label(labels::UPSTREAM_NAMESPACE), Some("default"));
    assert_eq!(
        namespace.annotation(annotations::UPSTREAM_PROJECT_UID),
        Some("project-1")
    );
    let made = in_hub(&servers, "web").unwrap();
    assert_eq!(made.at("/spec"), in_project(&servers, "web").at("/spec"));
    assert_eq!(made.label(labels::CITY_CODE), Some("DFW"));
    assert_eq!(made.label(labels::UPSTREAM_NAMESPACE), Some("default"));
    assert_eq!(made.annotation(annotations::UPSTREAM_UID), Some("uid-web"));
    assert_eq!(made.annotation(annotations::UPSTREAM_GENERATION), Some("1"));
    assert!(made.marked() && namespace.marked());
    assert!(reconcile(&servers, "web").is_unchanged());
}

#[test]
fn the_hub_spec_follows_and_keys_of_others_stay() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.metadata
            .labels
            .as_mut()
            .unwrap()
            .insert("karmada.io/x".to_owned(), "1".to_owned());
        one.data["status"] = json!({ "replicas": 1 });
    });
    settle(&mut servers, "web");
    change(&mut servers, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["template"]["of"] = json!({ "a": "later release" });
    });
    settle(&mut servers, "web");
    let made = in_hub(&servers, "web").unwrap();
    assert_eq!(made.at("/spec/template/of/a"), Some(&json!("later release")));
    assert_eq!(made.annotation(annotations::UPSTREAM_GENERATION), Some("2"));
    assert_eq!(made.label("karmada.io/x"), Some("1"));
    assert_eq!(made.at("/status"), Some(&json!({ "replicas": 1 })));
}

#[test]
fn the_number_of_an_autoscaler_never_leaves_its_plane() {
    let mut servers = servers(&[("web", "DFW")]);
    change(&mut servers, "web", |one| one.data["spec"]["replicas"] = json!(5));
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web").unwrap().at("/spec/replicas"), None);
    // Nor does one stay that was set on the hub.
    change_hub(&mut servers, "web", |one| one.data["spec"]["replicas"] = json!(7));
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web").unwrap().at("/spec/replicas"), None);
}

#[test]
fn deletion_finds_the_hub_namespace_by_its_labels_and_needs_nothing_else() {
    let mut servers = servers(&[("web", "DFW"), ("other", "DFW")]);
    for name in ["web", "other"] {
        settle(&mut servers, name);
    }
    // The Namespace is gone already.
    servers.remove(&plane(), NAMESPACE, "", "default");
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let plan = reconcile(&servers, "web");
    let [Action::Delete(delete), Action::Patch(_)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(matches!(&delete.proofs[..], [Proof::Gone { uid: Some(uid), .. }] if uid == "uid-web"));
    settle(&mut servers, "web");
    assert!(in_hub(&servers, "web").is_none() && in_hub(&servers, "other").is_some());
    assert!(
        servers
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );

    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "other");
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "other");
    settle(&mut servers, "other");
    assert!(
        servers
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "other")
            .is_none()
    );
}

#[test]
fn deletion_in_the_project_does_not_wait_for_the_cell() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.metadata.finalizers = Some(vec!["karmada.io/binding".to_owned()])
    });
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut servers, "web");
    assert!(
        servers
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );
    assert!(in_hub(&servers, "web").unwrap().deleting());
}

#[test]
fn while_the_hub_is_unreachable_a_deletion_waits_and_says_so_in_neutral_words() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let away = |servers: &FakeServers| {
        let Some(deployment) = servers.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web") else {
            return Plan::default();
        };
        decide(&Observation {
            project: P,
            deployment,
            siblings: &[],
            workload: Observed::Unknown,
            bindings: Observed::Unknown,
            namespace: Observed::Unknown,
            hub: Observed::Unknown,
            types: Observed::Known(&Catalogue::default()),
            carries_data: true,
            spec_echoes: &SpecEchoes::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    servers.settle(away);
    let left = in_project(&servers, "web");
    assert!(left.has_finalizer(finalizers::FEDERATOR) && in_hub(&servers, "web").is_some());
    assert_eq!(
        available(left),
        (DELETING.to_owned(), "Waiting for the removal in city DFW".to_owned())
    );
}

#[test]
fn a_deployment_made_directly_is_held_to_the_same_name_rules() {
    for (name, city, reason) in [
        ("web", "nyc_1", reasons::INVALID_CITY_CODE),
        ("web", "İST", reasons::INVALID_CITY_CODE),
        (&*"w".repeat(60), "DFW", names::INVALID_NAME),
    ] {
        let mut servers = servers(&[(name, city)]);
        settle(&mut servers, name);
        assert!(servers.list(&Plane::Hub, NAMESPACE).is_empty());
        assert_eq!(available(in_project(&servers, name)).0, reason);
        let again = reconcile(&servers, name);
        assert!(again.is_unchanged() && again.requeue.is_none());
        assert_eq!(again.terminal.unwrap().reason, reason);
    }
}

#[test]
fn of_two_spellings_of_a_city_the_first_holds_it_until_it_is_deleted() {
    let mut servers = servers(&[("a", "DFW"), ("b", "dfw")]);
    change(&mut servers, "b", |one| {
        one.metadata.creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
    });
    for name in ["b", "a", "b"] {
        settle(&mut servers, name);
    }
    assert!(in_hub(&servers, "b").is_none() && in_hub(&servers, "a").is_some());
    assert_eq!(available(in_project(&servers, "b")).0, reasons::CITY_CODE_CONFLICT);
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "a");
    settle(&mut servers, "a");
    settle(&mut servers, "b");
    assert!(in_hub(&servers, "b").is_some());
    assert_eq!(available(in_project(&servers, "b")).0, reasons::PROVISIONING_INSTANCES);
}

#[test]
fn a_paused_deployment_is_not_carried_on() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change(&mut servers, "web", |one| {
        one.metadata.annotations = Some([(annotations::PAUSED.to_owned(), "true".to_owned())].into());
        one.data["spec"]["template"]["x"] = json!(1);
    });
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web").unwrap().at("/spec/template/x"), None);
    change(&mut servers, "web", |one| one.metadata.annotations = None);
    settle(&mut servers, "web");
    assert_eq!(in_hub(&servers, "web").unwrap().at("/spec/template/x"), Some(&json!(1)));
    assert!(crate::conditions::find(in_project(&servers, "web").at("/status").unwrap(), "Paused").is_none());
}

#[test]
fn a_server_that_prunes_is_written_to_once() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    change_hub(&mut servers, "web", |one| {
        one.data["spec"].as_object_mut().unwrap().remove("template");
    });
    let spec_echoes = SpecEchoes::default();
    let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, in_hub(&servers, "web").unwrap());
    let (sent, stored) = (
        in_project(&servers, "web").at("/spec"),
        in_hub(&servers, "web").unwrap().at("/spec"),
    );
    spec_echoes.record(&target, sent.unwrap(), stored.unwrap());
    let plan = decide(&Observation {
        project: P,
        deployment: in_project(&servers, "web"),
        siblings: &[],
        workload: Observed::Known(None),
        bindings: Observed::Known(&servers.list(&plane(), kind::LOCATION_BINDING)),
        namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &servers.list(&Plane::Hub, NAMESPACE),
            deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            ..Hub::default()
        }),
        types: Observed::Known(&Catalogue::default()),
        carries_data: true,
        spec_echoes: &spec_echoes,
        rejected: &[],
        elsewhere: None,
        now: testing::now(),
    });
    assert!(plan.is_unchanged(), "{plan:?}");
    assert_eq!(plan.notes, [Note::Skew(target)]);
}

#[test]
fn a_network_of_the_own_namespace_is_carried_without_it_and_one_of_another_as_it_is() {
    let mut servers = servers(&[("web", "DFW")]);
    change(&mut servers, "web", |one| {
        one.data["spec"]["template"]["spec"]["networkInterfaces"] = json!([
            { "network": { "name": "a", "namespace": "default" } },
            { "network": { "name": "b", "namespace": "shared" } },
        ])
    });
    settle(&mut servers, "web");
    assert_eq!(
        in_hub(&servers, "web")
            .unwrap()
            .at("/spec/template/spec/networkInterfaces"),
        Some(&json!([{ "network": { "name": "a" } }, { "network": { "name": "b", "namespace": "shared" } }]))
    );
}

#[test]
fn a_copy_whose_name_another_client_holds_on_the_hub_is_reported_until_it_is_free() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    let held = Target::namespaced(&Plane::Hub, kind::NETWORK, "ns-n1", "default");
    let with = |servers: &FakeServers, held| {
        decide(&Observation {
            project: P,
            deployment: in_project(servers, "web"),
            siblings: &[],
            workload: Observed::Known(None),
            bindings: Observed::Known(&servers.list(&plane(), kind::LOCATION_BINDING)),
            namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
            hub: Observed::Known(Hub {
                namespaces: &servers.list(&Plane::Hub, NAMESPACE),
                deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
                held,
                ..Hub::default()
            }),
            types: Observed::Known(&Catalogue::default()),
            carries_data: true,
            spec_echoes: &SpecEchoes::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    servers.settle(|servers| with(servers, Some(&held)));
    let message = "Network default is held by another owner on the platform: have an operator delete it there";
    assert_eq!(
        available(in_project(&servers, "web")),
        ("NameConflict".to_owned(), message.to_owned())
    );
    settle(&mut servers, "web");
    assert_eq!(available(in_project(&servers, "web")).0, "ProvisioningInstances");
}
