//! Runs cargo for the WebAssembly target and finds the core module that it made.
//!
//! This machine's paths are taken out of the module: panics carry the file that they are in. Flags for the dependencies
//! are the same for every module of a workspace: cargo compiles the standard library again for every other set of
//! flags, and into the same place, so that two modules with sets of their own would undo each other's work forever. The
//! module's own folder is named to its own compiler call only.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::toolchain::TARGET;
use crate::{BuildError, BuildRequest, Toolchain};

/// Small, and fast where it matters: reading JSON is nearly all the work, and the size of the rest is paid at every start.
/// `debuginfo` keeps the names of functions, so that a trap can say where it happened. Given on the command line, so that
/// a crate outside this workspace is built the same way.
const PROFILE: [&str; 9] = [
    "profile.guest.inherits=\"release\"",
    "profile.guest.opt-level=\"s\"",
    "profile.guest.package.popcell-sdk.opt-level=3",
    "profile.guest.package.popcell-contract.opt-level=3",
    "profile.guest.debug=false",
    "profile.guest.lto=true",
    "profile.guest.codegen-units=1",
    "profile.guest.panic=\"abort\"",
    "profile.guest.strip=\"debuginfo\"",
];

/// The guest's stack for locals, in bytes: a quarter of Rust's usual one. After each call the host looks at every page of
/// the instance's memory, and the other stack, which holds the frames, ends before this one.
const STACK: [&str; 2] = ["-Clink-arg=-z", "-Clink-arg=stack-size=262144"];

/// Settings of the native build around us (this may run inside cargo) that must not reach the other cargo.
const FOREIGN: [&str; 8] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
];

/// The core module's file.
pub(crate) fn compile(
    toolchain: &Toolchain,
    request: &BuildRequest,
    report: &mut dyn FnMut(&str),
) -> Result<PathBuf, BuildError> {
    let manifest = request.manifest_dir.join("Cargo.toml");
    let manifest = manifest.canonicalize().map_err(|source| BuildError::Io {
        doing: "find",
        path: manifest.clone(),
        source,
    })?;
    let mut command = command(toolchain);
    let flags = dependencies_paths(&command, &manifest);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    command.args([
        "rustc",
        "--lib",
        "--crate-type",
        "cdylib",
        "--profile",
        "guest",
        "--target",
        TARGET,
    ]);
    command
        .args(["--message-format", "json-render-diagnostics", "--manifest-path"])
        .arg(&manifest);
    command.arg("--target-dir").arg(&request.target_dir);
    for setting in PROFILE {
        command.args(["--config", setting]);
    }
    if matches!(toolchain, Toolchain::Debian { .. }) {
        command.args(["-Z", "build-std=std,panic_abort"]);
    }
    command.arg("--").args(own_paths(&manifest)).args(STACK);
    let (messages, last) = run(command, report)?;
    let messages = messages.ok_or_else(|| BuildError::Compile {
        manifest: manifest.clone(),
        last,
    })?;
    artifact(&messages, &manifest).ok_or(BuildError::NoLibrary { manifest })
}

fn command(toolchain: &Toolchain) -> Command {
    let mut command = match toolchain {
        Toolchain::Installed { .. } => Command::new("cargo"),
        Toolchain::Debian { cargo, .. } => Command::new(cargo),
    };
    for name in FOREIGN {
        command.env_remove(name);
    }
    if let Toolchain::Debian { rustc, linker, .. } = toolchain {
        command.env("RUSTC", rustc).env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    command
}

/// Runs cargo; its messages if it succeeded, and the last line about an error.
fn run(mut command: Command, report: &mut dyn FnMut(&str)) -> Result<(Option<String>, String), BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawn = |source| BuildError::Spawn {
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(spawn)?;
    let stdout = child.stdout.take();
    let messages = std::thread::spawn(move || {
        let mut text = String::new();
        stdout
            .map(|mut stdout| stdout.read_to_string(&mut text))
            .transpose()
            .map(|_| text)
    });
    let mut last = String::from("cargo gave no reason");
    for line in child
        .stderr
        .take()
        .into_iter()
        .flat_map(|stderr| BufReader::new(stderr).lines())
        .map_while(Result::ok)
    {
        if line.starts_with("error") {
            last.clone_from(&line);
        }
        report(&line);
    }
    let status = child.wait().map_err(spawn)?;
    let messages = messages.join().ok().and_then(Result::ok);
    Ok((messages.filter(|_| status.success()), last))
}

/// The `.wasm` file of the crate itself in cargo's messages.
fn artifact(messages: &str, manifest: &Path) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.get("reason").and_then(Value::as_str) == Some("compiler-artifact"))
        .filter(|message| message.get("manifest_path").and_then(Value::as_str).map(Path::new) == Some(manifest))
        .flat_map(|message| {
            message
                .get("filenames")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        })
        .filter_map(|name| name.as_str().map(PathBuf::from))
        .find(|path| path.extension().is_some_and(|extension| extension == "wasm"))
}

/// The flag that replaces one folder.
fn flag(from: &Path, to: &str) -> String {
    format!("--remap-path-prefix={}=/{to}", from.display())
}

/// For the module's own compiler call.
fn own_paths(manifest: &Path) -> Vec<String> {
    manifest
        .parent()
        .map(|folder| flag(folder, "module"))
        .into_iter()
        .collect()
}

/// For all other crates: cargo's home, and each crate in a folder of this machine that a module of the workspace depends
/// on.
fn dependencies_paths(cargo: &Command, manifest: &Path) -> Vec<String> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let home = home.map(|home| flag(&home, "cargo"));
    let mut local: Vec<String> = metadata(cargo, manifest)
        .map(|metadata| local_dependencies(&metadata, manifest))
        .unwrap_or_default()
        .iter()
        .map(|(name, folder)| flag(folder, name))
        .collect();
    local.sort();
    home.into_iter().chain(local).collect()
}

/// What cargo knows of the module's dependencies. Cargo itself reports what is wrong with them when it compiles.
fn metadata(cargo: &Command, manifest: &Path) -> Option<Value> {
    let mut command = Command::new(cargo.get_program());
    for (name, value) in cargo.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .output()
        .ok()?;
    serde_json::from_slice(&output.stdout).ok()
}

/// Name and folder of each package without a registry or repository that the module, or another one of its workspace,
/// depends on.
fn local_dependencies(metadata: &Value, manifest: &Path) -> Vec<(String, PathBuf)> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();

    let packages: HashMap<String, Value> = list(metadata.get("packages"))
        .into_iter()
        .filter_map(|package| Some((text(&package, "id")?, package)))
        .collect();
    let edges: HashMap<String, Vec<Value>> = list(metadata.get("resolve").and_then(|resolve| resolve.get("nodes")))
        .into_iter()
        .filter_map(|node| Some((text(&node, "id")?, list(node.get("dependencies")))))
        .collect();
    let is_asked = |package: &Value| text(package, "manifest_path").map(PathBuf::from).as_deref() == Some(manifest);
    let members: HashSet<String> = list(metadata.get("workspace_members"))
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let dependencies = |id: &str| edges.get(id).into_iter().flatten().filter_map(Value::as_str);

    let mut open: Vec<&str> = packages
        .iter()
        .filter(|(id, package)| is_asked(package) || (members.contains(*id) && makes_cdylib(package)))
        .flat_map(|(id, _)| dependencies(id))
        .collect();
    let mut reached = HashSet::new();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(dependencies(id));
        }
    }
    reached
        .into_iter()
        .filter_map(|id| packages.get(id))
        .filter(|package| package.get("source").is_none_or(Value::is_null))
        .filter_map(|package| {
            let folder = PathBuf::from(text(package, "manifest_path")?).parent()?.to_path_buf();
            Some((text(package, "name")?, folder))
        })
        .collect()
}

/// Whether the package can become a module.
fn makes_cdylib(package: &Value) -> bool {
    let kinds = |target: &Value| {
        target
            .get("kind")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let targets = package.get("targets").and_then(Value::as_array);
    targets
        .into_iter()
        .flatten()
        .flat_map(kinds)
        .any(|kind| kind == "cdylib")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crates_own_wasm_file_is_taken() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/x/dep/Cargo.toml","filenames":["/t/dep.wasm"]}"#,
            "\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/x/me/Cargo.toml","filenames":["/t/libme.rlib","/t/me.wasm"]}"#,
            "\nnot json\n",
        );
        assert_eq!(
            artifact(messages, Path::new("/x/me/Cargo.toml")),
            Some(PathBuf::from("/t/me.wasm"))
        );
        assert_eq!(artifact(messages, Path::new("/x/other/Cargo.toml")), None);
    }

    fn package(name: &str, source: Option<&str>, kind: &str) -> Value {
        serde_json::json!({
            "id": name, "name": name, "source": source, "manifest_path": format!("/x/{name}/Cargo.toml"),
            "targets": [{"kind": [kind]}],
        })
    }

    /// Two modules, one of which needs no SDK, and a program.
    fn workspace() -> Value {
        serde_json::json!({
            "packages": [
                package("module", None, "cdylib"), package("bare", None, "cdylib"), package("sdk", None, "lib"),
                package("program", None, "bin"), package("engine", None, "lib"), package("syn", Some("registry"), "lib"),
            ],
            "workspace_members": ["module", "bare", "program", "engine"],
            "resolve": {"nodes": [
                {"id": "module", "dependencies": ["sdk"]},
                {"id": "bare", "dependencies": ["syn"]},
                {"id": "sdk", "dependencies": ["syn"]},
                {"id": "program", "dependencies": ["engine", "module"]},
            ]},
        })
    }

    #[test]
    fn only_local_packages_that_modules_reach_are_named() {
        assert_eq!(
            local_dependencies(&workspace(), Path::new("/x/module/Cargo.toml")),
            [("sdk".to_owned(), PathBuf::from("/x/sdk"))]
        );
        assert_eq!(local_dependencies(&Value::Null, Path::new("/x/module/Cargo.toml")), []);
    }

    /// Else each build of one compiles the standard library again for it, and takes the other's away.
    #[test]
    fn modules_of_a_workspace_have_the_same_flags_whatever_they_depend_on() {
        let of = |name: &str| local_dependencies(&workspace(), &Path::new("/x").join(name).join("Cargo.toml"));
        assert_eq!(of("bare"), of("module"));
    }

    /// A module that is not a member (its workspace is its own) counts as well.
    #[test]
    fn a_module_outside_the_workspace_has_the_flags_of_its_own_dependencies() {
        let metadata = serde_json::json!({
            "packages": [package("widget", None, "lib"), package("sdk", None, "lib")],
            "workspace_members": [],
            "resolve": {"nodes": [{"id": "widget", "dependencies": ["sdk"]}]},
        });
        assert_eq!(
            local_dependencies(&metadata, Path::new("/x/widget/Cargo.toml")),
            [("sdk".to_owned(), PathBuf::from("/x/sdk"))]
        );
    }

    #[test]
    fn the_modules_of_this_repository_have_the_same_flags() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .canonicalize()
            .unwrap();
        let of = |module: &str| dependencies_paths(&Command::new("cargo"), &root.join(module).join("Cargo.toml"));
        let flags = of("interpreter-wasm/compute");
        assert!(flags.iter().any(|flag| flag.ends_with("=/popcell-sdk")), "{flags:?}");
        assert_eq!(of("tests/fixtures-guest"), flags);
        assert_eq!(of("interpreter-wasm/cloneset"), flags);
    }
}
