//! The module of tests/fixtures-guest, built once, and objects that tell it what to do.

use std::sync::Arc;
use std::time::Duration;

use popcell_engine::{Call, CallError, Engine, LoadError, Module, Settings};
use popcell_protocol::{Answer, Gvk, Operation};

#[path = "../../../../tests/fixtures-guest/wasm.rs"]
mod guest;
pub(crate) use guest::{FILE, file, wasm};

/// Kind of the plain module.
pub(crate) const KIND: &str = "Misbehaving";
/// Settings under which a test does not wait long and a busy machine does no harm.
pub(crate) fn settings() -> Settings {
    Settings {
        call_timeout: Duration::from_secs(5),
        slots: 2,
        ..Settings::default()
    }
}

pub(crate) fn engine(settings: &Settings) -> Arc<Engine> {
    Engine::new(settings).expect("an engine")
}

pub(crate) fn load(variant: &str) -> Result<Module, LoadError> {
    engine(&settings()).load(&format!("{variant}.wasm"), &wasm(variant))
}

pub(crate) fn module(settings: &Settings) -> Module {
    engine(settings)
        .load("misbehaving.wasm", &wasm("misbehaving"))
        .expect("the fixture loads")
}

pub(crate) fn kind(kind: &str) -> Gvk {
    Gvk::new("tests.popcell.dev", "v1", kind)
}

/// An object that makes the module behave.
pub(crate) fn object(behaviour: &str) -> Vec<u8> {
    format!(
        r#"{{"apiVersion":"tests.popcell.dev/v1","kind":"{KIND}","metadata":{{"name":"a","namespace":"ns","annotations":{{"tests.popcell.dev/behaviour":"{behaviour}"}}}}}}"#
    )
    .into_bytes()
}

/// Asks the plain module about an object that makes it behave.
pub(crate) fn ask(module: &Module, operation: Operation, behaviour: &str) -> Result<Answer, CallError> {
    let (kind, object) = (kind(KIND), object(behaviour));
    let call = Call {
        namespace: Some("ns"),
        name: "a",
        observed: Some(&object),
        replicas: 7,
        ..Call::new(operation, &kind, &object)
    };
    module.call(&call, Duration::from_secs(5))
}
