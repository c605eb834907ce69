//! A WorkloadDeployment that goes, and a hub that does not let it.

use popcell_api::finalizers::FEDERATOR;

use super::*;

async fn going(script: &Arc<Script>) -> (Fixture, Key) {
    let fixture = fixture(script, &["p"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "p"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
    let mut going = deployment("default", "web", "wd");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    going["metadata"]["finalizers"] = json!([FEDERATOR]);
    fixture.put(&project("p"), WORKLOAD_DEPLOYMENT, going.clone());
    let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
    script.say("project p GET /api/v1/namespaces/default", 200, namespace);
    script.say(
        &format!("project p GET {DEPLOYMENTS}/default/workloaddeployments/web"),
        200,
        going,
    );
    let hub = format!("hub GET {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    script.say(&hub, 200, hub_deployment("ns-n1", "web", "wd"));
    (fixture, Key::new(&project("p"), "default", "web"))
}

#[tokio::test]
async fn a_deletion_that_the_hub_refuses_waits_and_shows_it_in_the_status() {
    let (project, hub) = (
        format!("project p PATCH {DEPLOYMENTS}/default/workloaddeployments/web"),
        format!("{DEPLOYMENTS}/ns-n1/workloaddeployments/web"),
    );
    for (refused, code, sent) in [
        ("GET", 403, vec![format!("{project}/status")]),
        ("GET", 500, vec![format!("{project}/status")]),
        (
            "DELETE",
            403,
            vec![format!("hub DELETE {hub}"), format!("{project}/status")],
        ),
    ] {
        let script = Arc::<Script>::default();
        let (fixture, key) = going(&script).await;
        script.say(&format!("hub {refused} {hub}"), code, refusal(code));
        let requeue = fixture.reconcile("federation", &key).await;
        let backoff = match (refused, code) {
            (_, 500) => Backoff::TRANSIENT,
            _ => Backoff::ADMISSION,
        };
        assert_eq!(requeue, Requeue::WithBackoff(backoff), "{refused} {code}");
        assert_eq!(script.writes(), sent, "{refused} {code}");
    }
    // A hub that takes it: nothing is said, and the finalizer goes.
    let script = Arc::<Script>::default();
    let (fixture, key) = going(&script).await;
    fixture.reconcile("federation", &key).await;
    assert_eq!(script.writes(), [format!("hub DELETE {hub}"), project]);
}
