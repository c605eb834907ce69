//! What a user deletes of what is shown in a project.

use super::*;

fn instance(namespace: &str, uid: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "metadata": {
        "namespace": namespace, "name": "web-0", "uid": uid, "resourceVersion": "1", "generation": 1, "labels": {
            "compute.datumapis.com/managed-by": "popcell", "compute.datumapis.com/workload-deployment-name": "web",
            "compute.datumapis.com/workload-deployment-uid": "hub-web" } },
        "spec": { "runtime": {} } })
}

#[tokio::test]
async fn a_user_is_told_how_to_restart_also_where_a_read_knows_of_the_deletion_before_the_watch_does() {
    let script = Arc::<Script>::default();
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project p GET /api/v1/namespaces/default", 200, namespace);
    let created = instance("default", "second");
    script.say(&format!("project p POST {DEPLOYMENTS}/default/instances"), 201, created);
    let told = told(&script, &["p"]).await;
    told.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    told.put(&project("p"), WORKLOAD_DEPLOYMENT, deployment("default", "web", "wd"));
    told.put(&Plane::Hub, INSTANCE, instance("ns-n1", "copy"));
    // Only metadata is watched of these.
    let mut shown = instance("default", "first");
    shown.as_object_mut().unwrap().remove("spec");
    told.put(&project("p"), INSTANCE, shown);
    script.asked();

    let key = Key::new(&Plane::Hub, "ns-n1", "web-0");
    told.pass("projection", &key).await;
    let writes = script.writes();
    let events = writes.iter().filter(|line| line.ends_with("/events")).count();
    let made = writes.iter().filter(|line| line.ends_with("/instances")).count();
    assert_eq!((made, events), (1, 1), "{writes:?}");
}
