//! What the shipped modules cost on large objects of every shape: memory within a bound, and work in proportion.
//!
//! Work is counted in wasmtime's fuel, about one unit an instruction, so nothing here depends on how fast a machine is.

use std::path::Path;
use std::time::Duration;

use popcell_module_build::{BuildRequest, build};
use popcell_protocol::{Gvk, Operation, StatusItem};
use serde_json::value::RawValue;
use wasmtime::Store;

use crate::compiled_module::CompiledModule;
use crate::engine::{Allocator, config};
use crate::limits::Limits;
use crate::{Call, Engine, Settings};

#[path = "../../../tests/benches/src/shapes.rs"]
#[expect(unreachable_pub, reason = "it is public where it is shared from")]
mod shapes;
use shapes::Shape;

/// The guest memory that 1 MiB of object may take.
const MAX_MEMORY: usize = 16 << 20;
/// The steps that each byte of the object may take; a core makes a billion and more in a second.
const STEPS_A_BYTE: u64 = 400;
/// How much more work twice the object may be: a little more than two, for parts whose cost has a logarithm in it.
const TWICE: f64 = 2.3;

struct Shipped {
    name: &'static str,
    kind: Gvk,
    wasm: Vec<u8>,
}

fn shipped() -> Vec<Shipped> {
    [
        (
            "compute",
            Gvk::new("compute.datumapis.com", "v1alpha", "WorkloadDeployment"),
        ),
        (
            "karmada-example",
            Gvk::new("workload.example.io", "v1alpha1", "Workload"),
        ),
        ("cloneset", Gvk::new("apps.kruise.io", "v1alpha1", "CloneSet")),
    ]
    .map(|(name, kind)| Shipped {
        name,
        kind,
        wasm: built(name),
    })
    .into()
}

fn built(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let request = BuildRequest {
        manifest_dir: root.join("interpreter-wasm").join(name),
        target_dir: root.join("target/guest"),
        output: folder.path().join("module.wasm"),
    };
    let mut lines = Vec::new();
    match build(&request, &mut |line| lines.push(line.to_owned())) {
        Ok(built) => std::fs::read(built.output).unwrap(),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
    }
}

/// One large value in the place where an operation looks.
struct Question {
    operation: Operation,
    object: String,
    observed: String,
    status: Box<RawValue>,
}

/// The questions of one shape: `bytes` is about the size of all that is given to the module.
fn questions(kind: &Gvk, shape: Shape, bytes: usize) -> Vec<Question> {
    let object = |spec: &str, status: &str| {
        format!(
            r#"{{"apiVersion":"{}","kind":"{}","metadata":{{"name":"a","namespace":"ns","generation":2}},"spec":{{"replicas":1,"scaleSettings":{{"minReplicas":1}}{spec}}},"status":{status}}}"#,
            kind.api_version(),
            kind.kind
        )
    };
    // As a field, as the whole status where it is an object, and as the conditions where it is a list.
    let beside = |value: &str| {
        let name = if value.starts_with('[') { "conditions" } else { "extra" };
        format!(r#"{{"observedGeneration":1,"{name}":{value}}}"#)
    };
    let alone = |value: &str| {
        if value.starts_with('{') {
            value.to_owned()
        } else {
            beside(value)
        }
    };
    let raw = |text: String| RawValue::from_string(text).unwrap();
    let mut questions = Vec::new();
    for operation in Operation::ALL {
        for status in [&beside as &dyn Fn(&str) -> String, &alone] {
            let takes_two = matches!(operation, Operation::Retain | Operation::AggregateStatus);
            let each = if takes_two { bytes / 2 } else { bytes };
            let (one, other) = (shape.value(each, 2), shape.value(each, 3));
            let in_spec = format!(r#","template":{{"extra":{one}}}"#);
            questions.push(match operation {
                Operation::AggregateStatus => Question {
                    operation,
                    object: object("", &status(&one)),
                    observed: object("", "{}"),
                    status: raw(status(&other)),
                },
                Operation::Retain => Question {
                    operation,
                    object: object(&in_spec, "{}"),
                    observed: object("", &status(&other)),
                    status: raw("{}".to_owned()),
                },
                Operation::InterpretStatus | Operation::InterpretHealth => Question {
                    operation,
                    object: object("", &status(&one)),
                    observed: object("", "{}"),
                    status: raw("{}".to_owned()),
                },
                _ => Question {
                    operation,
                    object: object(&in_spec, "{}"),
                    observed: object("", "{}"),
                    status: raw("{}".to_owned()),
                },
            });
        }
    }
    questions
}

/// Asks, with what every operation needs.
fn with_call<R>(question: &Question, kind: &Gvk, ask: impl FnOnce(&Call<'_>) -> R) -> R {
    let item = StatusItem {
        cluster_name: "dfw".into(),
        status: Some(&question.status),
        applied: true,
        applied_message: "".into(),
        health: None,
    };
    ask(&Call {
        observed: Some(question.observed.as_bytes()),
        replicas: 3,
        items: &[item],
        ..Call::new(question.operation, kind, question.object.as_bytes())
    })
}

#[test]
fn memory_is_bounded_for_every_operation_and_shape() {
    let settings = Settings {
        call_timeout: Duration::from_secs(30),
        max_memory: 256 << 20,
        ..Settings::default()
    };
    let engine = Engine::new(&settings).unwrap();
    let (mut most, mut excess) = (0, Vec::new());
    for Shipped { name, kind, wasm } in shipped() {
        let module = engine.load(name, &wasm).unwrap();
        for shape in Shape::ALL {
            for question in questions(&kind, shape, 1 << 20) {
                if !module.implements(&kind, question.operation) {
                    continue;
                }
                let (answer, memory) =
                    with_call(&question, &kind, |call| module.measure(call, Duration::from_secs(30)));
                most = most.max(memory);
                let what = format!("{name} {} {}: {} KiB", question.operation, shape.name(), memory >> 10);
                if memory > MAX_MEMORY {
                    excess.push(what.clone());
                }
                // What is no condition may be skipped, but no limit may be met.
                if let Err(error) = answer {
                    assert!(!error.cause.is_module_fault(), "{what}: {error}");
                }
            }
        }
    }
    println!("at most {} KiB", most >> 10);
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}

#[test]
fn work_grows_with_the_object_and_no_faster() {
    const SMALL: usize = 128 << 10;
    let mut config = config(&Settings::default(), Allocator::OnDemand, false);
    config.consume_fuel(true);
    let engine = wasmtime::Engine::new(&config).unwrap();
    let (mut steep, mut most) = (Vec::new(), 0);
    for Shipped { name, kind, wasm } in shipped() {
        let code = CompiledModule::compile(&engine, &wasm).unwrap();
        let work = |question: &Question| {
            let mut store = Store::new(&engine, Limits::new(1 << 30));
            store.limiter(|limits| limits);
            store.set_epoch_deadline(u64::MAX / 2);
            store.set_fuel(u64::MAX).unwrap();
            let answer = with_call(question, &kind, |call| code.ask(&mut store, call).map(drop));
            assert!(answer.is_ok(), "{name} {}: {answer:?}", question.operation);
            u64::MAX - store.get_fuel().unwrap()
        };
        for shape in Shape::ALL {
            let (small, large) = (questions(&kind, shape, SMALL), questions(&kind, shape, 2 * SMALL));
            for (small, large) in small.iter().zip(&large) {
                let (one, two) = (work(small), work(large));
                #[expect(clippy::cast_precision_loss, reason = "a ratio of counts")]
                let times = two as f64 / one as f64;
                if times > TWICE {
                    steep.push(format!(
                        "{name} {} {}: {one}, then {two}",
                        small.operation,
                        shape.name()
                    ));
                }
                let for_each_byte = two / (2 * SMALL as u64);
                most = most.max(for_each_byte);
                if for_each_byte > STEPS_A_BYTE {
                    steep.push(format!(
                        "{name} {} {}: {for_each_byte} steps a byte",
                        small.operation,
                        shape.name()
                    ));
                }
            }
        }
    }
    println!("at most {most} steps a byte");
    assert!(steep.is_empty(), "{}", steep.join("\n"));
}
