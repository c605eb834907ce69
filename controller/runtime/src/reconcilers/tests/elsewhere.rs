//! A copy, claim, gate, policy or projection that a server rejects is reported on the WorkloadDeployment.

use popcell_api::finalizers::{FEDERATOR, WORKLOAD_CONTROLLER};

use super::rejected::{Servers, WORDS, taken_in, within};
use super::*;
use crate::cell::testing::cell;
use crate::planes::SINGLE;
use crate::reconcilers::cell as of_cell;

const COPIES: &str = "hub POST /apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances";
const COPY_STATUSES: &str = "hub PATCH /apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances/web-0/status";
const CLAIMS: &str = "project p POST /apis/quota.miloapis.com";
const GATES: &str = "cell PATCH /apis/compute.datumapis.com/v1alpha/namespaces/ns-1/instances/web-0";

/// A cell with one WorkloadDeployment of a project, whose Instance was made.
async fn running(servers: &Arc<Servers>) -> Fixture {
    let fixture = Fixture::in_cell(of_cell(&Arc::new(cell(None))), &["p"], servers.answer()).await;
    let mut one = taken_in("web", WORKLOAD_CONTROLLER);
    one["metadata"]["annotations"] = json!({ "resourcetemplate.karmada.io/uid": "hub-web" });
    servers.keep(&Plane::Cell, &within("web"), &one);
    servers.keep(&Plane::Hub, &within("web"), &deployment("ns-1", "web", "hub-web"));
    servers.keep(&Plane::Hub, "/api/v1/namespaces/ns-1", &hub_namespace("ns-1", "p"));
    let known = json!({ "metadata": { "name": "dfw-01", "labels": { "topology.datum.net/city-code": "DFW" } }, "spec": { "id": "cell-uid" } });
    servers.keep(&Plane::Hub, "/apis/cluster.karmada.io/v1alpha1/clusters/dfw-01", &known);
    fixture.list(&Plane::Cell, NAMESPACE, vec![hub_namespace("ns-1", "p")]);
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![one]);
    for (plane, kind) in [
        (Plane::Cell, INSTANCE),
        (Plane::Hub, INSTANCE),
        (project("p"), RESOURCE_CLAIM),
    ] {
        fixture.list(&plane, kind, Vec::new());
    }
    fixture
        .reconcile("deployment", &Key::new(&Plane::Cell, "ns-1", "web"))
        .await;
    fixture
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_of_copies_claims_and_gates_is_reported_once_and_taken_back() {
    let of = |plane: &Plane| Key::new(plane, "ns-1", "web-0");
    for (denied, reconciler, key, start) in [
        (
            COPIES,
            "instance-copy",
            of(&Plane::Hub),
            "The platform rejects the creation of Instance web-0",
        ),
        (
            COPY_STATUSES,
            "instance-copy",
            of(&Plane::Hub),
            "The platform rejects the change of the status of Instance web-0",
        ),
        (
            CLAIMS,
            "instance-claim",
            of(&project("p")),
            "The project p rejects the creation of ResourceClaim instance-web-0",
        ),
        (
            GATES,
            "instance",
            of(&Plane::Cell),
            "The cell rejects the change of Instance web-0",
        ),
    ] {
        let servers = Arc::<Servers>::default();
        let fixture = running(&servers).await;
        let above = Key::new(&Plane::Cell, "ns-1", "web");
        if denied == GATES {
            fixture.reconcile("instance-claim", &of(&project("p"))).await;
            let mut claim = servers.all(&project("p"), "resourceclaims").remove(0);
            claim["metadata"]["resourceVersion"] = json!("200");
            claim["status"] = json!({ "conditions": [{ "type": "Granted", "status": "True", "reason": "QuotaAvailable",
                "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
            fixture.put(&project("p"), RESOURCE_CLAIM, claim);
        }
        if denied == COPY_STATUSES {
            fixture.reconcile("instance-copy", &of(&Plane::Hub)).await;
            let [copy, mut one] = [Plane::Hub, Plane::Cell].map(|plane| servers.all(&plane, "instances").remove(0));
            one["status"] = json!({ "conditions": [{ "type": "Ready", "status": "False", "reason": "Pending", "message": "m",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
            fixture.put(&Plane::Hub, INSTANCE, copy);
            servers.keep(
                &Plane::Cell,
                &within("web").replace("workloaddeployments/web", "instances/web-0"),
                &one,
            );
            fixture.put(&Plane::Cell, INSTANCE, one);
        }
        servers.deny(&[denied]);
        let requeue = fixture.reconcile(reconciler, &key).await;
        assert_eq!(requeue, Requeue::WithBackoff(Backoff::ADMISSION), "{denied}");
        assert!(fixture.depth("deployment") > 0, "{denied}");
        let said = |type_| servers.said(&Plane::Cell, &within("web"), type_);
        fixture.reconcile("deployment", &above).await;
        let message = format!("{start}: {WORDS}");
        for type_ in ["Available", "ReplicasReady"] {
            let (status, reason, words) = said(type_);
            assert_eq!(
                (status.as_str(), reason.as_str()),
                ("False", "Rejected"),
                "{denied} {type_}"
            );
            assert!(words.ends_with(&message), "{words}");
        }
        let events = servers.reported();
        assert_eq!(
            events.iter().filter(|(reason, _)| reason == "Rejected").count(),
            1,
            "{denied}: {events:?}"
        );
        // The same rejection again causes neither a status write nor an Event.
        servers.writes();
        fixture.reconcile(reconciler, &key).await;
        fixture.reconcile("deployment", &above).await;
        let statuses = servers.writes();
        assert!(
            !statuses.iter().any(|line| line.contains("workloaddeployments")),
            "{denied}: {statuses:?}"
        );
        assert_eq!(servers.reported(), [], "{denied}");

        servers.deny(&[]);
        fixture.reconcile(reconciler, &key).await;
        // What was granted is remembered before.
        for _ in 0..2 {
            fixture.reconcile("deployment", &above).await;
        }
        assert_ne!(said("ReplicasReady").1, "Rejected", "{denied}");
        assert_ne!(said("Available").1, "Rejected", "{denied}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_of_policies_and_projections_is_reported_in_the_project() {
    let p = project(SINGLE);
    let policies = "hub POST /apis/policy.karmada.io/v1alpha1/namespaces/ns-n1/propagationpolicies";
    let shown = "project single POST /apis/compute.datumapis.com/v1alpha/namespaces/default/instances";
    for (denied, reconciler, name, what) in [
        (
            policies,
            "policy",
            "city-dfw",
            "The platform rejects the creation of PropagationPolicy city-dfw",
        ),
        (
            shown,
            "projection",
            "web-0",
            "The project single rejects the creation of Instance web-0",
        ),
    ] {
        let servers = Arc::<Servers>::default();
        let fixture = Fixture::answering(management(true), &[SINGLE], servers.answer()).await;
        list_all(&fixture, &[SINGLE]);
        let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
        servers.keep(&p, "/api/v1/namespaces/default", &namespace);
        let system = json!({ "metadata": { "name": "kube-system", "uid": "s1", "resourceVersion": "1" } });
        servers.keep(&p, "/api/v1/namespaces/kube-system", &system);
        let mut one = deployment("default", "web", "uid-web");
        one["metadata"]["finalizers"] = json!([FEDERATOR]);
        let at = format!("{DEPLOYMENTS}/default/workloaddeployments/web");
        servers.keep(&p, &at, &one);
        fixture.put(&p, WORKLOAD_DEPLOYMENT, one);
        let in_hub = hub_deployment("ns-n1", "web", "uid-web");
        servers.keep(
            &Plane::Hub,
            &format!("{DEPLOYMENTS}/ns-n1/workloaddeployments/web"),
            &in_hub,
        );
        servers.keep(&Plane::Hub, "/api/v1/namespaces/ns-n1", &hub_namespace("ns-n1", SINGLE));
        fixture.list(&Plane::Hub, NAMESPACE, vec![hub_namespace("ns-n1", SINGLE)]);
        fixture.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, vec![in_hub]);
        let copy = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "metadata": {
            "name": "web-0", "namespace": "ns-n1", "uid": "copy", "resourceVersion": "1", "labels": {
            "compute.datumapis.com/managed-by": "popcell",
            "meta.datumapis.com/upstream-cluster-name": "cluster-single", "meta.datumapis.com/upstream-namespace": "default",
            "compute.datumapis.com/workload-deployment-name": "web" } }, "spec": {} });
        fixture.list(&Plane::Hub, INSTANCE, vec![copy]);
        let above = Key::new(&p, "default", "web");
        for _ in 0..3 {
            fixture.reconcile("federation", &above).await;
        }
        let said = |type_| servers.said(&p, &at, type_);
        assert_eq!(said("Available").2, "Waiting for city DFW");
        servers.reported();
        servers.deny(&[denied]);
        let key = Key::new(&Plane::Hub, "ns-n1", name);
        let requeue = fixture.reconcile(reconciler, &key).await;
        assert_eq!(requeue, Requeue::WithBackoff(Backoff::ADMISSION), "{denied}");
        assert!(fixture.depth("federation") > 0, "{denied}");
        for _ in 0..2 {
            fixture.reconcile("federation", &above).await;
        }
        for type_ in ["Available", "ReplicasReady"] {
            let expected = ("False".to_owned(), "Rejected".to_owned(), format!("{what}: {WORDS}"));
            assert_eq!(said(type_), expected, "{type_}");
        }
        assert_eq!(
            servers.reported(),
            [("Rejected".to_owned(), format!("{what}: {WORDS}"))]
        );
        servers.deny(&[]);
        fixture.reconcile(reconciler, &key).await;
        fixture.reconcile("federation", &above).await;
        assert_eq!(said("Available").2, "Waiting for city DFW");
        assert_eq!(said("ReplicasReady").1, "");
    }
}
