//! A hub that was set back to a backup, and what Karmada carries of it before it is corrected.

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_core::rewind::SET_BACK;
use tokio::time::advance;

use super::*;
use crate::reconcilers::deployment::Deployment;

/// The WorkloadDeployment that the cell gets: its replicas, and the generations of the objects on the hub and in the project.
fn told_of(replicas: u32, version: u32, hub: u32, project: u32) -> Value {
    let mut one = deployment("ns-1", "web", "wd");
    one["metadata"]["resourceVersion"] = json!(version.to_string());
    one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
    one["metadata"]["annotations"] = json!({ "resourcetemplate.karmada.io/uid": "t",
        "resourcetemplate.karmada.io/generation": hub.to_string(), "compute.datumapis.com/upstream-uid": "u",
        "compute.datumapis.com/upstream-generation": project.to_string() });
    one["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
    one
}

fn instance(name: &str) -> Value {
    json!({ "metadata": { "namespace": "ns-1", "name": name, "uid": name, "resourceVersion": "1",
        "labels": { "compute.datumapis.com/workload-deployment-uid": "wd" } }, "spec": {} })
}

#[tokio::test(start_paused = true)]
async fn nothing_is_replaced_or_deleted_at_the_word_of_a_hub_that_repeats_itself() {
    let deletes = async |fixture: &Fixture, script: &Script| -> Vec<String> {
        fixture
            .reconcile("deployment", &Key::new(&Plane::Cell, "ns-1", "web"))
            .await;
        let writes = script.writes().into_iter();
        writes.filter(|line| line.contains(" DELETE ")).collect()
    };
    let surplus = [format!("cell DELETE {DEPLOYMENTS}/ns-1/instances/web-1")];
    let begin = async || {
        let script = Arc::<Script>::default();
        let fixture = Fixture::in_cell(vec![Arc::new(Deployment::new(false, false))], &[], script.answer()).await;
        fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![told_of(2, 1, 7, 3)]);
        fixture.list(&Plane::Cell, INSTANCE, vec![instance("web-0"), instance("web-1")]);
        (fixture, script)
    };
    // A user, and a project that was set back: the hub's object goes on.
    for (hub, project) in [(8, 4), (8, 2)] {
        let (fixture, script) = begin().await;
        fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, told_of(1, 2, hub, project));
        assert_eq!(deletes(&fixture, &script).await, surplus, "{hub} {project}");
    }
    let (fixture, script) = begin().await;
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, told_of(1, 2, 5, 2));
    assert!(deletes(&fixture, &script).await.is_empty());
    // It is another word of the same hub, and no newer one.
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, told_of(1, 3, 6, 2));
    assert!(deletes(&fixture, &script).await.is_empty());
    // Corrected, and scaled down since.
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, told_of(1, 4, 7, 4));
    assert_eq!(deletes(&fixture, &script).await, surplus);
    // What nobody corrects is meant.
    let (fixture, script) = begin().await;
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, told_of(1, 2, 5, 2));
    assert!(deletes(&fixture, &script).await.is_empty());
    advance(SET_BACK).await;
    assert_eq!(deletes(&fixture, &script).await, surplus);
    // A user who deletes it is obeyed.
    let (fixture, script) = begin().await;
    let mut going = told_of(1, 2, 5, 2);
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    fixture.put(&Plane::Cell, WORKLOAD_DEPLOYMENT, going);
    assert_eq!(deletes(&fixture, &script).await.len(), 2);
}
