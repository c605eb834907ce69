//! `popcell orphans` on a hub, a project and a discovery server that are served in this process.

use serde_json::{Value, json};

use crate::{
    plane::Plane,
    program::{Run, command, finish},
};

const SYSTEM: &str = "/api/v1/namespaces/kube-system";
const HUB_NAMESPACE: &str = "/api/v1/namespaces/ns-n1";
const DEPLOYMENTS: &str = "/apis/compute.datumapis.com/v1alpha/namespaces/ns-n1/workloaddeployments";
const SERVER: &str = "compute.datumapis.com/upstream-server-uid";

/// An API server that says who it is.
fn server(uid: &str) -> Plane {
    let server = Plane::start();
    server.put(SYSTEM, json!({ "metadata": { "uid": uid, "resourceVersion": "1" } }));
    server
}

/// A hub with the namespace of a project Namespace, of a server where it says so, and two WorkloadDeployments in it.
fn hub(stamped: Option<&str>) -> Plane {
    let hub = server("hub");
    let marker = json!({ "compute.datumapis.com/managed-by": "popcell" });
    let mut namespace = json!({ "metadata": { "uid": "h", "resourceVersion": "1", "labels": {
        "compute.datumapis.com/managed-by": "popcell", "meta.datumapis.com/upstream-cluster-name": "cluster-single",
        "meta.datumapis.com/upstream-namespace": "default" } } });
    if let Some(uid) = stamped {
        namespace["metadata"]["annotations"] = json!({ SERVER: uid });
    }
    hub.put(HUB_NAMESPACE, namespace);
    for name in ["web", "api"] {
        let metadata = json!({ "namespace": "ns-n1", "uid": format!("u-{name}"), "resourceVersion": "1", "labels": marker,
            "annotations": { "compute.datumapis.com/upstream-uid": format!("p-{name}") } });
        hub.put(&format!("{DEPLOYMENTS}/{name}"), json!({ "metadata": metadata }));
    }
    hub
}

fn orphans(hub: &Plane, project: &Plane, args: &[&str]) -> Run {
    let mut run = command();
    run.arg("orphans").args(args);
    run.arg("--kubeconfig").arg(hub.kubeconfig());
    finish(run.arg("--project-kubeconfig").arg(project.kubeconfig()))
}

#[test]
fn another_clusters_kubeconfig_deletes_nothing_and_says_why() {
    for (stamped, said) in [
        (Some("s1"), "is s1, the server of --project-kubeconfig has s2"),
        (None, "no annotation"),
    ] {
        let (hub, wrong) = (hub(stamped), server("s2"));
        for args in [
            &["--delete", "--yes=3"][..],
            &["--delete", "--yes=0"],
            &["--delete", "--dry-run"],
            &["--namespace", "ns-n1", "--delete", "--yes=3", "-o=json"],
        ] {
            let run = orphans(&hub, &wrong, args).expect(2);
            assert!(run.err.contains(said), "{args:?}: {}", run.err);
        }
        // Looking is no mistake, and shows the same.
        let run = orphans(&hub, &wrong, &[]).expect(1);
        assert!(
            run.out.contains(said) && run.err.contains("warning:"),
            "{}{}",
            run.out,
            run.err
        );
        assert_eq!(hub.writes(), Vec::<String>::new());
    }
}

#[test]
fn a_script_deletes_as_many_as_it_says_or_none() {
    let (hub, project) = (hub(Some("s1")), server("s1"));
    let listed: Value = serde_json::from_str(&orphans(&hub, &project, &["-o=json"]).expect(1).out).unwrap();
    assert_eq!(listed["objects"].as_array().unwrap().len(), 3, "{listed}");
    let run = orphans(&hub, &project, &["--delete", "--dry-run"]).expect(1);
    assert!(run.err.contains("--yes=3"), "{}", run.err);
    for count in ["2", "4"] {
        let run = orphans(&hub, &project, &["--delete", "--yes", count]).expect(2);
        assert!(run.err.contains("--yes=3"), "{}", run.err);
    }
    // Without a number nobody has looked.
    orphans(&hub, &project, &["--delete", "--yes"]).expect(2);
    let run = orphans(&hub, &project, &["--delete"]).expect(2);
    assert!(run.err.contains("--yes=COUNT"), "{}", run.err);
    assert_eq!(hub.writes(), Vec::<String>::new());

    orphans(&hub, &project, &["--delete", "--yes=3"]).expect(0);
    let mut gone = [
        format!("DELETE {DEPLOYMENTS}/api"),
        format!("DELETE {DEPLOYMENTS}/web"),
        format!("DELETE {HUB_NAMESPACE}"),
    ];
    let mut writes = hub.writes();
    writes.sort();
    gone.sort();
    assert_eq!(writes, gone);
}

/// As no server stores it, and one that is broken may say.
fn unreadable(namespace: &str) -> Value {
    json!({ "metadata": { "namespace": namespace, "uid": "odd", "resourceVersion": "1", "annotations": 7,
        "labels": { "compute.datumapis.com/managed-by": "popcell" } } })
}

#[test]
fn what_cannot_be_read_is_unknown_and_the_rest_is_shown_and_deleted() {
    let (hub, project) = (hub(Some("s1")), server("s1"));
    hub.put(&format!("{DEPLOYMENTS}/odd"), unreadable("ns-n1"));
    hub.put("/api/v1/namespaces/ns-odd", unreadable(""));
    let verdicts = |run: &Run| {
        let listed: Value = serde_json::from_str(&run.out).unwrap();
        let rows = listed["objects"].as_array().unwrap().iter();
        let mut reported: Vec<String> = rows
            .map(|row| format!("{} {}", row["name"], row["verdict"]).replace('"', ""))
            .collect();
        reported.sort();
        reported
    };
    let listed = verdicts(&orphans(&hub, &project, &["-o=json"]).expect(1));
    assert_eq!(
        listed,
        [
            "api orphan",
            "ns-n1 kept",
            "ns-odd unknown",
            "odd unknown",
            "web orphan"
        ]
    );
    orphans(&hub, &project, &["--delete", "--yes=2"]).expect(1);
    let mut writes = hub.writes();
    writes.sort();
    let gone = ["api", "web"].map(|name| format!("DELETE {DEPLOYMENTS}/{name}"));
    assert_eq!(writes, gone);
}

#[test]
fn a_project_with_an_object_that_cannot_be_read_may_have_what_is_on_the_hub() {
    let (hub, project) = (hub(Some("s1")), server("s1"));
    let place = "/apis/compute.datumapis.com/v1alpha/namespaces/default/workloaddeployments/web";
    project.put(place, unreadable("default"));
    let run = orphans(&hub, &project, &["--delete", "--yes=0"]).expect(4);
    assert!(
        run.out
            .contains("WorkloadDeployment default/web of the project cannot be read"),
        "{}",
        run.out
    );
    assert_eq!(hub.writes(), Vec::<String>::new());
}

const PROJECTS: &str = "/apis/resourcemanager.miloapis.com/v1alpha1/projects";

/// A hub with a namespace and a WorkloadDeployment of each of these many projects.
fn hub_of_milo(count: usize) -> Plane {
    let hub = server("hub");
    for number in 0..count {
        let (name, id) = (format!("ns-n{number}"), format!("p{number}"));
        hub.put(
            &format!("/api/v1/namespaces/{name}"),
            json!({ "metadata": { "uid": name, "resourceVersion": "1", "labels": {
                "compute.datumapis.com/managed-by": "popcell", "meta.datumapis.com/upstream-namespace": "default",
                "meta.datumapis.com/upstream-cluster-name": format!("cluster-{id}") },
                "annotations": { "compute.datumapis.com/upstream-project-uid": format!("u{number}") } } }),
        );
        let path = format!("/apis/compute.datumapis.com/v1alpha/namespaces/{name}/workloaddeployments/web");
        hub.put(
            &path,
            json!({ "metadata": { "namespace": name, "uid": format!("w{number}"), "resourceVersion": "1",
                "labels": { "compute.datumapis.com/managed-by": "popcell" } } }),
        );
    }
    hub
}

/// A discovery server that has the first of them.
fn milo(known: usize) -> Plane {
    let milo = server("milo");
    for number in 0..known {
        milo.put(
            &format!("{PROJECTS}/p{number}"),
            json!({ "metadata": { "uid": format!("u{number}"), "resourceVersion": "1" } }),
        );
    }
    milo
}

#[test]
fn another_installations_discovery_notes_nothing_deletes_nothing_and_says_how_many_it_knows() {
    for (known, said) in [(0, "lists 0 of the 5 projects"), (2, "lists 2 of the 5 projects")] {
        let (hub, wrong) = (hub_of_milo(5), milo(known));
        for args in [
            &["--mode=milo", "--delete", "--yes=6", "--project-grace=1m"][..],
            &["--mode=milo", "--delete", "--yes=10"],
            &["--mode=milo", "--delete", "--dry-run"],
            &["--mode=milo", "--namespace=ns-n4", "--delete", "--yes=2", "-o=json"],
        ] {
            let run = orphans(&hub, &wrong, args).expect(2);
            assert!(run.err.contains(said), "{args:?}: {}", run.err);
            let confirm = format!("--projects-gone={}", 5 - known);
            assert!(run.err.contains(&confirm), "{args:?}: {}", run.err);
        }
        let run = orphans(
            &hub,
            &wrong,
            &["--mode=milo", "--delete", "--yes=6", "--projects-gone=1"],
        )
        .expect(2);
        assert!(run.err.contains("--projects-gone=1 was given"), "{}", run.err);
        // Looking is no mistake.
        let run = orphans(&hub, &wrong, &["--mode=milo"]).expect(1);
        assert!(run.err.contains("warning:") && run.err.contains(said), "{}", run.err);
        assert_eq!(hub.writes(), Vec::<String>::new());
    }
}

#[test]
fn who_says_how_many_projects_were_deleted_has_their_end_noted_and_no_others() {
    let (hub, milo) = (hub_of_milo(5), milo(2));
    let only = [
        "--mode=milo",
        "--namespace=ns-n3",
        "--delete",
        "--yes=2",
        "--projects-gone=3",
        "--wait=1s",
    ];
    orphans(&hub, &milo, &only).expect(1);
    assert_eq!(hub.writes(), ["PATCH /api/v1/namespaces/ns-n3"]);
    let noted = hub.get("/api/v1/namespaces/ns-n3").unwrap();
    assert!(
        noted["metadata"]["annotations"]["compute.datumapis.com/project-gone-since"].is_string(),
        "{noted}"
    );
}

#[test]
fn a_discovery_server_that_knows_half_of_the_projects_is_believed() {
    let (hub, milo) = (hub_of_milo(4), milo(2));
    orphans(&hub, &milo, &["--mode=milo", "--delete", "--yes=4", "--wait=1s"]).expect(1);
    let mut writes = hub.writes();
    writes.sort();
    assert_eq!(
        writes,
        ["PATCH /api/v1/namespaces/ns-n2", "PATCH /api/v1/namespaces/ns-n3"]
    );
}

#[test]
fn a_grace_that_leaves_no_time_is_refused() {
    let (hub, milo) = (hub_of_milo(2), milo(1));
    let run = orphans(
        &hub,
        &milo,
        &["--mode=milo", "--delete", "--yes=2", "--project-grace=1s"],
    )
    .expect(2);
    assert!(run.err.contains("1m or more"), "{}", run.err);
    assert_eq!(hub.writes(), Vec::<String>::new());
}
