//! Whose an object in the hub is, and what may happen to it.

use super::*;

#[test]
fn c22_a_namespace_of_the_same_name_and_a_project_of_the_same_name_inherit_nothing() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    world.change(&plane(), NAMESPACE, "", "default", |one| {
        one.metadata.uid = Some("n2".to_owned())
    });
    change(&mut world, "web", |one| one.metadata.uid = Some("uid-2".to_owned()));
    change_hub(&mut world, "web", |one| {
        one.data["status"] = json!({ "replicas": 9, "readyReplicas": 9 })
    });
    settle(&mut world, "web");
    assert_eq!(in_project(&world, "web").int("/status/replicas"), Some(0));
    assert!(
        world
            .get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n2", "web")
            .is_some()
    );
    assert_eq!(
        in_hub(&world, "web").unwrap().annotation(annotations::UPSTREAM_UID),
        Some("uid-web")
    );

    // Another Project of the same id does not touch the Namespace of the first.
    let mut next = self::world(&[("web", "DFW")]);
    settle(&mut next, "web");
    let before = next
        .list(&Plane::Hub, NAMESPACE)
        .into_iter()
        .cloned()
        .collect::<Vec<_>>();
    let second = Project {
        id: "p",
        uid: Some("project-2"),
    };
    next.settle(|world| pass_of(world, "web", second));
    assert_eq!(next.list(&Plane::Hub, NAMESPACE), before.iter().collect::<Vec<_>>());
}

#[test]
fn d1_a_hub_object_of_another_uid_goes_on_proof_that_ours_lives() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    let old = in_hub(&world, "web").unwrap().uid().to_owned();
    change(&mut world, "web", |one| one.metadata.uid = Some("uid-2".to_owned()));
    let plan = pass(&world, "web");
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert_eq!(delete.proofs.len(), 2);
    assert!(delete.proofs.iter().all(|proof| matches!(proof, Proof::Lives { .. })));
    settle(&mut world, "web");
    let made = in_hub(&world, "web").unwrap();
    assert_ne!(made.uid(), old);
    assert_eq!(made.annotation(annotations::UPSTREAM_UID), Some("uid-2"));

    // One that is finalising leaves it alone.
    change(&mut world, "web", |one| one.metadata.uid = Some("uid-3".to_owned()));
    world.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut world, "web");
    assert!(in_hub(&world, "web").is_some());
}

#[test]
fn d7_what_upstream_left_is_stamped_and_kept() {
    let mut world = world(&[("web", "DFW")]);
    settle(&mut world, "web");
    let uid = in_hub(&world, "web").unwrap().uid().to_owned();
    for (kind, namespace, name) in [(kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web"), (NAMESPACE, "", "ns-n1")] {
        world.change(&Plane::Hub, kind, namespace, name, |one| {
            one.metadata.annotations = None;
            one.metadata.labels.as_mut().unwrap().remove(labels::MANAGED_BY);
        });
    }
    world.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        let labels = one.metadata.labels.as_mut().unwrap();
        labels.insert(labels::UPSTREAM_CLUSTER_NAME.to_owned(), "cluster-org_p".to_owned());
    });
    let before = world.clone();
    settle(&mut world, "web");
    let made = in_hub(&world, "web").unwrap();
    assert_eq!((made.uid(), made.marked()), (uid.as_str(), true));
    let namespace = world.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(namespace.label(labels::UPSTREAM_CLUSTER_NAME), Some("cluster-org_p"));

    // Deleted before it was stamped: stamped first, then deleted.
    let mut deleted = before;
    deleted.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
    settle(&mut deleted, "web");
    assert!(in_hub(&deleted, "web").is_none());

    // Of another Workload: foreign, and left alone.
    let mut foreign = world;
    change_hub(&mut foreign, "web", |one| {
        one.metadata.annotations = None;
        one.data["spec"]["workloadRef"]["uid"] = json!("w9");
    });
    let kept = in_hub(&foreign, "web").unwrap().clone();
    settle(&mut foreign, "web");
    assert_eq!(in_hub(&foreign, "web"), Some(&kept));
    assert_eq!(available(in_project(&foreign, "web")).0, reasons::NAME_CONFLICT);
}
