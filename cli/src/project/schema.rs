//! What a CRD that a server has describes and ours does not. Pure.
//!
//! An API server drops fields that the schema in force does not describe, from each object that is written next. So a CRD that
//! describes more than ours was applied by a newer version, and is not replaced without a word.

use serde_json::Value;

/// Versions and fields of `found` that `wanted` lacks: `v1alpha: spec.template.spec.hostname`. Of a field that is not there,
/// nothing below it is named.
pub(super) fn dropped(found: &Value, wanted: &Value) -> Vec<String> {
    let mut all = Vec::new();
    for version in versions(found) {
        let name = version["name"].as_str().unwrap_or_default();
        let Some(same) = versions(wanted).iter().find(|one| one["name"] == version["name"]) else {
            all.push(format!("version {name}"));
            continue;
        };
        let root = "/schema/openAPIV3Schema";
        if let (Some(found), Some(wanted)) = (version.pointer(root), same.pointer(root)) {
            compare(found, wanted, &format!("{name}: "), &mut all);
        }
    }
    all
}

fn versions(definition: &Value) -> &[Value] {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    versions.map(Vec::as_slice).unwrap_or_default()
}

/// `path` ends with what comes before the name of a field.
fn compare(found: &Value, wanted: &Value, path: &str, dropped: &mut Vec<String>) {
    for (name, field) in found["properties"].as_object().into_iter().flatten() {
        let at = format!("{path}{name}");
        match wanted["properties"].get(name) {
            Some(same) => compare(field, same, &format!("{at}."), dropped),
            None => dropped.push(at),
        }
    }
    for (below, shown) in [("items", "[]"), ("additionalProperties", "*")] {
        let schema = |of: &Value| of[below].is_object();
        if schema(found) && schema(wanted) {
            let path = format!("{}{shown}.", path.trim_end_matches('.'));
            compare(&found[below], &wanted[below], &path, dropped);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(versions: &[(&str, Value)]) -> Value {
        let versions = versions.iter().map(
            |(name, spec)| json!({ "name": name, "schema": { "openAPIV3Schema": { "properties": { "spec": spec } } } }),
        );
        json!({ "spec": { "versions": versions.collect::<Vec<_>>() } })
    }

    fn fields(names: &[&str]) -> Value {
        let fields = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })));
        json!({ "properties": fields.collect::<serde_json::Map<_, _>>() })
    }

    #[test]
    fn what_only_the_servers_schema_has_is_named_with_its_place() {
        let ours = definition(&[("v1", fields(&["a"]))]);
        assert_eq!(dropped(&ours, &ours), Vec::<String>::new());
        // What ours has in addition is an upgrade.
        assert_eq!(
            dropped(&definition(&[("v1", fields(&[]))]), &ours),
            Vec::<String>::new()
        );
        let newer = definition(&[("v1", fields(&["a", "b"])), ("v2", fields(&["a"]))]);
        assert_eq!(dropped(&newer, &ours), ["v1: spec.b", "version v2"]);
    }

    #[test]
    fn lists_and_maps_are_looked_into() {
        let nested = |inner: Value| {
            let list = json!({ "items": inner });
            definition(&[(
                "v1",
                json!({ "properties": { "list": list, "map": { "additionalProperties": inner } } }),
            )])
        };
        let ours = nested(fields(&["a"]));
        let newer = nested(fields(&["a", "b"]));
        assert_eq!(dropped(&newer, &ours), ["v1: spec.list[].b", "v1: spec.map*.b"]);
        assert_eq!(dropped(&ours, &newer), Vec::<String>::new());
    }

    #[test]
    fn what_a_server_may_send_is_no_crash() {
        for odd in [
            json!(null),
            json!({ "spec": [] }),
            json!({ "spec": { "versions": [7, {}] } }),
        ] {
            dropped(&odd, &odd);
        }
    }
}
