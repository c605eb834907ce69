use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// JSON text with everything that a parser can get wrong: large and odd numbers, escapes, white space, empty containers.
pub(crate) fn texts() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?",
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        Just(r#""\u00e9\ud83d\ude00\/\b\f""#.to_owned()),
    ];
    let key = prop_oneof!["[a-c]", "[a-z/~.\"\\\\ ]{0,4}"];
    scalar.prop_recursive(5, 40, 5, move |inner| {
        let fields = prop::collection::btree_map(key.clone(), inner.clone(), 0..5).prop_map(|fields| {
            let mut text = String::from("{");
            for (position, (key, value)) in fields.iter().enumerate() {
                let comma = if position > 0 { " , " } else { "" };
                let _ = write!(text, "{comma}{}\n: {value}", serde_json::Value::from(key.as_str()));
            }
            text + "}"
        });
        prop_oneof![
            fields,
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(",\t")))
        ]
    })
}

proptest! {
    #[test]
    fn text_goes_out_as_it_came(text in texts()) {
        prop_assert_eq!(json(&text).to_text(), text);
    }

    #[test]
    fn every_part_reads_as_the_reference_parser_says(text in texts()) {
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        same(&json(&text), &value)?;
    }

    #[test]
    fn accepts_exactly_what_the_reference_parser_accepts(text in "[\\[\\]{}\",:0-9eE.+ntrufalse\\\\ -]{0,12}") {
        let reference = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        prop_assert_eq!(Json::parse(&text).is_ok(), reference.is_ok(), "{}", text);
    }

    #[test]
    fn long_strings_end_where_the_reference_parser_says(inside in "[a-c\u{1}-\u{23}\u{5b}-\u{5d}\u{7f}-\u{1ff}]{0,40}", rest in "[\"a]{0,3}") {
        let text = format!("\"{inside}\"{rest}");
        let reference = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        prop_assert_eq!(Json::parse(&text).is_ok(), reference.is_ok(), "{}", text);
    }

    #[test]
    fn strings_without_escapes_are_accepted_whatever_their_bytes(inside in "[ !#-\u{5b}\u{5d}-\u{2ff}]{0,40}") {
        let value = json(&format!("\"{inside}\""));
        prop_assert_eq!(value.as_text(), Some(inside.as_str()));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Json::parse(bytes);
    }

    #[test]
    fn rebuilt_values_are_equal(text in texts()) {
        let value = json(&text);
        let rebuilt = rebuild(&value);
        prop_assert_eq!(&rebuilt, &value);
        prop_assert_eq!(json(&rebuilt.to_text()), value);
    }

    #[test]
    fn equality_is_that_of_the_reference_parser(a in texts(), b in texts()) {
        // Numbers are compared by their digits here, so those that the reference rounds are skipped.
        let is_exact = |text: &str| serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| only_integers(&value));
        prop_assume!(is_exact(&a) && is_exact(&b));
        let (one, other) = (serde_json::from_str::<serde_json::Value>(&a).unwrap(), serde_json::from_str::<serde_json::Value>(&b).unwrap());
        prop_assert_eq!(json(&a) == json(&b), one == other);
        let again = json(&rewritten(&one));
        prop_assert_eq!(&again, &json(&a));
        prop_assert_eq!(&json(&a), &again);
        prop_assert_eq!(&rebuild(&again), &json(&a));
        prop_assert_eq!(json(&a), rebuild(&again));
    }

    #[test]
    fn edits_of_a_large_object_are_those_of_a_map(
        keys in prop::collection::vec(0..60_u32, 0..60),
        edits in prop::collection::vec((any::<bool>(), 0..80_u32, any::<i64>()), 0..200),
    ) {
        let fields: Vec<String> = keys.iter().enumerate().map(|(value, key)| format!("\"k{key}\":{value}")).collect();
        let mut object = json(&format!("{{{}}}", fields.join(",")));
        let copy = object.clone();
        let before = object.to_text();
        let mut reference: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str::<serde_json::Value>(&before).unwrap().as_object().unwrap().clone();
        for (adds, key, value) in edits {
            let key = format!("k{key}");
            if adds {
                object.set(&format!("/{key}"), value).unwrap();
                reference.insert(key, value.into());
            } else {
                let removed = object.remove(&format!("/{key}")).unwrap();
                prop_assert_eq!(removed.map(|value| value.to_text()), reference.remove(&key).map(|value| value.to_string()));
            }
        }
        prop_assert_eq!(object.as_fields().unwrap().len(), reference.len());
        same(&object, &serde_json::Value::Object(reference.clone()))?;
        same(&json(&object.to_text()), &serde_json::Value::Object(reference))?;
        // Whoever copied it before the edits has what was copied.
        prop_assert_eq!(copy.to_text(), before);
    }

    #[test]
    fn what_is_set_is_read_and_what_is_removed_is_gone(keys in prop::collection::vec("[a-z/~01]{0,3}", 1..4), value in any::<i64>()) {
        let mut pointer = String::new();
        for key in &keys {
            push_token(&mut pointer, key);
        }
        let mut object = json(r#"{"kept": 1.50}"#);
        object.set(&pointer, value).unwrap();
        prop_assert_eq!(object.int(&pointer).unwrap(), Some(value));
        let reference: serde_json::Value = serde_json::from_str(&object.to_text()).unwrap();
        prop_assert_eq!(reference.pointer(&pointer).and_then(serde_json::Value::as_i64), Some(value));
        prop_assert_eq!(object.remove(&pointer).unwrap(), Some(Json::from(value)));
        prop_assert!(object.get(&pointer).is_none());
        prop_assert!(object.to_text().contains("1.50"));
    }
}

fn only_integers(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Number(number) => number.is_i64() || number.is_u64(),
        serde_json::Value::Array(items) => items.iter().all(only_integers),
        serde_json::Value::Object(fields) => fields.values().all(only_integers),
        _ => true,
    }
}

fn same(ours: &Json, reference: &serde_json::Value) -> Result<(), TestCaseError> {
    use serde_json::Value;
    match reference {
        Value::Object(fields) => {
            let read: Vec<_> = ours.as_fields().expect("an object").collect();
            prop_assert_eq!(read.len(), fields.len());
            for (key, value) in read {
                same(value, &fields[key])?;
            }
        }
        Value::Array(items) => {
            let read = ours.as_items().expect("an array");
            prop_assert_eq!(read.len(), items.len());
            for (value, reference) in read.iter().zip(items) {
                same(value, reference)?;
            }
        }
        Value::String(text) => prop_assert_eq!(ours.as_text(), Some(text.as_str())),
        Value::Bool(value) => prop_assert_eq!(ours.bool("").unwrap(), Some(*value)),
        Value::Null => prop_assert!(ours.is_null()),
        Value::Number(number) => {
            prop_assert!(ours.is_number());
            if let Some(integer) = number.as_i64().filter(|_| ours.kind_name() == "an integer") {
                prop_assert_eq!(ours.int("").unwrap(), Some(integer));
            }
        }
    }
    Ok(())
}

/// The same meaning, written otherwise: keys in another order and with a duplicate, strings with escapes, white space.
fn rewritten(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let mut parts = Vec::new();
            for (key, value) in fields {
                let key = escaped(key);
                parts.push(format!("{key} : {}", rewritten(value)));
            }
            parts.reverse();
            if let Some((key, _)) = fields.iter().next() {
                parts.insert(0, format!("{}:[]", escaped(key)));
            }
            format!("{{ {}}}", parts.join(" ,"))
        }
        Value::Array(items) => format!("[{} ]", items.iter().map(rewritten).collect::<Vec<_>>().join(", ")),
        Value::String(text) => escaped(text),
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        let _ = write!(out, "\\u{unit:04x}");
    }
    out + "\""
}

fn rebuild(value: &Json) -> Json {
    if let Some(fields) = value.as_fields() {
        let fields: Vec<_> = fields.map(|(key, value)| (key.to_owned(), rebuild(value))).collect();
        Json::object(fields.into_iter().rev())
    } else if let Some(items) = value.as_items() {
        Json::array(items.iter().map(rebuild))
    } else if let Some(text) = value.as_text() {
        text.into()
    } else {
        value.clone()
    }
}

#[test]
fn readers_tell_absent_from_wrong() {
    let object =
        json(r#"{"a": {"n": 3, "f": 2.0, "e": 1e3, "big": 9223372036854775808, "s": "two", "z": null}, "l": [1]}"#);
    assert_eq!(object.int("/a/n"), Ok(Some(3)));
    assert_eq!(object.int("/a/absent"), Ok(None));
    assert_eq!(object.int("/a/z"), Ok(None));
    assert_eq!(object.int("/a/z/deeper"), Ok(None));
    assert_eq!(object.int("/l/0"), Ok(Some(1)));
    assert_eq!(object.int("/l/1"), Ok(None));
    assert_eq!(object.text("/a/s"), Ok(Some("two")));
    for (pointer, path, message) in [
        ("/a/f", "/a/f", "expected an integer, found 2.0"),
        ("/a/e", "/a/e", "expected an integer, found 1e3"),
        (
            "/a/big",
            "/a/big",
            "expected an integer of 64 bits, found 9223372036854775808",
        ),
        ("/a/s", "/a/s", r#"expected an integer, found "two""#),
        ("/a", "/a", "expected an integer, found an object"),
        ("/a/n/deeper", "/a/n", "expected an object, found 3"),
        ("/l/key", "/l", "expected an object, found an array"),
    ] {
        assert_eq!(object.int(pointer), Err(Error::invalid(path, message)), "{pointer}");
    }
    assert!(matches!(object.int("a"), Err(Error::Failed(message)) if message.contains("slash")));
}

#[test]
fn errors_name_the_absolute_path_from_wherever_the_value_was_reached() {
    let object = json(r#"{"spec": {"a/b": [{"x": "no"}, {"x": true}]}}"#);
    let item = &object.items("/spec/a~1b").unwrap().unwrap()[1];
    assert_eq!(
        item.int("/x"),
        Err(Error::invalid("/spec/a~1b/1/x", "expected an integer, found true"))
    );

    let status = Json::parse_at(br#"{"ready": "x"}"#.to_vec(), "/aggregatedStatus/0/status").unwrap();
    let error = Error::invalid("/aggregatedStatus/0/status/ready", r#"expected an integer, found "x""#);
    assert_eq!(status.int("/ready"), Err(error));

    let mut changed = object.clone();
    changed.set("/spec/n", "new").unwrap();
    assert_eq!(
        changed.int("/spec/n"),
        Err(Error::invalid("/spec/n", r#"expected an integer, found "new""#))
    );
}

#[test]
fn edits_keep_everything_else_as_text() {
    let mut object = json(r#"{"n": 1.0, "o": {"x":  [1, 2]}, "z": null}"#);
    object.set("/o/y", 7).unwrap();
    object.set("/z/made", true).unwrap();
    object.set("/o/x/-", "three").unwrap();
    object.set("/o/x/0", Json::null()).unwrap();
    assert_eq!(
        object.to_text(),
        r#"{"n":1.0,"o":{"x":[null,2,"three"],"y":7},"z":{"made":true}}"#
    );
    assert_eq!(object.remove("/o/x/1"), Ok(Some(json("2"))));
    assert_eq!(object.remove("/o/none/deep"), Ok(None));
    assert!(object.remove("").is_err());
    assert_eq!(
        object.set("/n/x", 1),
        Err(Error::invalid("/n", "expected an object, found 1.0"))
    );
    assert_eq!(
        object.set("/o/x/7", 1),
        Err(Error::invalid("/o/x", r#"expected an index below 2 or -, found "7""#))
    );
}

#[test]
fn of_duplicate_keys_the_last_wins() {
    let few = json(r#"{"a": 1, "b": 2, "a": 3}"#);
    assert_eq!(few.int("/a"), Ok(Some(3)));
    assert_eq!(few.as_fields().map(Iterator::count), Some(2));
    let mut many = String::from("{");
    for number in 0..100 {
        let _ = write!(many, r#""k{}": {number},"#, number % 50);
    }
    let many = json(&(many + r#""\u006b0": -1}"#));
    assert_eq!(many.int("/k0"), Ok(Some(-1)));
    assert_eq!(many.int("/k1"), Ok(Some(51)));
    assert_eq!(many.as_fields().map(Iterator::count), Some(50));
}

#[test]
fn depth_is_limited_and_the_message_says_so() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(Json::parse(nested(MAX_DEPTH)).is_ok());
    let error = Json::parse(nested(100_000)).unwrap_err();
    let place = format!("{}...", "/0".repeat(50));
    assert_eq!(error, Error::invalid(place, "nested deeper than 64 levels at byte 64"));
    let deep = format!(r#"{{"a":[1,{{"b/~":"]","c d":{}}}]}}"#, nested(MAX_DEPTH));
    let Err(Error::InvalidObject { path, .. }) = Json::parse_at(deep.into_bytes(), "/observedObject") else {
        panic!("it is too deep")
    };
    assert!(path.starts_with("/observedObject/a/1/c d/0/0/"), "{path}");
}

#[test]
fn what_is_no_json_is_refused_with_the_byte() {
    for (text, message) in [
        ("", "not JSON at byte 0: expected a value"),
        ("{\"a\": tru}", "not JSON at byte 6: expected a value"),
        (
            "{\"a\": 1",
            "not JSON at byte 7: expected a comma or the end of the object",
        ),
        ("{} x", "not JSON at byte 3: expected the end of the text"),
        ("[01]", "not JSON at byte 2: expected a comma or the end of the array"),
    ] {
        assert_eq!(Json::parse(text), Err(Error::invalid("", message)), "{text}");
    }
    assert_eq!(
        Json::parse(b"\"\xff\""),
        Err(Error::invalid("", "not UTF-8 text at byte 1"))
    );
}
