//! Any bytes are a request or a refusal with a message, and what is a request fits what was sent.

use std::collections::BTreeMap;

use popcell_protocol::{Answer, Refusal, decode, encode, extract_uid, within_depth};
use serde_json::value::RawValue;

pub fn check(bytes: &[u8]) {
    let uid = extract_uid(bytes);
    match decode(bytes) {
        Ok(request) => {
            assert_eq!(uid.as_deref(), Some(&*request.uid), "one uid");
            let statuses = request.aggregated_status.iter().filter_map(|item| item.status);
            for text in statuses.chain(request.observed_object).chain([request.object]) {
                assert!(within_depth(text.get().as_bytes()), "deeper than is passed on");
            }
            let answer = encode(&request.uid, &Ok(Answer::Status(request.object.to_owned())));
            let answer = fields(&answer);
            let response = fields(answer["response"].get().as_bytes());
            let uid: String = serde_json::from_str(response["uid"].get()).expect("a uid is a text");
            assert_eq!(uid, request.uid);
            // As text: numbers may be larger than any type of Rust's.
            assert_eq!(response["rawStatus"].get(), request.object.get());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty());
            let refusal = Refusal { code: 400, message };
            assert!(!encode(&uid.unwrap_or_default(), &Err(refusal)).is_empty());
        }
    }
}

fn fields(json: &[u8]) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_slice(json).expect("an answer is an object of JSON")
}
