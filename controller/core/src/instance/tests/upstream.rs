//! What upstream's operator left in a cell, in its own shape.

use super::*;
use crate::deployment;
use crate::observed::Observed;
use crate::plan::Action;

fn left(yaml: &str) -> Object {
    object(serde_saphyr::from_str(yaml).unwrap())
}

fn its_instance() -> Object {
    left(include_str!("../../testing/upstream/instance.yaml"))
}

fn its_deployment() -> Object {
    left(include_str!("../../testing/upstream/workloaddeployment.yaml"))
}

#[test]
fn an_instance_from_before_available_gets_ready_when_its_provider_says_available() {
    let deployment = its_deployment();
    let look = |instance: &Object| {
        decide(&Observation {
            deployment: Some(&deployment),
            ..seen(instance, Quota::Absent)
        })
    };
    let mut servers = FakeServers::default();
    let one = its_instance();
    let (namespace, name) = (one.namespace().to_owned(), one.name().to_owned());
    let get = |servers: &FakeServers| {
        servers
            .get(&Plane::Cell, kind::INSTANCE, &namespace, &name)
            .unwrap()
            .clone()
    };
    servers.put(&Plane::Cell, kind::INSTANCE, one);
    servers.settle(|servers| look(&get(servers)));
    let one = get(&servers);
    assert_eq!(
        one.metadata.finalizers,
        Some(vec!["unikraft.datumapis.com/finalizer".to_owned()])
    );
    assert_eq!(
        reported(&one, "Ready"),
        ("False", "Pending", "Instance is not available")
    );

    servers.change(&Plane::Cell, kind::INSTANCE, &namespace, &name, |one| {
        let list = one.data["status"]["conditions"].as_array_mut().unwrap();
        list.push(condition("Available", "True", "Available", "Instance is available"));
    });
    servers.settle(|servers| look(&get(servers)));
    let one = get(&servers);
    assert_eq!(reported(&one, "Ready"), ("True", "Available", "Instance is ready"));
    assert_eq!(reason(&one, "Running"), ("True", "Running"));
}

#[test]
fn its_deployment_keeps_the_instance_and_stamps_it() {
    let (wd, one) = (its_deployment(), its_instance());
    let plan = deployment::decide(&deployment::Observation {
        deployment: &wd,
        instances: &[&one],
        served: Observed::Known(true),
        derived: false,
        networks: None,
        rejected: &[],
        elsewhere: None,
        now: now(),
    });
    let mut text = String::new();
    for action in &plan.actions {
        let Action::Patch(patch) = action else {
            panic!("{plan:#?}")
        };
        text.push_str(&serde_json::to_string(&patch.patch).unwrap());
    }
    for changed in [
        "/spec/controller/templateHash",
        "workload-name",
        "city-code",
        "placement-name",
    ] {
        assert!(text.contains(changed), "{changed}: {text}");
    }
    for kept in ["/spec/runtime", "/spec/location", "/spec/networkInterfaces"] {
        assert!(!text.contains(kept), "{kept}: {text}");
    }
}
