//! A certificate authority in a directory, for a first run and for Karmada outside a cluster.
//!
//! The authority is made once. Replicas that share the directory race for it: each writes a file of its own and renames it
//! to a name that must not exist yet, which exactly one can do; the losers use the winner's. Key and certificate are one
//! file, so no reader ever sees half an authority. The certificate alone, for `caBundle`, lies beside it. Each replica
//! makes its own serving certificate and keeps it in memory only.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use tempfile::NamedTempFile;

use super::CertificateError;
use super::pair::{self, Pair, fingerprint, unix_seconds};

/// Certificate and private key of the authority, mode 0600.
const AUTHORITY: &str = "ca.pem";
/// The authority's certificate alone, for clients.
const PUBLIC: &str = "ca.crt";
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);
const LEAF_LIFETIME: Duration = Duration::from_hours(90 * 24);
/// Clients whose clock is behind accept the certificate at once.
const BACKDATED: Duration = Duration::from_hours(1);

/// An own authority and the names to certify.
#[derive(Debug, Clone)]
pub struct SelfSigned {
    /// The directory that keeps the authority, shared by the replicas.
    pub ca_dir: PathBuf,
    /// DNS names and addresses by which clients call; at least one.
    pub names: Vec<String>,
}

impl SelfSigned {
    /// The file with the authority's certificate, for clients to trust.
    pub fn public_file(&self) -> PathBuf {
        self.ca_dir.join(PUBLIC)
    }

    /// At start: makes the authority if there is none.
    pub(super) fn create_or_load(&self) -> Result<Pair, CertificateError> {
        if self.names.is_empty() {
            return Err(CertificateError::NoNames);
        }
        let path = self.ca_dir.join(AUTHORITY);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => self.create(&path)?,
            Err(error) => return Err(CertificateError::read(&path)(error)),
        };
        let issued = self.issue(&path, &text, SystemTime::now())?;
        self.publish(&path, &text)?;
        Ok(issued)
    }

    /// Later: makes another certificate when the present one has a third of its life left, or when the authority was
    /// replaced. An authority that is gone is an error, not a reason for a new one that no client trusts.
    pub(super) fn reload(&self, present: &Pair, now: SystemTime) -> Result<Option<Pair>, CertificateError> {
        let path = self.ca_dir.join(AUTHORITY);
        let text = fs::read_to_string(&path).map_err(CertificateError::read(&path))?;
        let due = unix_seconds(now) >= present.renewal();
        if !due && fingerprint(&[text.as_bytes()]) == present.fingerprint {
            return Ok(None);
        }
        self.issue(&path, &text, now).map(Some)
    }

    /// Makes the authority, or takes the one of the replica that was faster.
    fn create(&self, path: &Path) -> Result<String, CertificateError> {
        let failed = CertificateError::write(path);
        fs::create_dir_all(&self.ca_dir).map_err(&failed)?;
        let text = self.make_authority(SystemTime::now())?;
        let file = self.write(&text, 0o600).map_err(&failed)?;
        match file.persist_noclobber(path) {
            Ok(_) => {
                tracing::info!(path = %path.display(), "made a certificate authority");
                Ok(text)
            }
            Err(lost) if lost.error.kind() == ErrorKind::AlreadyExists => {
                fs::read_to_string(path).map_err(CertificateError::read(path))
            }
            Err(error) => Err(failed(error.error)),
        }
    }

    /// Writes the public half beside it. Every replica writes the same bytes, and a rename is seen whole.
    fn publish(&self, path: &Path, text: &str) -> Result<(), CertificateError> {
        let public = self.public_file();
        let certificate = certificate_block(path, text)?;
        if fs::read_to_string(&public).is_ok_and(|present| present == certificate) {
            return Ok(());
        }
        let failed = CertificateError::write(&public);
        let file = self.write(&certificate, 0o644).map_err(&failed)?;
        file.persist(&public).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn write(&self, text: &str, mode: u32) -> std::io::Result<NamedTempFile> {
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(&self.ca_dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    fn make_authority(&self, now: SystemTime) -> Result<String, CertificateError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "popcell webhook CA");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = (now - BACKDATED).into();
        params.not_after = (now + AUTHORITY_LIFETIME).into();
        let made = KeyPair::generate().and_then(|key| Ok((params.self_signed(&key)?, key)));
        let (certificate, key) = made.map_err(|source| self.unmade(source))?;
        Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
    }

    /// A serving certificate, signed by the authority in `text`.
    fn issue(&self, path: &Path, text: &str, now: SystemTime) -> Result<Pair, CertificateError> {
        let unclear =
            |error: rcgen::Error| CertificateError::content(path, format!("not an authority with its key ({error})"));
        let ends = pair::not_after_of(path, text.as_bytes())?;
        if ends <= unix_seconds(now) {
            return Err(CertificateError::ExpiredAuthority { path: path.to_owned() });
        }
        let authority_key = PrivateKeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| rcgen::Error::CouldNotParseKeyPair)
            .and_then(|key| KeyPair::try_from(&key))
            .map_err(unclear)?;
        let issuer = Issuer::from_ca_cert_pem(&certificate_block(path, text)?, authority_key).map_err(unclear)?;
        let (certificate, key) = self
            .sign(&issuer, now, (now + LEAF_LIFETIME).min(pair::at(ends)))
            .map_err(|source| self.unmade(source))?;
        Pair::from_pem(
            (path, certificate.pem().as_bytes()),
            (path, key.serialize_pem().as_bytes()),
            fingerprint(&[text.as_bytes()]),
        )
    }

    fn sign(
        &self,
        issuer: &Issuer<'_, KeyPair>,
        now: SystemTime,
        ends: SystemTime,
    ) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
        let mut params = CertificateParams::new(self.names.clone())?;
        params.distinguished_name.push(DnType::CommonName, "popcell webhook");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        params.not_before = (now - BACKDATED).into();
        params.not_after = ends.into();
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, issuer)?, key))
    }

    fn unmade(&self, source: rcgen::Error) -> CertificateError {
        CertificateError::Make {
            names: self.names.join(", "),
            source,
        }
    }
}

/// The first CERTIFICATE block of a PEM text.
fn certificate_block(path: &Path, text: &str) -> Result<String, CertificateError> {
    const END: &str = "-----END CERTIFICATE-----";
    let block = text.find("-----BEGIN CERTIFICATE-----").and_then(|begin| {
        let rest = text.get(begin..)?;
        rest.get(..rest.find(END)? + END.len())
    });
    block
        .map(|block| format!("{}\n", block.replace('\r', "")))
        .ok_or_else(|| CertificateError::content(path, "no CERTIFICATE block in it".to_owned()))
}
