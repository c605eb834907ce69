//! What an earlier template named.

use super::*;

fn names(object: &mut Object, config_map: &str) {
    let sandbox = json!({ "containers": [{ "envFrom": [{ "configMapRef": { "name": config_map } }] }] });
    let template = json!({ "spec": { "networkInterfaces": [{ "network": { "name": config_map } }],
        "runtime": { "sandbox": sandbox } } });
    object.data["spec"]["template"] = template;
}

fn kept(servers: &FakeServers) -> Option<&str> {
    in_hub(servers, "web")
        .unwrap()
        .annotation(annotations::PREVIOUS_REFERENCES)
}

#[test]
fn it_goes_on_being_named_until_the_new_one_is_rolled_out() {
    let mut servers = servers(&[("web", "DFW")]);
    change(&mut servers, "web", |one| names(one, "first"));
    settle(&mut servers, "web");
    assert_eq!(kept(&servers), None);
    for (name, all) in [
        ("second", "configmaps/first,networks/first"),
        (
            "third",
            "configmaps/first,configmaps/second,networks/first,networks/second",
        ),
        // Named again, it is no previous one.
        (
            "first",
            "configmaps/second,configmaps/third,networks/second,networks/third",
        ),
    ] {
        change(&mut servers, "web", |one| names(one, name));
        settle(&mut servers, "web");
        assert_eq!(kept(&servers), Some(all));
    }
    let generation = in_hub(&servers, "web").unwrap().generation();
    let status = |observed: Option<i64>, updated: i64| {
        move |one: &mut Object| {
            let status = json!({ "observedGeneration": observed, "replicas": 2, "updatedReplicas": updated });
            one.data["status"] = status;
        }
    };
    for (observed, updated) in [(generation.map(|one| one - 1), 2), (generation, 1), (None, 2)] {
        change_hub(&mut servers, "web", status(observed, updated));
        settle(&mut servers, "web");
        assert!(kept(&servers).is_some(), "{observed:?} {updated}");
    }
    change_hub(&mut servers, "web", status(generation, 2));
    settle(&mut servers, "web");
    assert_eq!(kept(&servers), None);
    assert!(reconcile(&servers, "web").is_unchanged());
}
