//! Instance types of the catalogue on their way to the hub and, in a single cluster, to Instances.

use popcell_api::annotations::INSTANCE_TYPE_SIZE;
use popcell_api::kind::INSTANCE_TYPE;
use popcell_core::instance_types::Catalogue;

use super::rejected::{Servers, within};
use super::single::made_directly;
use super::*;
use crate::planes::SINGLE;

/// Types of these names, with four processors.
fn catalogue(names: &[&str]) -> Arc<Catalogue> {
    let objects = names.iter().map(|name| {
        read(json!({ "metadata": { "name": name.replace('/', "-") }, "spec": { "name": name, "cpu": "4", "memory": "8Gi" } }))
    });
    let objects: Vec<Arc<Object>> = objects.collect();
    let objects: Vec<&Object> = objects.iter().map(Arc::as_ref).collect();
    Arc::new(Catalogue::of(&objects).0)
}

/// One that names a type, and claims that it is a small one.
fn of_type(mut one: Value, name: &str) -> Value {
    one["spec"]["template"]["spec"] = json!({ "runtime": { "resources": { "instanceType": name } } });
    one["metadata"]["annotations"] = json!({ INSTANCE_TYPE_SIZE: format!("{name} cpu=1m memory=1Mi") });
    one
}

fn changed(name: &str) -> Change {
    came(json!({ "metadata": { "name": "t" }, "spec": { "name": name } }))
}

#[tokio::test]
async fn a_type_that_is_added_is_carried_with_its_size_and_one_that_is_removed_keeps_it() {
    let script = Arc::<Script>::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let fixture = fixture(&script, &["single"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "single"));
    let mut web = of_type(deployment("default", "web", "uid-web"), "acme/large");
    web["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    fixture.put(&project("single"), WORKLOAD_DEPLOYMENT, web.clone());
    let key = Key::new(&project("single"), "default", "web");
    let reported = |sent: &[(String, Value)]| {
        let status = sent.iter().find(|(line, _)| line.contains("/web/status"));
        status.map(|(_, body)| body.to_string()).unwrap_or_default()
    };

    // The catalogue is unknown, and then without the type: nothing reaches the hub.
    fixture.types.send_replace(None);
    fixture.reconcile("federation", &key).await;
    assert!(!script.asked().iter().any(|line| line.starts_with("hub ")));
    fixture.types.send_replace(Some(Arc::default()));
    fixture.reconcile("federation", &key).await;
    let sent = script.sent();
    assert!(!sent.iter().any(|(line, _)| line.starts_with("hub ")), "{sent:?}");
    let status = reported(&sent);
    assert!(
        status.contains("InstanceTypeNotFound") && status.contains("Instance type acme/large is not in the catalogue"),
        "{status}"
    );

    // It is added.
    let enqueued = |change: &Change| fixture.keys_for_event("federation", &Plane::Discovery, INSTANCE_TYPE, change);
    assert_eq!(enqueued(&changed("acme/large")), std::slice::from_ref(&key));
    assert_eq!(enqueued(&changed("acme/other")), []);
    assert_eq!(enqueued(&Change::Listed), std::slice::from_ref(&key));
    fixture.types.send_replace(Some(catalogue(&["acme/large"])));
    fixture.reconcile("federation", &key).await;
    let sent = script.sent();
    let made = sent.iter().find(|(line, _)| line.starts_with("hub POST "));
    let mut made = made.unwrap_or_else(|| panic!("{sent:?}")).1.clone();
    assert_eq!(
        made["metadata"]["annotations"][INSTANCE_TYPE_SIZE],
        "acme/large cpu=4 memory=8Gi"
    );

    // A second reconcile sends nothing, nor does one without the type, or before the catalogue is known again.
    for (field, value) in [("uid", "hub-web"), ("resourceVersion", "2")] {
        made["metadata"][field] = json!(value);
    }
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, made.clone());
    for known in [Some(catalogue(&["acme/large"])), Some(catalogue(&["acme/other"])), None] {
        fixture.types.send_replace(known);
        fixture.reconcile("federation", &key).await;
        assert!(!script.asked().iter().any(|line| line.starts_with("hub ")));
    }

    // Another type that is not there is not carried, and what runs stays.
    fixture.types.send_replace(Some(catalogue(&["acme/large"])));
    let other = of_type(web, "acme/removed");
    fixture.put(&project("single"), WORKLOAD_DEPLOYMENT, other);
    fixture.reconcile("federation", &key).await;
    let sent = script.sent();
    assert!(!sent.iter().any(|(line, _)| line.starts_with("hub ")), "{sent:?}");
    assert!(reported(&sent).contains("Instance type acme/removed is not in the catalogue"));
}

#[tokio::test]
async fn what_the_hub_has_from_before_there_was_a_catalogue_costs_no_write() {
    let script = Arc::<Script>::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project single GET /api/v1/namespaces/default", 200, namespace);
    let fixture = fixture(&script, &["single"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "single"));
    let runtime = json!({ "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" } } });
    let mut web = deployment("default", "web", "uid-web");
    web["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    web["spec"]["template"]["spec"] = runtime.clone();
    let mut made = hub_deployment("ns-n1", "web", "uid-web");
    made["spec"]["template"]["spec"] = runtime;
    fixture.put(&project("single"), WORKLOAD_DEPLOYMENT, web);
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, made);
    let key = Key::new(&project("single"), "default", "web");
    for known in [Some(Arc::default()), Some(catalogue(&["acme/other"])), None] {
        fixture.types.send_replace(known);
        fixture.reconcile("federation", &key).await;
        assert!(!script.asked().iter().any(|line| line.starts_with("hub ")));
    }
}

#[tokio::test]
async fn in_a_single_cluster_instances_have_the_size_of_the_catalogue_and_none_is_made_without() {
    let servers = Arc::<Servers>::default();
    let one = of_type(deployment("ns-1", "web", "uid-web"), "acme/large");
    let fixture = made_directly(&servers, &one).await;
    fixture.list(&project(SINGLE), LOCATION_BINDING, vec![location_binding()]);
    let key = Key::new(&Plane::Cell, "ns-1", "web");
    let reconcile = async || {
        for _ in 0..3 {
            fixture.reconcile("deployment", &key).await;
        }
    };
    let instances = || servers.all(&Plane::Cell, "instances");
    reconcile().await;
    assert_eq!(instances(), Vec::<Value>::new());
    let (_, reason, message) = servers.said(&Plane::Cell, &within("web"), "Available");
    assert_eq!(reason, "InstanceTypeNotFound");
    assert!(message.contains("acme/large"), "{message}");

    let enqueued = |name: &str| fixture.keys_for_event("deployment", &Plane::Discovery, INSTANCE_TYPE, &changed(name));
    assert_eq!(enqueued("acme/large"), std::slice::from_ref(&key));
    assert_eq!(enqueued("acme/other"), []);
    fixture.types.send_replace(Some(catalogue(&["acme/large"])));
    reconcile().await;
    let made = instances();
    assert_eq!(made.len(), 1);
    assert_eq!(
        made[0]["metadata"]["annotations"][INSTANCE_TYPE_SIZE],
        "acme/large cpu=4 memory=8Gi"
    );
    servers.writes();
    fixture.types.send_replace(Some(catalogue(&["acme/other"])));
    reconcile().await;
    assert_eq!(servers.writes(), Vec::<String>::new(), "what runs keeps its size");
}
