//! Locations, bindings, contexts, claims and subnets.

use popcell_api::kind::{self, Kind};
use serde_json::{Value, json};

use super::super::binding_name;
use super::{Cell, NAMESPACE};
use crate::conditions;
use crate::object::{Fields, Object};
use crate::plan::{Note, Plane};
use crate::testing::object;

fn put(cell: &mut Cell, kind: Kind, mut value: Value) {
    value["metadata"]["resourceVersion"] = json!("1");
    value["metadata"]["uid"] = json!(format!("{}-uid", value["metadata"]["name"].as_str().unwrap()));
    cell.servers.put(&Plane::Cell, kind, object(value));
}

fn location(cell: &mut Cell, name: &str, city: &str) {
    put(
        cell,
        kind::LOCATION,
        json!({ "metadata": { "name": name }, "spec": { "topology": { "topology.datum.net/city-code": city } } }),
    );
}

fn ready(more: Value) -> Value {
    let mut status = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
    status
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap());
    status
}

fn binding_is_ready(cell: &mut Cell, name: &str) {
    cell.servers
        .change(&Plane::Cell, kind::NETWORK_BINDING, NAMESPACE, name, |one| {
            one.data["status"] = ready(json!({ "networkContextRef": { "namespace": "nets", "name": "context" } }))
        });
}

fn context(cell: &mut Cell) {
    put(
        cell,
        kind::NETWORK_CONTEXT,
        json!({ "metadata": { "name": "context", "namespace": "nets" }, "status": ready(json!({})) }),
    );
}

fn claim_is_ready(cell: &mut Cell) {
    cell.servers
        .change(&Plane::Cell, kind::SUBNET_CLAIM, "nets", "context-0", |one| {
            one.data["status"] = ready(json!({ "subnetRef": { "name": "subnet" } }))
        });
}

fn reason(cell: &Cell) -> String {
    let status = cell.get().unwrap().at("/status").unwrap();
    let available = conditions::find(status, "Available").unwrap();
    conditions::text(available, "reason").to_owned()
}

fn gates(cell: &Cell) -> Vec<String> {
    let instance = cell.instance(0).unwrap();
    let gates = instance.items("/spec/controller/schedulingGates");
    gates
        .iter()
        .map(|gate| gate["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_network_gate_opens_when_every_part_of_the_network_is_ready() {
    let mut cell = Cell::new(1);
    cell.networking = true;
    cell.settle();
    assert_eq!(reason(&cell), "NoMatchingLocation");
    assert_eq!(gates(&cell), ["Network", "Quota"]);

    location(&mut cell, "ord", "ORD");
    location(&mut cell, "dfw-b", "DFW");
    location(&mut cell, "dfw-a", "DFW");
    cell.settle();
    assert_eq!(reason(&cell), "ProvisioningNetwork");
    let name = binding_name("web", 0);
    assert_eq!(name, "web-net-0");
    let binding = cell
        .servers
        .get(&Plane::Cell, kind::NETWORK_BINDING, NAMESPACE, &name)
        .unwrap();
    let spec = json!({ "network": { "name": "default" }, "location": { "name": "dfw-a" } });
    assert_eq!(binding.at("/spec"), Some(&spec));
    assert_eq!(binding.metadata.owner_references.as_ref().unwrap()[0].uid, "wd");
    assert_eq!(
        cell.get().unwrap().at("/status/location"),
        Some(&json!({ "name": "dfw-a" }))
    );

    binding_is_ready(&mut cell, &name);
    cell.settle();
    assert!(
        cell.servers.list(&Plane::Cell, kind::SUBNET_CLAIM).is_empty(),
        "no context yet"
    );
    context(&mut cell);
    cell.settle();
    let claim = cell
        .servers
        .get(&Plane::Cell, kind::SUBNET_CLAIM, "nets", "context-0")
        .unwrap();
    let spec = json!({ "subnetClass": "private", "networkContext": { "name": "context" },
        "location": { "name": "dfw-a" }, "ipFamily": "IPv4" });
    assert_eq!(claim.at("/spec"), Some(&spec));
    let owner = &claim.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("NetworkContext", None));
    assert_eq!(owner.api_version, "networking.datumapis.com/v1alpha");

    claim_is_ready(&mut cell);
    cell.settle();
    assert_eq!(gates(&cell), ["Network", "Quota"], "no subnet yet");
    let subnet = json!({ "metadata": { "name": "subnet", "namespace": "nets" }, "status": ready(json!({})) });
    put(&mut cell, kind::SUBNET, subnet);
    assert_eq!(cell.settle(), ["patch web-0"]);
    assert_eq!(gates(&cell), ["Quota"]);
    assert_eq!(reason(&cell), "ProvisioningInstances");
}

#[test]
fn an_instance_gets_the_location_of_its_city() {
    let mut cell = Cell::new(1);
    cell.networking = true;
    let spec = json!({ "topology": { "topology.datum.net/city-code": "DFW" } });
    let metadata = json!({ "name": "dfw", "namespace": "datum" });
    put(&mut cell, kind::LOCATION, json!({ "metadata": metadata, "spec": spec }));
    cell.settle();
    let at = cell.instance(0).unwrap().at("/spec/location").cloned();
    assert_eq!(at, Some(json!({ "name": "dfw", "namespace": "datum" })));
}

#[test]
fn two_interfaces_of_one_network_share_a_context_and_its_claim() {
    let mut cell = Cell::new(1);
    // A single cluster has the namespaces of one project only.
    (cell.networking, cell.own_namespace_only) = (true, false);
    cell.edit(|one| {
        one.data["spec"]["template"]["spec"]["networkInterfaces"] =
            json!([{ "network": { "name": "default" } }, { "network": { "name": "default", "namespace": "other" } }])
    });
    location(&mut cell, "dfw", "DFW");
    cell.settle();
    binding_is_ready(&mut cell, "web-net-0");
    context(&mut cell);
    cell.settle();
    assert!(
        cell.servers.list(&Plane::Cell, kind::SUBNET_CLAIM).is_empty(),
        "one binding is missing"
    );
    binding_is_ready(&mut cell, "web-net-1");
    cell.settle();
    assert_eq!(cell.servers.list(&Plane::Cell, kind::SUBNET_CLAIM).len(), 1);
    let second = cell
        .servers
        .get(&Plane::Cell, kind::NETWORK_BINDING, NAMESPACE, "web-net-1")
        .unwrap();
    assert_eq!(second.text("/spec/network/namespace"), Some("other"));
}

#[test]
fn a_cell_binds_no_network_of_another_namespace_which_may_be_another_tenants() {
    let mut cell = Cell::new(1);
    cell.networking = true;
    cell.edit(|one| {
        one.data["spec"]["template"]["spec"]["networkInterfaces"] = json!([
            { "network": { "name": "default", "namespace": "ns-other" } },
            { "network": { "name": "default", "namespace": NAMESPACE } },
        ])
    });
    location(&mut cell, "dfw", "DFW");
    cell.settle();
    let bindings = cell.servers.list(&Plane::Cell, kind::NETWORK_BINDING);
    let names: Vec<&str> = bindings.iter().map(|one| one.name()).collect();
    assert_eq!(names, ["web-net-1"]);
    binding_is_ready(&mut cell, "web-net-1");
    context(&mut cell);
    cell.settle();
    assert!(cell.servers.list(&Plane::Cell, kind::SUBNET_CLAIM).is_empty());
    assert_eq!(gates(&cell), ["Network", "Quota"]);
}

#[test]
fn a_binding_of_another_is_kept_and_one_of_ours_follows_its_interface() {
    let mut cell = Cell::new(1);
    cell.networking = true;
    location(&mut cell, "dfw", "DFW");
    let foreign = json!({ "metadata": { "name": "web-net-0", "namespace": NAMESPACE }, "spec": { "network": {} } });
    put(&mut cell, kind::NETWORK_BINDING, foreign);
    cell.settle();
    let notes = cell.plan().notes;
    assert!(matches!(notes.as_slice(), [Note::Foreign(target)] if target.name == "web-net-0"));
    // The removal of foreign objects causes no event.
    assert_eq!(cell.plan().requeue, Some(crate::remote::NAME_CONFLICT_RETRY));
    assert_eq!(reason(&cell), "NameConflict");
    cell.servers
        .remove(&Plane::Cell, kind::NETWORK_BINDING, NAMESPACE, "web-net-0");
    cell.settle();
    cell.edit(|one| one.data["spec"]["template"]["spec"]["networkInterfaces"][0]["network"]["name"] = json!("new"));
    cell.settle();
    let followed = cell
        .servers
        .get(&Plane::Cell, kind::NETWORK_BINDING, NAMESPACE, "web-net-0")
        .unwrap();
    assert_eq!(followed.text("/spec/network/name"), Some("new"));
}

#[test]
fn networks_are_asked_for_beside_the_rollout_and_hold_it_up_in_nothing() {
    let mut cell = Cell::new(1);
    cell.networking = true;
    location(&mut cell, "dfw", "DFW");
    let plan = cell.plan();
    let kinds = |actions: &[crate::plan::Action]| -> Vec<&'static str> {
        actions.iter().map(|action| action.target().kind.kind).collect()
    };
    assert_eq!(kinds(&plan.actions), ["Instance"]);
    assert_eq!(kinds(&plan.best_effort), ["NetworkBinding"]);
    assert!(plan.status.is_some());
}

#[test]
fn network_kinds_that_are_not_served_hold_nothing_but_the_gate() {
    let cell = Cell::new(1);
    let plan = super::decide(&super::Observation {
        deployment: cell.get().unwrap(),
        instances: &[],
        types: None,
        networks: Some(super::Networks::default()),
        data: &super::ReferencedData::Unknown,
        autoscaler: crate::observed::Observed::Known(None),
        rejected: &[],
        elsewhere: None,
        served: crate::observed::Observed::Known(true),
        derived: false,
        now: crate::testing::now(),
    });
    let created: Vec<&Object> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            crate::plan::Action::Create { object, .. } => Some(object.as_ref()),
            _ => None,
        })
        .collect();
    assert_eq!(created.len(), 1);
    let gates = json!([{ "name": "Network" }, { "name": "Quota" }]);
    assert_eq!(created[0].at("/spec/controller/schedulingGates"), Some(&gates));
}
