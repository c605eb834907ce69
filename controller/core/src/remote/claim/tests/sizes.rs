//! A claim that was made for another size.

use super::*;

/// A world whose claim was made for another size than its Instance and template now have.
fn grown(gates: &[&str]) -> World {
    let mut world = world();
    settle(&mut world);
    let limits = json!({ "limits": { "cpu": "2", "memory": "4Gi" } });
    let containers = json!({ "containers": [{ "name": "a", "resources": limits }] });
    world.put(&Plane::Cell, kind::INSTANCE, instance(gates));
    world.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["runtime"]["sandbox"] = containers.clone();
    });
    world.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.data["spec"]["template"]["spec"]["runtime"]["sandbox"] = containers;
    });
    world
}

#[test]
fn a_claim_of_another_size_is_replaced_while_its_instance_waits() {
    let mut world = grown(&["Quota"]);
    let plan = pass(&world);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    let source = Target::namespaced(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    let uid = "cell-web-0".to_owned();
    assert_eq!(delete.proofs, [Proof::Lives { source, uid }]);
    // Until then it grants nothing.
    see(&world, |seen| assert_eq!(quota(seen, None, None), Quota::Absent));
    world.apply(&plan);
    assert!(matches!(pass(&world).actions[..], [Action::Create { .. }]));
    settle(&mut world);
    let amounts: Vec<_> = held(&world)
        .unwrap()
        .items("/spec/requests")
        .iter()
        .map(|one| one["amount"].clone())
        .collect();
    assert_eq!(amounts, [json!(1), json!(2000), json!(4096)]);
    see(&world, |seen| {
        assert!(matches!(quota(seen, None, None), Quota::Claim(_)))
    });
}

#[test]
fn a_claim_of_another_size_stays_while_its_instance_runs_or_is_deleted() {
    for gates in [&[][..], &["Network"]] {
        let world = grown(gates);
        assert_eq!(pass(&world), Plan::default(), "{gates:?}");
        see(&world, |seen| {
            assert!(matches!(quota(seen, None, None), Quota::Claim(_)))
        });
    }
    let mut going = grown(&["Quota"]);
    going.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    going.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(pass(&going), Plan::default());
}

#[test]
fn a_slot_without_instance_gives_back_a_claim_of_another_size() {
    let mut world = grown(&[]);
    end_instance(&mut world);
    let plan = pass(&world);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(matches!(delete.proofs[..], [Proof::Gone { uid: None, .. }]));
    settle(&mut world);
    assert!(held(&world).is_none());
    // What its template asks for cannot be read: then nobody knows that it is another size.
    let mut unreadable = grown(&[]);
    end_instance(&mut unreadable);
    unreadable.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.data["spec"]["template"] = json!(null);
    });
    assert_eq!(pass(&unreadable), Plan::default());
}

#[test]
fn the_order_of_requests_in_a_claim_is_no_difference() {
    let mut world = world();
    settle(&mut world);
    world.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.data["spec"]["requests"].as_array_mut().unwrap().reverse();
        one.data["spec"].as_object_mut().unwrap().remove("resourceRef");
    });
    assert_eq!(pass(&world), Plan::default());
}
