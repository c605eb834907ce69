//! Whose an object in the hub is, and what may happen to it.

use super::*;

#[test]
fn a_namespace_or_project_recreated_under_its_name_inherits_nothing() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    servers.change(&plane(), NAMESPACE, "", "default", |one| {
        one.metadata.uid = Some("n2".to_owned())
    });
    change(&mut servers, "web", |one| one.metadata.uid = Some("uid-2".to_owned()));
    change_hub(&mut servers, "web", |one| {
        one.data["status"] = json!({ "replicas": 9, "readyReplicas": 9 })
    });
    settle(&mut servers, "web");
    assert_eq!(in_project(&servers, "web").int("/status/replicas"), Some(0));
    assert!(
        servers
            .get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n2", "web")
            .is_some()
    );
    assert_eq!(
        in_hub(&servers, "web").unwrap().annotation(annotations::UPSTREAM_UID),
        Some("uid-web")
    );

    // Another Project of the same id does not touch the Namespace of the first.
    let mut next = self::servers(&[("web", "DFW")]);
    settle(&mut next, "web");
    let before = next
        .list(&Plane::Hub, NAMESPACE)
        .into_iter()
        .cloned()
        .collect::<Vec<_>>();
    let second = Project {
        id: "p",
        uid: Some("project-2"),
        server: None,
    };
    next.settle(|servers| pass_of(servers, "web", second));
    assert_eq!(next.list(&Plane::Hub, NAMESPACE), before.iter().collect::<Vec<_>>());
}

#[test]
fn a_hub_deployment_of_another_uid_is_deleted_on_proof_that_ours_lives() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    let old = in_hub(&servers, "web").unwrap().uid().to_owned();
    change(&mut servers, "web", |one| one.metadata.uid = Some("uid-2".to_owned()));
    let plan = reconcile(&servers, "web");
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(delete.proofs.len(), 2);
    assert!(delete.proofs.iter().all(|proof| matches!(proof, Proof::Lives { .. })));
    settle(&mut servers, "web");
    let made = in_hub(&servers, "web").unwrap();
    assert_ne!(made.uid(), old);
    assert_eq!(made.annotation(annotations::UPSTREAM_UID), Some("uid-2"));

    // One that is finalising leaves it alone.
    change(&mut servers, "web", |one| one.metadata.uid = Some("uid-3".to_owned()));
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut servers, "web");
    assert!(in_hub(&servers, "web").is_some());
}

#[test]
fn hub_objects_of_upstreams_operator_are_stamped_and_kept() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    let uid = in_hub(&servers, "web").unwrap().uid().to_owned();
    for (kind, namespace, name) in [(kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web"), (NAMESPACE, "", "ns-n1")] {
        servers.change(&Plane::Hub, kind, namespace, name, |one| {
            one.metadata.annotations = None;
            one.metadata.labels.as_mut().unwrap().remove(labels::MANAGED_BY);
        });
    }
    servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        let labels = one.metadata.labels.as_mut().unwrap();
        labels.insert(labels::UPSTREAM_CLUSTER_NAME.to_owned(), "cluster-org_p".to_owned());
    });
    let before = servers.clone();
    settle(&mut servers, "web");
    let made = in_hub(&servers, "web").unwrap();
    assert_eq!((made.uid(), made.marked()), (uid.as_str(), true));
    let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(namespace.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-org_p"));

    // Deleted before it was stamped: stamped first, then deleted.
    let mut deleted = before;
    deleted.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut deleted, "web");
    assert!(in_hub(&deleted, "web").is_none());

    // Of another Workload: foreign, and left alone.
    let mut foreign = servers;
    change_hub(&mut foreign, "web", |one| {
        one.metadata.annotations = None;
        one.data["spec"]["workloadRef"]["uid"] = json!("w9");
    });
    let kept = in_hub(&foreign, "web").unwrap().clone();
    settle(&mut foreign, "web");
    assert_eq!(in_hub(&foreign, "web"), Some(&kept));
    assert_eq!(available(in_project(&foreign, "web")).0, reasons::NAME_CONFLICT);
}

#[test]
fn a_finalising_deployment_deletes_nothing_of_siblings_or_other_projects() {
    let mut servers = servers(&[("web", "DFW"), ("web-2", "ORD")]);
    for name in ["web", "web-2"] {
        settle(&mut servers, name);
    }
    // As upstream's operator left them: nothing but the Workload says whose they are.
    for name in ["web", "web-2"] {
        change_hub(&mut servers, name, |one| one.metadata.annotations = None);
    }
    let mut elsewhere = in_hub(&servers, "web").unwrap().clone();
    elsewhere.metadata.namespace = Some("ns-other".to_owned());
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, elsewhere.clone());
    servers.put(
        &Plane::Hub,
        NAMESPACE,
        object(json!({ "metadata": { "name": "ns-other", "labels": {
            "meta.datumapis.com/upstream-cluster-name": "cluster-q",
            "meta.datumapis.com/upstream-namespace": "default" } } })),
    );
    let sibling = in_hub(&servers, "web-2").unwrap().clone();
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut servers, "web");
    assert!(in_hub(&servers, "web").is_none());
    assert_eq!(in_hub(&servers, "web-2"), Some(&sibling));
    let kept = servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-other", "web");
    assert_eq!(kept, Some(&elsewhere));
}

#[test]
fn a_hub_deployment_that_no_patch_can_correct_is_recreated() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    let old = in_hub(&servers, "web").unwrap().uid().to_owned();
    // A hub that was restored: the same uid upstream, another city.
    change_hub(&mut servers, "web", |one| one.data["spec"]["cityCode"] = json!("ORD"));
    settle(&mut servers, "web");
    let made = in_hub(&servers, "web").unwrap();
    assert_ne!(made.uid(), old);
    assert_eq!(made.text("/spec/cityCode"), Some("DFW"));
}

#[test]
fn a_project_that_is_back_is_no_longer_noted_as_gone() {
    let mut servers = servers(&[("web", "DFW")]);
    settle(&mut servers, "web");
    servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        let annotations = one.metadata.annotations.as_mut().unwrap();
        annotations.insert(
            annotations::PROJECT_GONE_SINCE.to_owned(),
            "2026-01-01T00:00:00Z".to_owned(),
        );
    });
    settle(&mut servers, "web");
    let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(namespace.annotation(annotations::PROJECT_GONE_SINCE), None);
}

#[test]
fn nothing_is_federated_from_a_namespace_that_is_being_deleted() {
    let mut servers = servers(&[("web", "DFW")]);
    change(&mut servers, "web", |one| {
        one.metadata.finalizers = Some(vec![finalizers::FEDERATOR.to_owned()])
    });
    servers.change(&plane(), NAMESPACE, "", "default", |one| {
        one.metadata.finalizers = Some(vec!["kubernetes".to_owned()]);
        one.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    });
    assert!(reconcile(&servers, "web").is_unchanged());
}

#[test]
fn a_hub_namespace_that_says_it_is_for_another_is_never_changed() {
    for (label, value) in [
        (labels::UPSTREAM_CLUSTER_NAME, "cluster-q"),
        (labels::UPSTREAM_NAMESPACE, "other"),
    ] {
        let mut servers = servers(&[("web", "DFW")]);
        let namespace =
            json!({ "metadata": { "name": "ns-n1", "uid": "h", "resourceVersion": "1", "labels": { label: value } } });
        servers.put(&Plane::Hub, NAMESPACE, object(namespace.clone()));
        settle(&mut servers, "web");
        assert_eq!(
            servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1"),
            Some(&object(namespace))
        );
        assert!(in_hub(&servers, "web").is_none());
    }
}

const SINGLE: Project<'static> = Project {
    id: "p",
    uid: None,
    server: Some("s1"),
};

fn server_of(servers: &FakeServers) -> Option<&str> {
    let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1")?;
    namespace.annotation(annotations::UPSTREAM_SERVER_UID)
}

#[test]
fn in_mode_single_a_hub_namespace_says_which_server_its_project_is() {
    let mut servers = servers(&[("web", "DFW")]);
    servers.settle(|servers| pass_of(servers, "web", SINGLE));
    assert_eq!(server_of(&servers), Some("s1"));
    // One of an earlier version is stamped once; what it says otherwise is nobody's to change.
    servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        one.metadata.annotations = None
    });
    let unread = Project { server: None, ..SINGLE };
    assert!(pass_of(&servers, "web", unread).is_unchanged());
    servers.settle(|servers| pass_of(servers, "web", SINGLE));
    assert_eq!(server_of(&servers), Some("s1"));
    let other = Project {
        server: Some("s2"),
        ..SINGLE
    };
    let plan = pass_of(&servers, "web", other);
    assert!(plan.actions.is_empty(), "{:?}", plan.actions);
    assert!(matches!(plan.notes[..], [Note::Foreign(_)]), "{:?}", plan.notes);
}

#[test]
fn in_mode_single_a_deletion_is_proven_by_the_server_that_saw_it() {
    let mut servers = servers(&[("web", "DFW")]);
    let system = |uid: &str| object(json!({ "metadata": { "name": "kube-system", "uid": uid } }));
    servers.put(&plane(), NAMESPACE, system("s1"));
    servers.settle(|servers| pass_of(servers, "web", SINGLE));
    servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let plan = pass_of(&servers, "web", SINGLE);
    // Another server behind the same address knows no such WorkloadDeployment either.
    let mut moved = servers.clone();
    moved.put(&plane(), NAMESPACE, system("s2"));
    moved.remove(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    let deletes = Plan {
        actions: plan
            .actions
            .iter()
            .filter(|one| matches!(one, Action::Delete(_)))
            .cloned()
            .collect(),
        ..Plan::default()
    };
    assert_eq!(deletes.actions.len(), 1);
    moved.apply(&deletes);
    assert!(in_hub(&moved, "web").is_some());
    servers.apply(&deletes);
    assert!(in_hub(&servers, "web").is_none());
}
