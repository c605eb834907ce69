//! Logs of a server: to standard error, filtered by `RUST_LOG`, at `info` without it.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Installs the log of the process: one JSON object for each line, or lines for people. A second call does nothing.
pub fn install(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let installed = if json {
        lines.json().flatten_event(true).try_init()
    } else {
        lines.with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    // Only a test that runs the program twice in one process comes here twice.
    drop(installed);
}
