mod cities;
mod gates;
mod identity;
mod limits;
mod rejections;
mod status;

use super::*;
use crate::ledger::Ledger;
use crate::plan::{Action, NAMESPACE, Proof};
use crate::testing::{self, World, object};
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

/// A world with the Namespace `default` of uid `n1` and these WorkloadDeployments, made directly, in cities that the project
/// has bindings of.
pub(crate) fn world(deployments: &[(&str, &str)]) -> World {
    let mut world = World::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    world.put(&plane(), NAMESPACE, object(namespace));
    for (name, city) in deployments {
        world.put(&plane(), kind::WORKLOAD_DEPLOYMENT, wd(name, city));
        world.put(&plane(), kind::LOCATION_BINDING, location_binding(city));
    }
    world
}

pub(crate) fn pass(world: &World, name: &str) -> Plan {
    pass_of(world, name, P)
}

fn pass_of(world: &World, name: &str, project: Project<'_>) -> Plan {
    pass_after(world, name, project, &[])
}

/// A pass after one of which this was refused.
fn pass_after(world: &World, name: &str, project: Project<'_>, rejected: &[Rejection]) -> Plan {
    let Some(deployment) = world.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name) else {
        return Plan::default();
    };
    let policy_name = names::city_policy(deployment.text("/spec/cityCode").unwrap());
    decide(&Observation {
        project,
        deployment,
        siblings: &world.list(&plane(), kind::WORKLOAD_DEPLOYMENT),
        workload: Observed::Known(world.get(&plane(), kind::WORKLOAD, "default", "web")),
        bindings: Observed::Known(&world.list(&plane(), kind::LOCATION_BINDING)),
        namespace: Observed::Known(world.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &world.list(&Plane::Hub, NAMESPACE),
            deployments: &world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            policy: world.get(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", &policy_name),
            binding: world.get(&Plane::Hub, kind::RESOURCE_BINDING, "ns-n1", name),
        }),
        ledger: &Ledger::default(),
        rejected,
        elsewhere: None,
        now: testing::now(),
    })
}

fn settle(world: &mut World, name: &str) {
    world.settle(|world| pass(world, name));
}

fn in_hub<'w>(world: &'w World, name: &str) -> Option<&'w Object> {
    world.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name)
}

fn in_project<'w>(world: &'w World, name: &str) -> &'w Object {
    world.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name).unwrap()
}

fn change(world: &mut World, name: &str, change: impl FnOnce(&mut Object)) {
    world.change(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", name, change);
}

fn change_hub(world: &mut World, name: &str, change: impl FnOnce(&mut Object)) {
    world.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name, change);
}

fn available(object: &Object) -> (String, String) {
    let condition = crate::conditions::find(object.at("/status").unwrap(), "Available").unwrap();
    let text = |field| crate::conditions::text(condition, field).to_owned();
    (text("reason"), text("message"))
}

#[test]
fn without_a_project_id_nothing_is_planned() {
    let world = world(&[("web", "DFW")]);
    let plan = pass_of(
        &world,
        "web",
        Project {
            id: "",
            uid: None,
            server: None,
        },
    );
    assert!(plan.is_quiet() && plan.requeue.is_none());
}

#[test]
fn the_finalizer_is_written_before_anything_on_the_hub() {
    let mut world = world(&[("web", "DFW")]);
    world.apply(&pass(&world.clone(), "web"));
    assert!(world.list(&Plane::Hub, NAMESPACE).is_empty());
    assert!(in_project(&world, "web").has_finalizer(finalizers::FEDERATOR));
    world.apply(&pass(&world.clone(), "web"));
    let namespace = world.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(namespace.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-p"));
    assert_eq!(namespace.label(labels::UPSTREAM_NAMESPACE), Some("default"));
    assert_eq!(
        namespace.annotation(annotations::UPSTREAM_PROJECT_UID),
        Some("project-1")
    );
    let made = in_hub(&world, "web").unwrap();
    assert_eq!(made.at("/spec"), in_project(&world, "web").at("/spec"));
    assert_eq!(made.label(labels::CITY_CODE), Some("DFW"));
    assert_eq!(made.label(labels::UPSTREAM_NAMESPACE), Some("default"));
    assert_eq!(made.annotation(annotations::UPSTREAM_UID), Some("uid-web"));
    assert_eq!(made.annotation(annotations::UPSTREAM_GENERATION), Some("1"));
    assert!(made.marked() && namespace.marked());
    assert!(pass(&world, "web").is_quiet());
}

#[test]
fn the_hub_spec_follows_and_keys_of_others_stay() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.metadata
            .labels
            .as_mut()
            .unwrap()
            .insert("karmada.io/x".to_owned(), "1".to_owned());
        one.data["status"] = json!({ "replicas": 1 });
    });
    settle(&mut world, "web");
    change(&mut world, "web", |one| {
        one.metadata.generation = Some(2);
        one.data["spec"]["template"]["of"] = json!({ "a": "later release" });
    });
    settle(&mut world, "web");
    let made = in_hub(&world, "web").unwrap();
    assert_eq!(made.at("/spec/template/of/a"), Some(&json!("later release")));
    assert_eq!(made.annotation(annotations::UPSTREAM_GENERATION), Some("2"));
    assert_eq!(made.label("karmada.io/x"), Some("1"));
    assert_eq!(made.at("/status"), Some(&json!({ "replicas": 1 })));
}

#[test]
fn deletion_finds_the_hub_namespace_by_its_labels_and_needs_nothing_else() {
    let mut world = world(&[("web", "DFW"), ("other", "DFW")]);
    for name in ["web", "other"] {
        settle(&mut world, name);
    }
    // The Namespace is gone already.
    world.remove(&plane(), NAMESPACE, "", "default");
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let plan = pass(&world, "web");
    let [Action::Delete(delete), Action::Patch(_)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(matches!(&delete.proofs[..], [Proof::Gone { uid: Some(uid), .. }] if uid == "uid-web"));
    settle(&mut world, "web");
    assert!(in_hub(&world, "web").is_none() && in_hub(&world, "other").is_some());
    assert!(
        world
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );

    world.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "other");
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "other");
    settle(&mut world, "other");
    assert!(
        world
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "other")
            .is_none()
    );
}

#[test]
fn deletion_in_the_project_does_not_wait_for_the_cell() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.metadata.finalizers = Some(vec!["karmada.io/binding".to_owned()])
    });
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut world, "web");
    assert!(
        world
            .get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web")
            .is_none()
    );
    assert!(in_hub(&world, "web").unwrap().deleting());
}

#[test]
fn while_the_hub_is_unreachable_a_deletion_waits_and_says_so_in_neutral_words() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let away = |world: &World| {
        let Some(deployment) = world.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web") else {
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
            ledger: &Ledger::default(),
            rejected: &[],
            elsewhere: None,
            now: testing::now(),
        })
    };
    world.settle(away);
    let left = in_project(&world, "web");
    assert!(left.has_finalizer(finalizers::FEDERATOR) && in_hub(&world, "web").is_some());
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
        let mut world = world(&[(name, city)]);
        settle(&mut world, name);
        assert!(world.list(&Plane::Hub, NAMESPACE).is_empty());
        assert_eq!(available(in_project(&world, name)).0, reason);
        let again = pass(&world, name);
        assert!(again.is_quiet() && again.requeue.is_none());
        assert_eq!(again.terminal.unwrap().reason, reason);
    }
}

#[test]
fn of_two_spellings_of_a_city_the_first_holds_it_until_it_is_deleted() {
    let mut world = world(&[("a", "DFW"), ("b", "dfw")]);
    change(&mut world, "b", |one| {
        one.metadata.creation_timestamp = serde_json::from_value(json!("2026-01-01T00:00:01Z")).unwrap();
    });
    for name in ["b", "a", "b"] {
        settle(&mut world, name);
    }
    assert!(in_hub(&world, "b").is_none() && in_hub(&world, "a").is_some());
    assert_eq!(available(in_project(&world, "b")).0, reasons::CITY_CODE_CONFLICT);
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "a");
    settle(&mut world, "a");
    settle(&mut world, "b");
    assert!(in_hub(&world, "b").is_some());
    assert_eq!(available(in_project(&world, "b")).0, reasons::PROVISIONING_INSTANCES);
}

#[test]
fn a_paused_deployment_is_not_carried_on() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change(&mut world, "web", |one| {
        one.metadata.annotations = Some([(annotations::PAUSED.to_owned(), "true".to_owned())].into());
        one.data["spec"]["template"]["x"] = json!(1);
    });
    settle(&mut world, "web");
    assert_eq!(in_hub(&world, "web").unwrap().at("/spec/template/x"), None);
    change(&mut world, "web", |one| one.metadata.annotations = None);
    settle(&mut world, "web");
    assert_eq!(in_hub(&world, "web").unwrap().at("/spec/template/x"), Some(&json!(1)));
    assert!(crate::conditions::find(in_project(&world, "web").at("/status").unwrap(), "Paused").is_none());
}

#[test]
fn a_server_that_prunes_is_written_to_once() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    change_hub(&mut world, "web", |one| {
        one.data["spec"].as_object_mut().unwrap().remove("template");
    });
    let ledger = Ledger::default();
    let target = Target::of(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, in_hub(&world, "web").unwrap());
    let (sent, stored) = (
        in_project(&world, "web").at("/spec"),
        in_hub(&world, "web").unwrap().at("/spec"),
    );
    ledger.record(&target, sent.unwrap(), stored.unwrap());
    let plan = decide(&Observation {
        project: P,
        deployment: in_project(&world, "web"),
        siblings: &[],
        workload: Observed::Known(None),
        bindings: Observed::Known(&world.list(&plane(), kind::LOCATION_BINDING)),
        namespace: Observed::Known(world.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &world.list(&Plane::Hub, NAMESPACE),
            deployments: &world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            ..Hub::default()
        }),
        ledger: &ledger,
        rejected: &[],
        elsewhere: None,
        now: testing::now(),
    });
    assert!(plan.is_quiet(), "{plan:?}");
    assert_eq!(plan.notes, [Note::Skew(target)]);
}
