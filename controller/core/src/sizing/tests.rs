use super::*;
use crate::testing::object;
use proptest::prelude::*;
use serde_json::json;

/// Without an annotation.
fn plain(spec: &Value) -> Described<'_> {
    Described { spec, type_size: None }
}

fn requests(spec: &Value) -> Vec<(&'static str, i64)> {
    super::requests(plain(spec))
}

fn is_claimed(claim: &Object, spec: &Value) -> bool {
    super::is_claimed(claim, plain(spec))
}

const D1: &str = "datumcloud/d1-standard-2";

fn spec(instance_type: &str, requests: Value, limits: impl IntoIterator<Item = Value>) -> Value {
    let containers: Vec<Value> = limits
        .into_iter()
        .map(|limits| json!({ "name": "c", "resources": { "limits": limits } }))
        .collect();
    json!({ "runtime": { "resources": { "instanceType": instance_type, "requests": requests },
        "sandbox": { "containers": containers } } })
}

fn sized(millicores: i64, mebibytes: i64) -> Vec<(&'static str, i64)> {
    vec![
        ("compute.datumapis.com/instances", 1),
        ("compute.datumapis.com/vcpus", millicores),
        ("compute.datumapis.com/memory", mebibytes),
    ]
}

/// No budget has so much.
const NONE: i64 = i64::MAX;

fn counted() -> Vec<(&'static str, i64)> {
    vec![("compute.datumapis.com/instances", 1)]
}

#[test]
fn the_annotation_is_the_size_of_the_type_that_it_names_after_limits_and_requests() {
    const LARGE: Option<&str> = Some("acme/large cpu=4 memory=8Gi");
    let limits = json!({ "cpu": "500m", "memory": "256Mi" });
    for (spec, type_size, expected) in [
        (spec("acme/large", json!(null), []), LARGE, sized(4000, 8192)),
        (
            spec("acme/large", json!(null), [limits.clone()]),
            LARGE,
            sized(500, 256),
        ),
        (spec("acme/large", json!({ "cpu": "5" }), []), LARGE, sized(5000, 8192)),
        (
            spec("acme/large", json!({ "cpu": "5", "memory": "1Gi" }), []),
            LARGE,
            sized(5000, 1024),
        ),
        (spec("acme/other", json!(null), []), LARGE, sized(NONE, NONE)),
        (spec(D1, json!(null), []), LARGE, sized(1000, 2048)),
        (spec("", json!(null), []), LARGE, counted()),
        // One that cannot be read is no small size, whatever else is said.
        (spec(D1, json!(null), []), Some("nonsense"), sized(NONE, NONE)),
        (spec(D1, json!(null), [limits]), Some("nonsense"), sized(NONE, NONE)),
    ] {
        let described = Described { spec: &spec, type_size };
        assert_eq!(super::requests(described), expected, "{described:?}");
    }
    let (known, other, odd) = (
        spec("acme/large", json!(null), []),
        spec("a/b", json!(null), []),
        Some("nonsense"),
    );
    let (nothing, long) = (json!({}), spec(&"x".repeat(100_000), json!(null), []));
    let why = |spec, type_size| Described { spec, type_size }.why_unsized();
    assert_eq!(why(&known, LARGE), None);
    assert_eq!(
        why(&other, LARGE).unwrap(),
        "the size of instance type a/b is not known"
    );
    assert!(
        why(&known, odd)
            .unwrap()
            .contains(r#"instance-type-size cannot be read: expected "<instance type> cpu="#)
    );
    assert_eq!(why(&nothing, odd), None);
    assert!(why(&long, None).unwrap().len() < 200);
}

#[test]
fn a_size_comes_from_limits_then_requests_then_the_catalogue_then_the_count() {
    let both = json!({ "cpu": "500m", "memory": "256Mi" });
    let cpu = json!({ "cpu": "500m" });
    let asked = json!({ "cpu": "3", "memory": "3Gi" });
    for (spec, expected) in [
        (spec(D1, asked.clone(), [both.clone()]), sized(500, 256)),
        (spec(D1, asked.clone(), [both.clone(), both.clone()]), sized(1000, 512)),
        (spec(D1, asked.clone(), [both.clone(), cpu.clone()]), sized(3000, 3072)),
        (spec(D1, asked.clone(), [json!(null)]), sized(3000, 3072)),
        (spec(D1, asked, []), sized(3000, 3072)),
        (spec(D1, cpu.clone(), [cpu.clone()]), sized(1000, 2048)),
        (spec("other", cpu.clone(), [cpu]), sized(NONE, NONE)),
        (spec("", json!(null), [both]), sized(500, 256)),
        (
            json!({ "runtime": { "virtualMachine": {}, "resources": { "instanceType": D1 } } }),
            sized(1000, 2048),
        ),
        (json!({}), counted()),
        (json!(null), counted()),
        (json!({ "runtime": { "resources": { "instanceType": "" } } }), counted()),
        (json!([1]), sized(NONE, NONE)),
        (
            json!({ "runtime": { "sandbox": { "containers": {} }, "resources": [] } }),
            sized(NONE, NONE),
        ),
    ] {
        assert_eq!(requests(&spec), expected, "{spec}");
    }
}

#[test]
fn amounts_are_rounded_up_and_unreadable_ones_exceed_any_budget() {
    for (cpu, memory, expected) in [
        (json!("0.0001"), json!("1"), sized(1, 1)),
        (json!("1500u"), json!("1025Ki"), sized(2, 2)),
        (json!(2), json!(2_097_152), sized(2000, 2)),
        (json!("1"), json!("1G"), sized(1000, 954)),
        (json!("1"), json!("1024Ki"), sized(1000, 1)),
        (json!("0"), json!("0"), counted()),
        (json!("0"), json!("1Gi"), sized(NONE, NONE)),
        (json!("-1"), json!("1Gi"), sized(NONE, 1024)),
        (json!("lots"), json!("1Gi"), sized(NONE, 1024)),
        (json!("1"), json!(true), sized(1000, NONE)),
        (json!("1e17"), json!("1Ei"), sized(NONE, 1 << 40)),
        (json!("1e99"), json!("1e999"), sized(NONE, NONE)),
        (json!("1"), json!("1e-99"), sized(1000, 1)),
    ] {
        let limits = json!({ "cpu": cpu, "memory": memory });
        assert_eq!(requests(&spec("", json!(null), [limits.clone()])), expected, "{limits}");
    }
    // The sum is rounded, not each part.
    let half = json!({ "cpu": "500u", "memory": "512Ki" });
    assert_eq!(requests(&spec("", json!(null), [half.clone(), half])), sized(1, 1));
}

#[test]
fn a_size_that_is_said_in_part_is_never_less_than_that_part() {
    let large = json!({ "cpu": "100", "memory": "100Gi" });
    let (cpu, memory) = (json!({ "cpu": "100" }), json!({ "memory": "100Gi" }));
    let none = json!(null);
    for (what, spec, expected) in [
        (
            "limits in some containers",
            spec(D1, none.clone(), [large.clone(), none.clone()]),
            sized(100_000, 102_400),
        ),
        (
            "limits of one resource",
            spec(D1, none.clone(), [cpu.clone()]),
            sized(100_000, 2048),
        ),
        (
            "limits of different resources",
            spec(D1, none.clone(), [cpu.clone(), memory]),
            sized(100_000, 102_400),
        ),
        (
            "requests of one resource",
            spec(D1, cpu.clone(), []),
            sized(100_000, 2048),
        ),
        (
            "limits above requests, in part",
            spec(D1, json!({ "cpu": "2", "memory": "1Gi" }), [cpu.clone()]),
            sized(100_000, 1024),
        ),
        ("an unknown type", spec("huge", none.clone(), []), sized(NONE, NONE)),
        (
            "an unknown type with limits in part",
            spec("huge", none.clone(), [cpu.clone()]),
            sized(NONE, NONE),
        ),
        (
            "an unknown type whose limits say all",
            spec("huge", none.clone(), [large.clone()]),
            sized(NONE, NONE),
        ),
        (
            "an unknown type whose requests say all",
            spec("huge", large.clone(), []),
            sized(NONE, NONE),
        ),
        (
            "beyond range",
            spec(D1, none.clone(), [json!({ "cpu": "1e40", "memory": "1Gi" })]),
            sized(NONE, 1024),
        ),
        (
            "beyond range in part",
            spec(D1, none.clone(), [json!({ "cpu": "1e40" })]),
            sized(NONE, 2048),
        ),
        (
            "a sum beyond range",
            spec(D1, none.clone(), vec![json!({ "cpu": "9e15", "memory": "7Ei" }); 9]),
            { sized(NONE, 9 * 7 * (1 << 40)) },
        ),
        (
            "requests that cannot be read",
            spec(D1, json!("2"), []),
            sized(NONE, NONE),
        ),
        (
            "limits that cannot be read",
            spec(D1, none.clone(), [json!([])]),
            sized(NONE, NONE),
        ),
        (
            "a type that is no text",
            json!({ "runtime": { "resources": { "instanceType": 7 } } }),
            sized(NONE, NONE),
        ),
        (
            "resources that cannot be read",
            json!({ "runtime": { "resources": "x" } }),
            sized(NONE, NONE),
        ),
        (
            "a container that cannot be read",
            json!({ "runtime": { "resources": { "instanceType": D1 }, "sandbox": { "containers": [{ "resources": 1 }] } } }),
            sized(NONE, NONE),
        ),
    ] {
        assert_eq!(requests(&spec), expected, "{what}: {spec}");
    }
}

#[test]
fn what_stands_beside_limits_that_say_all_is_counted_where_it_may_be_more() {
    let small = json!({ "cpu": "500m", "memory": "256Mi" });
    let large = json!({ "cpu": "100", "memory": "100Gi" });
    let instance = |resources: Value, containers: Value| json!({ "runtime": { "resources": resources, "sandbox": { "containers": containers } } });
    let d1 = json!({ "instanceType": D1 });
    for (what, spec, expected) in [
        (
            "a type that is no text",
            instance(
                json!({ "instanceType": 7 }),
                json!([{ "resources": { "limits": small } }]),
            ),
            sized(NONE, NONE),
        ),
        (
            "requests that cannot be read",
            instance(
                json!({ "instanceType": D1, "requests": "2" }),
                json!([{ "resources": { "limits": small } }]),
            ),
            sized(NONE, NONE),
        ),
        (
            "a quantity of the requests that cannot be read",
            instance(
                json!({ "instanceType": D1, "requests": { "cpu": "lots", "memory": "1Gi" } }),
                json!([{ "resources": { "limits": small } }]),
            ),
            sized(NONE, 256),
        ),
        (
            "resources that cannot be read",
            instance(json!([]), json!([{ "resources": { "limits": small } }])),
            sized(NONE, NONE),
        ),
        (
            "a container that only requests",
            instance(
                d1.clone(),
                json!([{ "resources": { "limits": small } }, { "resources": { "requests": large } }]),
            ),
            sized(100_500, 102_656),
        ),
        (
            "requests of a container above its limits",
            instance(
                d1.clone(),
                json!([{ "resources": { "limits": small, "requests": { "cpu": "100" } } }]),
            ),
            sized(100_000, 256),
        ),
        (
            "requests of a container that cannot be read",
            instance(d1.clone(), json!([{ "resources": { "limits": small, "requests": 7 } }])),
            sized(NONE, NONE),
        ),
        (
            "requests of a container below its limits",
            instance(
                d1.clone(),
                json!([{ "resources": { "limits": large, "requests": small } }]),
            ),
            sized(100_000, 102_400),
        ),
        (
            "a virtual machine beside containers",
            json!({ "runtime": { "resources": d1, "virtualMachine": {},
                "sandbox": { "containers": [{ "resources": { "limits": small } }] } } }),
            sized(1000, 2048),
        ),
        (
            "a container that is none",
            instance(
                json!({ "instanceType": D1 }),
                json!([{ "resources": { "limits": small } }, "x"]),
            ),
            sized(NONE, NONE),
        ),
        (
            "a sandbox that is none",
            json!({ "runtime": { "resources": { "instanceType": D1 }, "sandbox": 7 } }),
            sized(NONE, NONE),
        ),
        ("a runtime that is none", json!({ "runtime": "x" }), sized(NONE, NONE)),
    ] {
        assert_eq!(requests(&spec), expected, "{what}: {spec}");
    }
}

#[test]
fn a_claim_is_equal_in_any_order_and_only_then() {
    let instance = json!({ "runtime": { "resources": { "instanceType": D1 } } });
    let ask = |type_: &str, amount: Value| json!({ "resourceType": format!("compute.datumapis.com/{type_}"), "amount": amount });
    let (one, cpu, memory) = (
        ask("instances", json!(1)),
        ask("vcpus", json!(1000)),
        ask("memory", json!(2048)),
    );
    for (asked, equal) in [
        (json!([one, cpu, memory]), true),
        (json!([memory, one, cpu]), true),
        (json!([one, cpu]), false),
        (json!([one, cpu, memory, cpu]), false),
        (json!([one, cpu, memory, ask("disks", json!(1))]), false),
        (json!([one, cpu, ask("memory", json!(4096))]), false),
        (json!([one, cpu, ask("memory", json!("2048"))]), false),
        (json!([one, cpu, null]), false),
        (json!([]), false),
        (json!(null), false),
        (json!({ "a": 1 }), false),
    ] {
        let claim = object(json!({ "metadata": { "name": "instance-web-0" }, "spec": { "requests": asked } }));
        assert_eq!(is_claimed(&claim, &instance), equal, "{asked}");
    }
    assert!(!is_claimed(&object(json!({ "metadata": {} })), &instance));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// No quantities make an amount that a claim cannot hold, and every type occurs once.
    #[test]
    fn amounts_are_never_negative(cpu in "[-+]?[0-9]{0,20}\\.?[0-9]{0,12}(m|u|n|k|Mi|Gi|Ei|E|e-?[0-9]{1,2})?",
        memory in "[-+]?[0-9]{0,20}\\.?[0-9]{0,12}(m|u|n|k|Mi|Gi|Ei|E|e-?[0-9]{1,2})?", times in 0..4_usize) {
        let limits = vec![json!({ "cpu": cpu, "memory": memory }); times];
        let asked = requests(&spec("", json!(null), limits));
        prop_assert!(asked.iter().all(|(_, amount)| *amount > 0));
        prop_assert!(asked.len() == 1 || asked.len() == 3);
    }
}
