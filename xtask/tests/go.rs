//! What a user without Go sees.

use std::path::Path;
use std::process::Command;

#[test]
fn a_missing_go_says_how_to_get_it() {
    let nothing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-programs");
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["lab", "build"])
        .env("PATH", &nothing)
        .env("CARGO_TARGET_DIR", &nothing)
        .env_remove("POPCELL_LAB_BIN")
        .output()
        .unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    for part in [
        "Go is not installed",
        "apt-get install golang-go",
        "https://go.dev/dl/",
        "POPCELL_LAB_BIN",
    ] {
        assert!(complaint.contains(part), "{part:?} is not in {complaint}");
    }
}
