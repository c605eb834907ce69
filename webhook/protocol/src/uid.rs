//! The uid of a request that cannot be decoded.

/// The longest uid that is believed, in bytes: it goes into each answer. Karmada sends UUIDs of 36.
pub(crate) const MAX_UID: usize = 256;

/// The `request.uid` of a body, even when the body is cut off or broken elsewhere, so that a refusal can carry it:
/// Karmada throws away answers with another uid. `None` where it cannot be seen.
///
/// Only that place counts: objects have uids of their own.
pub fn extract_uid(body: &[u8]) -> Option<String> {
    let mut scan = Scan { body, at: 0 };
    let mut depth = 0usize;
    let mut in_request = false;
    let mut key: Option<&[u8]> = None;
    while let Some(token) = scan.token() {
        match token {
            Token::Open => {
                depth += 1;
                in_request |= depth == 2 && key == Some(b"\"request\"");
                key = None;
            }
            Token::Close => {
                depth = depth.checked_sub(1)?;
                in_request &= depth >= 2;
            }
            Token::Text(text) if scan.colon_follows() => key = Some(text),
            Token::Text(text) => {
                if in_request && depth == 2 && key == Some(b"\"uid\"") {
                    return decoded(text);
                }
                key = None;
            }
        }
    }
    None
}

fn decoded(text: &[u8]) -> Option<String> {
    serde_json::from_slice::<String>(text)
        .ok()
        .filter(|uid| uid.len() <= MAX_UID)
}

enum Token<'a> {
    Open,
    Close,
    /// With its quotes.
    Text(&'a [u8]),
}

struct Scan<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next bracket or complete string; everything else is passed over.
    fn token(&mut self) -> Option<Token<'a>> {
        loop {
            let byte = self.body.get(self.at)?;
            self.at += 1;
            match byte {
                b'{' | b'[' => return Some(Token::Open),
                b'}' | b']' => return Some(Token::Close),
                b'"' => return self.text().map(Token::Text),
                _ => {}
            }
        }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let start = self.at - 1;
        loop {
            let byte = self.body.get(self.at)?;
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return self.body.get(start..self.at),
                _ => {}
            }
        }
    }

    fn colon_follows(&self) -> bool {
        self.body
            .get(self.at..)
            .and_then(|rest| rest.iter().find(|byte| !byte.is_ascii_whitespace()))
            == Some(&b':')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(body: &str) -> Option<String> {
        extract_uid(body.as_bytes())
    }

    #[test]
    fn survives_a_body_that_is_cut_off() {
        let body = r#"{"kind":"ResourceInterpreterContext","request":{"uid":"a-1","object":{"metadata":{"uid":"b"}}}}"#;
        let end_of_uid = body.find(r#","object""#).unwrap();
        for length in 0..body.len() {
            let expected = (length >= end_of_uid).then(|| "a-1".to_owned());
            assert_eq!(uid(&body[..length]), expected, "{}", &body[..length]);
        }
    }

    #[test]
    fn only_the_uid_of_the_request_counts() {
        assert_eq!(
            uid(r#"{"uid":"x","request":{"object":{"uid":"y","request":{"uid":"z"}}}}"#),
            None
        );
        assert_eq!(uid(r#"{"request":{"kind":{"uid":"y"},"uid":"a"}}"#), Some("a".into()));
        assert_eq!(uid(r#"{"request":{},"response":{"uid":"y"}}"#), None);
        assert_eq!(uid(r#"{"x":[{"request":{"uid":"y"}}]}"#), None);
        assert_eq!(uid(r#"{"x":"request","response":{"uid":"y"}}"#), None);
    }

    #[test]
    fn odd_values() {
        assert_eq!(uid(r#"{"request" : { "uid" : "\u0061\"b" }}"#), Some("a\"b".into()));
        assert_eq!(uid(r#"{"request":{"uid":5}}"#), None);
        assert_eq!(uid(r#"{"request":{"uid":5,"name":"n"}}"#), None);
        assert_eq!(
            uid(&format!(r#"{{"request":{{"uid":"{}"}}}}"#, "a".repeat(MAX_UID + 1))),
            None
        );
        assert_eq!(uid("}}}"), None);
        assert_eq!(uid(""), None);
    }
}
