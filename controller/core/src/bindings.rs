//! Cities that a project may use, from its LocationBindings.

use std::collections::BTreeSet;

use popcell_api::{conditions as types, labels};

use crate::conditions;
use crate::object::{Fields, Object};

/// The city of a binding; `None` where it names none.
pub fn city(binding: &Object) -> Option<&str> {
    binding
        .at("/spec/topology")?
        .get(labels::CITY_CODE)?
        .as_str()
        .filter(|city| !city.is_empty())
}

/// Cities of all usable bindings. A binding is skipped only when it says Available=False itself.
pub fn usable_cities<'a>(bindings: &[&'a Object]) -> BTreeSet<&'a str> {
    bindings
        .iter()
        .filter(|binding| !binding.deleting() && !conditions::says(binding, types::AVAILABLE, "False"))
        .filter_map(|binding| city(binding))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_binding_counts_unless_it_says_that_it_is_not_available() {
        let binding = |city: &str, status: serde_json::Value| -> Object {
            serde_json::from_value(json!({ "metadata": { "name": "b" }, "status": status,
                "spec": { "topology": { "topology.datum.net/city-code": city } } }))
            .unwrap()
        };
        let available = |status: &str| json!({ "conditions": [{ "type": "Available", "status": status }] });
        let mut going = binding("EEE", json!(null));
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let bindings = [
            going,
            binding("AAA", json!(null)),
            binding("BBB", available("True")),
            binding("CCC", available("Unknown")),
            binding("DDD", available("False")),
            binding("", json!({})),
        ];
        let cities = usable_cities(&bindings.iter().collect::<Vec<_>>());
        assert_eq!(cities.into_iter().collect::<Vec<_>>(), ["AAA", "BBB", "CCC"]);
    }
}
