//! What is not to be written.

use super::*;

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
