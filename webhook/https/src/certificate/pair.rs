//! A certificate chain with its key, parsed, and what has to be known of it.

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
use super::names::covers;
use super::objection;
use crate::tls;

/// Hash over what a pair was made from; equal content needs no second look.
pub(crate) type Fingerprint = [u8; 32];

/// A chain and the key that belongs to its first certificate.
pub(crate) struct Pair {
    certified: Arc<CertifiedKey>,
    fingerprint: Fingerprint,
    alternatives: Vec<String>,
    shown: String,
    not_before: i64,
    not_after: i64,
}

impl fmt::Debug for Pair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pair")
            .field("names", &self.shown)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

/// Hash over several texts, each with its length, so that bytes cannot move between them unseen.
pub(crate) fn fingerprint(parts: &[&[u8]]) -> Fingerprint {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

impl Pair {
    /// Parses PEM texts; the paths are for messages. The key must be the first certificate's.
    pub(crate) fn from_pem(
        certificate: (&Path, &[u8]),
        key: (&Path, &[u8]),
        fingerprint: Fingerprint,
    ) -> Result<Self, CertificateError> {
        let unclear = |path: &Path, reason: String| CertificateError::Content {
            path: path.to_owned(),
            reason,
        };
        if let Some(reason) = objection::to_certificates(certificate.1) {
            return Err(unclear(certificate.0, reason));
        }
        if let Some(reason) = objection::to_key(key.1) {
            return Err(unclear(key.0, reason));
        }
        let chain = CertificateDer::pem_slice_iter(certificate.1)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unclear(certificate.0, error.to_string()))?;
        let Some(leaf) = chain.first() else {
            return Err(unclear(certificate.0, "no CERTIFICATE block in it".to_owned()));
        };
        let facts = Facts::read(leaf).map_err(|reason| unclear(certificate.0, reason))?;
        // One alone may be its own authority, as `openssl req -x509` makes it.
        if let (true, [_, rest @ ..]) = (facts.is_authority, chain.as_slice())
            && rest
                .iter()
                .any(|other| Facts::read(other).is_ok_and(|other| !other.is_authority))
        {
            let reason = format!(
                "its first certificate is a certificate authority ({}): the server's own certificate must come first",
                facts.subject
            );
            return Err(unclear(certificate.0, reason));
        }
        let only_authority = facts.is_authority.then(|| facts.subject.clone());
        let key_der = PrivateKeyDer::from_pem_slice(key.1)
            .map_err(|error| unclear(key.0, format!("no private key in it ({error})")))?;
        let certified = CertifiedKey::from_der(chain, key_der, &tls::provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => match only_authority {
                Some(subject) => unclear(
                    certificate.0,
                    format!(
                        "it has the certificate of an authority ({subject}) only: the server's own certificate must come first"
                    ),
                ),
                None => CertificateError::KeyMismatch {
                    certificate: certificate.0.to_owned(),
                    key: key.0.to_owned(),
                },
            },
            other => unclear(key.0, other.to_string()),
        })?;
        Ok(Self {
            certified: Arc::new(certified),
            fingerprint,
            shown: facts.alternatives.join(", "),
            alternatives: facts.alternatives,
            not_before: facts.not_before,
            not_after: facts.not_after,
        })
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    pub(crate) fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Subject alternative names.
    pub(crate) fn alternatives(&self) -> &[String] {
        &self.alternatives
    }

    /// The same, for a person to read.
    pub(crate) fn names(&self) -> &str {
        &self.shown
    }

    /// Seconds since 1970.
    pub(crate) fn not_after(&self) -> i64 {
        self.not_after
    }

    /// Those of `wanted` that the certificate does not cover.
    pub(crate) fn lacks(&self, wanted: &[String]) -> Vec<String> {
        wanted
            .iter()
            .filter(|name| !covers(&self.alternatives, name))
            .cloned()
            .collect()
    }

    /// Whether `now` is inside the validity; else what is wrong, to be read after "it is".
    pub(crate) fn validity(&self, now: SystemTime) -> Result<(), String> {
        let now = unix_seconds(now);
        if now > self.not_after {
            return Err(format!("expired since {}", rfc3339(self.not_after)));
        }
        if now < self.not_before {
            return Err(format!("not valid before {}", rfc3339(self.not_before)));
        }
        Ok(())
    }

    /// When a third of the validity is left, in seconds since 1970: time to make another one.
    pub(crate) fn renewal(&self) -> i64 {
        self.not_after - (self.not_after - self.not_before) / 3
    }
}

/// Seconds since 1970; a clock before that counts as 0.
pub(crate) fn unix_seconds(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn rfc3339(seconds: i64) -> String {
    x509_parser::time::ASN1Time::from_timestamp(seconds).map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// The point of time `seconds` after 1970.
pub(crate) fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// What a certificate says about itself.
struct Facts {
    subject: String,
    is_authority: bool,
    alternatives: Vec<String>,
    not_before: i64,
    not_after: i64,
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
pub(crate) fn not_after_of(path: &Path, pem: &[u8]) -> Result<i64, CertificateError> {
    let unclear = |reason: String| CertificateError::Content {
        path: path.to_owned(),
        reason,
    };
    let der = CertificateDer::from_pem_slice(pem).map_err(|error| unclear(error.to_string()))?;
    Facts::read(&der).map(|facts| facts.not_after).map_err(unclear)
}
