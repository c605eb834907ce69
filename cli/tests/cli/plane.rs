//! An API server of a few objects, as far as the commands that read and write objects need one. That real ones answer so is
//! seen in tests/suites.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};
use serde_json::{Value, json};

use crate::program::scratch;

/// What is answered instead, and how often.
struct Script {
    method: &'static str,
    path: String,
    code: u16,
    message: &'static str,
    times: usize,
}

const DRY_RUN: &str = "?dryRun=All";

#[derive(Default)]
struct State {
    /// Objects by path.
    objects: BTreeMap<String, Value>,
    /// Type of the event, path and object of each change: the resourceVersion of a list is their number.
    changes: Vec<(&'static str, String, Value)>,
    scripts: Vec<Script>,
    /// Method and path, in order; dry runs with [`DRY_RUN`].
    asked: Vec<String>,
    /// Grows with each object that is stored.
    version: u64,
    /// How far its clock is ahead.
    ahead: SignedDuration,
}

pub(crate) struct Plane {
    state: Arc<Mutex<State>>,
    folder: tempfile::TempDir,
}

impl Plane {
    /// Serves until the end of the process, each connection by a thread.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let folder = scratch();
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: it\nclusters: [{{name: it, cluster: {{server: 'http://{address}'}}}}]\n\
             users: [{{name: it, user: {{}}}}]\ncontexts: [{{name: it, context: {{cluster: it, user: it}}}}]\n"
        );
        std::fs::write(folder.path().join("kubeconfig"), text).unwrap();
        let state = Arc::<Mutex<State>>::default();
        let serving = Arc::clone(&state);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&serving);
                std::thread::spawn(move || serve(&connection, &state));
            }
        });
        Self { state, folder }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// Puts an object at a path.
    pub(crate) fn put(&self, path: &str, mut object: Value) {
        object["metadata"]["name"] = json!(path.rsplit('/').next().unwrap());
        self.state.lock().unwrap().store(path, object);
    }

    /// Takes an object away.
    pub(crate) fn remove(&self, path: &str) {
        self.state.lock().unwrap().remove(path);
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.state.lock().unwrap().objects.get(path).cloned()
    }

    /// Answers the next requests so, whatever is there.
    pub(crate) fn refuse(&self, method: &'static str, path: &str, code: u16, message: &'static str, times: usize) {
        let path = path.to_owned();
        let script = Script {
            method,
            path,
            code,
            message,
            times,
        };
        self.state.lock().unwrap().scripts.push(script);
    }

    pub(crate) fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.state.lock().unwrap().ahead = ahead;
    }

    /// How often something with this in its path was asked for.
    pub(crate) fn asked(&self, part: &str) -> usize {
        let asked = &self.state.lock().unwrap().asked;
        asked.iter().filter(|one| one.contains(part)).count()
    }

    /// Requests that were to change something.
    pub(crate) fn writes(&self) -> Vec<String> {
        let asked = &self.state.lock().unwrap().asked;
        let writes = asked
            .iter()
            .filter(|one| !one.starts_with("GET ") && !one.ends_with(DRY_RUN));
        writes.cloned().collect()
    }
}

impl State {
    fn store(&mut self, path: &str, object: Value) {
        let old = self.objects.insert(path.to_owned(), object.clone());
        let event = if old.is_some() { "MODIFIED" } else { "ADDED" };
        self.changes.push((event, path.to_owned(), object));
    }

    /// With a version and a few of a server's defaults; only said in a dry run.
    fn take(&mut self, path: &str, mut object: Value, dry: bool) -> Value {
        for webhook in object["webhooks"].as_array_mut().into_iter().flatten() {
            webhook["matchPolicy"] = json!("Equivalent");
        }
        if object["kind"] == "CustomResourceDefinition" {
            object["spec"]["conversion"] = json!({ "strategy": "None" });
        }
        if dry {
            return object;
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.store(path, object.clone());
        object
    }

    fn remove(&mut self, path: &str) {
        let object = self.objects.remove(path).unwrap();
        self.changes.push(("DELETED", path.to_owned(), object));
    }
}

/// Sends what changes of a collection after a resourceVersion, until the client leaves.
fn watch(connection: &TcpStream, (path, query): (&str, &str), state: &Mutex<State>) -> std::io::Result<()> {
    let mut out = connection;
    out.write_all(b"HTTP/1.1 200 Said\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let version = query.split('&').find_map(|one| one.strip_prefix("resourceVersion="));
    // Versions begin with 1.
    let mut seen = version.unwrap().parse::<usize>().unwrap() - 1;
    loop {
        let new: Vec<_> = state.lock().unwrap().changes.iter().skip(seen).cloned().collect();
        for (event, one, mut object) in new {
            seen += 1;
            object["metadata"]["resourceVersion"] = json!((seen + 1).to_string());
            if is_in(&one, path) && is_selected(&object, query) {
                let line = format!("{}\n", json!({ "type": event, "object": object }));
                out.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes())?;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Answers one request after the other until the client leaves.
fn serve(connection: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(connection);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let length = head.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.trim().parse().ok())?
        });
        let mut body = vec![0; length.unwrap_or(0)];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let mut parts = head.first().map(String::as_str).unwrap_or_default().split(' ');
        let (method, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        if query.split('&').any(|one| one == "watch=true") {
            state.lock().unwrap().asked.push(format!("GET {path}"));
            let _ = watch(connection, (path, query), state);
            return;
        }
        let (code, body, ahead) = {
            let mut state = state.lock().unwrap();
            let (code, body) = answer(method, (path, query), body, &mut state);
            (code, body.to_string(), state.ahead)
        };
        let date = DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&(Timestamp::now() + ahead))
            .unwrap();
        let text = format!(
            "HTTP/1.1 {code} Said\r\ndate: {date}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut out = connection;
        if out.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(method: &str, (path, query): (&str, &str), body: Value, state: &mut State) -> (u16, Value) {
    let dry = query.split('&').any(|one| one == "dryRun=All");
    let suffix = if dry { DRY_RUN } else { "" };
    state.asked.push(format!("{method} {path}{suffix}"));
    let script = |one: &&mut Script| one.method == method && one.path == path && one.times > 0;
    if let Some(script) = state.scripts.iter_mut().find(script) {
        script.times -= 1;
        return failure(script.code, "Scripted", script.message, path);
    }
    let is_one = state.objects.contains_key(path);
    match method {
        "GET" if is_one => (200, state.objects[path].clone()),
        "GET" if is_collection(path) => (200, list(path, query, state)),
        "POST" => {
            let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
            if state.objects.contains_key(&path) {
                return failure(409, "AlreadyExists", "there is one", &path);
            }
            (201, state.take(&path, body, dry))
        }
        "PUT" if is_one => {
            if body["metadata"]["resourceVersion"] != state.objects[path]["metadata"]["resourceVersion"] {
                return failure(409, "Conflict", "it has changed", path);
            }
            (200, state.take(path, body, dry))
        }
        "PATCH" if is_one => {
            let mut object = state.objects[path].clone();
            match body {
                Value::Array(_) => {
                    let changes: json_patch::Patch = serde_json::from_value(body).unwrap();
                    if json_patch::patch(&mut object, &changes).is_err() {
                        let message = "the server rejected our request due to an error in our request";
                        return failure(422, "Invalid", message, path);
                    }
                }
                body => merge(&mut object, body),
            }
            state.store(path, object.clone());
            (200, object)
        }
        "DELETE" if is_one => {
            for field in ["uid", "resourceVersion"] {
                if body["preconditions"][field] != state.objects[path]["metadata"][field] {
                    return failure(409, "Conflict", "it has changed", path);
                }
            }
            state.remove(path);
            (
                200,
                json!({ "kind": "Status", "apiVersion": "v1", "status": "Success" }),
            )
        }
        _ => failure(404, "NotFound", "not found", path),
    }
}

fn is_collection(path: &str) -> bool {
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let rest = parts
        .get(if parts.first() == Some(&"api") { 2 } else { 3 }..)
        .unwrap_or_default();
    match rest {
        ["namespaces", _, rest @ ..] if !rest.is_empty() => rest.len() == 1,
        rest => rest.len() == 1,
    }
}

/// Whether an object has the one label, and the name, that a query selects.
fn is_selected(object: &Value, query: &str) -> bool {
    let selector = |name: &str| {
        let selector = query.split('&').find_map(|one| one.strip_prefix(name));
        selector.unwrap_or_default().replace("%2F", "/").replace("%3D", "=")
    };
    let has_label = match selector("labelSelector=").split_once('=') {
        Some((key, value)) => object["metadata"]["labels"][key] == value,
        None => true,
    };
    let name = selector("fieldSelector=");
    has_label
        && name
            .strip_prefix("metadata.name=")
            .is_none_or(|name| object["metadata"]["name"] == name)
}

/// Whether a path is below `/prefix/plural`, in every namespace where that names none.
fn is_in(one: &str, collection: &str) -> bool {
    let (prefix, plural) = collection.rsplit_once('/').unwrap();
    let Some((of, _)) = one.rsplit_once('/') else {
        return false;
    };
    let Some((of_prefix, of_plural)) = of.rsplit_once('/') else {
        return false;
    };
    let across = of_prefix
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with("/namespaces/"));
    of_plural == plural && (of_prefix == prefix || across)
}

/// Objects of a collection, in pages of the length that is asked for.
fn list(path: &str, query: &str, state: &State) -> Value {
    let items: Vec<_> = state
        .objects
        .iter()
        .filter(|(one, object)| is_in(one, path) && is_selected(object, query))
        .map(|(_, object)| object)
        .collect();
    let number = |name: &str| {
        query
            .split('&')
            .find_map(|one| one.strip_prefix(name)?.parse::<usize>().ok())
    };
    let begin = number("continue=").unwrap_or_default();
    let page = items.iter().skip(begin).take(number("limit=").unwrap_or(usize::MAX));
    let page: Vec<_> = page.collect();
    let end = begin + page.len();
    let more = (end < items.len()).then(|| end.to_string());
    let metadata = json!({ "resourceVersion": (state.changes.len() + 1).to_string(), "continue": more });
    json!({ "apiVersion": "v1", "kind": "List", "metadata": metadata, "items": page })
}

fn failure(code: u16, reason: &str, message: &str, path: &str) -> (u16, Value) {
    let mut parts = path.rsplit('/');
    let (name, plural) = (parts.next(), parts.next());
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": { "kind": plural, "name": name } });
    (code, body)
}

/// RFC 7386.
fn merge(into: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(&key);
        } else {
            merge(&mut into[key], value);
        }
    }
}
