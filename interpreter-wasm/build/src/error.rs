//! Why a module could not be built.

use std::path::PathBuf;

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
