//! The module of tests/fixtures-guest, which does what an object's annotation says, and requests about such objects.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use popcell_module_build::{BuildRequest, build};
use serde_json::{Value, json};

/// Where the built file says how the module describes itself; as long as in the guest's source.
const MARK: &[u8] = b"popcell-fixture-self:";
const SELF: usize = 48;

/// A spin that takes some tens of milliseconds on any machine: more than the fast path's budget, less than a deadline.
pub(crate) const LONG: &str = "spin-50000000";

/// The component, described as `variant`.
pub(crate) fn wasm(variant: &str) -> Vec<u8> {
    static BUILT: OnceLock<Vec<u8>> = OnceLock::new();
    let mut wasm = BUILT.get_or_init(built).clone();
    let at = wasm.windows(MARK.len()).position(|window| window == MARK).unwrap() + MARK.len();
    let text = &mut wasm[at..at + SELF - MARK.len()];
    text.fill(b' ');
    text[..variant.len()].copy_from_slice(variant.as_bytes());
    wasm
}

fn built() -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let request = BuildRequest {
        manifest_dir: root.join("tests/fixtures-guest"),
        target_dir: root.join("target/guest"),
        output: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("misbehaving.wasm"),
    };
    let mut lines = Vec::new();
    match build(&request, &mut |line| lines.push(line.to_owned())) {
        Ok(built) => std::fs::read(built.output).unwrap(),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
    }
}

/// A request about an object that makes the module behave. Its fields are in Karmada's order.
pub(crate) fn request(operation: &str, behaviour: &str) -> String {
    request_about(operation, "Misbehaving", &object("Misbehaving", behaviour))
}

/// The same for a kind of choice, about any object.
pub(crate) fn request_about(operation: &str, kind: &str, object: &Value) -> String {
    let observed = if operation == "Retain" {
        format!(r#","observedObject":{object}"#)
    } else {
        String::new()
    };
    format!(
        r#"{{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1","request":{{"uid":"{UID}","kind":{{"group":"tests.popcell.dev","version":"v1","kind":"{kind}"}},"name":"a","namespace":"ns","operation":"{operation}","object":{object}{observed},"replicas":3}}}}"#
    )
}

pub(crate) const UID: &str = "5c0e3f8a-0000-4000-8000-000000000001";

pub(crate) fn object(kind: &str, behaviour: &str) -> Value {
    json!({"apiVersion": "tests.popcell.dev/v1", "kind": kind,
           "metadata": {"name": "a", "namespace": "ns", "annotations": {"tests.popcell.dev/behaviour": behaviour}}})
}
