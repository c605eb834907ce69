//! WorkloadDeployments that tenants make directly, in cities that their project may use and in others.

use super::*;

const NAMESPACES: &str = "/api/v1/namespaces";

fn binding(city: &str) -> Value {
    let mut binding = location_binding();
    binding["metadata"]["name"] = json!(city.to_lowercase());
    binding["spec"]["topology"]["topology.datum.net/city-code"] = json!(city);
    binding
}

/// One of a tenant's, that has its finalizer already.
fn direct(name: &str, city: &str) -> Value {
    let mut one = deployment("default", name, name);
    one["metadata"]["finalizers"] = json!(["compute.datumapis.com/federator"]);
    one["spec"]["cityCode"] = json!(city);
    one
}

async fn bench(script: &Arc<Script>) -> Fixture {
    script.say(
        &format!("project single GET {NAMESPACES}/default"),
        200,
        json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } }),
    );
    let fixture = fixture(script, &["single"]).await;
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "single"));
    fixture
}

fn of(kind: &str, name: &str) -> String {
    match kind {
        "policy" => format!("hub POST /apis/policy.karmada.io/v1alpha1/namespaces/{name}/propagationpolicies"),
        _ => format!("hub POST {DEPLOYMENTS}/{name}/workloaddeployments"),
    }
}

#[tokio::test]
async fn a_city_without_binding_gets_neither_object_nor_policy_until_it_has_one() {
    let script = Arc::<Script>::default();
    let fixture = bench(&script).await;
    for (name, city) in [("served", "DFW"), ("mine", "LHR")] {
        fixture.put(&project("single"), WORKLOAD_DEPLOYMENT, direct(name, city));
    }
    let federation = |name: &str| Key::new(&project("single"), "default", name);
    let policy = |name: &str| Key::new(&Plane::Hub, "ns-n1", name);
    let status = |name: &str| format!("project single PATCH {DEPLOYMENTS}/default/workloaddeployments/{name}/status");
    fixture.reconcile("federation", &federation("mine")).await;
    fixture.reconcile("policy", &policy("city-lhr")).await;
    assert_eq!(
        script.writes(),
        [
            status("mine"),
            "project single POST /apis/events.k8s.io/v1/namespaces/default/events".to_owned()
        ]
    );
    fixture.reconcile("federation", &federation("served")).await;
    fixture.reconcile("policy", &policy("city-dfw")).await;
    let writes = script.writes();
    assert!(
        writes.contains(&of("deployment", "ns-n1")) && writes.contains(&of("policy", "ns-n1")),
        "{writes:?}"
    );
    // The binding comes: the keys that it concerns are enqueued, and no others.
    fixture.event_router.lead();
    let enqueued = |change: &Change| {
        let queued_reconcilers = fixture.event_router.queued_reconcilers().iter();
        let mut all: Vec<String> = queued_reconcilers
            .filter(|queued| ["federation", "policy"].contains(&queued.reconciler.name()))
            .flat_map(|queued| {
                queued
                    .reconciler
                    .keys_for_event(&fixture.context, &project("single"), LOCATION_BINDING, change)
            })
            .map(|key| key.name)
            .collect();
        all.sort();
        all
    };
    let came = Change::Applied {
        before: None,
        now: Arc::new(serde_json::from_value(binding("LHR")).unwrap()),
    };
    assert_eq!(enqueued(&came), ["city-lhr", "mine"]);
    assert_eq!(enqueued(&Change::Listed), ["city-dfw", "city-lhr", "mine", "served"]);
    fixture.put(&project("single"), LOCATION_BINDING, binding("LHR"));
    fixture.reconcile("federation", &federation("mine")).await;
    fixture.reconcile("policy", &policy("city-lhr")).await;
    let writes = script.writes();
    assert!(
        writes.contains(&of("deployment", "ns-n1")) && writes.contains(&of("policy", "ns-n1")),
        "{writes:?}"
    );
}

#[tokio::test]
async fn before_the_bindings_are_listed_nothing_is_made_of_what_a_tenant_made() {
    let script = Arc::<Script>::default();
    script.say(
        &format!("project single GET {NAMESPACES}/default"),
        200,
        json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } }),
    );
    let fixture = Fixture::answering(management(true), &["single"], script.answer()).await;
    for kind in [
        NAMESPACE,
        WORKLOAD_DEPLOYMENT,
        PROPAGATION_POLICY,
        RESOURCE_BINDING,
        CLUSTER,
        INSTANCE,
    ] {
        fixture.list(&Plane::Hub, kind, Vec::new());
    }
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-n1", "single"));
    for kind in [WORKLOAD, INSTANCE] {
        fixture.list(&project("single"), kind, Vec::new());
    }
    fixture.list(&project("single"), WORKLOAD_DEPLOYMENT, vec![direct("mine", "DFW")]);
    fixture
        .reconcile("federation", &Key::new(&project("single"), "default", "mine"))
        .await;
    fixture
        .reconcile("policy", &Key::new(&Plane::Hub, "ns-n1", "city-dfw"))
        .await;
    let writes = script.writes();
    assert!(writes.iter().all(|line| !line.starts_with("hub ")), "{writes:?}");
    fixture.list(&project("single"), LOCATION_BINDING, vec![binding("DFW")]);
    fixture
        .reconcile("federation", &Key::new(&project("single"), "default", "mine"))
        .await;
    fixture
        .reconcile("policy", &Key::new(&Plane::Hub, "ns-n1", "city-dfw"))
        .await;
    let writes = script.writes();
    assert!(
        writes.contains(&of("deployment", "ns-n1")) && writes.contains(&of("policy", "ns-n1")),
        "{writes:?}"
    );
}

#[tokio::test]
async fn one_that_goes_enqueues_those_that_spell_its_city_otherwise_and_no_other() {
    let fixture = Fixture::answering(management(true), &["single"], Arc::<Script>::default().answer()).await;
    let all = [("a", "DFW"), ("b", "DFW"), ("c", "dfw"), ("d", "LHR")];
    let deployments = all.map(|(name, city)| direct(name, city));
    fixture.list(&project("single"), WORKLOAD_DEPLOYMENT, deployments.into());
    let gone = Change::Gone {
        namespace: "default".to_owned(),
        name: "a".to_owned(),
        last: Some(Arc::new(serde_json::from_value(direct("a", "DFW")).unwrap())),
    };
    let enqueued = fixture.keys_for_event("federation", &project("single"), WORKLOAD_DEPLOYMENT, &gone);
    let names: Vec<&str> = enqueued.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
}
