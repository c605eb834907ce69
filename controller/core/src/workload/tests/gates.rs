//! Every gate and terminal condition of a Workload, with every kind of change: what holds growth holds nothing else.

use super::*;

/// What the user does to a Workload that runs in two cities with three replicas each.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// One replica less.
    FewerReplicas,
    /// A variable and a port less.
    FewerEntries,
    /// A city less.
    FewerCities,
    /// Another image.
    Image,
    /// Another writer took our label away.
    Label,
    /// More replicas.
    MoreReplicas,
    /// Another variable.
    MoreEntries,
    /// Another city.
    MoreCities,
    /// The Workload goes.
    Delete,
}

const ALL: [Edit; 9] = [
    Edit::FewerReplicas,
    Edit::FewerEntries,
    Edit::FewerCities,
    Edit::Image,
    Edit::Label,
    Edit::MoreReplicas,
    Edit::MoreEntries,
    Edit::MoreCities,
    Edit::Delete,
];

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gate {
    None,
    NetworkMissing,
    NetworksUnknown,
    BindingLost,
    BindingsUnknown,
    /// The city was taken in under other rules.
    InvalidCityCode,
    /// The name of another city is held by another Workload.
    NameConflict,
    Paused,
}

const CITY: &str = "DFW";

fn container() -> Value {
    json!({ "name": "main", "image": "old", "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }],
        "ports": [{ "name": "web", "port": 80 }, { "name": "admin", "port": 81 }] })
}

fn running(city: &str) -> FakeServers {
    let mut servers = servers(json!([placement("us", &[city, "ORD"])]), &[city, "ORD", "LHR", "MIA"]);
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(3);
        workload.data["spec"]["template"]["spec"]["runtime"] = json!({ "sandbox": { "containers": [container()] } });
    });
    servers.settle(decide_in);
    servers
}

fn change(servers: &mut FakeServers, what: Edit, city: &str) {
    if let Edit::Delete = what {
        let plane = Plane::Project("p".to_owned());
        return servers.delete(&plane, kind::WORKLOAD, "default", "web");
    }
    if let Edit::Label = what {
        let name = crate::names::workload_deployment("web", "us", city);
        return edit_deployment(servers, &name, |one| one.metadata.labels = None);
    }
    edit(servers, |workload| {
        workload.metadata.generation = workload.metadata.generation.map(|old| old + 1);
        let spec = &mut workload.data["spec"];
        let placement = &mut spec["placements"][0];
        match what {
            Edit::FewerReplicas => placement["scaleSettings"]["minReplicas"] = json!(2),
            Edit::MoreReplicas => placement["scaleSettings"]["minReplicas"] = json!(4),
            Edit::FewerCities => placement["cityCodes"] = json!([city]),
            Edit::MoreCities => placement["cityCodes"] = json!([city, "ORD", "LHR"]),
            _ => {}
        }
        let container = &mut spec["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
        match what {
            Edit::Image => container["image"] = json!("new"),
            Edit::FewerEntries => {
                container["env"] = json!([{ "name": "A", "value": "1" }]);
                container["ports"] = json!([]);
            }
            Edit::MoreEntries => {
                let env = container["env"].as_array_mut().unwrap();
                env.push(json!({ "name": "C", "value": "3" }));
            }
            _ => {}
        }
    });
}

/// Passes in the planes as the gate makes it.
fn look(servers: &FakeServers, gate: Gate) -> Plan {
    let plane = Plane::Project("p".to_owned());
    let Some(workload) = servers.get(&plane, kind::WORKLOAD, "default", "web") else {
        return Plan::default();
    };
    let (bindings, networks) = (
        servers.list(&plane, kind::LOCATION_BINDING),
        servers.list(&plane, kind::NETWORK),
    );
    decide(&Observation {
        project: "p",
        workload,
        deployments: &servers.list(&plane, kind::WORKLOAD_DEPLOYMENT),
        bindings: match gate {
            Gate::BindingsUnknown => Observed::Unknown,
            _ => Observed::Known(&bindings),
        },
        networks: match gate {
            Gate::NetworksUnknown => Observed::Unknown,
            _ => Observed::Known(&networks),
        },
        types: Observed::Known(&Catalogue::default()),
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        now: testing::now(),
    })
}

fn close(servers: &mut FakeServers, gate: Gate) {
    let plane = Plane::Project("p".to_owned());
    match gate {
        Gate::NetworkMissing => servers.remove(&plane, kind::NETWORK, "default", "default"),
        Gate::BindingLost => servers.remove(&plane, kind::LOCATION_BINDING, "", "b-DFW"),
        Gate::NameConflict => {
            let other = json!({ "metadata": { "name": "web-us-mia", "namespace": "default", "uid": "x",
                "resourceVersion": "9" }, "spec": { "workloadRef": { "name": "web-us", "uid": "w9" },
                "cityCode": "MIA", "placementName": "" } });
            servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, object(other));
            edit(servers, |workload| {
                let cities = workload.data["spec"]["placements"][0]["cityCodes"].as_array_mut();
                cities.unwrap().push(json!("MIA"));
            });
            servers.settle(decide_in);
        }
        Gate::Paused => edit(servers, |workload| {
            workload.metadata.annotations =
                Some([("compute.datumapis.com/paused".to_owned(), "true".to_owned())].into());
        }),
        Gate::None | Gate::NetworksUnknown | Gate::BindingsUnknown | Gate::InvalidCityCode => {}
    }
}

/// Whether the state is as the edit asks for, as far as WorkloadDeployments show it.
fn is_done(servers: &FakeServers, what: Edit, city: &str) -> bool {
    let plane = Plane::Project("p".to_owned());
    let get = |name: &str| servers.get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", name);
    let name = crate::names::workload_deployment("web", "us", city);
    let Some(one) = get(&name) else {
        return matches!(what, Edit::Delete) && get("web-us-ord").is_none();
    };
    let container = "/spec/template/spec/runtime/sandbox/containers/0";
    let count = |list: &str| one.items(&format!("{container}/{list}")).len();
    match what {
        Edit::FewerReplicas => one.int("/spec/scaleSettings/minReplicas") == Some(2),
        Edit::MoreReplicas => one.int("/spec/scaleSettings/minReplicas") == Some(4),
        Edit::FewerEntries => (count("env"), count("ports")) == (1, 0),
        Edit::MoreEntries => count("env") == 3,
        Edit::Image => one.text(&format!("{container}/image")) == Some("new"),
        Edit::Label => one.label(labels::WORKLOAD_UID) == Some("w1"),
        Edit::FewerCities => get("web-us-ord").is_none(),
        Edit::MoreCities => get("web-us-lhr").is_some(),
        Edit::Delete => false,
    }
}

#[test]
fn what_holds_growth_holds_neither_what_shrinks_nor_what_repairs_nor_what_goes() {
    let shrinks = [Edit::FewerReplicas, Edit::FewerEntries, Edit::FewerCities];
    let growth = |what: Edit| matches!(what, Edit::MoreReplicas | Edit::MoreEntries | Edit::MoreCities);
    assert!(ALL.iter().filter(|what| growth(**what)).count() == shrinks.len());
    for gate in [
        Gate::None,
        Gate::NetworkMissing,
        Gate::NetworksUnknown,
        Gate::BindingLost,
        Gate::BindingsUnknown,
        Gate::InvalidCityCode,
        Gate::NameConflict,
        Gate::Paused,
    ] {
        for what in ALL {
            let city = if gate == Gate::InvalidCityCode { "d_w" } else { CITY };
            let mut servers = if city == CITY {
                running(CITY)
            } else {
                taken_in_before(city)
            };
            close(&mut servers, gate);
            change(&mut servers, what, city);
            servers.settle(|servers| look(servers, gate));
            let expected = match gate {
                Gate::None | Gate::NameConflict => true,
                // It is what the user asks for: nothing is written, not even for a deletion.
                Gate::Paused => false,
                // One city's gate is none of another's.
                Gate::BindingLost | Gate::InvalidCityCode if matches!(what, Edit::MoreCities) => true,
                _ => !growth(what),
            };
            assert_eq!(is_done(&servers, what, city), expected, "{gate:?}: {what:?}");
        }
    }
}

/// A Workload whose first city has a code that cannot be one, with its WorkloadDeployment from before that was checked.
fn taken_in_before(city: &str) -> FakeServers {
    let mut servers = running(CITY);
    let plane = Plane::Project("p".to_owned());
    let mut one = servers
        .get(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw")
        .unwrap()
        .clone();
    servers.remove(&plane, kind::WORKLOAD_DEPLOYMENT, "default", "web-us-dfw");
    one.metadata.name = Some(crate::names::workload_deployment("web", "us", city));
    one.data["spec"]["cityCode"] = json!(city);
    servers.put(&plane, kind::WORKLOAD_DEPLOYMENT, one);
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["cityCodes"] = json!([city, "ORD"])
    });
    servers.settle(decide_in);
    assert_eq!(decide_in(&servers).terminal.unwrap().reason, reasons::INVALID_CITY_CODE);
    servers
}

#[test]
fn a_template_that_newly_names_a_missing_network_waits_and_fewer_replicas_do_not() {
    let mut servers = running(CITY);
    edit(&mut servers, |workload| {
        let template = &mut workload.data["spec"]["template"]["spec"];
        template["networkInterfaces"][0]["network"]["name"] = json!("other");
        template["runtime"]["sandbox"]["containers"][0]["image"] = json!("new");
    });
    change(&mut servers, Edit::FewerReplicas, CITY);
    servers.settle(decide_in);
    assert!(is_done(&servers, Edit::FewerReplicas, CITY) && !is_done(&servers, Edit::Image, CITY));
    let (_, reason, message) = available(&status(&servers));
    assert_eq!(
        (reason.as_str(), message.as_str()),
        ("NetworkNotFound", "Unable to find networks: other")
    );
    assert_eq!(
        status(&servers)["observedGeneration"],
        3,
        "not all of this generation is done"
    );
    let plane = Plane::Project("p".to_owned());
    servers.put(&plane, kind::NETWORK, network("default", "other"));
    servers.settle(decide_in);
    assert!(is_done(&servers, Edit::Image, CITY));
    assert_eq!(status(&servers)["observedGeneration"], 4);
}

#[test]
fn another_spelling_of_a_city_waits_for_the_network_and_takes_nothing_away_meanwhile() {
    let mut servers = running(CITY);
    close(&mut servers, Gate::NetworkMissing);
    let plane = Plane::Project("p".to_owned());
    servers.put(&plane, kind::LOCATION_BINDING, binding("dfw"));
    edit(&mut servers, |workload| {
        workload.data["spec"]["placements"][0]["cityCodes"] = json!(["dfw", "ORD"])
    });
    servers.settle(decide_in);
    assert_eq!(names(&servers), ["web-us-dfw", "web-us-ord"]);
}
