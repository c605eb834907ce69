//! Deadlines, and hosts that are stopped. What changes a whole process runs in one of its own: this test binary again, with
//! one test that is otherwise ignored.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use popcell_engine::{EngineError, Settings};
use popcell_protocol::{Answer, Operation};

use crate::fixture::{FILE, ask, file, module, settings, wasm};

/// Runs about five milliseconds.
const SHORT: &str = "spin-5000000";

fn child(test: &str) -> Command {
    wasm("misbehaving");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env(FILE, file())
        .stdout(Stdio::piped());
    command
}

/// Waits until the child prints a line with this word.
fn wait_for(child: &mut Child, word: &str) -> BufReader<std::process::ChildStdout> {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "the child ended before it said {word}"
        );
    }
    lines
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -{name} {}", child.id()))
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_loop_ends_at_the_shorter_of_budget_and_cap() {
    let capped = module(&Settings {
        call_timeout: Duration::from_millis(300),
        ..settings()
    });
    let error = ask(&capped, Operation::InterpretHealth, "loop").unwrap_err();
    assert!(error.to_string().contains("deadline of 300ms"), "{error}");
}

#[test]
fn a_short_call_never_expires_at_the_largest_cap() {
    let module = module(&Settings {
        call_timeout: Settings::CALL_TIMEOUT.1,
        ..settings()
    });
    for _ in 0..20 {
        assert!(matches!(
            ask(&module, Operation::InterpretHealth, SHORT),
            Ok(Answer::Health(true))
        ));
    }
}

#[test]
fn a_deadline_cannot_be_switched_off() {
    for call_timeout in [
        Duration::ZERO,
        Duration::from_millis(99),
        Duration::from_secs(31),
        Duration::MAX,
    ] {
        let error = popcell_engine::Engine::new(&Settings {
            call_timeout,
            ..settings()
        })
        .unwrap_err();
        assert!(
            matches!(
                error,
                EngineError::Setting {
                    setting: "call-timeout",
                    ..
                }
            ),
            "{error}"
        );
    }
}

#[test]
fn a_stopped_process_finds_its_calls_alive() {
    let mut command = child("clock::in_a_stopped_process");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let _output = wait_for(&mut child, "calling");
    for stopped in [Duration::from_secs(5), Duration::from_millis(1500)] {
        signal(&child, "STOP");
        sleep(stopped);
        signal(&child, "CONT");
        sleep(Duration::from_millis(100));
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "run by a_stopped_process_finds_its_calls_alive"]
fn in_a_stopped_process() {
    let module = module(&Settings {
        call_timeout: Duration::from_secs(1),
        ..settings()
    });
    let over = Arc::new(AtomicBool::new(false));
    std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            // Whatever ends the input: then the process was stopped for the last time.
            let _ = std::io::stdin().read_line(&mut String::new());
            over.store(true, Ordering::Relaxed);
        }
    });
    println!("calling");
    loop {
        let last = over.load(Ordering::Relaxed);
        assert!(matches!(
            ask(&module, Operation::InterpretHealth, SHORT),
            Ok(Answer::Health(true))
        ));
        if last {
            return;
        }
    }
}
