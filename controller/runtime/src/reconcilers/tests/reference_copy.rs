//! Copies on the hub of what WorkloadDeployments name.

use popcell_api::kind::NETWORK;

use super::*;
use crate::planes::SINGLE;

const NETWORKS: &str = "/apis/networking.datumapis.com/v1alpha/namespaces/ns-n1/networks";

/// A project with two WorkloadDeployments, one of which names network `default`, as the hub has them.
async fn bench(script: &Arc<Script>) -> Fixture {
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let fixture = fixture(script, &[SINGLE]).await;
    fixture.list(&Plane::Hub, NETWORK, Vec::new());
    fixture.list(&project(SINGLE), NETWORK, Vec::new());
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));
    for (name, network) in [("web", "default"), ("other", "other")] {
        let mut one = naming(deployment("default", name, &format!("uid-{name}")), network);
        one["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
        fixture.put(&project(SINGLE), WORKLOAD_DEPLOYMENT, one);
        fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, on_hub(name, network));
    }
    fixture
}

fn naming(mut deployment: Value, network: &str) -> Value {
    deployment["spec"]["template"]["spec"]["networkInterfaces"] = json!([{ "network": { "name": network } }]);
    deployment
}

fn on_hub(name: &str, network: &str) -> Value {
    naming(hub_deployment("ns-n1", name, &format!("uid-{name}")), network)
}

fn network(namespace: &str, version: &str, mode: &str, marked: bool) -> Value {
    let labels = if marked {
        json!({ "compute.datumapis.com/managed-by": "popcell" })
    } else {
        json!({})
    };
    json!({ "apiVersion": "networking.datumapis.com/v1alpha", "kind": "Network", "metadata": { "name": "default",
        "namespace": namespace, "uid": format!("uid-{namespace}"), "resourceVersion": version, "labels": labels },
        "spec": { "ipam": { "mode": mode } } })
}

fn key(name: &str) -> Key {
    Key::new(&Plane::Hub, "ns-n1", &format!("networks/{name}"))
}

fn of_web() -> Key {
    Key::new(&project(SINGLE), "default", "web")
}

#[tokio::test]
async fn a_network_costs_one_request_and_none_at_rest_and_goes_after_a_live_list() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    // Without a source there is nothing to copy.
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(script.writes(), Vec::<String>::new());
    fixture.put(&project(SINGLE), NETWORK, network("default", "1", "Auto", false));
    fixture.reconcile("reference-copy", &key("default")).await;
    let (line, body) = script.sent().pop().unwrap();
    assert!(line.starts_with(&format!("hub POST {NETWORKS}")), "{line}");
    assert_eq!(body["spec"], json!({ "ipam": { "mode": "Auto" } }));
    assert_eq!(
        body["metadata"]["labels"],
        network("", "", "", true)["metadata"]["labels"]
    );

    fixture.put(&Plane::Hub, NETWORK, network("ns-n1", "2", "Auto", true));
    for name in ["default", "other"] {
        assert_eq!(fixture.reconcile("reference-copy", &key(name)).await, Requeue::OnEvent);
    }
    assert_eq!(script.writes(), Vec::<String>::new());
    fixture.put(&project(SINGLE), NETWORK, network("default", "3", "Policy", false));
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(script.writes(), [format!("hub PATCH {NETWORKS}/default")]);

    // The watch says that the last is gone; a list that still has it holds the delete.
    fixture.remove(&Plane::Hub, WORKLOAD_DEPLOYMENT, on_hub("web", "default"));
    let list = |items: Value| json!({ "kind": "WorkloadDeploymentList", "metadata": { "resourceVersion": "9" }, "items": items });
    let deployments = format!("hub GET {DEPLOYMENTS}/ns-n1/workloaddeployments");
    script.say(&deployments, 200, list(json!([on_hub("web", "default")])));
    fixture.put(&Plane::Hub, NETWORK, network("ns-n1", "4", "Policy", true));
    script.asked();
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(script.asked(), std::slice::from_ref(&deployments));
    script.say(&deployments, 200, list(json!([on_hub("other", "other")])));
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(script.asked(), [deployments, format!("hub DELETE {NETWORKS}/default")]);
}

#[tokio::test]
async fn what_changes_who_names_what_enqueues_the_copies_that_it_concerns() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    let became = |before: Value, now: Value| Change::Applied {
        before: Some(read(before)),
        now: read(now),
    };
    let mut with_status = on_hub("web", "default");
    with_status["status"] = json!({ "replicas": 1 });
    let mut source_status = network("default", "1", "Auto", false);
    source_status["status"] = json!({ "ready": true });
    let (hub, of_project) = (Plane::Hub, project(SINGLE));
    let both = vec!["default", "other"];
    for (plane, kind, change, expected) in [
        (
            &hub,
            WORKLOAD_DEPLOYMENT,
            came(on_hub("new", "default")),
            vec!["default"],
        ),
        (
            &hub,
            WORKLOAD_DEPLOYMENT,
            gone(on_hub("web", "default")),
            vec!["default"],
        ),
        (
            &hub,
            WORKLOAD_DEPLOYMENT,
            became(on_hub("web", "default"), on_hub("web", "other")),
            both.clone(),
        ),
        (&hub, WORKLOAD_DEPLOYMENT, Change::Listed, both.clone()),
        (
            &hub,
            NETWORK,
            gone(network("ns-n1", "2", "Auto", true)),
            vec!["default"],
        ),
        (
            &hub,
            NETWORK,
            came(network("ns-n1", "2", "Auto", false)),
            vec!["default"],
        ),
        (&hub, NAMESPACE, came(hub_namespace("ns-n1", SINGLE)), both.clone()),
        (
            &of_project,
            NETWORK,
            came(network("default", "1", "Auto", false)),
            vec!["default"],
        ),
        (
            &of_project,
            NETWORK,
            became(network("default", "1", "Auto", false), source_status),
            vec![],
        ),
        (
            &of_project,
            NETWORK,
            came(network("elsewhere", "1", "Auto", false)),
            vec![],
        ),
        (&of_project, NETWORK, Change::Listed, both),
    ] {
        let enqueued = fixture.keys_for_event("reference-copy", plane, kind, &change);
        let mut names: Vec<&str> = enqueued
            .iter()
            .filter_map(|one| one.name.strip_prefix("networks/"))
            .collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{change:?}");
        assert!(enqueued.iter().all(|one| one.namespace == "ns-n1"), "{enqueued:?}");
    }
}

#[tokio::test]
async fn a_hub_that_refuses_copies_stops_nothing_else_and_who_names_them_says_so() {
    let script = Arc::<Script>::default();
    script.say(&format!("hub POST {NETWORKS}"), 403, refusal(403));
    let fixture = bench(&script).await;
    fixture.put(&project(SINGLE), NETWORK, network("default", "1", "Auto", false));
    for _ in 0..30 {
        let requeue = fixture.reconcile("reference-copy", &key("default")).await;
        assert!(
            matches!(requeue, Requeue::WithBackoff(_) | Requeue::Postponed(_)),
            "{requeue:?}"
        );
    }
    script.asked();
    for (name, says) in [("web", true), ("other", false)] {
        fixture
            .reconcile("federation", &Key::new(&project(SINGLE), "default", name))
            .await;
        let sent = script.sent();
        let status = sent
            .iter()
            .find(|(line, _)| line.contains("/status"))
            .map(|(_, body)| body.to_string());
        let status = status.unwrap_or_default();
        assert_eq!(
            status.contains("rejects the creation of Network default"),
            says,
            "{name}: {status}"
        );
    }
}

#[tokio::test]
async fn another_clients_network_is_kept_and_who_needs_the_name_says_so() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    fixture.put(&project(SINGLE), NETWORK, network("default", "1", "Auto", false));
    let theirs = network("ns-n1", "2", "Policy", false);
    fixture.put(&Plane::Hub, NETWORK, theirs.clone());
    let enqueued = fixture.keys_for_event("federation", &Plane::Hub, NETWORK, &came(theirs.clone()));
    assert_eq!(enqueued, [of_web()]);
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(script.writes(), Vec::<String>::new());
    let foreign = fixture.context.gauge_counts().foreign;
    assert_eq!(foreign.values().sum::<usize>(), 1, "{foreign:?}");
    fixture.reconcile("federation", &of_web()).await;
    let status = script.sent().pop().unwrap().1.to_string();
    assert!(
        status.contains("Network default is held by another owner on the platform"),
        "{status}"
    );
    // Ours costs federation nothing.
    let ours = came(network("ns-n1", "3", "Auto", true));
    assert_eq!(fixture.keys_for_event("federation", &Plane::Hub, NETWORK, &ours), []);
}

#[tokio::test]
async fn a_hub_without_the_kind_gets_no_copy_and_everything_else() {
    let script = Arc::<Script>::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let fixture = fixture(&script, &[SINGLE]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", SINGLE));
    let mut web = naming(deployment("default", "web", "wd"), "default");
    web["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    fixture.put(&project(SINGLE), WORKLOAD_DEPLOYMENT, web);
    assert_eq!(fixture.reconcile("federation", &of_web()).await, Requeue::OnEvent);
    fixture.reconcile("reference-copy", &key("default")).await;
    assert_eq!(
        script.writes(),
        [
            format!("hub POST {DEPLOYMENTS}/ns-n1/workloaddeployments"),
            format!("project single PATCH {DEPLOYMENTS}/default/workloaddeployments/web/status"),
        ]
    );
}
