//! Every gate and terminal condition on the way to the hub, with every kind of change.

use popcell_api::annotations::{PAUSED, PAUSED_TRUE};

use super::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gate {
    None,
    /// The project has no usable binding of the city.
    NoMatchingLocation,
    BindingsUnknown,
    /// Another WorkloadDeployment writes the city in other letters.
    CityCodeConflict,
    /// It was taken in under other rules.
    InvalidCityCode,
    Paused,
}

/// One that the hub has with three replicas and two entries, and then the gate is closed.
fn carried(gate: Gate) -> FakeServers {
    let city = if gate == Gate::InvalidCityCode { "d_w" } else { "DFW" };
    let mut servers = servers(&[("web", "DFW")]);
    change(&mut servers, "web", |one| {
        one.data["spec"]["scaleSettings"]["minReplicas"] = json!(3);
        one.data["spec"]["template"]["spec"] = json!({ "volumes": [{ "name": "a" }, { "name": "b" }] });
    });
    settle(&mut servers, "web");
    for one in [Plane::Hub, plane()] {
        let namespace = if one == Plane::Hub { "ns-n1" } else { "default" };
        servers.change(&one, kind::WORKLOAD_DEPLOYMENT, namespace, "web", |one| {
            one.data["spec"]["cityCode"] = json!(city);
        });
    }
    match gate {
        Gate::NoMatchingLocation => servers.remove(&plane(), kind::LOCATION_BINDING, "", "binding-DFW"),
        Gate::CityCodeConflict => {
            servers.put(&plane(), kind::WORKLOAD_DEPLOYMENT, wd("other", "dfw"));
            let policy = json!({ "metadata": { "name": names::city_policy("dfw"), "namespace": "ns-n1", "uid": "p",
                "resourceVersion": "1" }, "spec": { "resourceSelectors": [{ "labelSelector": { "matchLabels": {
                "topology.datum.net/city-code": "dfw" } } }] } });
            servers.put(&Plane::Hub, kind::PROPAGATION_POLICY, object(policy));
        }
        Gate::Paused => change(&mut servers, "web", |one| {
            one.metadata.annotations = Some([(PAUSED.to_owned(), PAUSED_TRUE.to_owned())].into());
        }),
        Gate::None | Gate::BindingsUnknown | Gate::InvalidCityCode => {}
    }
    servers
}

fn look(servers: &FakeServers, gate: Gate) -> Plan {
    if gate != Gate::BindingsUnknown {
        return reconcile(servers, "web");
    }
    let Some(deployment) = servers.get(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web") else {
        return Plan::default();
    };
    decide(&Observation {
        project: P,
        deployment,
        siblings: &[deployment],
        workload: Observed::Unknown,
        bindings: Observed::Unknown,
        namespace: Observed::Known(servers.get(&plane(), NAMESPACE, "", "default")),
        hub: Observed::Known(Hub {
            namespaces: &servers.list(&Plane::Hub, NAMESPACE),
            deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
            policy: None,
            binding: None,
            held: None,
        }),
        types: Observed::Known(&Catalogue::default()),
        carries_data: true,
        spec_echoes: &SpecEchoes::default(),
        rejected: &[],
        elsewhere: None,
        now: testing::now(),
    })
}

#[test]
fn what_holds_growth_holds_neither_what_shrinks_nor_what_repairs_nor_what_goes() {
    let volumes = |names: &[&str]| json!(names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>());
    for gate in [
        Gate::None,
        Gate::NoMatchingLocation,
        Gate::BindingsUnknown,
        Gate::CityCodeConflict,
        Gate::InvalidCityCode,
        Gate::Paused,
    ] {
        let (moves, grows) = (gate != Gate::Paused, gate == Gate::None);
        for (replicas, names, carried_over) in [
            (2, &["a", "b"][..], moves),
            (3, &["b"], moves),
            (4, &["a", "b"], grows),
            (3, &["a", "b", "c"], grows),
        ] {
            let mut servers = carried(gate);
            change(&mut servers, "web", |one| {
                one.data["spec"]["scaleSettings"]["minReplicas"] = json!(replicas);
                one.data["spec"]["template"]["spec"]["volumes"] = volumes(names);
            });
            let desired = in_project(&servers, "web").at("/spec").cloned();
            servers.settle(|servers| look(servers, gate));
            let spec = in_hub(&servers, "web").unwrap().at("/spec").cloned();
            assert_eq!(spec == desired, carried_over, "{gate:?}: {replicas}, {names:?}");
        }
        let mut servers = carried(gate);
        servers.delete(&plane(), kind::WORKLOAD_DEPLOYMENT, "default", "web");
        servers.settle(|servers| look(servers, gate));
        assert_eq!(in_hub(&servers, "web").is_none(), moves, "{gate:?}: delete");
    }
}
