//! A certificate chain with its key, parsed, what has to be known of it, and which names it covers. What speaks against
//! a PEM file before anything in it is parsed is said in words: libraries skip or misname it.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::CertificateError;
use crate::tls;

/// Hash over what a pair was made from; equal content needs no second look.
pub(super) type Fingerprint = [u8; 32];

/// A chain and the key that belongs to its first certificate.
pub(super) struct Pair {
    pub(super) certified: Arc<CertifiedKey>,
    /// Of what it was made from.
    pub(super) fingerprint: Fingerprint,
    pub(super) facts: Facts,
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pair")
            .field("names", &self.names())
            .field("not_after", &self.facts.not_after)
            .finish_non_exhaustive()
    }
}

/// Hash over several texts, each with its length, so that bytes cannot move between them unseen.
pub(super) fn fingerprint(parts: &[&[u8]]) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Pair {
    /// Parses PEM texts; the paths are for messages. The key must be the first certificate's.
    pub(super) fn from_pem(
        (certificate, chain): (&Path, &[u8]),
        (key, key_text): (&Path, &[u8]),
        fingerprint: Fingerprint,
    ) -> Result<Self, CertificateError> {
        let wrong_chain = |reason| CertificateError::content(certificate, reason);
        let wrong_key = |reason| CertificateError::content(key, reason);
        encoding_objection(chain).map_or(Ok(()), |reason| Err(wrong_chain(reason)))?;
        key_objection(key_text).map_or(Ok(()), |reason| Err(wrong_key(reason)))?;
        let chain = CertificateDer::pem_slice_iter(chain)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong_chain(error.to_string()))?;
        let facts = match chain.first() {
            Some(leaf) => Facts::read(leaf).map_err(wrong_chain)?,
            None => return Err(wrong_chain("no CERTIFICATE block in it".to_owned())),
        };
        // One alone may be its own authority, as `openssl req -x509` makes it.
        let mut others = chain.iter().skip(1);
        if facts.is_authority && others.any(|other| Facts::read(other).is_ok_and(|other| !other.is_authority)) {
            return Err(wrong_chain(format!(
                "its first certificate is a certificate authority ({}): the server's own certificate must come first",
                facts.subject
            )));
        }
        let key_der = PrivateKeyDer::from_pem_slice(key_text)
            .map_err(|error| wrong_key(format!("no private key in it ({error})")))?;
        let certified = CertifiedKey::from_der(chain, key_der, &tls::provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) if facts.is_authority => wrong_chain(format!(
                "it has the certificate of an authority ({}) only: the server's own certificate must come first",
                facts.subject
            )),
            rustls::Error::InconsistentKeys(_) => CertificateError::KeyMismatch {
                certificate: certificate.to_owned(),
                key: key.to_owned(),
            },
            other => wrong_key(other.to_string()),
        })?;
        Ok(Self {
            certified: Arc::new(certified),
            fingerprint,
            facts,
        })
    }

    /// Subject alternative names, for a person to read.
    pub(super) fn names(&self) -> String {
        self.facts.alternatives.join(", ")
    }

    /// Those of `wanted` that the certificate does not cover.
    pub(super) fn lacks(&self, wanted: &[String]) -> Vec<String> {
        wanted
            .iter()
            .filter(|name| !covers(&self.facts.alternatives, name))
            .cloned()
            .collect()
    }

    /// Whether `now` is inside the validity; else what is wrong, to be read after "it is".
    pub(super) fn validity(&self, now: SystemTime) -> Result<(), String> {
        let (
            now,
            Facts {
                not_before, not_after, ..
            },
        ) = (unix_seconds(now), &self.facts);
        if now > *not_after {
            return Err(format!("expired since {}", rfc3339(*not_after)));
        }
        if now < *not_before {
            return Err(format!("not valid before {}", rfc3339(*not_before)));
        }
        Ok(())
    }

    /// When a third of the validity is left, in seconds since 1970: time to make another one.
    pub(super) fn renewal(&self) -> i64 {
        let Facts {
            not_before, not_after, ..
        } = self.facts;
        not_after - (not_after - not_before) / 3
    }
}

/// Seconds since 1970; a clock before that counts as 0.
pub(super) fn unix_seconds(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn rfc3339(seconds: i64) -> String {
    x509_parser::time::ASN1Time::from_timestamp(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// The point of time `seconds` after 1970.
pub(super) fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// What a certificate says about itself.
pub(super) struct Facts {
    subject: String,
    is_authority: bool,
    /// Subject alternative names.
    pub(super) alternatives: Vec<String>,
    /// The validity, in seconds since 1970.
    not_before: i64,
    pub(super) not_after: i64,
}

impl Facts {
    fn read(der: &[u8]) -> Result<Self, String> {
        let (_, parsed) = X509Certificate::from_der(der).map_err(|error| format!("not a certificate ({error})"))?;
        let alternatives = parsed
            .subject_alternative_name()
            .map_err(|error| format!("its subject alternative names are malformed ({error})"))?
            .map(|extension| extension.value.general_names.iter().filter_map(name_of).collect())
            .unwrap_or_default();
        let validity = parsed.validity();
        Ok(Self {
            subject: parsed.subject().to_string(),
            is_authority: parsed.is_ca(),
            alternatives,
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
        })
    }
}

/// Only DNS names and addresses matter to a TLS client.
fn name_of(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(dns) => Some((*dns).to_owned()),
        GeneralName::IPAddress(octets) => <[u8; 4]>::try_from(*octets)
            .map(IpAddr::from)
            .or_else(|_| <[u8; 16]>::try_from(*octets).map(IpAddr::from))
            .ok()
            .map(|address| address.to_string()),
        _ => None,
    }
}

/// End of validity of a certificate in PEM, in seconds since 1970.
pub(super) fn not_after_of(path: &Path, pem: &[u8]) -> Result<i64, CertificateError> {
    let facts = CertificateDer::from_pem_slice(pem)
        .map_err(|error| error.to_string())
        .and_then(|der| Facts::read(&der));
    facts
        .map(|facts| facts.not_after)
        .map_err(|reason| CertificateError::content(path, reason))
}

/// Whether one of `certified` (subject alternative names; a DNS name may start with `*.`) covers `wanted`.
fn covers(certified: &[String], wanted: &str) -> bool {
    certified.iter().any(|name| matches(name, wanted))
}

fn matches(certified: &str, wanted: &str) -> bool {
    if let (Ok(one), Ok(other)) = (certified.parse::<IpAddr>(), wanted.parse::<IpAddr>()) {
        return one == other;
    }
    if certified.eq_ignore_ascii_case(wanted) {
        return true;
    }
    // RFC 6125 section 6.4.3: a wildcard stands for exactly one label, the leftmost.
    let Some(parent) = certified.strip_prefix("*.") else {
        return false;
    };
    wanted
        .split_once('.')
        .is_some_and(|(label, rest)| !label.is_empty() && rest.eq_ignore_ascii_case(parent))
}

/// Why a file with a private key cannot be used.
fn key_objection(text: &[u8]) -> Option<String> {
    encoding_objection(text).or_else(|| {
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
fn encoding_objection(text: &[u8]) -> Option<String> {
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
    use super::{covers, *};

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dns_names_ignore_case() {
        assert!(covers(&names(&["Webhook.popcell.svc"]), "webhook.popcell.svc"));
        assert!(!covers(&names(&["webhook.popcell.svc"]), "webhook.popcell"));
    }

    #[test]
    fn a_wildcard_is_one_label() {
        let wild = names(&["*.example.com"]);
        assert!(covers(&wild, "a.example.com"));
        assert!(covers(&wild, "*.example.com"));
        assert!(!covers(&wild, "a.b.example.com"));
        assert!(!covers(&wild, "example.com"));
        assert!(!covers(&wild, ".example.com"));
    }

    #[test]
    fn addresses_compare_by_value() {
        assert!(covers(&names(&["::1"]), "0:0:0:0:0:0:0:1"));
        assert!(!covers(&names(&["127.0.0.1"]), "127.0.0.2"));
    }

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
            let found = key_objection(text.as_bytes());
            assert_eq!(found.is_some(), expected.is_some(), "{text}");
            assert!(
                found.unwrap_or_default().contains(expected.unwrap_or_default()),
                "{text}"
            );
        }
        for mark in [[0xff, 0xfe], [0xfe, 0xff]] {
            assert!(encoding_objection(&mark).unwrap().contains("byte order mark (UTF-16)"));
        }
        assert_eq!(encoding_objection(b"-----BEGIN CERTIFICATE-----\n"), None);
    }
}
