//! What speaks against a PEM file before anything in it is parsed, in words: libraries skip or misname these.

/// Why a file with certificates cannot be used.
pub(crate) fn to_certificates(text: &[u8]) -> Option<String> {
    to_encoding(text)
}

/// Why a file with a private key cannot be used.
pub(crate) fn to_key(text: &[u8]) -> Option<String> {
    to_encoding(text).or_else(|| {
        let text = String::from_utf8_lossy(text);
        let encrypted = text.lines().map(str::trim).any(|line| {
            line == "-----BEGIN ENCRYPTED PRIVATE KEY-----"
                || line.starts_with("Proc-Type:") && line.ends_with("ENCRYPTED")
        });
        let fix = "its private key is encrypted, and no passphrase can be given: decrypt it with \
                   `openssl pkey -in FILE -out FILE`";
        encrypted.then(|| fix.to_owned())
    })
}

/// Parsers look for lines that begin with `-----BEGIN`, so that the first block after a mark is silently skipped.
fn to_encoding(text: &[u8]) -> Option<String> {
    let mark = match text {
        [0xef, 0xbb, 0xbf, ..] => "UTF-8",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        _ => return None,
    };
    Some(format!(
        "it begins with a byte order mark ({mark}): save it as plain text without one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_misname_is_named() {
        let begin = "-----BEGIN RSA PRIVATE KEY-----\n";
        for (text, expected) in [
            ("", None),
            ("-----BEGIN PRIVATE KEY-----\nENCRYPTED\n", None),
            (
                "-----BEGIN ENCRYPTED PRIVATE KEY-----\r\nAA==\r\n",
                Some("is encrypted"),
            ),
            (
                &format!("{begin}Proc-Type: 4,ENCRYPTED\nDEK-Info: x\n"),
                Some("is encrypted"),
            ),
            ("\u{feff}-----BEGIN PRIVATE KEY-----\n", Some("byte order mark (UTF-8)")),
        ] {
            let found = to_key(text.as_bytes());
            assert_eq!(found.is_some(), expected.is_some(), "{text}");
            assert!(
                found.unwrap_or_default().contains(expected.unwrap_or_default()),
                "{text}"
            );
        }
        for mark in [[0xff, 0xfe], [0xfe, 0xff]] {
            assert!(to_certificates(&mark).unwrap().contains("byte order mark (UTF-16)"));
        }
        assert_eq!(to_certificates(b"-----BEGIN CERTIFICATE-----\n"), None);
    }
}
