//! The smallest module, in a crate of its own outside every workspace, becomes a component.
//!
//! Needs a toolchain for WebAssembly, as everything about modules does; without one the failure says how to get it.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use popcell_module_build::{BuildRequest, Built, build};
use wasmparser::{Encoding, KnownCustom, Name, Parser, Payload};
use wit_component::DecodedWasm;

const SOURCE: &str = r#"
use popcell_sdk::prelude::*;
struct Widget;
#[interpreter(api_version = "example.io/v1", kind = "Widget")]
impl Interpreter for Widget {
    fn health(widget: &Object) -> Result<bool> {
        Ok(widget.int("/status/readyReplicas")?.unwrap_or(0) >= widget.int("/spec/replicas")?.unwrap_or(1))
    }
}
"#;

/// A crate named `widget-interpreter` around the source, with the library versions of this workspace.
fn module(source: &str) -> tempfile::TempDir {
    let root = root();
    let manifest = format!(
        "[package]\nname = \"widget-interpreter\"\nversion = \"1.2.3\"\nedition = \"2024\"\n\
         [lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\
         [dependencies]\npopcell-sdk = {{ path = \"{}\" }}\n",
        root.join("interpreter-wasm/sdk").display()
    );
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.path().join("src/lib.rs"), source).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    folder
}

fn built(folder: &Path) -> Result<Built, String> {
    let request = BuildRequest {
        manifest_dir: folder.to_owned(),
        target_dir: root().join("target/guest"),
        output: folder.join("out/widget.wasm"),
    };
    let mut lines = Vec::new();
    build(&request, &mut |line| lines.push(line.to_owned())).map_err(|error| format!("{error}\n{}", lines.join("\n")))
}

#[test]
fn a_crate_outside_the_workspace_becomes_a_component_without_imports() {
    let folder = module(SOURCE);
    let built = built(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let bytes = fs::read(&built.output).unwrap();
    assert_eq!(built.bytes, bytes.len() as u64);
    // It was below 150,000 before the SDK kept an order of the keys of wide maps.
    assert!(bytes.len() < 200_000, "{} bytes", bytes.len());

    let (imports, exports) = world(&bytes);
    assert_eq!(imports, Vec::<String>::new());
    assert_eq!(exports, ["popcell:interpreter/operations@0.1.0"]);

    let names = function_names(&bytes);
    assert!(
        names.iter().any(|name| name.contains("widget")),
        "traps can name the module's functions"
    );
    for path in [folder.path().to_owned(), home(), root()] {
        assert!(
            !contains(&bytes, path.to_str().unwrap()),
            "{} is inside",
            path.display()
        );
    }

    // The same again, compiled again.
    fs::write(folder.path().join("src/lib.rs"), format!("{SOURCE}// new\n")).unwrap();
    let again = self::built(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again.sha256, built.sha256);
}

#[test]
fn what_cannot_become_a_module_is_refused_with_the_fix() {
    let folder = module("pub fn nothing() {}");
    let error = built(folder.path()).unwrap_err();
    assert!(error.contains("#[interpreter(...)]"), "{error}");

    let folder = module("fn broken( {}");
    let error = built(folder.path()).unwrap_err();
    assert!(
        error.contains("failed to compile") && error.contains("src/lib.rs"),
        "{error}"
    );

    let folder = module(SOURCE);
    let manifest = folder.path().join("Cargo.toml");
    fs::remove_file(&manifest).unwrap();
    let error = built(folder.path()).unwrap_err();
    assert!(error.contains("Cargo.toml"), "{error}");
}

fn world(component: &[u8]) -> (Vec<String>, Vec<String>) {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(component).unwrap() else {
        panic!("not a component");
    };
    let world = &resolve.worlds[world];
    (
        world.imports.keys().map(|key| resolve.name_world_key(key)).collect(),
        world.exports.keys().map(|key| resolve.name_world_key(key)).collect(),
    )
}

fn function_names(component: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    let mut encoding = None;
    for payload in Parser::new(0).parse_all(component) {
        match payload.unwrap() {
            Payload::Version { encoding: found, .. } => encoding = Some(found),
            Payload::CustomSection(section) if encoding == Some(Encoding::Module) => {
                if let KnownCustom::Name(reader) = section.as_known() {
                    for name in reader {
                        if let Name::Function(functions) = name.unwrap() {
                            names.extend(functions.into_iter().map(|function| function.unwrap().name.to_owned()));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    names
}

/// The folder of this workspace.
fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

fn home() -> PathBuf {
    let default = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}
