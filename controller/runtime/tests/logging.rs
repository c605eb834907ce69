//! Whatever standard error is, the program ends with its own exit code.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::fs::File;
use std::process::{Command, Stdio};

fn refused(stderr: Stdio) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_popcell-controller"));
    command
        .env_clear()
        .env("RUST_LOG", "trace")
        .args(["--server-config", "/no/such/file"]);
    command.stderr(stderr).status().unwrap().code()
}

#[test]
fn wrong_settings_are_exit_code_2_also_where_nothing_can_be_logged() {
    assert_eq!(refused(Stdio::null()), Some(2));
    assert_eq!(
        refused(File::options().write(true).open("/dev/full").unwrap().into()),
        Some(2)
    );
    let (reader, closed) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(refused(closed.into()), Some(2));
}
