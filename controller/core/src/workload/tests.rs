mod conflicts;
mod gates;
mod rejections;

use super::*;
use crate::spec_echoes::SpecEchoes;
use crate::testing::{self, FakeServers, object};
use popcell_api::conditions as types;
use serde_json::{Value, json};

fn workload(placements: Value) -> Object {
    object(json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "uid": "w1", "resourceVersion": "1", "generation": 3,
            "finalizers": ["compute.datumapis.com/workload-controller"] },
        "spec": {
            "template": { "spec": { "networkInterfaces": [{ "network": { "name": "default" } }] } },
            "placements": placements,
        },
    }))
}

fn placement(name: &str, cities: &[&str]) -> Value {
    json!({ "name": name, "cityCodes": cities, "scaleSettings": { "minReplicas": 2 } })
}

fn binding(city: &str) -> Object {
    object(json!({ "metadata": { "name": format!("b-{city}") },
        "spec": { "topology": { "topology.datum.net/city-code": city } } }))
}

fn network(namespace: &str, name: &str) -> Object {
    object(json!({ "metadata": { "name": name, "namespace": namespace } }))
}

/// Planes with one Workload, bindings for these cities, and the network `default`.
fn servers(placements: Value, cities: &[&str]) -> FakeServers {
    let mut servers = FakeServers::default();
    let plane = Plane::Project("p".to_owned());
    servers.put(&plane, kind::WORKLOAD, workload(placements));
    for city in cities {
        servers.put(&plane, kind::LOCATION_BINDING, binding(city));
    }
    servers.put(&plane, kind::NETWORK, network("default", "default"));
    servers
}

fn decide_in(servers: &FakeServers) -> Plan {
    let plane = Plane::Project("p".to_owned());
    let Some(workload) = servers.get(&plane, kind::WORKLOAD, "default", "web") else {
        return Plan::default();
    };
    decide(&Observation {
        project: "p",
        workload,
        deployments: &servers.list(&plane, kind::WORKLOAD_DEPLOYMENT),
        bindings: Observed::Known(&servers.list(&plane, kind::LOCATION_BINDING)),
        networks: Observed::Known(&servers.list(&plane, kind::NETWORK)),
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        now: testing::now(),
    })
}

fn names(servers: &FakeServers) -> Vec<&str> {
    let plane = Plane::Project("p".to_owned());
    servers
        .list(&plane, kind::WORKLOAD_DEPLOYMENT)
        .iter()
        .map(|one| one.name())
        .collect()
}

fn edit(servers: &mut FakeServers, change: impl FnOnce(&mut Object)) {
    servers.change(
        &Plane::Project("p".to_owned()),
        kind::WORKLOAD,
        "default",
        "web",
        change,
    );
}

fn edit_deployment(servers: &mut FakeServers, name: &str, change: impl FnOnce(&mut Object)) {
    let plane = Plane::Project("p".to_owned());
    servers.change(&plane, kind::WORKLOAD_DEPLOYMENT, "default", name, change);
}

fn status(servers: &FakeServers) -> Value {
    let plane = Plane::Project("p".to_owned());
    let workload = servers.get(&plane, kind::WORKLOAD, "default", "web").unwrap();
    workload.at("/status").cloned().unwrap_or_default()
}

fn available(status: &Value) -> (String, String, String) {
    let condition = conditions::find(status, types::AVAILABLE).cloned().unwrap_or_default();
    let text = |field| conditions::text(&condition, field).to_owned();
    (text("status"), text("reason"), text("message"))
}

#[test]
fn without_a_project_id_nothing_is_planned() {
    let workload = workload(json!([]));
    let plan = decide(&Observation {
        project: "",
        workload: &workload,
        deployments: &[],
        bindings: Observed::Unknown,
        networks: Observed::Unknown,
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        now: testing::now(),
    });
    assert!(plan.is_unchanged() && plan.requeue.is_none());
}

#[test]
fn the_finalizer_comes_first_and_alone() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    edit(&mut servers, |workload| workload.metadata.finalizers = None);
    let plan = decide_in(&servers);
    assert_eq!(plan.actions.len(), 1);
    assert!(plan.status.is_none());
    servers.apply(&plan);
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
}

#[test]
fn the_number_of_an_autoscaler_is_kept_where_the_project_is_its_own_cell() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.data["spec"]["replicas"] = json!(5)
    });
    servers.settle(decide_in);
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(3);
    });
    servers.settle(decide_in);
    let plane = Plane::Project("p".to_owned());
    let made = servers
        .get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw")
        .unwrap();
    let numbers = ["/spec/replicas", "/spec/scaleSettings/minReplicas"].map(|pointer| made.int(pointer));
    assert_eq!(numbers, [Some(5), Some(3)]);
}

#[test]
fn two_placements_in_three_cities_become_three_deployments() {
    let mut servers = servers(
        json!([placement("us", &["DFW", "ORD"]), placement("eu", &["LHR"])]),
        &["DFW", "ORD", "LHR"],
    );
    let plan = decide_in(&servers);
    servers.apply(&plan);
    assert_eq!(names(&servers), ["web-eu-lhr", "web-us-dfw", "web-us-ord"]);
    let plane = Plane::Project("p".to_owned());
    let made = servers
        .get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw")
        .unwrap();
    assert_eq!(made.label(labels::WORKLOAD_UID), Some("w1"));
    let owner = &made.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.uid.as_str(), owner.controller), ("w1", Some(true)));
    assert_eq!(
        made.at("/spec"),
        Some(&json!({
            "workloadRef": { "name": "web", "uid": "w1" },
            "placementName": "us",
            "cityCode": "DFW",
            "template": { "spec": { "networkInterfaces": [{ "network": { "name": "default" } }] } },
            "scaleSettings": { "minReplicas": 2 },
        }))
    );
    // The second reconcile writes nothing.
    assert_eq!(decide_in(&servers), Plan::independent());
    assert_eq!(status(&servers)["observedGeneration"], 3);
    assert_eq!(status(&servers)["deployments"], 3);
}

#[test]
fn a_city_without_binding_is_skipped_until_it_has_one() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW"]);
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
    let placement = conditions::find(&status(&servers)["placements"][0], types::AVAILABLE)
        .cloned()
        .unwrap();
    assert_eq!(placement["reason"], reasons::NO_MATCHING_LOCATION);
    assert_eq!(placement["message"], r#"No Location matches city code "ORD""#);
    let plane = Plane::Project("p".to_owned());
    servers.put(&plane, kind::LOCATION_BINDING, binding("ORD"));
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw", "web-us-ord"]);
    assert!(cities(&workload(json!([{ "cityCodes": ["ORD"] }]))).contains("ORD"));

    let mut none = self::servers(json!([self::placement("us", &["DFW"])]), &[]);
    none.settle(decide_in);
    assert!(names(&none).is_empty());
    assert_eq!(available(&status(&none)).1, reasons::NO_AVAILABLE_PLACEMENTS);
    assert!(available(&status(&none)).2.contains("DFW"));
}

#[test]
fn missing_networks_stop_all_deployments_with_a_stable_message() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let interface =
        |name: &str, namespace: Option<&str>| json!({ "network": { "name": name, "namespace": namespace } });
    edit(&mut servers, |workload| {
        workload.data["spec"]["template"]["spec"]["networkInterfaces"] = json!([
            interface("zz", None),
            interface("default", None),
            interface("aa", None),
            interface("bb", Some("net"))
        ]);
    });
    servers.settle(decide_in);
    assert!(names(&servers).is_empty());
    assert_eq!(
        available(&status(&servers)),
        (
            "False".to_owned(),
            reasons::NETWORK_NOT_FOUND.to_owned(),
            "Unable to find networks: aa, zz, net/bb".to_owned()
        )
    );
    // The namespace of the interface counts.
    let plane = Plane::Project("p".to_owned());
    for (namespace, name) in [("default", "aa"), ("default", "zz"), ("default", "bb")] {
        servers.put(&plane, kind::NETWORK, network(namespace, name));
    }
    servers.settle(decide_in);
    assert_eq!(available(&status(&servers)).2, "Unable to find networks: net/bb");
    servers.put(&plane, kind::NETWORK, network("net", "bb"));
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
}

#[test]
fn a_city_that_the_user_removes_is_deleted_and_counted_until_it_is_gone() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW", "ORD"]);
    servers.settle(decide_in);
    edit_deployment(&mut servers, "web-us-ord", |one| {
        one.metadata.finalizers = Some(vec!["compute.datumapis.com/federator".to_owned()]);
        one.data["status"] = json!({ "replicas": 2 });
    });
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"] = json!([placement("us", &["DFW"])])
    });
    servers.settle(decide_in);
    assert_eq!(status(&servers)["deployments"], 2);
    assert_eq!(status(&servers)["replicas"], 2);
    edit_deployment(&mut servers, "web-us-ord", |one| one.metadata.finalizers = None);
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
    assert_eq!(status(&servers)["deployments"], 1);
}

#[test]
fn deletion_waits_for_the_deployments_and_creates_no_new_ones() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW", "ORD"]);
    servers.settle(decide_in);
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.metadata.finalizers = Some(vec!["federator".to_owned()])
    });
    let plane = Plane::Project("p".to_owned());
    servers.delete(&plane, kind::WORKLOAD, "default", "web");
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"] = json!([placement("us", &["ORD"])]);
    });
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw"]);
    assert!(servers.get(&plane, kind::WORKLOAD, "default", "web").is_some());
    edit_deployment(&mut servers, "web-us-dfw", |one| one.metadata.finalizers = None);
    servers.settle(decide_in);
    assert!(servers.get(&plane, kind::WORKLOAD, "default", "web").is_none());
}

#[test]
fn counts_are_sums_by_placement_and_in_all() {
    let mut servers = servers(
        json!([placement("us", &["DFW", "ORD"]), placement("eu", &["LHR"])]),
        &["DFW", "ORD", "LHR"],
    );
    servers.settle(decide_in);
    for (name, updated) in [("web-us-dfw", 1), ("web-us-ord", 2), ("web-eu-lhr", 4)] {
        edit_deployment(&mut servers, name, |one| {
            one.data["status"] = json!({ "replicas": 10, "currentReplicas": 1, "updatedReplicas": updated,
                "desiredReplicas": 3, "readyReplicas": i32::MAX });
        });
    }
    servers.settle(decide_in);
    let status = status(&servers);
    assert_eq!(status["updatedReplicas"], 7);
    assert_eq!(
        (&status["replicas"], &status["desiredReplicas"]),
        (&json!(30), &json!(9))
    );
    assert_eq!(status["readyReplicas"], i32::MAX);
    assert_eq!(status["placements"][0]["name"], "eu");
    assert_eq!(status["placements"][1]["updatedReplicas"], 3);
}

#[test]
fn the_worst_city_is_named_until_one_is_available() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW", "ORD"]);
    servers.settle(decide_in);
    let say = |reason: &str, message: &str| json!({ "conditions": [{ "type": "Available", "status": "False", "reason": reason, "message": message }] });
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.data["status"] = say("ProvisioningInstances", "soon")
    });
    edit_deployment(&mut servers, "web-us-ord", |one| {
        one.data["status"] = say("ImageUnavailable", "no such image")
    });
    servers.settle(decide_in);
    assert_eq!(
        available(&status(&servers)).2,
        "No available placements were found for the workload: city ORD: no such image"
    );
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.data["status"] = json!({ "conditions": [{ "type": "Available", "status": "True" }] });
    });
    servers.settle(decide_in);
    assert_eq!(available(&status(&servers)).0, "True");
    assert_eq!(available(&status(&servers)).2, messages::AVAILABLE_PLACEMENT_FOUND);
}

#[test]
fn keys_of_other_writers_stay_and_cause_no_write() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    edit_deployment(&mut servers, "web-us-dfw", |one| {
        one.metadata
            .labels
            .as_mut()
            .unwrap()
            .insert("other".to_owned(), "1".to_owned());
        one.metadata.annotations = Some([("other".to_owned(), "2".to_owned())].into());
    });
    assert_eq!(decide_in(&servers), Plan::independent());
}

#[test]
fn a_lost_binding_tears_nothing_down() {
    let mut servers = servers(json!([placement("us", &["DFW", "ORD"])]), &["DFW", "ORD"]);
    servers.settle(decide_in);
    let plane = Plane::Project("p".to_owned());
    for lost in ["b-ORD", "b-DFW"] {
        servers.remove(&plane, kind::LOCATION_BINDING, "", lost);
        servers.settle(decide_in);
        assert_eq!(names(&servers), ["web-us-dfw", "web-us-ord"]);
    }
    // Only fewer replicas still reach a city without binding.
    let change = |replicas: i32| {
        move |workload: &mut Object| {
            workload.metadata.generation = workload.metadata.generation.map(|old| old + 1);
            workload.data["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(replicas);
            workload.data["spec"]["template"]["new"] = json!(replicas);
        }
    };
    edit(&mut servers, change(5));
    servers.settle(decide_in);
    let spec = |servers: &FakeServers| {
        let wd = servers.get(
            &Plane::Project("p".to_owned()),
            kind::WORKLOAD_DEPLOYMENT,
            "default",
            "web-us-dfw",
        );
        wd.unwrap().at("/spec").cloned().unwrap()
    };
    assert_eq!(spec(&servers)["scaleSettings"]["minReplicas"], 2);
    assert_eq!(status(&servers)["observedGeneration"], 3);
    edit(&mut servers, change(1));
    servers.settle(decide_in);
    assert_eq!(spec(&servers)["scaleSettings"]["minReplicas"], 1);
    assert_eq!(spec(&servers)["template"].get("new"), None);
    // The user removes the city: now it goes.
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["cityCodes"] = json!(["ORD"])
    });
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-ord"]);
}

#[test]
fn unknown_stores_stop_new_deployments_and_delete_nothing() {
    let servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    let plane = Plane::Project("p".to_owned());
    let networks = servers.list(&plane, kind::NETWORK);
    let seen = Observation {
        project: "p",
        workload: servers.get(&plane, kind::WORKLOAD, "default", "web").unwrap(),
        deployments: &[],
        bindings: Observed::Unknown,
        networks: Observed::Known(&networks),
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        now: testing::now(),
    };
    assert!(decide(&seen).actions.is_empty());
    let unknown = decide(&Observation {
        networks: Observed::Unknown,
        ..seen
    });
    assert!(unknown.is_unchanged());
}

/// Limits that a WorkloadDeployment of a Workload may exceed, and the field that is large.
const EXCESSES: [(&str, usize, Excess); 4] = [
    ("spec", 300_000, TOO_LARGE),
    ("status", 300_000, TOO_LARGE),
    ("spec", 5_000, Excess::ProjectObjects { limit: 3 }),
    ("spec", 5_000, Excess::ProjectBytes { limit: 3 }),
];
const TOO_LARGE: Excess = Excess::Bytes {
    bytes: 300_000,
    limit: 262_144,
};

#[test]
fn a_deployment_that_exceeds_a_limit_is_not_taken_for_another() {
    let plane = Plane::Project("p".to_owned());
    for (field, bytes, excess) in EXCESSES {
        let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
        servers.settle(decide_in);
        let before = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT)[0].clone();
        let large = testing::enlarged(&before, kind::WORKLOAD_DEPLOYMENT, field, bytes, excess);
        servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, large);
        servers.settle(decide_in);
        let now = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT)[0];
        assert_eq!(now.uid(), before.uid(), "{field} {excess:?}");
        if matches!(excess, Excess::Bytes { .. }) {
            // What is asked for is small: that is written, or is there.
            assert_eq!(now.at("/spec"), before.at("/spec"));
        } else {
            let (_, reason, message) = available(&status(&servers));
            assert_eq!(reason, "LimitExceeded");
            assert!(message.contains(&excess.to_string()), "{message}");
        }
        assert!(decide_in(&servers).is_unchanged());
    }
}

#[test]
fn many_slots_of_a_large_template_are_created_few_at_a_time() {
    let cities: Vec<String> = (0..100).map(|number| format!("C{number:03}")).collect();
    let cities: Vec<&str> = cities.iter().map(String::as_str).collect();
    let mut servers = servers(json!([placement("us", &cities)]), &cities);
    let plane = Plane::Project("p".to_owned());
    let mut made = Vec::new();
    for _ in 0..6 {
        servers.apply(&decide_in(&servers));
        made.push(servers.list(&plane, kind::WORKLOAD_DEPLOYMENT).len());
    }
    assert_eq!(made, [32, 64, 96, 100, 100, 100]);
}

#[test]
fn a_workload_that_exceeds_a_limit_leaves_its_deployments_as_they_are_and_says_so() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    let before: Vec<Object> = servers
        .list(&Plane::Project("p".to_owned()), kind::WORKLOAD_DEPLOYMENT)
        .into_iter()
        .cloned()
        .collect();
    edit(&mut servers, |one| *one = testing::deepened(one, "spec", 122));
    servers.settle(decide_in);
    let now: Vec<Object> = servers
        .list(&Plane::Project("p".to_owned()), kind::WORKLOAD_DEPLOYMENT)
        .into_iter()
        .cloned()
        .collect();
    assert_eq!(now, before);
    let (_, reason, message) = available(&status(&servers));
    assert_eq!(reason, "LimitExceeded");
    assert!(message.contains("nests 124 levels deep, the limit is 64"), "{message}");
    assert!(decide_in(&servers).is_unchanged());
}

#[test]
fn a_workload_that_exceeds_a_limit_from_its_first_day_is_written_once() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    edit(&mut servers, |one| *one = testing::deepened(one, "spec", 122));
    let plan = decide_in(&servers);
    assert_eq!((plan.actions.len(), plan.status.is_some()), (0, true), "{plan:?}");
    servers.apply(&plan);
    assert!(decide_in(&servers).is_unchanged());
}

#[test]
fn a_workload_whose_project_has_too_much_can_be_made_smaller() {
    let plane = Plane::Project("p".to_owned());
    let placements = |replicas: i64, cities: &[&str]| json!([{ "name": "us", "cityCodes": cities, "scaleSettings": { "minReplicas": replicas } }]);
    let asked = |servers: &FakeServers| -> Vec<(String, Option<i64>)> {
        let all = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT).into_iter();
        all.map(|one| (one.name().to_owned(), one.int("/spec/scaleSettings/minReplicas")))
            .collect()
    };
    let excess = Excess::ProjectObjects { limit: 3 };
    for (of_workload, replicas, expected) in [(true, 1, 1), (true, 9, 3), (false, 1, 1), (false, 9, 3)] {
        let mut servers = servers(placements(3, &["DFW", "ORD"]), &["DFW", "ORD"]);
        servers.settle(decide_in);
        if !of_workload {
            edit_deployment(&mut servers, "web-us-dfw", |one| {
                *one = testing::enlarged(one, kind::WORKLOAD_DEPLOYMENT, "spec", 5_000, excess);
            });
        }
        edit(&mut servers, |one| {
            one.data["spec"]["placements"] = placements(replicas, &["DFW"]);
            if of_workload {
                one.exceeds(excess, kind::WORKLOAD).unwrap();
            }
        });
        servers.settle(decide_in);
        assert_eq!(
            asked(&servers),
            [("web-us-dfw".to_owned(), Some(expected))],
            "{of_workload} {replicas}"
        );
        let (_, reason, message) = available(&status(&servers));
        assert_eq!(reason, "LimitExceeded");
        assert!(message.contains("delete objects of the project"), "{message}");
    }
}

#[test]
fn of_a_workload_whose_spec_is_not_kept_nothing_goes() {
    let plane = Plane::Project("p".to_owned());
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    edit(&mut servers, |one| {
        *one = testing::enlarged(one, kind::WORKLOAD, "spec", 5_000, Excess::ProjectObjects { limit: 3 });
    });
    servers.settle(decide_in);
    let left = servers.list(&plane, kind::WORKLOAD_DEPLOYMENT);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].int("/spec/scaleSettings/minReplicas"), Some(2));
}

#[test]
fn a_status_that_has_not_changed_is_not_written() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    servers.settle(decide_in);
    let plane = Plane::Project("p".to_owned());
    // Neither by itself, nor when something moves that the status does not show, nor at another time.
    let version = servers
        .get(&plane, kind::WORKLOAD, "default", "web")
        .unwrap()
        .resource_version()
        .to_owned();
    servers.change(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw", |one| {
        one.metadata.annotations = Some([("note".to_owned(), "x".to_owned())].into());
    });
    let writes = servers.writes;
    for _ in 0..3 {
        let plan = decide_in(&servers);
        assert_eq!(plan.status, None);
        servers.apply(&plan);
    }
    assert_eq!(servers.writes, writes);
    let stored = servers.get(&plane, kind::WORKLOAD, "default", "web").unwrap();
    assert_eq!(stored.resource_version(), version);
    // What it does show is written once.
    servers.change(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw", |one| {
        one.data["status"] = json!({ "replicas": 1 });
    });
    assert!(decide_in(&servers).status.is_some());
    servers.settle(decide_in);
    assert_eq!(servers.writes, writes + 1);
}

#[test]
fn fields_that_are_not_supported_are_a_condition_that_is_written_once_and_ends_with_them() {
    let mut servers = servers(json!([placement("us", &["DFW"])]), &["DFW"]);
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["scaleSettings"]["metrics"] =
            json!([{ "resource": { "name": "cpu", "target": { "value": "2" } } }]);
    });
    servers.settle(decide_in);
    let shown = |servers: &FakeServers| {
        let condition = conditions::find(&status(servers), types::UNSUPPORTED_FIELDS).cloned();
        condition.map(|one| {
            (
                conditions::text(&one, "status").to_owned(),
                conditions::text(&one, "message").to_owned(),
            )
        })
    };
    let message = "spec.placements[0].scaleSettings.metrics[0].resource.target.value: an autoscaler takes no sum: use \
        averageValue or averageUtilization";
    assert_eq!(shown(&servers), Some(("True".to_owned(), message.to_owned())));
    let writes = servers.writes;
    servers.apply(&decide_in(&servers));
    assert_eq!(servers.writes, writes, "it is written once");
    edit(&mut servers, |workload| {
        let settings = workload.data["spec"]["placements"][0]["scaleSettings"]
            .as_object_mut()
            .unwrap();
        settings.remove("metrics");
    });
    servers.settle(decide_in);
    assert_eq!(shown(&servers), None);
}
