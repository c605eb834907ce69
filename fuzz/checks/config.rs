//! A configuration file is read or refused with a message that names it, and means the same as JSON.

use std::path::Path;

use popcell_controller_runtime::config::{Listen, ServerConfig};
use serde_json::Value;

const FILE: &str = "/etc/popcell/config.yaml";

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let read = ServerConfig::parse(Path::new(FILE), text);
    if let Err(error) = &read {
        let reported = error.to_string();
        assert!(
            reported.contains(FILE) && reported.len() > FILE.len() + 20,
            "{reported}"
        );
    }
    if let Ok(config) = &read {
        let commented = format!("# of an operator\n{text}");
        let again = ServerConfig::parse(Path::new(FILE), &commented);
        // A directive, or a byte order mark, has to come first.
        if !text.starts_with(['%', '\u{feff}']) {
            assert_eq!(again.ok().as_ref(), Some(config));
        }
        for listen in [config.metrics.listen, Listen::Off] {
            assert_eq!(listen.socket(true).is_some(), listen.socket(false).is_some());
        }
    }
    // Every text of JSON is one of YAML, but for keys that come twice.
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let printed = ServerConfig::parse(Path::new(FILE), &value.to_string());
        if let Ok(config) = read {
            assert_eq!(printed.map_err(|error| error.to_string()), Ok(config));
        }
    }
    for line in text.lines().take(20) {
        address(line);
    }
}

/// What is bound is what is written.
fn address(text: &str) {
    let Ok(listen) = text.parse::<Listen>() else { return };
    let Some(socket) = listen.socket(false) else {
        assert_eq!(text, "0");
        return;
    };
    let again: Listen = socket.to_string().parse().expect("what is bound can be written");
    assert_eq!(again.socket(false), Some(socket), "{text:?}");
    assert!(
        text.ends_with(&socket.port().to_string()) || text.contains(":0") || text.contains('+'),
        "{text:?}"
    );
}
