//! A claim that was made for another size.

use super::*;

/// Planes whose claim was made for another size than its Instance and template now have.
fn grown(gates: &[&str]) -> FakeServers {
    let mut servers = servers();
    settle(&mut servers);
    let limits = json!({ "limits": { "cpu": "2", "memory": "4Gi" } });
    let containers = json!({ "containers": [{ "name": "a", "resources": limits }] });
    servers.put(&Plane::Cell, kind::INSTANCE, instance(gates));
    servers.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.data["spec"]["runtime"]["sandbox"] = containers.clone();
    });
    servers.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.data["spec"]["template"]["spec"]["runtime"]["sandbox"] = containers;
    });
    servers
}

#[test]
fn a_claim_of_another_size_is_replaced_while_its_instance_waits() {
    let mut servers = grown(&["Quota"]);
    let plan = reconcile(&servers);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    let source = Target::namespaced(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    let uid = "cell-web-0".to_owned();
    assert_eq!(delete.proofs, [Proof::Lives { source, uid }]);
    // Until then it grants nothing.
    see(&servers, |seen| assert_eq!(quota(seen, None, None), Quota::Absent));
    servers.apply(&plan);
    assert!(matches!(reconcile(&servers).actions[..], [Action::Create { .. }]));
    settle(&mut servers);
    let amounts: Vec<_> = held(&servers)
        .unwrap()
        .items("/spec/requests")
        .iter()
        .map(|one| one["amount"].clone())
        .collect();
    assert_eq!(amounts, [json!(1), json!(2000), json!(4096)]);
    see(&servers, |seen| {
        assert!(matches!(quota(seen, None, None), Quota::Claim(_)))
    });
}

#[test]
fn a_claim_of_another_size_stays_while_its_instance_runs_or_is_deleted() {
    for gates in [&[][..], &["Network"]] {
        let servers = grown(gates);
        assert_eq!(reconcile(&servers), Plan::default(), "{gates:?}");
        see(&servers, |seen| {
            assert!(matches!(quota(seen, None, None), Quota::Claim(_)))
        });
    }
    let mut going = grown(&["Quota"]);
    going.change(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0", |one| {
        one.metadata.finalizers = Some(vec!["provider".to_owned()]);
    });
    going.delete(&Plane::Cell, kind::INSTANCE, "ns-n1", "web-0");
    assert_eq!(reconcile(&going), Plan::default());
}

#[test]
fn a_slot_without_instance_gives_back_a_claim_of_another_size() {
    let mut servers = grown(&[]);
    end_instance(&mut servers);
    let plan = reconcile(&servers);
    let [Action::Delete(delete)] = plan.actions.as_slice() else {
        panic!("{plan:?}");
    };
    assert!(matches!(delete.proofs[..], [Proof::Gone { uid: None, .. }]));
    settle(&mut servers);
    assert!(held(&servers).is_none());
    // What its template asks for cannot be read: then nobody knows that it is another size.
    let mut unreadable = grown(&[]);
    end_instance(&mut unreadable);
    unreadable.change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.data["spec"]["template"] = json!(null);
    });
    assert_eq!(reconcile(&unreadable), Plan::default());
}

#[test]
fn the_order_of_requests_in_a_claim_is_no_difference() {
    let mut servers = servers();
    settle(&mut servers);
    servers.change(&project(), kind::RESOURCE_CLAIM, "default", "instance-web-0", |one| {
        one.data["spec"]["requests"].as_array_mut().unwrap().reverse();
        one.data["spec"].as_object_mut().unwrap().remove("resourceRef");
    });
    assert_eq!(reconcile(&servers), Plan::default());
}
