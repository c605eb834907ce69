//! This module, built once for each test program that includes this file.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use popcell_module_build::{BuildRequest, build};

/// Where the built file says how the module describes itself; as long as in the guest's source.
const MARK: &[u8] = b"popcell-fixture-self:";
const SELF: usize = 48;

/// Where the built file is; a test that starts its own program again hands it over, so that it is not built again.
pub(crate) const FILE: &str = "POPCELL_TEST_MISBEHAVING";

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

/// The built file.
pub(crate) fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("misbehaving.wasm")
}

fn built() -> Vec<u8> {
    if let Some(file) = std::env::var_os(FILE) {
        return std::fs::read(file).unwrap();
    }
    // That of the crate whose tests these are.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let request = BuildRequest {
        manifest_dir: root.join("tests/fixtures-guest"),
        target_dir: root.join("target/guest"),
        output: file(),
    };
    let mut lines = Vec::new();
    match build(&request, &mut |line| lines.push(line.to_owned())) {
        Ok(built) => std::fs::read(built.output).unwrap(),
        Err(error) => panic!("{error}\n{}", lines.join("\n")),
    }
}
