use popcell_engine::{Implemented, Target};

use super::*;
use crate::endpoint::certificate::testing::authority;

fn description(operations: &[(Operation, bool)]) -> Description {
    Description {
        name: "widget-interpreter".into(),
        version: "0.1.0".into(),
        targets: vec![Target {
            kind: Gvk::new("example.io", "v1", "Widget"),
            operations: operations
                .iter()
                .map(|&(operation, register)| Implemented { operation, register })
                .collect(),
        }],
    }
}

fn entry() -> Entry {
    Entry {
        config: "popcell".into(),
        webhook: "interpreter.popcell.datumapis.com".into(),
        location: Location::Url("https://10.0.0.7:8443/interpret".into()),
        ca_pem: Some("PEM".into()),
        rules: vec![Rule {
            kind: Gvk::new("example.io", "v1", "Widget"),
            operations: vec![Operation::InterpretHealth],
        }],
        timeout_seconds: 5,
    }
}

fn yaml(text: &str) -> Value {
    let node = popcell_sdk::test::yaml::documents(text).unwrap().remove(0);
    serde_json::from_str(&node.to_json()).unwrap()
}

#[test]
fn only_what_a_module_registers_becomes_a_rule() {
    let module = description(&[
        (Operation::Retain, false),
        (Operation::InterpretHealth, true),
        (Operation::InterpretReplica, true),
    ]);
    let rules = rules(&[&module], &[]).unwrap();
    assert_eq!(
        rules,
        [Rule {
            kind: Gvk::new("example.io", "v1", "Widget"),
            operations: vec![Operation::InterpretReplica, Operation::InterpretHealth]
        }]
    );
}

#[test]
fn an_implemented_operation_can_be_added() {
    let module = description(&[(Operation::Retain, false), (Operation::InterpretHealth, true)]);
    let added = rules(&[&module], &["Widget=retain".into()]).unwrap();
    assert_eq!(added[0].operations, [Operation::Retain, Operation::InterpretHealth]);
}

#[test]
fn an_addition_that_makes_no_sense_is_named() {
    let module = description(&[(Operation::InterpretHealth, true)]);
    let reason = |text: &str| rules(&[&module], &[text.to_owned()]).unwrap_err().to_string();
    assert!(reason("Widget").contains("KIND=OPERATION"));
    assert!(reason("Widget=Prune").contains("unknown operation"));
    assert!(reason("Gadget=Retain").contains("they serve Widget"));
    assert!(reason("Widget=Retain").contains("no module implements Retain"));
}

#[test]
fn two_kinds_are_two_rules() {
    let mut module = description(&[(Operation::InterpretHealth, true)]);
    let mut other = module.targets[0].clone();
    other.kind.kind = "Gadget".into();
    module.targets.push(other);
    assert_eq!(rules(&[&module], &[]).unwrap().len(), 2);
}

#[test]
fn modules_without_a_registered_operation_cannot_be_registered() {
    let module = description(&[(Operation::Retain, false)]);
    assert!(matches!(rules(&[&module], &[]), Err(Failure::Module(_))));
}

#[test]
fn foreign_webhooks_and_unknown_fields_are_kept() {
    let existing = yaml(include_str!("../../tests/fixtures/configuration-shared.yaml"));
    let merged = entry().merged(Some(&existing));
    let names: Vec<_> = merged["webhooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|webhook| webhook["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "first.example.org",
            "interpreter.popcell.datumapis.com",
            "last.example.org"
        ]
    );
    assert_eq!(merged["webhooks"][0], existing["webhooks"][0]);
    assert_eq!(merged["webhooks"][2]["fieldOfTomorrow"], "kept");
    assert_eq!(merged["metadata"], existing["metadata"]);
    assert_eq!(
        merged["webhooks"][1]["clientConfig"],
        serde_json::json!({"url": "https://10.0.0.7:8443/interpret", "caBundle": "UEVN"})
    );
}

#[test]
fn registering_twice_is_registering_once() {
    let once = entry().merged(None);
    assert_eq!(entry().merged(Some(&once)), once);
    assert_eq!(once["metadata"]["name"], "popcell");
    assert_eq!(once["webhooks"][0]["timeoutSeconds"], 5);
    assert_eq!(once["webhooks"][0]["interpreterContextVersions"][0], "v1alpha1");
}

#[test]
fn removal_takes_only_our_webhook() {
    let existing = yaml(include_str!("../../tests/fixtures/configuration-shared.yaml"));
    let left = without(&existing, "interpreter.popcell.datumapis.com").unwrap();
    assert_eq!(left["webhooks"].as_array().unwrap().len(), 2);
    assert_eq!(
        without(&entry().merged(None), "interpreter.popcell.datumapis.com"),
        None
    );
}

#[test]
fn services_are_read() {
    let read = |text| {
        service(text)
            .ok()
            .map(|found| (found.namespace, found.name, found.port, found.path))
    };
    let expect = |port, path: &str| Some(("ns".to_owned(), "hook".to_owned(), Some(port), Some(path.to_owned())));
    assert_eq!(read("ns/hook"), expect(443, "/interpret"));
    assert_eq!(read("ns/hook:8443"), expect(8443, "/interpret"));
    assert_eq!(read("ns/hook:8443/a/b"), expect(8443, "/a/b"));
    assert_eq!(read("ns/hook/a"), expect(443, "/a"));
    for wrong in [
        "hook",
        "ns/",
        "/hook",
        "ns/hook:0",
        "ns/hook:x",
        "ns/hook/",
        "Ns/hook",
        "ns/hook/a//b",
        "ns/hook/A",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}

#[test]
fn names_that_karmada_refuses_are_refused() {
    assert!(names("popcell", "interpreter.popcell.datumapis.com").is_ok());
    for (config, webhook) in [
        ("Popcell", "a.b.c"),
        ("", "a.b.c"),
        ("popcell", "a.b"),
        ("popcell", "a..c"),
        ("popcell", "a_b.c.d"),
    ] {
        assert!(names(config, webhook).is_err(), "{config} {webhook}");
    }
}

fn bundle(pem: &str) -> Bundle {
    Bundle::parse(pem.as_bytes()).unwrap()
}

fn stored(pem: &str) -> String {
    BASE64_STANDARD.encode(pem)
}

fn now() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

#[test]
fn the_new_certificate_stands_before_the_old_one() {
    let (old, new) = (authority("old", 2020..2090), authority("new", 2026..2090));
    let merged = ca_bundle(Some(&stored(&old.pem())), Some(&bundle(&new.pem())), false, now());
    assert_eq!(merged.bundle, Some(bundle(&format!("{}{}", new.pem(), old.pem()))));
    assert!(merged.remarks[0].contains("kept CN=old"), "{:?}", merged.remarks);
}

#[test]
fn an_expired_one_goes_and_a_known_one_is_not_repeated() {
    let (old, new) = (authority("old", 2020..2021), authority("new", 2026..2090));
    let registered = stored(&format!("{}{}", old.pem(), new.pem()));
    let merged = ca_bundle(Some(&registered), Some(&bundle(&new.pem())), false, now());
    assert_eq!(merged.bundle, Some(bundle(&new.pem())));
    assert_eq!(merged.remarks.len(), 1);
}

#[test]
fn an_unreadable_bundle_is_dropped_with_a_remark() {
    let new = authority("new", 2026..2090);
    for broken in [stored("nothing"), "%%%".to_owned()] {
        let merged = ca_bundle(Some(&broken), Some(&bundle(&new.pem())), false, now());
        assert_eq!(merged.bundle, Some(bundle(&new.pem())));
        assert!(merged.remarks[0].contains("could not use"));
    }
}

#[test]
fn without_a_new_one_the_old_one_stays_and_without_any_the_system_decides() {
    let old = authority("old", 2020..2090);
    assert_eq!(
        ca_bundle(Some(&stored(&old.pem())), None, false, now()).bundle,
        Some(bundle(&old.pem()))
    );
    assert_eq!(ca_bundle(None, None, false, now()), Merged::default());
    assert_eq!(ca_bundle(Some(&stored(&old.pem())), None, true, now()).bundle, None);
}
