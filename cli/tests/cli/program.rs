//! Runs the binary.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    /// Fails with everything that was printed unless the program ended with `code`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_popcell"));
    command
        .env_remove("POPCELL_MODULE_DIR")
        .env_remove("POPCELL_SDK")
        .env_remove("KUBECONFIG")
        .current_dir(fixtures());
    command
}

pub(crate) fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Runs with these arguments, in the folder of the fixtures.
pub(crate) fn popcell(args: &[&str]) -> Run {
    finish(command().args(args))
}

/// Runs with something on standard input.
pub(crate) fn popcell_with(args: &[&str], stdin: &str) -> Run {
    let mut child = command()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The program may refuse its arguments and end without reading.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// The module of Karmada's example kind, built by `popcell build` once per run of the tests.
pub(crate) fn module() -> &'static str {
    static MODULE: OnceLock<String> = OnceLock::new();
    MODULE.get_or_init(|| {
        let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("example-{}.wasm", std::process::id()));
        let output = output.to_str().unwrap().to_owned();
        let crate_folder = repository().join("interpreter-wasm/karmada-example");
        let run = popcell(&["build", crate_folder.to_str().unwrap(), "-o", &output]).expect(0);
        assert!(
            run.out.contains("sha256     ") && run.out.contains("toolchain  ") && run.out.contains(" bytes"),
            "{}",
            run.out
        );
        output
    })
}
