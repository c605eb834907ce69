//! Laws over generated bodies.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use popcell_protocol::{Answer, Operation, Refusal, decode, encode, extract_uid};
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON text with numbers that no float holds, and odd strings.
fn json() -> impl Strategy<Value = String> {
    let text = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
    let number = prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?",
    ];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), number, text.clone()];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let field = (text.clone(), inner.clone()).prop_map(|(name, value)| format!("{name} : {value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec(field, 0..4).prop_map(|fields| format!("{{{}}}", fields.join(","))),
        ]
    })
}

prop_compose! {
    fn body()(uid in "[\\PC]{0,40}", operation in prop::sample::select(Operation::ALL.to_vec()), inner in json())
        -> (String, String, String) {
        let object = format!("{{\"a\":{inner}}}");
        let quoted = serde_json::to_string(&uid).unwrap();
        let body = format!(
            r#"{{"request":{{"uid":{quoted},"kind":{{"group":"g","version":"v1","kind":"K"}},"name":"n","operation":"{operation}","object":{object},"observedObject":{object},"replicas":1}}}}"#
        );
        (uid, object, body)
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = extract_uid(&bytes);
    }

    #[test]
    fn a_damaged_body_never_panics((_, _, body) in body(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = body.into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        let _ = decode(&body);
        let _ = extract_uid(&body);
        let _ = extract_uid(&body[..at]);
    }

    #[test]
    fn what_decodes_has_the_uid_that_is_extracted((uid, object, body) in body()) {
        let request = decode(body.as_bytes()).unwrap();
        prop_assert_eq!(&*request.uid, &*uid);
        prop_assert_eq!(request.object.get(), &*object);
        prop_assert_eq!(extract_uid(body.as_bytes()), Some(uid));
    }

    #[test]
    fn answers_keep_uid_and_text((uid, object, _) in body()) {
        let status = RawValue::from_string(object.clone()).unwrap();
        let text = String::from_utf8(encode(&uid, &Ok(Answer::Status(status)))).unwrap();
        prop_assert!(text.contains(&object), "{}", text);
        let context: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(context["response"]["uid"].as_str(), Some(&*uid));
    }

    #[test]
    fn any_message_can_be_refused_with(uid in any::<String>(), message in any::<String>(), code in any::<u16>()) {
        let context: Value = serde_json::from_slice(&encode(&uid, &Err(Refusal { code, message: message.clone() }))).unwrap();
        prop_assert_eq!(context["response"]["status"]["message"].as_str(), Some(&*message));
        prop_assert_eq!(context["response"]["uid"].as_str(), Some(&*uid));
    }
}
