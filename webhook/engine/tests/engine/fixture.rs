//! The module of tests/fixtures-guest, built once, and objects that tell it what to do.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use popcell_engine::{Call, CallError, Engine, LoadError, Module, Settings};
use popcell_module_build::{BuildRequest, build};
use popcell_protocol::{Answer, Gvk, Operation};

/// Kind of the plain module.
pub(crate) const KIND: &str = "Misbehaving";
/// Where the built file says how the module describes itself; as long as in the guest's source.
const MARK: &[u8] = b"popcell-fixture-self:";
const SELF: usize = 48;

/// Settings under which a test does not wait long and a busy machine does no harm.
pub(crate) fn settings() -> Settings {
    Settings {
        call_timeout: Duration::from_secs(5),
        slots: 2,
        ..Settings::default()
    }
}

/// The component, described as `variant`.
pub(crate) fn wasm(variant: &str) -> Vec<u8> {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    let mut wasm = BUILT.get_or_init(built).clone();
    let at = wasm
        .windows(MARK.len())
        .position(|window| window == MARK)
        .expect("the mark is in the file")
        + MARK.len();
    let text = &mut wasm[at..at + SELF - MARK.len()];
    text.fill(b' ');
    text[..variant.len()].copy_from_slice(variant.as_bytes());
    wasm
}

/// Where the built file is; a test that starts this binary again hands it over, so that it is not built again.
pub(crate) const FILE: &str = "POPCELL_TEST_MISBEHAVING";

/// The built file.
pub(crate) fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("misbehaving.wasm")
}

fn built() -> Vec<u8> {
    if let Some(file) = std::env::var_os(FILE) {
        return std::fs::read(file).expect("the parent built it");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let request = BuildRequest {
        manifest_dir: root.join("tests/fixtures-guest"),
        target_dir: root.join("target/guest"),
        output: file(),
    };
    let mut lines = Vec::new();
    match build(&request, &mut |line| lines.push(line.to_owned())) {
        Ok(built) => std::fs::read(built.output).expect("the file was just written"),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
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
