//! Turns a module crate into a WebAssembly component, for `cargo xtask module` and `popcell build`.
//!
//! Invariants: a component that leaves here imports nothing; the same sources and toolchain give the same bytes, and no
//! path of the machine is inside; the target folder is kept apart from the native one, since another cargo may fill it.
#![forbid(unsafe_code)]

mod compile;
mod componentize;
mod heap;
mod toolchain;

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

pub use componentize::componentize;
pub use toolchain::{Toolchain, find_toolchain};

/// What to build and where to put it.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// Folder of the module crate's Cargo.toml.
    pub manifest_dir: PathBuf,
    /// Folder for intermediate results; not the native target folder.
    pub target_dir: PathBuf,
    /// The component file to write; its folder is made when it is absent.
    pub output: PathBuf,
}

/// A component that was written.
#[derive(Debug, Clone)]
pub struct Built {
    /// Where it is.
    pub output: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, in hexadecimal; the webhook reports the same digest.
    pub sha256: String,
    /// The toolchain that compiled it, for people.
    pub toolchain: String,
}

/// Compiles the crate for WebAssembly, makes a component of it and writes that file. `report` gets one line at a time.
pub fn build(request: &BuildRequest, report: &mut dyn FnMut(&str)) -> Result<Built, BuildError> {
    let toolchain = find_toolchain(report)?;
    let core = compile::compile(&toolchain, request, report)?;
    let bytes = fs::read(&core).map_err(|source| BuildError::Io {
        doing: "read",
        path: core.clone(),
        source,
    })?;
    let component = componentize(&bytes)?;
    write(&request.output, &component)?;
    Ok(Built {
        output: request.output.clone(),
        bytes: component.len() as u64,
        sha256: format!("{:x}", Sha256::digest(&component)),
        toolchain: toolchain.to_string(),
    })
}

/// Writes beside the target and renames, so that no reader sees half a module.
fn write(output: &PathBuf, bytes: &[u8]) -> Result<(), BuildError> {
    let failed = |doing, source| BuildError::Io {
        doing,
        path: output.clone(),
        source,
    };
    if let Some(parent) = output.parent() {
        fs::create_dir_all(parent).map_err(|source| failed("make the folder of", source))?;
    }
    let partial = output.with_extension(format!("wasm.{}", std::process::id()));
    fs::write(&partial, bytes).map_err(|source| failed("write", source))?;
    fs::rename(&partial, output).map_err(|source| failed("write", source))
}

/// What went wrong between a crate and its component, with the fix where there is one.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No standard library for wasm32-unknown-unknown is here.
    #[error(
        "failed to find a standard library for wasm32-unknown-unknown: run `rustup target add wasm32-unknown-unknown`, \
         or on Debian `apt-get install rustc-web cargo-web rust-web-src`{}", if detail.is_empty() { String::new() } else { format!(" ({detail})") }
    )]
    NoToolchain {
        /// What was tried.
        detail: String,
    },
    /// Debian's packages are there, a linker for WebAssembly is not.
    #[error("failed to find rust-lld at {}: install Rust by rustup, which brings it", searched.display())]
    NoLinker {
        /// Where it was looked for.
        searched: PathBuf,
    },
    /// A program did not start.
    #[error("failed to run {program}: {source}")]
    Spawn {
        /// Its name.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// The compiler refused the crate; its output was reported line by line.
    #[error("failed to compile {} for WebAssembly: {last}", manifest.display())]
    Compile {
        /// The Cargo.toml.
        manifest: PathBuf,
        /// The last line that says `error`.
        last: String,
    },
    /// The crate has no `cdylib`.
    #[error("failed to find a WebAssembly library of {}: its [lib] needs crate-type = [\"cdylib\", \"rlib\"]", manifest.display())]
    NoLibrary {
        /// The Cargo.toml.
        manifest: PathBuf,
    },
    /// The module wants something from outside.
    #[error(
        "failed to accept the module: it imports {}; a module computes and nothing else \
         (the usual cause is {cause})", imports.join(", ")
    )]
    Imports {
        /// `module::field` of each.
        imports: Vec<String>,
        /// Where such imports come from.
        cause: &'static str,
    },
    /// Not a core module with the interface in it.
    #[error(
        "failed to make a component: {reason} (does the crate have an `#[interpreter(...)]` implementation or \
         `export_interpreters!`?)"
    )]
    Component {
        /// What the encoder says.
        reason: String,
    },
    /// A file or folder.
    #[error("failed to {doing} {}: {source}", path.display())]
    Io {
        /// The verb.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}
