//! The HorizontalPodAutoscaler of a WorkloadDeployment in its cell.

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_api::kind::HORIZONTAL_POD_AUTOSCALER;

use super::*;
use crate::reconcilers::deployment::Deployment;

const AUTOSCALERS: &str = "cell POST /apis/autoscaling/v2/namespaces/ns-1/horizontalpodautoscalers";

/// One that may run up to 3 Instances, and asks for one.
fn web() -> Value {
    let mut one = deployment("ns-1", "web", "wd");
    one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
    one["spec"]["replicas"] = json!(1);
    one["spec"]["scaleSettings"] = json!({ "minReplicas": 1, "maxReplicas": 3,
        "metrics": [{ "resource": { "name": "cpu", "target": { "averageValue": "500m" } } }] });
    one
}

/// An Instance that runs the template.
fn instance() -> Value {
    let hash = popcell_core::deployment::hash(&web()["spec"]["template"]);
    let of = |key: &str, value: &str| (format!("compute.datumapis.com/{key}"), value.to_owned());
    let labels = [
        of("workload-uid", "w"),
        of("workload-name", "web"),
        of("placement-name", "us"),
        of("city-code", "DFW"),
        of("workload-deployment-uid", "wd"),
        of("workload-deployment-name", "web"),
        of("instance-index", "0"),
    ];
    let labels: std::collections::BTreeMap<_, _> = labels.into();
    json!({ "metadata": { "namespace": "ns-1", "name": "web-0", "uid": "i", "resourceVersion": "1", "labels": labels },
        "spec": { "controller": { "templateHash": hash } },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "Available", "message": "" }] } })
}

async fn fixture(script: &Arc<Script>) -> Fixture {
    let fixture = Fixture::in_cell(vec![Arc::new(Deployment::new(false, false))], &[], script.answer()).await;
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![web()]);
    fixture.list(&Plane::Cell, INSTANCE, vec![instance()]);
    fixture
}

fn key() -> Key {
    Key::new(&Plane::Cell, "ns-1", "web")
}

/// One reconcile; what it makes, and the status that it writes, which comes back.
async fn reconcile(fixture: &Fixture, script: &Script, version: u32) -> (Vec<(String, Value)>, Option<Value>) {
    fixture.reconcile("deployment", &key()).await;
    let mut made = Vec::new();
    let mut status = None;
    for (line, body) in script.sent() {
        if line.contains(" POST ") {
            made.push((line, body));
            continue;
        }
        let operations = body.as_array().unwrap().iter();
        status = operations
            .filter(|one| one["path"] == "/status")
            .find_map(|one| Some(one.get("value")?.clone()));
    }
    if let Some(status) = &status {
        let mut one = web();
        one["metadata"]["resourceVersion"] = json!(version.to_string());
        one["status"] = status.clone();
        fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, one);
    }
    (made, status)
}

fn reason(status: &Value) -> Option<&str> {
    let conditions = status["conditions"].as_array()?.iter();
    let mut autoscaling = conditions.filter(|one| one["type"] == "Autoscaling");
    autoscaling.next()?["reason"].as_str()
}

#[tokio::test]
async fn an_autoscaler_costs_one_request_and_none_at_rest() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script).await;
    // A cell that does not serve the kind, or whose list is not there yet: all else goes on.
    let (made, status) = reconcile(&fixture, &script, 2).await;
    assert_eq!(made, []);
    assert_eq!(reason(&status.unwrap()), Some("AutoscalersUnknown"));
    assert_eq!(reconcile(&fixture, &script, 3).await, (Vec::new(), None));

    fixture.list(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, Vec::new());
    let (made, status) = reconcile(&fixture, &script, 4).await;
    let [(line, body)] = made.as_slice() else {
        panic!("{made:?}");
    };
    assert!(line.starts_with(AUTOSCALERS), "{line}");
    assert_eq!(status, None, "nothing is said before it is there");
    let mut stored = body.clone();
    stored["metadata"]["uid"] = json!("a");
    stored["metadata"]["resourceVersion"] = json!("5");
    fixture.put(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, stored);
    let (made, status) = reconcile(&fixture, &script, 6).await;
    assert_eq!(
        (made, reason(&status.unwrap())),
        (Vec::new(), Some("AutoscalerCreated"))
    );
    assert_eq!(reconcile(&fixture, &script, 7).await, (Vec::new(), None));
}

#[tokio::test]
async fn what_an_autoscaler_reports_enqueues_nothing() {
    let script = Arc::<Script>::default();
    let fixture = fixture(&script).await;
    let one = |version: u32, most: u32| {
        json!({ "metadata": { "namespace": "ns-1", "name": "web", "uid": "a", "resourceVersion": version.to_string() },
            "spec": { "maxReplicas": most }, "status": { "currentReplicas": version } })
    };
    let became = |now: Value| Change::Applied {
        before: Some(read(one(1, 3))),
        now: read(now),
    };
    let mut stripped = one(2, 3);
    stripped["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b" }]);
    for (change, is_enqueued) in [
        (became(one(2, 3)), false),
        (became(one(2, 4)), true),
        (became(stripped), true),
        (came(one(1, 3)), true),
        (gone(one(1, 3)), true),
        (Change::Listed, true),
    ] {
        let enqueued = fixture.keys_for_event("deployment", &Plane::Cell, HORIZONTAL_POD_AUTOSCALER, &change);
        assert_eq!(enqueued == [key()], is_enqueued, "{change:?}");
    }
}
