//! `popcell build`: a module crate becomes a component.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use popcell_module_build::{BuildError, BuildRequest, Built};

use crate::{
    args::module::Build,
    console::Console,
    exit::{Exit, Failure, Outcome},
};

/// Runs the command.
pub fn run(args: &Build, console: &mut Console) -> Outcome {
    let built = build(&args.path, args.output.as_deref(), console)?;
    let Built {
        output,
        bytes,
        sha256,
        toolchain,
    } = built;
    writeln!(
        console.out,
        "component  {}\nsize       {bytes} bytes\nsha256     {sha256}\ntoolchain  {toolchain}",
        output.display()
    )?;
    Ok(Exit::Success)
}

/// Builds the crate in `folder`; progress goes to stderr.
pub fn build(folder: &Path, output: Option<&Path>, console: &mut Console) -> Result<Built, Failure> {
    let manifest = folder.join("Cargo.toml");
    let text = match std::fs::read_to_string(&manifest) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = folder.display();
            return Err(Failure::Usage(format!(
                "no Cargo.toml in {folder}: give the folder of a module crate, or make one with `popcell new`"
            )));
        }
        Err(error) => return Err(Failure::file("read", &manifest, &error)),
    };
    let folder = folder
        .canonicalize()
        .map_err(|error| Failure::file("find", folder, &error))?;
    let package = package_name(&text)
        .ok_or_else(|| Failure::Usage(format!("{}: it has no [package] with a name", manifest.display())))?;
    // The folder's name, as `cargo xtask module` has it: a module must not lie in the folder of modules under two names.
    let name = folder
        .file_name()
        .map_or_else(|| package.to_owned(), |name| name.to_string_lossy().into_owned());
    let target = target_dir(&folder)?;
    let request = BuildRequest {
        manifest_dir: folder,
        output: output.map_or_else(|| target.join("modules").join(format!("{name}.wasm")), Path::to_owned),
        target_dir: target.join("guest"),
    };
    // Nothing can be done about a terminal that is gone, and the build is of use without it.
    popcell_module_build::build(&request, &mut |line| drop(writeln!(console.err, "{line}"))).map_err(
        |error| match error {
            BuildError::Imports { .. } | BuildError::Component { .. } => Failure::Module(error.to_string()),
            BuildError::Compile { .. } | BuildError::NoLibrary { .. } => Failure::Failed(error.to_string()),
            BuildError::NoToolchain { .. }
            | BuildError::NoLinker { .. }
            | BuildError::Spawn { .. }
            | BuildError::Io { .. } => Failure::Environment(error.to_string()),
        },
    )
}

/// Cargo's target folder for the crate: the one of its workspace. Ask cargo, since nothing else knows.
fn target_dir(folder: &Path) -> Result<PathBuf, Failure> {
    #[derive(serde::Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let output = cargo()
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(folder)
        .output()
        .map_err(no_cargo)?;
    if !output.status.success() {
        return Err(Failure::Usage(format!(
            "failed to read {}: {}",
            folder.join("Cargo.toml").display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    serde_json::from_slice::<Metadata>(&output.stdout)
        .map(|metadata| metadata.target_directory)
        .map_err(|error| Failure::Environment(format!("failed to understand `cargo metadata`: {error}")))
}

/// The cargo that runs this program, or the one that is found.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn no_cargo(error: std::io::Error) -> Failure {
    Failure::Environment(format!(
        "failed to run cargo: {error}; install Rust (https://rustup.rs)"
    ))
}

/// `name` of `[package]`. Cargo itself judges the file; here it only tells crates from workspaces.
pub(crate) fn package_name(manifest: &str) -> Option<&str> {
    let package = manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[package]")
        .skip(1);
    package.take_while(|line| !line.starts_with('[')).find_map(|line| {
        let value = line.strip_prefix("name")?.trim_start().strip_prefix('=')?.trim();
        let value = value.strip_prefix('"')?;
        value.split_once('"').map(|(name, _)| name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_found_in_its_manifest() {
        assert_eq!(
            package_name("[lib]\nname = \"x\"\n[package]\nversion = \"1\"\nname = \"widget\" # a name\n"),
            Some("widget")
        );
        assert_eq!(package_name("[package]\nversion = \"1\"\n[lib]\nname = \"x\"\n"), None);
        assert_eq!(package_name(""), None);
    }
}
