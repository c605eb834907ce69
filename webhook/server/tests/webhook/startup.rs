//! What cannot answer everything does not start, and says why.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::fixture::wasm;
use crate::process::Environment;

/// Exit code and what was written on standard error.
fn refused(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_truncated_module_stops_the_start_before_the_port_is_bound() {
    let environment = Environment::new(&["misbehaving"]);
    let whole = wasm("other");
    fs::write(environment.modules().join("other.wasm"), &whole[..whole.len() / 2]).unwrap();
    // Whoever binds before looking at the modules fails here with another code.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (code, text) = refused(
        environment
            .command()
            .args(["--listen", &taken.local_addr().unwrap().to_string()]),
    );
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("other.wasm"), "{text}");
}

#[test]
fn two_modules_for_one_kind_name_each_other() {
    let (code, text) = refused(&mut Environment::new(&["misbehaving", "rival"]).command());
    assert_eq!(code, 3, "{text}");
    assert!(
        text.contains("misbehaving.wasm") && text.contains("rival.wasm") && text.contains("Misbehaving"),
        "{text}"
    );
}

#[test]
fn modules_that_crash_or_claim_core_kinds_are_refused() {
    let (code, text) = refused(Environment::new(&["crash"]).command().env("RUST_LOG", "off"));
    assert!(
        code == 3 && text.contains("crash.wasm"),
        "also without a log: {code} {text}"
    );
    for (variants, expected) in [(&["crash"][..], "crash.wasm"), (&["core"][..], "--allow-core-kinds")] {
        let (code, text) = refused(&mut Environment::new(variants).command());
        assert_eq!(code, 3, "{text}");
        assert!(text.contains(expected), "{text}");
    }
    Environment::new(&["core"]).start(&["--allow-core-kinds"]);
}

#[test]
fn a_port_a_directory_or_a_file_that_fails_is_4() {
    let environment = Environment::new(&["misbehaving"]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for flag in ["--listen", "--health-listen"] {
        let (code, text) = refused(environment.command().args([flag, &address]));
        assert_eq!(code, 4, "{text}");
        assert!(text.contains(&format!("failed to listen on {address}")), "{text}");
    }
    let (code, text) = refused(
        environment
            .bare_command()
            .args(["--tls-cert", "/no/cert", "--tls-key", "/no/key"]),
    );
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("failed to read /no/cert"), "{text}");
    let (code, text) = refused(environment.command().args(["--module-dir", "/no/modules"]));
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("/no/modules"), "{text}");
    // No module was refused: there is none, as when a volume is not mounted. `popcell register` says the same.
    let (code, text) = refused(&mut Environment::new(&[]).command());
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("no *.wasm file"), "{text}");
}

#[test]
fn wrong_flags_are_2_also_from_the_environment() {
    let environment = Environment::new(&[]);
    for (arguments, expected) in [
        (&["--slots", "0"][..], "slots must be 1 to 1000"),
        (&["--call-timeout", "1m"][..], "must be 100ms to 30s"),
        (&["--tls-cert", "x"][..], "--self-signed cannot be used with"),
        (&["--nonsense"][..], "--nonsense"),
    ] {
        let (code, text) = refused(environment.command().args(arguments));
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(expected), "{text}");
    }
    let (code, text) = refused(environment.command().env("POPCELL_MAX_MEMORY", "lots"));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("lots"), "{text}");
    let (code, text) = refused(&mut environment.bare_command());
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("no certificate"), "{text}");
}

#[test]
fn the_environment_can_say_everything() {
    let environment = Environment::new(&["misbehaving"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_popcell-webhook"));
    command
        .env("POPCELL_MODULE_DIR", environment.modules())
        .env("POPCELL_LISTEN", "127.0.0.1:0")
        .env("POPCELL_HEALTH_LISTEN", "127.0.0.1:0")
        .env("POPCELL_SELF_SIGNED", "true")
        .env("POPCELL_CA_DIR", environment.path().join("ca"))
        .env("POPCELL_SAN", "a.example,b.example")
        .env("POPCELL_LOG_FORMAT", "json")
        .env("RUST_LOG", "info");
    let webhook = crate::process::Webhook::start(command);
    assert!(webhook.log().contains("a.example, b.example"), "{}", webhook.log());
}
