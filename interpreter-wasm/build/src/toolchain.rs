//! Finds a compiler with a standard library for wasm32-unknown-unknown.
//!
//! In this order: one that is installed; Debian's packages `rustc-web cargo-web rust-web-src`, which bring the sources of
//! the standard library to build it from; `rustup target add`. The first two need no network.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BuildError;

/// The only target: nothing of WASI, so nothing to import.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// A compiler that can build for WebAssembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Toolchain {
    /// The target's standard library is part of the installation.
    Installed {
        /// What `rustc --version` says.
        version: String,
    },
    /// Debian's compiler, which builds the standard library from source.
    Debian {
        /// Debian's cargo.
        cargo: PathBuf,
        /// Debian's rustc.
        rustc: PathBuf,
        /// `rust-lld` of the native toolchain.
        linker: PathBuf,
        /// What Debian's `rustc --version` says.
        version: String,
    },
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Installed { version } => write!(f, "{version}"),
            Self::Debian { version, .. } => write!(f, "{version} (Debian, standard library from source)"),
        }
    }
}

/// The toolchain to use. Says what it does through `report` where it changes anything.
pub fn find_toolchain(report: &mut dyn FnMut(&str)) -> Result<Toolchain, BuildError> {
    let sysroot = PathBuf::from(output("rustc", &["--print", "sysroot"])?);
    if has_target(&sysroot) {
        return Ok(Toolchain::Installed {
            version: output("rustc", &["--version"])?,
        });
    }
    if let Some((cargo, rustc)) = debian() {
        let linker = linker(&sysroot)?;
        let version = output(&rustc.display().to_string(), &["--version"])?;
        return Ok(Toolchain::Debian {
            cargo,
            rustc,
            linker,
            version,
        });
    }
    report(&format!(
        "installing the standard library of {TARGET}: rustup target add {TARGET}"
    ));
    match Command::new("rustup").args(["target", "add", TARGET]).output() {
        Ok(result) if result.status.success() && has_target(&sysroot) => Ok(Toolchain::Installed {
            version: output("rustc", &["--version"])?,
        }),
        Ok(result) => {
            let text = String::from_utf8_lossy(&result.stderr).into_owned();
            let detail = text
                .lines()
                .find(|line| line.contains("error"))
                .unwrap_or("rustup failed")
                .to_owned();
            Err(BuildError::NoToolchain { detail })
        }
        Err(_) => Err(BuildError::NoToolchain {
            detail: String::from("rustup is not here either"),
        }),
    }
}

fn has_target(sysroot: &Path) -> bool {
    sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir()
}

/// Debian's cargo and rustc, if the sources of the standard library lie where cargo looks for them.
fn debian() -> Option<(PathBuf, PathBuf)> {
    let (cargo, rustc) = (PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/bin/rustc"));
    let sources = Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml");
    (cargo.is_file() && rustc.is_file() && sources.is_file()).then_some((cargo, rustc))
}

fn linker(sysroot: &Path) -> Result<PathBuf, BuildError> {
    let about = output("rustc", &["-vV"])?;
    let host = about
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap_or_default();
    let searched = sysroot.join("lib/rustlib").join(host).join("bin/rust-lld");
    if searched.is_file() {
        Ok(searched)
    } else {
        Err(BuildError::NoLinker { searched })
    }
}

/// First line that a program prints.
fn output(program: &str, arguments: &[&str]) -> Result<String, BuildError> {
    let result = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|source| BuildError::Spawn {
            program: program.to_owned(),
            source,
        })?;
    Ok(String::from_utf8_lossy(&result.stdout).trim_end().to_owned())
}
