//! Which keys events enqueue: those that they concern, however many others there are.

use popcell_api::kind::{LOCATION, NETWORK, NETWORK_BINDING, NETWORK_CONTEXT, SUBNET, SUBNET_CLAIM};

use super::*;
use crate::cell::testing::cell;
use crate::queue::Urgency;
use crate::reconcilers::cell as reconcilers;

fn instance(name: &str, of: Option<&str>) -> Value {
    let labels = of.map(|uid| json!({ "compute.datumapis.com/workload-deployment-uid": uid }));
    json!({ "metadata": { "namespace": "ns-1", "name": name, "uid": name, "resourceVersion": "1", "labels": labels } })
}

async fn bench() -> Fixture {
    let mut cell = cell(None);
    cell.quota = false;
    let fixture = Fixture::in_cell(reconcilers(&Arc::new(cell)), &[], Arc::<Script>::default().answer()).await;
    let deployments = ["web", "web-1", "other"].map(|name| deployment("ns-1", name, &format!("uid-{name}")));
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, deployments.into());
    let instances = [
        instance("web-0", Some("uid-web")),
        instance("web-1-0", Some("uid-web-1")),
        instance("other-0", Some("uid-other")),
        instance("bare", None),
    ];
    fixture.list(&Plane::Cell, INSTANCE, instances.into());
    fixture.list(&Plane::Hub, INSTANCE, vec![instance("web-7", None)]);
    fixture
}

fn enqueued(fixture: &Fixture, reconciler: &str, kind: popcell_api::kind::Kind, change: &Change) -> Vec<String> {
    let enqueued = fixture.keys_for_event(reconciler, &Plane::Cell, kind, change);
    let mut names: Vec<String> = enqueued
        .iter()
        .map(|key| format!("{} {}", key.plane, key.name))
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn a_deployment_that_comes_enqueues_its_own_instances_and_copies_only() {
    let fixture = bench().await;
    let web = came(deployment("ns-1", "web", "uid-web"));
    assert_eq!(
        enqueued(&fixture, "instance", WORKLOAD_DEPLOYMENT, &web),
        ["cell web-0"]
    );
    // A copy without an Instance may be that of a slot.
    assert_eq!(
        enqueued(&fixture, "instance-copy", WORKLOAD_DEPLOYMENT, &web),
        ["hub web-0", "hub web-7"]
    );
}

#[tokio::test]
async fn a_name_that_another_owner_released_enqueues_its_slot() {
    let fixture = bench().await;
    assert_eq!(
        enqueued(&fixture, "deployment", INSTANCE, &gone(instance("web-1", None))),
        ["cell web"]
    );
}

#[tokio::test]
async fn a_part_of_a_network_enqueues_those_whose_bindings_lead_to_it() {
    let mut cell = cell(None);
    (cell.quota, cell.hub, cell.networking) = (false, false, true);
    let all = reconcilers(&Arc::new(cell));
    let fixture = Fixture::in_networked_cell(all, &[], Arc::<Script>::default().answer()).await;
    let deployments = ["web", "api", "new"].map(|name| deployment("ns-1", name, &format!("uid-{name}")));
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, deployments.into());
    let part = |name: &str, more: Value| {
        let mut part =
            json!({ "metadata": { "namespace": "nets", "name": name, "uid": name, "resourceVersion": "1" } });
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    let binding = |of: &str, context: &str| {
        let owner = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment", "name": of,
            "uid": format!("uid-{of}"), "controller": true });
        json!({ "metadata": { "namespace": "ns-1", "name": format!("{of}-net-0"), "uid": of, "resourceVersion": "1",
            "ownerReferences": [owner] },
            "status": { "networkContextRef": { "namespace": "nets", "name": context } } })
    };
    fixture.list(
        &Plane::Cell,
        NETWORK_BINDING,
        vec![binding("web", "one"), binding("api", "two")],
    );
    let claim = part(
        "one-0",
        json!({ "spec": { "networkContext": { "name": "one" } },
        "status": { "subnetRef": { "name": "subnet" } } }),
    );
    fixture.list(&Plane::Cell, SUBNET_CLAIM, vec![claim.clone()]);
    for (kind, object, expected) in [
        (NETWORK_CONTEXT, part("two", json!({})), vec!["cell api"]),
        (NETWORK_CONTEXT, part("three", json!({})), vec![]),
        (SUBNET_CLAIM, claim, vec!["cell web"]),
        (SUBNET, part("subnet", json!({})), vec!["cell web"]),
        (SUBNET, part("other", json!({})), vec![]),
        // Which Location a city has is decided among all of them.
        (
            LOCATION,
            part("dfw", json!({})),
            vec!["cell api", "cell new", "cell web"],
        ),
    ] {
        assert_eq!(
            enqueued(&fixture, "deployment", kind, &came(object)),
            expected,
            "{}",
            kind.kind
        );
    }
    let listed = enqueued(&fixture, "deployment", SUBNET, &Change::Listed);
    assert_eq!(listed, ["cell api", "cell new", "cell web"]);
}

#[tokio::test]
async fn a_network_that_comes_or_goes_enqueues_the_workloads_that_name_it() {
    let fixture = Fixture::answering(management(true), &["p"], Arc::<Script>::default().answer()).await;
    let p = project("p");
    let workload = |name: &str, network: &str| {
        let interfaces = json!([{ "network": { "name": network } }]);
        json!({ "metadata": { "namespace": "ns-1", "name": name, "uid": name, "resourceVersion": "1" },
            "spec": { "template": { "spec": { "networkInterfaces": interfaces } } } })
    };
    fixture.list(&p, WORKLOAD, vec![workload("web", "default"), workload("api", "other")]);
    let network = |namespace: &str| json!({ "metadata": { "namespace": namespace, "name": "default", "uid": "n", "resourceVersion": "1" } });
    for (change, expected) in [
        (came(network("ns-1")), vec!["web"]),
        (gone(network("ns-1")), vec!["web"]),
        (came(network("ns-2")), vec![]),
    ] {
        let keys = fixture.keys_for_event("workload", &p, NETWORK, &change);
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, expected, "{change:?}");
    }
}

#[tokio::test]
async fn an_event_on_the_hub_enqueues_the_key_of_its_own_project_only_while_that_is_engaged() {
    let fixture = super::fixture(&Arc::default(), &["p", "q"]).await;
    let namespaces = [("ns-n1", "p"), ("ns-n2", "q"), ("ns-n3", "away"), ("ns-n4", "")];
    let namespaces = namespaces.map(|(name, project)| hub_namespace(name, project));
    fixture.list(&Plane::Hub, NAMESPACE, namespaces.into());
    let on_hub = |namespace: &str| {
        json!({ "metadata": { "namespace": namespace, "name": "web", "uid": namespace, "resourceVersion": "1",
            "labels": { "meta.datumapis.com/upstream-namespace": "default" } },
            "status": { "replicas": 1 } })
    };
    for (namespace, expected) in [
        ("ns-n1", Some("p")),
        ("ns-n2", Some("q")),
        ("ns-n3", None),
        ("ns-n4", None),
        ("ns-n5", None),
    ] {
        let keys = fixture.keys_for_event("federation", &Plane::Hub, WORKLOAD_DEPLOYMENT, &came(on_hub(namespace)));
        let expected: Vec<Key> = expected
            .iter()
            .map(|id| Key::new(&project(id), "default", "web"))
            .collect();
        assert_eq!(keys, expected, "{namespace}");
    }
}

#[tokio::test]
async fn only_what_lets_nothing_go_on_waits_for_more() {
    let fixture = bench().await;
    let (none, soon, gather, later) = (Urgency::AtOnce, Urgency::Settled, Urgency::Gathered, Urgency::Progress);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut one = instance("web-0", Some("uid-web"));
        one["metadata"]["labels"]["compute.datumapis.com/workload-deployment-name"] = json!("web");
        one["spec"] = json!({ "controller": { "templateHash": "h", "schedulingGates": [{ "name": "Quota" }] } });
        one["status"] = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Pending" }] });
        change(&mut one);
        read(one)
    };
    let says = |status: &'static str, reason: &'static str| {
        move |one: &mut Value| {
            one["status"]["conditions"][0] = json!({ "type": "Ready", "status": status, "reason": reason });
        }
    };
    let waiting = || Some(with(&|_| {}));
    let ready = || with(&says("True", "Available"));
    // What became of an Instance, and how long deployment, instance and instance-copy wait with it.
    for (what, before, now, waits) in [
        ("born", None, with(&|_| {}), [later, none, later]),
        (
            "made by another client",
            None,
            with(&|one| one["metadata"]["labels"] = json!({})),
            [gather, none, later],
        ),
        (
            "taken by its provider",
            waiting(),
            with(&|one| one["metadata"]["finalizers"] = json!(["p"])),
            [later, gather, later],
        ),
        (
            "without gates",
            waiting(),
            with(&|one| one["spec"]["controller"]["schedulingGates"] = json!([])),
            [later, gather, later],
        ),
        (
            "on its way",
            waiting(),
            with(&says("False", "PendingProgramming")),
            [later, none, later],
        ),
        (
            "blocked",
            waiting(),
            with(&says("False", "ImageUnavailable")),
            [none, none, soon],
        ),
        ("ready", waiting(), ready(), [none, none, soon]),
        ("not ready any more", Some(ready()), with(&|_| {}), [none, none, soon]),
        (
            "going",
            waiting(),
            with(&|one| one["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")),
            [none, none, soon],
        ),
        (
            "of another size",
            waiting(),
            with(&|one| one["spec"]["runtime"] = json!({})),
            [none, none, soon],
        ),
        (
            "without a label",
            waiting(),
            with(&|one| one["metadata"]["labels"] = json!({})),
            [none, gather, soon],
        ),
    ] {
        let change = Change::Applied { before, now };
        let waited = ["deployment", "instance", "instance-copy"].map(|name| {
            let key = Key::new(&Plane::Cell, "ns-1", "web-0");
            let reconciler = &fixture.queued(name).reconciler;
            reconciler.urgency(&fixture.context, &Plane::Cell, INSTANCE, &change, &key)
        });
        assert_eq!(waited, waits, "{what}");
    }
}
