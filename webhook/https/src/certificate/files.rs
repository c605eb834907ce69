//! A pair in two files that another client renews: cert-manager, a Secret volume, a person.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::CertificateError;
use super::pair::{Pair, fingerprint};

/// Certificate chain and key, both PEM.
#[derive(Debug, Clone)]
pub struct FilePair {
    /// The chain, the server's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Names that every certificate here must cover. When it is empty, a new certificate must cover the names of the one
    /// that it replaces: a Secret that was filled for another host is the commoner mistake than a name that is given up.
    pub names: Vec<String>,
}

impl FilePair {
    /// The first pair, at start.
    pub(super) fn load(&self) -> Result<Pair, CertificateError> {
        let pair = self.parse(&self.read()?)?;
        self.check_names(&pair, &self.names)?;
        Ok(pair)
    }

    /// Another pair than `present`, if there is one and nothing speaks against it.
    pub(super) fn reload(&self, present: &Pair, now: SystemTime) -> Result<Option<Pair>, CertificateError> {
        let texts = self.read()?;
        if texts.fingerprint() == present.fingerprint {
            return Ok(None);
        }
        let pair = self.parse(&texts)?;
        if let Err(state) = pair.validity(now) {
            return Err(CertificateError::Validity {
                path: self.certificate.clone(),
                state,
            });
        }
        // An expired certificate cannot be used, so its names do not count.
        let present_is_good = present.validity(now).is_ok();
        let wanted = if self.names.is_empty() && present_is_good {
            &present.facts.alternatives
        } else {
            &self.names
        };
        self.check_names(&pair, wanted)?;
        Ok(Some(pair))
    }

    fn check_names(&self, pair: &Pair, wanted: &[String]) -> Result<(), CertificateError> {
        let missing = pair.lacks(wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let found = Some(pair.names()).filter(|names| !names.is_empty());
        Err(CertificateError::Names {
            path: self.certificate.clone(),
            found: found.unwrap_or_else(|| "no name at all".to_owned()),
            missing: missing.join(", "),
        })
    }

    fn read(&self) -> Result<Texts, CertificateError> {
        let read = |path: &Path| fs::read(path).map_err(CertificateError::read(path));
        Ok(Texts {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
        })
    }

    fn parse(&self, texts: &Texts) -> Result<Pair, CertificateError> {
        Pair::from_pem(
            (&self.certificate, &texts.certificate),
            (&self.key, &texts.key),
            texts.fingerprint(),
        )
    }
}

/// The two files as they were read. They are not one snapshot: a swap between the two reads shows as a key that does not
/// match, and the next look repairs it.
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Texts {
    fn fingerprint(&self) -> [u8; 32] {
        fingerprint(&[&self.certificate, &self.key])
    }
}
