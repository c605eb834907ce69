//! A Karmada API server as far as `register --dry-run` and `doctor` look at one. That the real one answers so is seen in
//! tests/suites.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpStream,
    path::PathBuf,
    sync::Mutex,
};

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use serde_json::{Value, json};

use crate::server::Server;

#[derive(Default)]
struct State {
    /// Objects by plural.
    objects: HashMap<&'static str, Vec<Value>>,
    /// How far its clock is ahead.
    ahead: SignedDuration,
    /// Paths that were asked for.
    asked: Vec<String>,
}

pub(crate) struct Karmada(Server<State>);

pub(crate) const CONFIGURATIONS: &str = "resourceinterpreterwebhookconfigurations";

impl Karmada {
    /// Serves until the end of the process.
    pub(crate) fn start() -> Self {
        let karmada = Self(Server::start(answer));
        karmada.set(
            "clusters",
            vec![json!({"metadata": {"name": "a", "labels": {"topology.datum.net/city-code": "DFW"}}, "spec": {"syncMode": "Push"}})],
        );
        karmada
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.0.kubeconfig()
    }

    pub(crate) fn set(&self, plural: &'static str, objects: Vec<Value>) {
        self.0.state.lock().unwrap().objects.insert(plural, objects);
    }

    pub(crate) fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.0.state.lock().unwrap().ahead = ahead;
    }

    /// How often something with this in its path was asked for.
    pub(crate) fn asked(&self, part: &str) -> usize {
        let state = self.0.state.lock().unwrap();
        state.asked.iter().filter(|path| path.contains(part)).count()
    }
}

/// Answers one request after the other until the client leaves.
fn answer(connection: &TcpStream, state: &Mutex<State>) {
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        let headers: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        assert!(first.starts_with("GET "), "it only looks: {first} {headers:?}");
        let (status, body, ahead) = {
            let mut state = state.lock().unwrap();
            state.asked.push(path.clone());
            let (status, body) = object(&path, &state);
            (status, body.to_string(), state.ahead)
        };
        let date = DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&(Timestamp::now() + ahead))
            .unwrap();
        let text = format!(
            "HTTP/1.1 {status}\r\ndate: {date}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut out = connection;
        if out.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn object(path: &str, state: &State) -> (&'static str, Value) {
    let path = path.split('?').next().unwrap_or_default();
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["version"] => ("200 OK", json!({"major": "1"})),
        ["apis", "workload.example.io", "v1alpha1"] => (
            "200 OK",
            json!({
                "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "workload.example.io/v1alpha1",
                "resources": [resource("workloads"), resource("workloads/status")],
            }),
        ),
        ["apis", group, version, plural] => (
            "200 OK",
            json!({
                "apiVersion": format!("{group}/{version}"), "kind": "List", "metadata": {},
                "items": state.objects.get(plural).cloned().unwrap_or_default(),
            }),
        ),
        [.., plural, name] => (
            "404 Not Found",
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "message": "not found",
                "code": 404, "details": {"kind": plural, "name": name}}),
        ),
        _ => ("404 Not Found", Value::Null),
    }
}

fn resource(name: &str) -> Value {
    json!({"name": name, "singularName": "workload", "kind": "Workload", "namespaced": true, "verbs": ["get"]})
}
