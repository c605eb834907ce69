//! Logs of a server: to standard error, filtered by `RUST_LOG`, at `info` without it.
//!
//! Invariant: logging never waits, never fails and never panics, whatever standard error is: closed, full, or a pipe that
//! is not read. Lines that cannot be written are counted ([`lost`]) and their number is logged when writing works again.

mod lossy;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::time::Duration;

use lossy::Lossy;
use tracing::Metadata;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// At the end of the process, what was logged last gets so long to be written.
const FLUSH: Duration = Duration::from_secs(1);

static LOG: OnceLock<Lossy> = OnceLock::new();

/// Installs the log of the process: one JSON object for each line, or lines for people. Panics are logged, too. A second
/// call does nothing.
pub fn install(json: bool) {
    let log = LOG.get_or_init(|| Lossy::start(Box::new(std::io::stderr())));
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would print to standard error, and panic where that fails.
        .log_internal_errors(false)
        .with_writer(log.clone());
    let no_bodies = filter_fn(is_kept);
    let installed = if json {
        lines.json().flatten_event(true).finish().with(no_bodies).try_init()
    } else {
        let lines = lines.with_ansi(std::io::stderr().is_terminal());
        lines.finish().with(no_bodies).try_init()
    };
    // Only a test that runs the program twice in one process comes here twice.
    if installed.is_ok() {
        std::panic::set_hook(Box::new(panicked));
    }
}

/// Whether something may be logged at all, whatever `RUST_LOG` asks for: kube's client logs the bodies of servers, which are
/// all tenants' objects, where it cannot decode them (kube-client 5.0, `src/client/mod.rs`).
fn is_kept(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() || metadata.target() != "kube_client::client"
}

/// Lines that could not be written since the start.
pub fn lost() -> u64 {
    LOG.get().map_or(0, Lossy::lost)
}

/// Waits until all that was logged is written, for at most a second. For the end of the process.
pub fn flush() {
    if let Some(log) = LOG.get() {
        log.flush(FLUSH);
    }
}

/// Logs an error; it is written whatever `RUST_LOG` filters. For why a process ends.
pub fn error(program: &str, message: &str) {
    if tracing::enabled!(tracing::Level::ERROR) {
        tracing::error!("{message}");
    } else if let Some(log) = LOG.get() {
        log.push(format!("{program}: {message}\n").as_bytes());
    }
}

/// The standard hook would print to standard error and wait for it.
fn panicked(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let message = info.payload_as_str().unwrap_or("a panic without a message");
    let message = format!(
        "thread '{}' panicked at {place}: {}",
        thread.name().unwrap_or("unnamed"),
        shown(message)
    );
    error("panic", &message);
    let backtrace = Backtrace::capture();
    if let (BacktraceStatus::Captured, Some(log)) = (backtrace.status(), LOG.get()) {
        log.push(format!("{backtrace}\n").as_bytes());
    }
}

/// So many characters of a name are shown: the longest that Kubernetes accepts.
pub const LONGEST: usize = 253;

/// A text from outside: in one line, without control characters, cut at [`LONGEST`] characters.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(&'a str);

/// Shows a text from outside in a log.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.0.chars();
        for letter in letters.by_ref().take(LONGEST) {
            if is_plain(letter) {
                f.write_char(letter)?;
            } else {
                write!(f, "{}", letter.escape_unicode())?;
            }
        }
        match letters.next() {
            Some(_) => f.write_str("..."),
            None => Ok(()),
        }
    }
}

/// Whether a letter only shows itself: no control, no line of its own, no change of direction, nothing invisible.
fn is_plain(letter: char) -> bool {
    !(letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl MakeWriter<'_> for Lines {
        type Writer = Self;

        fn make_writer(&self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn bodies_of_servers_are_not_logged_at_any_filter() {
        let lines = Lines::default();
        let log = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new("trace,kube_client::client=trace"))
            .with_writer(lines.clone())
            .finish()
            .with(filter_fn(is_kept));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(target: "kube_client::client", "s3cret");
            tracing::trace!(target: "kube_client::client", "s3cret");
            tracing::debug!(target: "kube_client::client::builder", "requesting");
            tracing::info!("ours");
        });
        let reported = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(
            !reported.contains("s3cret") && reported.contains("requesting") && reported.contains("ours"),
            "{reported}"
        );
    }

    #[test]
    fn names_are_one_line_and_cut() {
        for (text, expected) in [
            ("", ""),
            ("web-1", "web-1"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("a\nlevel=ERROR", "a\\u{a}level=ERROR"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b\u{200b}\u{85}", "a\\u{202e}b\\u{200b}\\u{85}"),
        ] {
            assert_eq!(shown(text).to_string(), expected);
        }
        let longest = "\u{e9}".repeat(LONGEST);
        assert_eq!(shown(&longest).to_string(), longest);
        assert_eq!(shown(&format!("{longest}x")).to_string(), format!("{longest}..."));
    }
}
