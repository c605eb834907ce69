//! Runs cargo for the WebAssembly target and finds the core module that it made.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::toolchain::TARGET;
use crate::{BuildError, BuildRequest, Toolchain, paths};

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
    let flags = paths::of_dependencies(&command, &manifest);
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
    command.arg("--").args(paths::of_module(&manifest)).args(STACK);
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
}
