//! What tests run but cargo does not build for them: the lab's programs, interpreter modules, our own programs.
//!
//! Each is built at most once in a process, and one process at a time builds: a second one waits and finds it done.
//! Whether something is up to date is for cargo and go to decide; they are asked every time.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow};

use crate::workspace;

pub mod go;
mod modules;
mod programs;

pub use modules::{build_module, module_crates};
pub use programs::{Profile, Programs};

/// Directory with the lab's programs, built when `POPCELL_LAB_BIN` does not name one.
pub fn lab_programs() -> Result<PathBuf> {
    static ONCE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&ONCE, || lab_with("lab", &[]))
}

/// The same directory, in which there is also a kubelet, and images for it to run.
pub fn lab_programs_and_kubelet() -> Result<PathBuf> {
    static ONCE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&ONCE, || lab_with("kubelet", &["--containers"]))
}

fn lab_with(program: &str, flags: &[&str]) -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("POPCELL_LAB_BIN") {
        let dir = PathBuf::from(dir);
        anyhow::ensure!(
            dir.join(program).is_file(),
            "POPCELL_LAB_BIN: there is no `{program}` in {}",
            dir.display()
        );
        return Ok(dir);
    }
    let dir = workspace::target_dir().join("lab-bin");
    let _lock = lock("lab")?;
    go::build_lab(&dir, flags)?;
    Ok(dir)
}

/// Directory with the components of every module in this repository.
pub fn modules() -> Result<PathBuf> {
    static ONCE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&ONCE, || {
        let _lock = lock("modules")?;
        for module in module_crates()? {
            build_module(&module, &mut |_| {})?;
        }
        Ok(workspace::modules_dir())
    })
}

/// `popcell-webhook`, `popcell-controller`, `popcell-provider-pod` and `popcell`.
pub fn programs(profile: Profile) -> Result<Programs> {
    static DEV: OnceLock<Result<Programs, String>> = OnceLock::new();
    static RELEASE: OnceLock<Result<Programs, String>> = OnceLock::new();
    let cell = match profile {
        Profile::Dev => &DEV,
        Profile::Release => &RELEASE,
    };
    once(cell, || programs::build(profile))
}

/// The command line, to be given arguments.
pub fn popcell() -> Result<Command> {
    Ok(Command::new(programs(Profile::Dev)?.popcell))
}

/// Runs `make` on the first call only. An error is kept too: what failed once in a process fails again.
fn once<T: Clone>(cell: &OnceLock<Result<T, String>>, make: impl FnOnce() -> Result<T>) -> Result<T> {
    cell.get_or_init(|| make().map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(|error| anyhow!(error))
}

/// Holds a lock among processes until the file is dropped.
fn lock(name: &str) -> Result<File> {
    let dir = workspace::target_dir();
    fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
    let path: &Path = &dir.join(format!(".popcell-{name}.lock"));
    let file = File::create(path).with_context(|| format!("failed to create {}", path.display()))?;
    file.lock()
        .with_context(|| format!("failed to lock {}", path.display()))?;
    Ok(file)
}
