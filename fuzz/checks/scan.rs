//! The SDK takes exactly the JSON that serde_json takes, keeps it, and its differences lead from one object to another.

use popcell_sdk::diff::diff;
use popcell_sdk::types::PatchOp;
use popcell_sdk::{Json, Object};

pub fn check(bytes: &[u8]) {
    // Two texts with a zero byte between them; one alone is compared with itself.
    let mut texts = bytes.splitn(2, |byte| *byte == 0);
    let first = texts.next().unwrap_or_default();
    let Some(first) = read(first) else { return };
    let second = texts.next().and_then(read).unwrap_or_else(|| first.clone());
    assert!(first == first.clone() && rebuilt(&first) == first && first == rebuilt(&first));
    let (there, back) = (first == second, second == first);
    assert_eq!(there, back, "equality has one answer");
    let (Ok(mut before), Ok(mut after)) = (Object::try_from(first), Object::try_from(second)) else {
        return;
    };
    // Labels and annotations that become null are emptied key by key, which is not the same value.
    let _ = diff(&before, &after);
    for object in [&mut before, &mut after] {
        object.retain_fields(|key, _| key != "metadata");
    }
    let patch = diff(&before, &after);
    assert_eq!(patch.is_empty(), before == after);
    assert!(patch.iter().all(|step| !step.path().contains("//")), "{patch:?}");
    assert!(
        applied(&before, &patch) == *after,
        "{before:?} to {after:?} by {patch:?}"
    );
}

fn read(bytes: &[u8]) -> Option<Json> {
    let ours = Json::parse(bytes);
    let theirs = std::str::from_utf8(bytes)
        .ok()
        .map(serde_json::from_str::<&serde_json::value::RawValue>);
    let is_json = matches!(theirs, Some(Ok(_)));
    match &ours {
        Ok(value) => {
            assert!(is_json, "taken, and no JSON");
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(value.to_text(), text.trim_matches([' ', '\n', '\r', '\t']));
        }
        Err(error) => assert!(!is_json || error.to_string().contains("nested deeper"), "{error}"),
    }
    ours.ok()
}

/// The same value, made of its parts.
fn rebuilt(value: &Json) -> Json {
    if let Some(fields) = value.as_fields() {
        Json::object(
            fields
                .map(|(key, value)| (key.to_owned(), rebuilt(value)))
                .collect::<Vec<_>>(),
        )
    } else if let Some(items) = value.as_items() {
        Json::array(items.iter().map(rebuilt))
    } else if let Some(text) = value.as_text() {
        text.into()
    } else {
        value.clone()
    }
}

/// Applies the steps with the SDK's own edits, name by name.
fn applied(before: &Object, patch: &[PatchOp]) -> Json {
    let mut value = before.clone().into_json();
    for step in patch {
        match step {
            PatchOp::Add { path, value: new } | PatchOp::Replace { path, value: new } => {
                value.set(path, new.clone()).expect("its parent is there");
            }
            PatchOp::Remove { path } => {
                value.remove(path).expect("a pointer").expect("it is there");
            }
        }
    }
    value
}
