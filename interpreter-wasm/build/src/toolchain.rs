//! Finds a compiler with a standard library for wasm32-unknown-unknown.
//!
//! In this order: one that is installed; Debian's packages `rustc-web cargo-web rust-web-src`, which bring the sources of
//! the standard library to build it from; `rustup target add`. The first two need no network.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{fmt, io};

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
    let add = || Command::new("rustup").args(["target", "add", TARGET]).output();
    match choose(&sysroot, debian(), report, add)? {
        Choice::Installed => Ok(Toolchain::Installed {
            version: output("rustc", &["--version"])?,
        }),
        Choice::Debian { cargo, rustc } => {
            let linker = linker(&sysroot)?;
            let version = output(&rustc.display().to_string(), &["--version"])?;
            Ok(Toolchain::Debian {
                cargo,
                rustc,
                linker,
                version,
            })
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Installed,
    Debian { cargo: PathBuf, rustc: PathBuf },
}

/// The order of the module's head. `add` runs rustup, and only where nothing else is left.
fn choose(
    sysroot: &Path,
    debian: Option<(PathBuf, PathBuf)>,
    report: &mut dyn FnMut(&str),
    add: impl FnOnce() -> io::Result<Output>,
) -> Result<Choice, BuildError> {
    if has_target(sysroot) {
        return Ok(Choice::Installed);
    }
    if let Some((cargo, rustc)) = debian {
        return Ok(Choice::Debian { cargo, rustc });
    }
    report(&format!(
        "installing the standard library of {TARGET}: rustup target add {TARGET}"
    ));
    match add() {
        Ok(result) if result.status.success() && has_target(sysroot) => Ok(Choice::Installed),
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn install(sysroot: &Path) {
        fs::create_dir_all(sysroot.join("lib/rustlib").join(TARGET).join("lib")).unwrap();
    }

    /// What a shell script gives, in place of rustup.
    fn script(text: &str) -> io::Result<Output> {
        Command::new("sh").args(["-c", text]).output()
    }

    fn never() -> io::Result<Output> {
        panic!("rustup was asked")
    }

    #[test]
    fn what_is_installed_is_taken_in_silence() {
        let sysroot = tempfile::tempdir().unwrap();
        let debian = (PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/bin/rustc"));
        let mut said = Vec::new();
        let mut report = |line: &str| said.push(line.to_owned());
        let found = choose(sysroot.path(), Some(debian.clone()), &mut report, never).unwrap();
        let (cargo, rustc) = debian.clone();
        assert_eq!(found, Choice::Debian { cargo, rustc });
        install(sysroot.path());
        let found = choose(sysroot.path(), Some(debian), &mut report, never).unwrap();
        assert_eq!(found, Choice::Installed);
        assert_eq!(said, Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_is_installed_and_said() {
        let sysroot = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        let found = choose(sysroot.path(), None, &mut |line| said.push(line.to_owned()), || {
            install(sysroot.path());
            script("true")
        });
        assert_eq!(found.unwrap(), Choice::Installed);
        assert!(
            said.len() == 1 && said[0].contains("rustup target add wasm32-unknown-unknown"),
            "{said:?}"
        );
    }

    #[test]
    fn what_cannot_be_installed_says_every_way_to_get_it() {
        let sysroot = tempfile::tempdir().unwrap();
        let refused = |add: fn() -> io::Result<Output>| {
            let error = choose(sysroot.path(), None, &mut |_| {}, add).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("rustup target add") && message.contains("apt-get install rustc-web"),
                "{message}"
            );
            message
        };
        let message = refused(|| script("echo 'error: no network' >&2; exit 1"));
        assert!(message.contains("error: no network"), "{message}");
        // It succeeds, and nothing is there.
        assert!(refused(|| script("true")).contains("rustup failed"));
        let message = refused(|| Err(io::ErrorKind::NotFound.into()));
        assert!(message.contains("rustup is not here either"), "{message}");
    }
}
