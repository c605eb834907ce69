//! A patch that the host accepts applies with another library too, and leaves alone what is not the operation's.

use popcell_engine::check_patch;
use popcell_protocol::{Operation, PatchOp};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Lines: the spec of an object, and after it steps: `+`, `=` or `-`, a pointer, a space, a value.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let Some(spec) = lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok()) else {
        return;
    };
    let before = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "labels": {"b": "c"}}, "spec": spec, "status": {"d": [1]},
    });
    let (steps, plain): (Vec<PatchOp>, Vec<Value>) = lines.take(64).filter_map(step).unzip();
    for operation in [Operation::Retain, Operation::AggregateStatus] {
        let object = before.to_string();
        if check_patch(operation, object.as_bytes(), &steps).is_err() {
            continue;
        }
        let mut after = before.clone();
        let patch: json_patch::Patch = serde_json::from_value(Value::Array(plain.clone())).expect("steps are a patch");
        json_patch::patch(&mut after, &patch).expect("accepted patches apply");
        let kept: &[&str] = match operation {
            Operation::AggregateStatus => &["/apiVersion", "/kind", "/metadata", "/spec"],
            _ => &["/apiVersion", "/kind", "/metadata/name", "/status"],
        };
        for pointer in kept {
            assert_eq!(before.pointer(pointer), after.pointer(pointer), "{operation} {pointer}");
        }
    }
}

fn step(line: &str) -> Option<(PatchOp, Value)> {
    let (path, value) = line.get(1..)?.split_once(' ').unwrap_or((line.get(1..)?, ""));
    let raw = || RawValue::from_string(value.to_owned()).ok();
    let parsed = || serde_json::from_str::<Value>(value).ok();
    let path = path.to_owned();
    Some(match line.as_bytes().first()? {
        b'+' => (
            PatchOp::Add {
                path: path.clone(),
                value: raw()?,
            },
            json!({"op": "add", "path": path, "value": parsed()?}),
        ),
        b'=' => (
            PatchOp::Replace {
                path: path.clone(),
                value: raw()?,
            },
            json!({"op": "replace", "path": path, "value": parsed()?}),
        ),
        b'-' => (
            PatchOp::Remove { path: path.clone() },
            json!({"op": "remove", "path": path}),
        ),
        _ => return None,
    })
}
