//! The `popcell` binary: parses, runs, turns the outcome into an exit code.
#![forbid(unsafe_code)]

use std::io::Write as _;

use clap::Parser as _;
use popcell::{
    Cli, Console,
    exit::{Exit, Failure},
};
use tokio::signal::unix::{SignalKind, signal};

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    exit_when_interrupted();
    let mut console = Console::standard();
    let exit = match popcell::run(cli, &mut console) {
        Ok(exit) => exit,
        Err(Failure::Closed) => Failure::Closed.exit(),
        Err(failure) => {
            // A server's words are shown, and steer no terminal. Nothing can be reported when stderr is gone too.
            let text = failure.to_string();
            let lines: Vec<String> = text.lines().map(popcell::console::shown).collect();
            let _ = writeln!(std::io::stderr(), "error: {}", lines.join("\n"));
            failure.exit()
        }
    };
    exit.into()
}

/// Ends the process with the documented code on SIGINT. A command holds no state that a sudden end could spoil: files are
/// written by rename, and each write to a cluster is one request.
fn exit_when_interrupted() {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    // Registered before anything else is done, so that no interrupt is missed.
    let registered = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())
    };
    let Ok(mut interrupts) = registered else { return };
    std::thread::spawn(move || {
        if runtime.block_on(interrupts.recv()).is_some() {
            if let Some(words) = popcell::console::last_words() {
                // Nothing can be reported when stderr is gone too.
                let _ = writeln!(std::io::stderr(), "{words}");
            }
            std::process::exit(Exit::Interrupted.code());
        }
    });
}
