//! Any bytes are a request or a refusal with a message, and what is a request fits what was sent.

use popcell_protocol::{Answer, Refusal, decode, encode, extract_uid, within_depth};

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
            assert!(serde_json::from_slice::<serde_json::Value>(&answer).is_ok());
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty());
            let refusal = Refusal { code: 400, message };
            assert!(!encode(&uid.unwrap_or_default(), &Err(refusal)).is_empty());
        }
    }
}
