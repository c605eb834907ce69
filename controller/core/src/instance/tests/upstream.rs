//! What upstream's operator left in a cell, in its own shape.

use super::*;

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
