//! The lab's programs, which are written in Go.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

/// What to do where Go is missing or too old.
const FIX: &str = "The lab needs Go 1.25 or newer, or 1.21 or newer with access to Go's module proxy, from which it \
    fetches the toolchain that tests/lab/go.mod names.\n  Debian, Ubuntu: apt-get install golang-go\n  elsewhere: \
    https://go.dev/dl/, and put its bin directory into PATH\nOr set POPCELL_LAB_BIN to a directory of programs built on \
    another machine.";

/// The Go version that builds the lab, such as `go1.26.8`.
///
/// # Errors
/// Where there is none: how to get one.
pub fn version() -> Result<String> {
    let output = match command().args(["env", "GOVERSION"]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!("Go is not installed.\n{FIX}"),
        Err(error) => return Err(error).context("failed to start go"),
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "Go cannot build the lab: {}\n{FIX}",
        complaint.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// `go` in the lab's module.
///
/// Without cgo, as `labbuild` does: with it, all of Kubernetes would be compiled once more for lints and tests.
#[must_use]
pub fn command() -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(workspace::root().join("tests/lab"))
        .env("CGO_ENABLED", "0");
    command
}

/// Builds everything that is not up to date into `dir`, and what `flags` ask for. The first time takes several minutes.
pub(super) fn build_lab(dir: &Path, flags: &[&str]) -> Result<()> {
    version()?;
    let status = command()
        .args(["run", "./cmd/labbuild", "--out"])
        .arg(dir)
        .args(flags)
        .status()
        .context("failed to start go")?;
    ensure!(status.success(), "failed to build the lab: go ended with {status}");
    Ok(())
}
