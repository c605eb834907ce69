//! A cell whose server refuses a part of what its networks ask for.

use popcell_api::finalizers::WORKLOAD_CONTROLLER;
use popcell_api::kind::{LOCATION, NETWORK_BINDING, NETWORK_CONTEXT, SUBNET, SUBNET_CLAIM};

use super::*;
use crate::reconcilers::deployment::Deployment;

#[tokio::test]
async fn a_refused_network_request_holds_up_no_instance_and_no_status() {
    let script = Arc::<Script>::default();
    script.say("cell POST /apis/networking.datumapis.com", 403, refusal(403));
    let reconciler = Arc::new(Deployment::new(true, false));
    let fixture = Fixture::in_networked_cell(vec![reconciler], &[], script.answer()).await;
    let mut one = deployment("ns-1", "web", "wd");
    one["metadata"]["finalizers"] = json!([WORKLOAD_CONTROLLER]);
    one["spec"]["template"]["spec"] = json!({ "networkInterfaces": [{ "network": { "name": "default" } }] });
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![one]);
    fixture.list(&Plane::Cell, INSTANCE, Vec::new());
    let dfw = json!({ "metadata": { "name": "dfw", "uid": "l", "resourceVersion": "1" },
        "spec": { "topology": { "topology.datum.net/city-code": "DFW" } } });
    fixture.list(&Plane::Cell, LOCATION, vec![dfw]);
    for kind in [NETWORK_BINDING, NETWORK_CONTEXT, SUBNET_CLAIM, SUBNET] {
        fixture.list(&Plane::Cell, kind, Vec::new());
    }
    let requeue = fixture
        .reconcile("deployment", &Key::new(&Plane::Cell, "ns-1", "web"))
        .await;
    assert!(matches!(requeue, Requeue::WithBackoff(_)), "{requeue:?}");
    let writes = script.writes();
    let in_order = [
        format!("cell POST {DEPLOYMENTS}/ns-1/instances"),
        "cell POST /apis/networking.datumapis.com/v1alpha/namespaces/ns-1/networkbindings".to_owned(),
        // What is refused is shown.
        format!("cell PATCH {DEPLOYMENTS}/ns-1/workloaddeployments/web/status"),
        "cell POST /apis/events.k8s.io/v1/namespaces/ns-1/events".to_owned(),
    ];
    assert_eq!(writes, in_order);
}
