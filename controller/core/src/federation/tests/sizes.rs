//! The size of the instance type on its way to the hub.

use popcell_api::annotations::INSTANCE_TYPE_SIZE;

use super::*;
use crate::testing::catalogue;

const LARGE: &str = "acme/large cpu=4 memory=8Gi";

fn look(servers: &FakeServers, types: Observed<&Catalogue>) -> Plan {
    let deployment = in_project(servers, "web");
    decide(&Observation {
        project: P,
        deployment,
        siblings: &[deployment],
        workload: Observed::Known(None),
        bindings: Observed::Known(&servers.list(&plane(), kind::LOCATION_BINDING)),
        namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &servers.list(&Plane::Hub, NAMESPACE),
            deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            policy: None,
            binding: None,
            held: None,
        }),
        types,
        carries_data: true,
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        elsewhere: None,
        now: testing::now(),
    })
}

fn settle(servers: &mut FakeServers, types: &Catalogue) {
    servers.settle(|servers| look(servers, Observed::Known(types)));
}

fn name_type(servers: &mut FakeServers, name: &str) {
    change(servers, "web", |one| {
        one.data["spec"]["template"]["spec"] = json!({ "runtime": { "resources": { "instanceType": name } } });
    });
}

fn on_the_hub(servers: &FakeServers) -> (Option<&str>, Option<&str>) {
    let made = in_hub(servers, "web").unwrap();
    let name = made.text("/spec/template/spec/runtime/resources/instanceType");
    (name, made.annotation(INSTANCE_TYPE_SIZE))
}

/// One of this type, which the hub has.
fn carried(name: &str, types: &Catalogue) -> FakeServers {
    let mut servers = servers(&[("web", "DFW")]);
    name_type(&mut servers, name);
    settle(&mut servers, types);
    servers
}

#[test]
fn the_size_goes_with_the_type_in_one_write_and_none_is_needed_for_the_built_in_one() {
    let types = catalogue(&[("acme/large", "4"), ("datumcloud/d1-standard-2", "2")]);
    let mut servers = carried("acme/large", &types);
    assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)));
    name_type(&mut servers, "datumcloud/d1-standard-2");
    let plan = look(&servers, Observed::Known(&types));
    assert_eq!(plan.actions.len(), 1, "{plan:?}");
    settle(&mut servers, &types);
    let resized = Some("datumcloud/d1-standard-2 cpu=2 memory=8Gi");
    assert_eq!(on_the_hub(&servers), (Some("datumcloud/d1-standard-2"), resized));
    // A larger one of an object counts, and also the built-in size if an object says so.
    settle(&mut servers, &catalogue(&[("datumcloud/d1-standard-2", "1")]));
    let again = Some("datumcloud/d1-standard-2 cpu=1 memory=8Gi");
    assert_eq!(on_the_hub(&servers), (Some("datumcloud/d1-standard-2"), again));
}

#[test]
fn without_a_catalogue_what_was_carried_keeps_its_size_and_only_what_is_new_has_the_built_in_one() {
    let built_in = "datumcloud/d1-standard-2";
    let mut servers = carried(built_in, &catalogue(&[(built_in, "2")]));
    let resized = Some("datumcloud/d1-standard-2 cpu=2 memory=8Gi");
    assert_eq!(on_the_hub(&servers), (Some(built_in), resized));
    assert!(
        look(&servers, Observed::Known(&Catalogue::default()))
            .actions
            .is_empty(),
        "it is written"
    );
    // What it asks for is carried as before.
    change(&mut servers, "web", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3)
    });
    settle(&mut servers, &Catalogue::default());
    assert_eq!(on_the_hub(&servers).1, resized);
    let replicas = in_hub(&servers, "web").unwrap().int("/spec/scaleSettings/minReplicas");
    assert_eq!(replicas, Some(3));
    // What cannot be read is no size, nor is what a tenant says.
    let forged = "datumcloud/d1-standard-2 cpu=1m memory=1Mi".to_owned();
    change(&mut servers, "web", |one| {
        one.metadata.annotations = Some([(INSTANCE_TYPE_SIZE.to_owned(), forged.clone())].into());
    });
    settle(&mut servers, &Catalogue::default());
    assert_eq!(on_the_hub(&servers).1, resized);
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        let all = one.metadata.annotations.get_or_insert_default();
        all.insert(INSTANCE_TYPE_SIZE.to_owned(), "nonsense".to_owned());
    });
    settle(&mut servers, &Catalogue::default());
    assert_eq!(on_the_hub(&servers).1, None);
    let mut new = self::servers(&[("web", "DFW")]);
    name_type(&mut new, built_in);
    change(&mut new, "web", |one| {
        one.metadata.annotations = Some([(INSTANCE_TYPE_SIZE.to_owned(), forged)].into());
    });
    settle(&mut new, &Catalogue::default());
    assert_eq!(on_the_hub(&new), (Some(built_in), None));
}

#[test]
fn what_a_tenant_says_of_a_size_is_neither_carried_nor_believed() {
    let forged = "acme/large cpu=1m memory=1Mi";
    let types = catalogue(&[("acme/large", "4")]);
    let mut servers = servers(&[("web", "DFW")]);
    name_type(&mut servers, "acme/large");
    change(&mut servers, "web", |one| {
        one.metadata.annotations = Some([(INSTANCE_TYPE_SIZE.to_owned(), forged.to_owned())].into());
        one.data["spec"]["template"]["metadata"] = json!({ "annotations": { INSTANCE_TYPE_SIZE: forged } });
    });
    settle(&mut servers, &types);
    assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)));
    let made = in_hub(&servers, "web").unwrap();
    assert_eq!(made.at("/spec/template/metadata/annotations"), Some(&json!({})));
    // Nor what another client wrote on the hub, or something that cannot be read.
    for found in [forged, "nonsense"] {
        servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
            let all = one.metadata.annotations.get_or_insert_default();
            all.insert(INSTANCE_TYPE_SIZE.to_owned(), found.to_owned());
        });
        settle(&mut servers, &types);
        assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)), "{found}");
    }
    // Without the type a forged size is none.
    let mut other = self::servers(&[("web", "DFW")]);
    name_type(&mut other, "acme/none");
    change(&mut other, "web", |one| {
        let forged = "acme/none cpu=1m memory=1Mi".to_owned();
        one.metadata.annotations = Some([(INSTANCE_TYPE_SIZE.to_owned(), forged)].into());
    });
    settle(&mut other, &types);
    assert!(in_hub(&other, "web").is_none());
}

#[test]
fn a_removed_type_keeps_its_size_and_another_that_is_not_there_waits() {
    let (types, without) = (catalogue(&[("acme/large", "4")]), catalogue(&[("acme/other", "4")]));
    let mut servers = carried("acme/large", &types);
    change(&mut servers, "web", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3)
    });
    settle(&mut servers, &without);
    assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)));
    let replicas = |servers: &FakeServers| in_hub(servers, "web").unwrap().int("/spec/scaleSettings/minReplicas");
    assert_eq!(
        replicas(&servers),
        Some(3),
        "the object has its size: what it asks for is carried"
    );
    name_type(&mut servers, "acme/none");
    change(&mut servers, "web", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(1)
    });
    settle(&mut servers, &without);
    assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)));
    assert_eq!(replicas(&servers), Some(1), "fewer replicas are carried");
    let status = in_project(&servers, "web").at("/status").cloned().unwrap();
    let available = crate::conditions::find(&status, "Available").unwrap();
    assert_eq!(available["reason"], "InstanceTypeNotFound");
    assert!(
        available["message"]
            .as_str()
            .unwrap()
            .contains("Instance type acme/none is not in the catalogue")
    );
    // It comes.
    settle(&mut servers, &catalogue(&[("acme/none", "1")]));
    assert_eq!(
        on_the_hub(&servers),
        (Some("acme/none"), Some("acme/none cpu=1 memory=8Gi"))
    );
    let status = in_project(&servers, "web").at("/status").cloned().unwrap();
    assert_ne!(
        crate::conditions::find(&status, "Available").unwrap()["reason"],
        "InstanceTypeNotFound"
    );
}

#[test]
fn a_type_that_became_larger_waits_while_growth_is_held() {
    let mut servers = carried("acme/large", &catalogue(&[("acme/large", "4")]));
    servers.remove(&plane(), kind::LOCATION_BINDING, "", "binding-DFW");
    settle(&mut servers, &catalogue(&[("acme/large", "5")]));
    assert_eq!(on_the_hub(&servers), (Some("acme/large"), Some(LARGE)));
    servers.put(&plane(), kind::LOCATION_BINDING, location_binding("DFW"));
    settle(&mut servers, &catalogue(&[("acme/large", "5")]));
    assert_eq!(on_the_hub(&servers).1, Some("acme/large cpu=5 memory=8Gi"));
}

#[test]
fn without_a_catalogue_nothing_new_is_carried_and_nothing_changes_of_what_was() {
    let mut servers = carried("acme/large", &catalogue(&[("acme/large", "4")]));
    change(&mut servers, "web", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3)
    });
    servers.settle(|servers| look(servers, Observed::Unknown));
    let replicas = in_hub(&servers, "web").unwrap().int("/spec/scaleSettings/minReplicas");
    assert_eq!((replicas, on_the_hub(&servers).1), (Some(3), Some(LARGE)));
    let mut new = self::servers(&[("web", "DFW")]);
    name_type(&mut new, "datumcloud/d1-standard-2");
    new.settle(|servers| look(servers, Observed::Unknown));
    assert!(in_hub(&new, "web").is_none());
    assert!(
        look(&new, Observed::Unknown)
            .notes
            .contains(&Note::Unknown(Plane::Discovery))
    );
}
