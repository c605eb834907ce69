//! A module for tests of the host. What it does with an object is said by the object's annotation
//! `tests.popcell.dev/behaviour`; without one it answers honestly.
//!
//! It is written against the bare interface, since the SDK would not let it lie. How it describes itself is said by
//! [`SELF`], which a test overwrites in the built file: one build serves all variants.
#![cfg(target_family = "wasm")]
#![allow(missing_docs, reason = "a fixture")]
#![allow(clippy::pedantic, reason = "half of it is generated")]

mod behaviour;
mod description;

wit_bindgen::generate!({ path: "../../wit", world: "interpreter" });

use exports::popcell::interpreter::operations::{
    Aggregation, Change, Component, Dependency, Description, Error, Guest, Gvk, PatchOp, PathValue, Replicas,
    Requirements, StatusItem,
};

/// Which description the module gives; a test finds it by its first word and overwrites the rest.
static SELF: [u8; 48] = *b"popcell-fixture-self:misbehaving                ";

/// Makes every instance start with more than the smallest `--max-memory`, 1 MiB.
static BALLAST: [u8; 1 << 20] = [0; 1 << 20];

/// The component calls a function of this name when it is instantiated, before any of its own exports.
#[unsafe(export_name = "_initialize")]
extern "C" fn start() {
    match variant() {
        "start-loop" => loop {
            std::hint::black_box(());
        },
        "start-trap" => core::arch::wasm32::unreachable(),
        _ => {}
    }
}

struct Misbehaving;

impl Guest for Misbehaving {
    fn describe() -> Description {
        description::of(variant())
    }

    fn interpret_replica(_: Gvk, object: Vec<u8>) -> Result<Replicas, Error> {
        let lie = behaviour::act(&object)?;
        let amount = if lie == "lie-quantity" { "lots" } else { "100m" };
        let requirements = Requirements {
            node_claim: None,
            resource_request: vec![("cpu".into(), amount.into())],
            namespace: None,
            priority_class_name: None,
        };
        let replicas = match lie {
            "lie-negative" => -1,
            "lie-large" => i64::from(i32::MAX) + 1,
            _ => 3,
        };
        Ok(Replicas {
            replicas,
            requirements: Some(requirements),
        })
    }

    fn interpret_component(_: Gvk, object: Vec<u8>) -> Result<Vec<Component>, Error> {
        let lie = behaviour::act(&object)?;
        let component = |name: &str| Component {
            name: name.into(),
            replicas: 1,
            requirements: None,
        };
        Ok(vec![
            component("a"),
            component(if lie == "lie-twice" { "a" } else { "b" }),
        ])
    }

    fn revise_replica(_: Gvk, object: Vec<u8>, replicas: i32) -> Result<Change, Error> {
        let lie = behaviour::act(&object)?;
        let path = match lie {
            "lie-parent" => "/spec/none/replicas",
            "lie-status" => "/status/replicas",
            _ => "/spec",
        };
        let value = if path == "/spec" {
            format!("{{\"replicas\":{replicas}}}")
        } else {
            replicas.to_string()
        };
        Ok(add(path, value))
    }

    fn retain(_: Gvk, desired: Vec<u8>, _: Vec<u8>) -> Result<Change, Error> {
        Ok(match behaviour::act(&desired)? {
            "lie-karmada" => add("/metadata/annotations/work.karmada.io~1name", "\"x\"".into()),
            "lie-name" => add("/metadata/name", "\"x\"".into()),
            "lie-json" => add("/spec", "{".into()),
            "lie-inserts" => {
                let insert = PathValue {
                    path: "/spec/list/0".into(),
                    value: b"1".to_vec(),
                };
                Change::Patch(vec![PatchOp::Add(insert); 10_000])
            }
            _ => Change::Unchanged,
        })
    }

    fn aggregate_status(_: Gvk, object: Vec<u8>, items: Vec<StatusItem>) -> Result<Aggregation, Error> {
        let lie = behaviour::act(&object)?;
        let path = if lie == "lie-spec" { "/spec" } else { "/status" };
        let names: Vec<String> = items.iter().map(|item| format!("\"{}\"", item.cluster_name)).collect();
        Ok(Aggregation {
            change: add(path, format!("{{\"clusters\":[{}]}}", names.join(","))),
            left_out: if lie == "leave-out" { 3 } else { 0 },
        })
    }

    fn interpret_status(_: Gvk, object: Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(match behaviour::act(&object)? {
            "lie-scalar" => b"5".to_vec(),
            "lie-json" => b"{\"a\":".to_vec(),
            "lie-utf8" => b"{\"\xff\":1}".to_vec(),
            "lie-huge" => vec![b' '; 40 << 20],
            _ => br#"{"big":9007199254740993,"exact":1.10}"#.to_vec(),
        })
    }

    fn interpret_health(_: Gvk, object: Vec<u8>) -> Result<bool, Error> {
        behaviour::act(&object)?;
        Ok(true)
    }

    fn interpret_dependency(_: Gvk, object: Vec<u8>) -> Result<Vec<Dependency>, Error> {
        let lie = behaviour::act(&object)?;
        let name = (lie != "lie-nameless").then(|| "a".to_owned());
        let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
        Ok(vec![Dependency {
            api_version,
            kind,
            namespace: Some("ns".into()),
            name,
            label_selector: None,
        }])
    }
}

fn add(path: &str, value: String) -> Change {
    Change::Patch(vec![PatchOp::Add(PathValue {
        path: path.into(),
        value: value.into_bytes(),
    })])
}

/// Read where it lies: the compiler must not take it for a constant.
fn variant() -> &'static str {
    std::hint::black_box(&BALLAST);
    let text = std::hint::black_box(&SELF);
    let text = std::str::from_utf8(text).unwrap_or_default();
    text.split_once(':').map_or("", |(_, variant)| variant.trim_end())
}

export!(Misbehaving);
