//! Which metadata a patch may touch: labels and annotations, never Karmada's own.

use std::collections::BTreeMap;

use super::names;

/// What a patch does at one place under `/metadata`.
pub(super) struct Touch<'a> {
    /// The steps of the pointer after `metadata`.
    pub(super) path: &'a [String],
    /// The new value as JSON text; `None` takes the place away.
    pub(super) value: Option<&'a str>,
    /// What is there now, as JSON text; `None` if nothing is.
    pub(super) present: Option<&'a str>,
}

/// Why this is not allowed, if so.
pub(super) fn objection(touch: &Touch<'_>) -> Option<String> {
    let (map, rest) = match touch.path {
        [map, rest @ ..] if map == "labels" || map == "annotations" => (map, rest),
        _ => return Some("only labels and annotations of the metadata may be touched".to_owned()),
    };
    match (rest, touch.value) {
        ([], _) if touch.present.is_some_and(|present| present != "null") => {
            Some(format!("the {map} are there: touch them key by key"))
        }
        ([], Some(value)) => match serde_json::from_str::<BTreeMap<String, String>>(value) {
            Ok(entries) => entries.iter().find_map(|(key, value)| entry(map, key, Some(value))),
            Err(error) => Some(format!("{map} must be an object of strings: {error}")),
        },
        ([], None) => Some(format!("the {map} may not be taken away")),
        ([key], Some(value)) => match serde_json::from_str::<String>(value) {
            Ok(value) => entry(map, key, Some(&value)),
            Err(_) => Some("its value must be a string".to_owned()),
        },
        ([key], None) => entry(map, key, None),
        _ => Some(format!("{map} are strings and have nothing inside")),
    }
}

fn entry(map: &str, key: &str, value: Option<&str>) -> Option<String> {
    if key
        .split_once('/')
        .is_some_and(|(domain, _)| names::is_karmadas(domain))
    {
        return Some(format!("{key:?} is Karmada's"));
    }
    // Taking a wrong key away is no harm.
    let value = value?;
    if !names::is_qualified_name(&key.to_ascii_lowercase()) {
        return Some(format!("{key:?} is no valid key"));
    }
    (map == "labels" && !names::is_label_value(value)).then(|| format!("the value of {key:?} is no label value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objection_to(path: &[&str], value: Option<&str>, present: Option<&str>) -> Option<String> {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        objection(&Touch {
            path: &path,
            value,
            present,
        })
    }

    #[test]
    fn whole_maps_only_where_there_is_none() {
        let map = Some(r#"{"a":"b"}"#);
        assert_eq!(objection_to(&["labels"], map, None), None);
        assert_eq!(objection_to(&["annotations"], map, Some("null")), None);
        assert!(
            objection_to(&["labels"], map, Some("{}"))
                .unwrap()
                .contains("key by key")
        );
        assert!(
            objection_to(&["labels"], None, Some(r#"{"a":"b"}"#))
                .unwrap()
                .contains("key by key")
        );
        assert!(
            objection_to(&["labels"], Some(r#"{"a":1}"#), None)
                .unwrap()
                .contains("object of strings")
        );
    }

    #[test]
    fn karmadas_keys_are_its_own() {
        for key in [
            "karmada.io/managed",
            "work.karmada.io/name",
            "resourcetemplate.karmada.io/uid",
        ] {
            for value in [Some(r#""x""#), None] {
                assert!(
                    objection_to(&["annotations", key], value, None)
                        .unwrap()
                        .contains("Karmada's")
                );
            }
        }
        let map = r#"{"ok":"1","policy.karmada.io/x":"y"}"#;
        assert!(
            objection_to(&["labels"], Some(map), None)
                .unwrap()
                .contains("Karmada's")
        );
        assert_eq!(objection_to(&["labels", "notkarmada.io/a"], Some(r#""x""#), None), None);
    }

    #[test]
    fn nothing_else() {
        for path in [&[][..], &["name"], &["ownerReferences", "0"], &["labels", "a", "b"]] {
            assert!(objection_to(path, Some(r#""x""#), None).is_some(), "{path:?}");
        }
        assert!(
            objection_to(&["labels", "a"], Some("1"), None)
                .unwrap()
                .contains("string")
        );
        assert!(
            objection_to(&["labels", "a"], Some(r#""b c""#), None)
                .unwrap()
                .contains("label value")
        );
        assert_eq!(objection_to(&["annotations", "a"], Some(r#""b c""#), None), None);
        assert!(
            objection_to(&["annotations", "a b"], Some(r#""x""#), None)
                .unwrap()
                .contains("valid key")
        );
    }
}
