mod access;
mod bounds;
mod deployment;
mod instance;
mod metadata;
mod migrating;

use super::*;
use crate::testing::object;
use serde_json::{Value, json};

const KEY: &str = "me:ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@host";

pub(super) fn workload() -> Value {
    json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
        "metadata": { "name": "web", "namespace": "default", "uid": "u" },
        "spec": {
            "placements": [{ "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
            "template": { "spec": {
                "runtime": {
                    "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "web", "image": "i",
                        "ports": [{ "name": "http", "port": 80 }],
                        "volumeAttachments": [{ "name": "data", "mountPath": "/data" }] }] },
                },
                "networkInterfaces": [{ "network": { "name": "default" } }],
                "volumes": [{ "name": "data", "disk": { "template": { "spec": { "type": "pd-standard",
                    "resources": { "requests": { "storage": "10Gi" } },
                    "populator": { "filesystem": { "type": "ext4" } } } } } }],
            } },
        },
    })
}

fn machine() -> Value {
    let mut whole = workload();
    whole["spec"]["template"]["metadata"] = json!({ "annotations": { "compute.datumapis.com/ssh-keys": KEY } });
    let instance = &mut whole["spec"]["template"]["spec"];
    instance["runtime"] = json!({ "resources": { "instanceType": "datumcloud/d1-standard-2" },
        "virtualMachine": { "volumeAttachments": [{ "name": "boot" }] } });
    instance["volumes"] = json!([{ "name": "boot", "disk": { "template": { "spec": { "type": "pd-standard",
        "populator": { "image": { "name": "datumcloud/ubuntu-2204-lts" } } } } } }]);
    whole
}

fn faults(old: Option<Value>, new: Value) -> Vec<String> {
    let old = old.map(object);
    let cities = ["DFW", "ORD"].into();
    let errors = validate(
        old.as_ref(),
        &object(new),
        &cities,
        Observed::Known(&Catalogue::default()),
    );
    errors.iter().map(ToString::to_string).collect()
}

/// Sets or removes (null) a value by pointer; the last segment may be new.
fn set(whole: &mut Value, pointer: &str, value: Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/");
    match whole.pointer_mut(parent).unwrap_or_else(|| panic!("no {parent}")) {
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        Value::Object(fields) if value.is_null() => drop(fields.remove(&last)),
        parent => parent[last] = value,
    }
}

fn table(base: fn() -> Value, rows: &[(&str, Value, &str)]) {
    assert_eq!(faults(None, base()), Vec::<String>::new());
    for (pointer, value, expected) in rows {
        let mut whole = base();
        set(&mut whole, pointer, value.clone());
        let found = faults(None, whole.clone());
        assert!(
            found.iter().any(|one| one.contains(expected)),
            "{pointer} = {value}: {found:#?} lacks {expected}"
        );
        // An update keeps the same rules.
        let mut other = base();
        other["spec"]["template"]["spec"]["other"] = json!(1);
        assert_eq!(faults(Some(other), whole), found, "{pointer} = {value}");
    }
}

#[test]
fn placements_and_scale() {
    let at = |rest: &str| format!("/spec/placements/0{rest}");
    let (min, max, metrics) = (
        at("/scaleSettings/minReplicas"),
        at("/scaleSettings/maxReplicas"),
        at("/scaleSettings/metrics"),
    );
    let (name, codes, city) = (at("/name"), at("/cityCodes"), at("/cityCodes/0"));
    let metric = |target: Value| json!([{ "resource": { "name": "cpu", "target": target } }]);
    table(
        workload,
        &[
            ("/spec/placements", json!([]), "spec.placements: Required value"),
            (&name, json!(""), "spec.placements[0].name: Required value"),
            (
                &name,
                json!("A_b"),
                "spec.placements[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must consist",
            ),
            (&codes, json!([]), "spec.placements[0].cityCodes: Required value"),
            (
                &city,
                json!("LHR"),
                r#"spec.placements[0].cityCodes[0]: Unsupported value: "LHR": supported values: "DFW", "ORD""#,
            ),
            (
                &city,
                json!("nyc_1"),
                "spec.placements[0].cityCodes[0]: Invalid value: \"nyc_1\"",
            ),
            (
                &codes,
                json!(["DFW", "DFW"]),
                "spec.placements[0].cityCodes[1]: Invalid value: \"DFW\": has the same WorkloadDeployment \"web-us-dfw\" as spec.placements[0].cityCodes[0]",
            ),
            (
                &min,
                json!(0),
                "spec.placements[0].scaleSettings.minReplicas: Invalid value: 0: must be greater than 0",
            ),
            (
                &min,
                json!(1001),
                "minReplicas: Invalid value: 1001: must be less than or equal to 1000",
            ),
            (
                &max,
                json!(2),
                "spec.placements[0].scaleSettings.metrics: Required value",
            ),
            // None of these would be done as it is asked for.
            (
                &max,
                json!(1001),
                "spec.placements[0].scaleSettings.maxReplicas: Invalid value: 1001: must be less than or equal to 1000",
            ),
            (
                &max,
                json!(0),
                "scaleSettings.maxReplicas: Invalid value: 0: must be greater than or equal to minReplicas",
            ),
            (
                &metrics,
                metric(json!({ "averageUtilization": 50 })),
                "scaleSettings.maxReplicas: Required value: must be given with metrics",
            ),
            (
                &metrics,
                json!([{}]),
                "scaleSettings.metrics[0].resource: Required value",
            ),
            (
                &metrics,
                metric(json!({})),
                "metrics[0].resource.target: Required value",
            ),
            (
                &metrics,
                metric(json!({ "value": "1", "averageValue": "1" })),
                "metrics[0].resource.target: Forbidden",
            ),
            (
                &metrics,
                metric(json!({ "averageValue": "0" })),
                "target.averageValue: Invalid value: \"0\": must be greater than 0",
            ),
            (
                &metrics,
                metric(json!({ "averageUtilization": 0 })),
                "target.averageUtilization: Invalid value: 0",
            ),
            (
                &metrics,
                json!([{ "resource": { "name": "memory", "target": {} } }]),
                "spec: Invalid value",
            ),
        ],
    );
}

#[test]
fn containers_ports_and_attachments() {
    let container = "/spec/template/spec/runtime/sandbox/containers/0";
    let at = |rest: &str| format!("{container}/{rest}");
    let (name, image, resources) = (at("name"), at("image"), at("resources"));
    let (port, port_name, ports) = (at("ports/0/port"), at("ports/0/name"), at("ports"));
    let (attachments, attached) = (at("volumeAttachments"), at("volumeAttachments/0/name"));
    let runtime = "/spec/template/spec/runtime";
    let (kind, requests) = (
        format!("{runtime}/resources/instanceType"),
        format!("{runtime}/resources/requests"),
    );
    let (sandbox, machine) = (format!("{runtime}/sandbox"), format!("{runtime}/virtualMachine"));
    let (containers, secrets) = (format!("{sandbox}/containers"), format!("{sandbox}/imagePullSecrets"));
    let two = json!([{ "name": "a", "image": "i" }, { "name": "a", "image": "i" }]);
    table(
        workload,
        &[
            (
                &kind,
                json!("x"),
                r#"runtime.resources.instanceType: Unsupported value: "x": supported values: "datumcloud/d1-standard-2""#,
            ),
            (
                &requests,
                json!({ "cpu": "1" }),
                "spec.template.spec.runtime.resources.requests: Forbidden: not implemented",
            ),
            (&sandbox, json!(null), "spec.template.spec.runtime: Required value"),
            (
                &machine,
                json!({ "volumeAttachments": [{ "name": "data" }] }),
                "spec.template.spec.runtime: Forbidden",
            ),
            (&containers, json!([]), "sandbox.containers: Required value"),
            (&containers, two, r#"containers[1].name: Duplicate value: "a""#),
            (&name, json!(""), "sandbox.containers[0].name: Required value"),
            (&image, json!(""), "sandbox.containers[0].image: Required value"),
            (
                &resources,
                json!({ "limits": { "cpu": "1" } }),
                "containers[0].resources: Forbidden: not implemented",
            ),
            (
                &secrets,
                json!([{ "name": "" }]),
                "sandbox.imagePullSecrets[0].name: Required value",
            ),
            (&port_name, json!(""), "ports[0].name: Required value"),
            (&port_name, json!("9090"), "ports[0].name: Invalid value: \"9090\""),
            (&port_name, json!("a--b"), "ports[0].name: Invalid value"),
            (
                &ports,
                json!([{ "name": "a", "port": 1 }, { "name": "a", "port": 2 }]),
                r#"ports[1].name: Duplicate value: "a""#,
            ),
            (
                &port,
                json!(0),
                "ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
            ),
            (&port, json!(65536), "ports[0].port: Invalid value: 65536"),
            (
                &attached,
                json!("none"),
                r#"volumeAttachments[0].name: Not found: "none""#,
            ),
            (
                &attachments,
                json!([{ "name": "data", "mountPath": "/a" }, { "name": "data", "mountPath": "/a" }]),
                r#"volumeAttachments[1].mountPath: Duplicate value: "/a""#,
            ),
            (
                "/spec/template/spec/networkInterfaces",
                json!([]),
                "spec.template.spec.networkInterfaces: Required value",
            ),
            (
                "/spec/template/spec/networkInterfaces/0/network/name",
                json!("A"),
                "networkInterfaces[0].network.name: Invalid value",
            ),
        ],
    );
}

#[test]
fn sources_of_environment_variables() {
    const SOURCES: &str = "/spec/template/spec/runtime/sandbox/containers/0/envFrom";
    const PLACE: &str = "spec.template.spec.runtime.sandbox.containers[0].envFrom[0]";
    let subdomain = "a lowercase RFC 1123 subdomain must consist";
    let prefix = "must consist only of printable ASCII characters other than '='";
    let named = |name: &str| json!({ "name": name, "optional": true });
    for good in [
        json!([]),
        json!([{ "configMapRef": named("a") }, { "secretRef": named("a.b-1"), "prefix": "" }]),
        json!([{ "secretRef": { "name": "a" }, "prefix": "my.A-1 ~" }, { "secretRef": { "name": "a" }, "prefix": "p".repeat(256) }]),
    ] {
        let mut whole = workload();
        set(&mut whole, SOURCES, good.clone());
        assert_eq!(faults(None, whole), Vec::<String>::new(), "{good}");
    }
    let choice = "exactly one of configMapRef and secretRef";
    let rows = [
        (json!({}), format!("{PLACE}: Required value: {choice}")),
        (json!({ "prefix": "A_" }), format!("{PLACE}: Required value: {choice}")),
        (
            json!({ "configMapRef": named("a"), "secretRef": named("a") }),
            format!("{PLACE}: Forbidden: {choice}"),
        ),
        (
            json!({ "configMapRef": {} }),
            format!("{PLACE}.configMapRef.name: Required value"),
        ),
        (
            json!({ "secretRef": named("") }),
            format!("{PLACE}.secretRef.name: Required value"),
        ),
        (
            json!({ "configMapRef": named("../a") }),
            format!("{PLACE}.configMapRef.name: Invalid value: \"../a\": {subdomain}"),
        ),
        (
            json!({ "secretRef": named("A_b") }),
            format!("{PLACE}.secretRef.name: Invalid value: \"A_b\": {subdomain}"),
        ),
        (
            json!({ "secretRef": named("a"), "prefix": "A=" }),
            format!("{PLACE}.prefix: Invalid value: \"A=\": {prefix}"),
        ),
        (
            json!({ "secretRef": named("a"), "prefix": "A\n" }),
            format!("{PLACE}.prefix: Invalid value: \"A\\n\": {prefix}"),
        ),
        (
            json!({ "secretRef": named("a"), "prefix": "\u{e9}" }),
            format!("{PLACE}.prefix: Invalid value: \"\u{e9}\": {prefix}"),
        ),
        (
            json!({ "secretRef": named("a"), "prefix": "p".repeat(257) }),
            format!("{PLACE}.prefix: Too long: may not be more than 256 bytes"),
        ),
    ];
    let rows = rows.each_ref();
    table(
        workload,
        &rows.map(|(source, expected)| (SOURCES, json!([source]), expected.as_str())),
    );
}

#[test]
fn an_unchanged_spec_or_an_object_being_deleted_is_admitted_unread() {
    let mut bad = workload();
    bad["spec"]["placements"] = json!([]);
    assert!(!faults(None, bad.clone()).is_empty());
    // Unchanged spec: a finalizer write.
    let mut finalized = bad.clone();
    finalized["metadata"]["finalizers"] = json!(["x"]);
    assert!(faults(Some(bad.clone()), finalized).is_empty());
    // Being deleted.
    let mut deleting = bad.clone();
    deleting["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(faults(Some(workload()), deleting).is_empty());
    // A changed spec is read.
    assert!(!faults(Some(workload()), bad).is_empty());
}

#[test]
fn a_city_that_was_there_and_lost_its_binding_may_stay() {
    let mut old = workload();
    old["spec"]["placements"][0]["cityCodes"] = json!(["LHR"]);
    let mut new = old.clone();
    new["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(2);
    assert!(faults(Some(old.clone()), new.clone()).is_empty());
    new["spec"]["placements"][0]["cityCodes"] = json!(["LHR", "CDG"]);
    let found = faults(Some(old), new);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("spec.placements[0].cityCodes[1]: Unsupported value: \"CDG\""),
        "{found:?}"
    );
}

#[test]
fn an_unreadable_spec_is_rejected_with_a_reason() {
    for spec in [json!(null), json!([]), json!({}), json!({ "placements": "x" })] {
        let found = faults(None, json!({ "metadata": { "name": "a" }, "spec": spec }));
        assert!(
            found[0].starts_with("spec: Invalid value: \"...\": cannot be read: "),
            "{found:?}"
        );
    }
}

#[test]
fn refusals_read_as_those_of_api_servers() {
    let error = |path: &str| FieldError {
        path: path.to_owned(),
        fault: Fault::Required(String::new()),
    };
    assert_eq!(
        refusal(popcell_api::kind::WORKLOAD, "web", &[error("spec.a")]),
        r#"Workload.compute.datumapis.com "web" is invalid: spec.a: Required value"#
    );
    assert_eq!(
        refusal(popcell_api::kind::WORKLOAD, "web", &[error("a"), error("b")]),
        r#"Workload.compute.datumapis.com "web" is invalid: [a: Required value, b: Required value]"#
    );
}

#[test]
fn a_refusal_is_small_however_much_is_refused() {
    let placement = |number: usize| {
        let cities: Vec<String> = (0..100)
            .map(|city| format!("bad city {number} {city} {}", "x".repeat(2000)))
            .collect();
        json!({ "name": format!("p{number}"), "cityCodes": cities, "scaleSettings": { "minReplicas": 1 } })
    };
    let mut bad = workload();
    bad["spec"]["placements"] = (0..100).map(placement).collect();
    let found = faults(None, bad);
    assert_eq!(found.len(), 101);
    assert_eq!(
        found[100],
        "spec: Forbidden: 9900 more faults are not listed: correct these first"
    );
    let size: usize = found.iter().map(String::len).sum();
    assert!(size < 256 * 1024, "{size} bytes");
}

#[test]
fn of_many_supported_values_the_first_are_listed() {
    let cities: Vec<String> = (0..150).map(|number| format!("C{number:03}")).collect();
    let supported = cities.iter().map(String::as_str).collect();
    let errors = validate(
        None,
        &object(workload()),
        &supported,
        Observed::Known(&Catalogue::default()),
    );
    let [error] = errors.as_slice() else {
        panic!("{errors:?}")
    };
    let reported = error.to_string();
    assert!(reported.ends_with("\"C099\" and 50 more"), "{reported}");
}

#[test]
fn lists_are_bounded_and_what_is_longer_already_may_stay_as_long() {
    let with = |count: usize| {
        let cities = |number: usize| json!([format!("A{number}")]);
        let placements = (0..count).map(|number| {
            json!({ "name": format!("p{number}"), "cityCodes": cities(number), "scaleSettings": { "minReplicas": 1 } })
        });
        let mut whole = workload();
        whole["spec"]["placements"] = placements.collect();
        whole
    };
    let valid: Vec<String> = (0..200).map(|number| format!("A{number}")).collect();
    let reported = |old: Option<Value>, new: Value| -> Vec<String> {
        let errors = validate(
            old.map(object).as_ref(),
            &object(new),
            &valid.iter().map(String::as_str).collect(),
            Observed::Known(&Catalogue::default()),
        );
        errors.iter().map(ToString::to_string).collect()
    };
    let too_many = |given: usize, most: usize| {
        vec![format!(
            "spec.placements: Too many: {given}: must have at most {most} items"
        )]
    };
    assert_eq!(reported(None, with(100)), Vec::<String>::new());
    assert_eq!(reported(None, with(101)), too_many(101, 100));
    assert_eq!(reported(Some(with(100)), with(101)), too_many(101, 100));
    assert_eq!(reported(Some(with(150)), with(149)), Vec::<String>::new());
    assert_eq!(reported(Some(with(150)), with(151)), too_many(151, 150));

    let mut cities = workload();
    cities["spec"]["placements"][0]["cityCodes"] = json!(valid[..101]);
    let expected = ["spec.placements[0].cityCodes: Too many: 101: must have at most 100 items"];
    assert_eq!(reported(None, cities.clone()), expected);
    let mut more = cities.clone();
    more["spec"]["placements"][0]["scaleSettings"]["minReplicas"] = json!(2);
    assert_eq!(reported(Some(cities), more), Vec::<String>::new());

    let of_template = "/spec/template/spec";
    let container = format!("{of_template}/runtime/sandbox/containers/0");
    for (pointer, item, most) in [
        (
            format!("{of_template}/networkInterfaces"),
            json!({ "network": { "name": "n" } }),
            100,
        ),
        (format!("{of_template}/volumes"), json!({ "name": "v" }), 1000),
        (
            format!("{of_template}/runtime/sandbox/containers"),
            json!({ "name": "c", "image": "i" }),
            1000,
        ),
        (
            format!("{of_template}/runtime/sandbox/imagePullSecrets"),
            json!({ "name": "s" }),
            1000,
        ),
        (format!("{container}/ports"), json!({ "name": "p", "port": 1 }), 1000),
        (
            format!("{container}/volumeAttachments"),
            json!({ "name": "data" }),
            1000,
        ),
    ] {
        let mut whole = workload();
        set(&mut whole, &pointer, Value::Array(vec![item; most + 1]));
        let found = faults(None, whole);
        let expected = format!("Too many: {}: must have at most {most} items", most + 1);
        assert!(
            found.iter().any(|one| one.ends_with(&expected)),
            "{pointer}: {:?}",
            found.first()
        );
    }
}

#[test]
fn the_time_of_a_review_goes_by_the_size_of_the_object() {
    // 3 MB: each attachment is looked up among all volumes.
    let volumes: Vec<Value> = (0..30_000)
        .map(|number| json!({ "name": format!("v{number}") }))
        .collect();
    let containers: Vec<Value> = (0..1000)
        .map(|number| {
            let attachments = vec![json!({ "name": "v29999" }); 100];
            json!({ "name": format!("c{number}"), "image": "i", "volumeAttachments": attachments })
        })
        .collect();
    let mut whole = workload();
    whole["spec"]["template"]["spec"]["volumes"] = json!(volumes);
    whole["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"] = json!(containers);
    let new = object(whole);
    // The object decodes once, which is not what is measured.
    assert!(new.at("/spec").is_some());
    let begun = std::time::Instant::now();
    let found = validate(None, &new, &["DFW"].into(), Observed::Known(&Catalogue::default()));
    assert_eq!(found.len(), 101);
    // Three billion comparisons take longer on any machine, and this takes a fraction of a second in a debug build.
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
}

#[test]
fn a_spec_that_nests_too_deeply_is_unchanged_where_its_text_is() {
    let deep = |leaf: &str, finalizers: &str| {
        let nested = format!("{}{leaf}{}", "[".repeat(70), "]".repeat(70));
        Object::read(&format!(
            r#"{{"metadata":{{"name":"web","finalizers":[{finalizers}]}},"spec":{{"placements":[],"more":{nested}}}}}"#
        ))
        .unwrap()
    };
    let old = deep("1", r#""a""#);
    assert!(!is_reviewed(Some(&old), &deep("1", "")), "a finalizer is taken away");
    assert!(!is_deployment_reviewed(Some(&old), &deep("1", "")));
    assert!(is_reviewed(Some(&old), &deep("2", "")), "another spec");
    assert!(is_reviewed(None, &old));
}

/// An update is of one that has its name already, and may make it smaller.
#[test]
fn a_new_workload_has_a_name_of_63_characters_at_most_and_placements_of_any_length() {
    let named = |length: usize| {
        let mut whole = workload();
        whole["metadata"]["name"] = json!("w".repeat(length));
        whole["spec"]["placements"][0]["name"] = json!("p".repeat(63));
        whole
    };
    assert_eq!(faults(None, named(63)), Vec::<String>::new());
    let [fault] = faults(None, named(64)).try_into().unwrap();
    assert!(fault.starts_with("metadata.name: Invalid value: "), "{fault}");
    assert!(fault.ends_with("has 64 characters, at most 63 fit"), "{fault}");
    let mut more = named(64);
    more["spec"]["placements"][0]["cityCodes"] = json!(["DFW", "ORD"]);
    assert_eq!(faults(Some(named(64)), more), Vec::<String>::new());
}

#[test]
fn a_variable_has_a_field_of_its_instance_and_none_of_the_platform() {
    let of = |field: &str| {
        let mut whole = workload();
        let from = json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": field } });
        set(
            &mut whole,
            "/spec/template/spec/runtime/sandbox/containers/0/env",
            json!([{ "name": "A", "value": "a" }, { "name": "B", "valueFrom": from }]),
        );
        faults(None, whole)
    };
    for field in [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.labels['app']",
        "metadata.annotations['Example.com/Note']",
        "status.podIP",
        "status.podIPs",
    ] {
        assert_eq!(of(field), Vec::<String>::new(), "{field}");
    }
    let path = "spec.template.spec.runtime.sandbox.containers[0].env[1].valueFrom.fieldRef.fieldPath";
    for field in [
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
    ] {
        let refused = format!(
            "{path}: Forbidden: a Workload is not shown the node and the account that it runs with: use a field of its own, such as \
             status.podIP"
        );
        assert_eq!(of(field), [refused], "{field}");
    }
    for field in [
        "",
        "metadata.labels",
        "metadata.labels['']",
        "metadata.labels['a b']",
        // As messages write it.
        "metadata.labels['<KEY>']",
        "metadata.annotations['<KEY>']",
        "metadata.annotations['a",
        "status.hostip",
        "spec.nodeName ",
        "status",
    ] {
        let found = of(field);
        let unsupported = format!("{path}: Unsupported value: {field:?}: supported values: \"metadata.name\", ");
        assert!(
            found.len() == 1 && found[0].starts_with(&unsupported),
            "{field}: {found:?}"
        );
    }
    // Of a resource that an Instance has no size of, Kubernetes shows the node's.
    for (resource, is_taken) in [
        ("limits.cpu", true),
        ("requests.memory", true),
        ("limits.ephemeral-storage", false),
    ] {
        let mut whole = workload();
        let from = json!({ "resourceFieldRef": { "resource": resource } });
        set(
            &mut whole,
            "/spec/template/spec/runtime/sandbox/containers/0/env",
            json!([{ "name": "A", "valueFrom": from }]),
        );
        let found = faults(None, whole);
        assert_eq!(found.is_empty(), is_taken, "{found:?}");
        assert!(
            found
                .iter()
                .all(|one| one.contains("resourceFieldRef.resource: Unsupported value")),
            "{found:?}"
        );
    }
}
