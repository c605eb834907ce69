//! Projects that are gone, or another installation's.

use super::*;

const GONE_SINCE: &str = "compute.datumapis.com/project-gone-since";

fn namespace(version: &str, gone_since: Option<&str>) -> Value {
    let mut one = hub_namespace("ns-n1", "p");
    one["metadata"]["resourceVersion"] = json!(version);
    one["metadata"]["annotations"] = json!({ "compute.datumapis.com/upstream-project-uid": "u1" });
    if let Some(since) = gone_since {
        one["metadata"]["annotations"][GONE_SINCE] = json!(since);
    }
    one
}

async fn looked(script: &Arc<Script>, told: &Told) -> Vec<String> {
    told.pass("orphans", &Key::new(&Plane::Hub, "ns-n1", "ns-n1")).await;
    script.writes()
}

#[tokio::test]
async fn c22_d14_a_note_that_somebody_takes_away_is_not_made_again() {
    let script = Arc::<Script>::default();
    let noting = "hub PATCH /api/v1/namespaces/ns-n1";
    let noted = namespace("2", Some("2026-01-01T00:00:00Z"));
    script.say(noting, 200, noted.clone());
    let told = Told::milo(management(true), script.answer()).await;
    list_all(&told, &[]);
    told.put(&Plane::Hub, NAMESPACE, namespace("1", None));
    told.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
    assert_eq!(looked(&script, &told).await, [noting]);
    // Another installation has the project engaged: it says so at once.
    told.put(&Plane::Hub, NAMESPACE, noted);
    told.put(&Plane::Hub, NAMESPACE, namespace("3", None));
    for _ in 0..2 {
        assert!(looked(&script, &told).await.is_empty());
    }
    let orphans = told.world.tally.orphans();
    assert_eq!(orphans.iter().map(|one| one.kind).collect::<Vec<_>>(), [NAMESPACE]);
    // A note that stands is the time of the grace, whoever made it.
    told.put(&Plane::Hub, NAMESPACE, namespace("4", Some("2026-01-01T00:00:00Z")));
    let deleted = format!("hub DELETE {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    assert_eq!(looked(&script, &told).await, [deleted]);
}
