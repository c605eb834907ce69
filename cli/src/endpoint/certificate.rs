//! Certificates as a person reads them, and bundles of them.

use std::net::IpAddr;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use itertools::Itertools as _;
use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, pem::PemObject as _};
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// Certificates of a caBundle, in order, without repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle(Vec<CertificateDer<'static>>);

/// A bundle that Karmada could not use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Not PEM, or a broken block.
    #[error("failed to read PEM: {0}")]
    Pem(String),
    /// Nothing in it.
    #[error("there is no CERTIFICATE block in it")]
    Empty,
    /// PEM, but not a certificate.
    #[error("block {0} is not an X.509 certificate")]
    NotACertificate(usize),
}

impl Bundle {
    /// Reads PEM text.
    pub fn parse(pem: &[u8]) -> Result<Self, BundleError> {
        let mut bundle = Self::default();
        for (index, block) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let certificate = block.map_err(|error| BundleError::Pem(error.to_string()))?;
            Facts::read(&certificate).ok_or(BundleError::NotACertificate(index + 1))?;
            bundle.add(certificate.into_owned());
        }
        if bundle.0.is_empty() {
            Err(BundleError::Empty)
        } else {
            Ok(bundle)
        }
    }

    /// The certificates.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }

    /// Adds one unless it is there.
    pub fn add(&mut self, certificate: CertificateDer<'static>) {
        if !self.0.contains(&certificate) {
            self.0.push(certificate);
        }
    }

    /// PEM text.
    pub fn to_pem(&self) -> String {
        self.0.iter().map(|certificate| pem_block(certificate)).collect()
    }
}

fn pem_block(der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines = text.as_bytes().chunks(64).map(String::from_utf8_lossy).join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Distinguished name of its owner.
    pub subject: String,
    /// DNS names and IP addresses in its SAN. Go, and so Karmada, ignores the common name.
    pub names: Vec<String>,
    /// First moment of its validity.
    pub not_before: Timestamp,
    /// Last moment of its validity.
    pub not_after: Timestamp,
}

impl Facts {
    /// Reads DER; `None` when it is not an X.509 certificate with times that a clock can show.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let time = |at: i64| Timestamp::from_second(at).ok();
        Some(Self {
            subject: certificate.subject().to_string(),
            names: names
                .map(|san| san.value.general_names.iter().filter_map(name).collect())
                .unwrap_or_default(),
            not_before: time(certificate.validity().not_before.timestamp())?,
            not_after: time(certificate.validity().not_after.timestamp())?,
        })
    }

    /// Whether its time is over.
    pub fn expired(&self, now: Timestamp) -> bool {
        self.not_after < now
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let v6 = |_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            let address = <[u8; 4]>::try_from(*bytes).map(IpAddr::from).or_else(v6);
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Certificates for tests.

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

    /// A CA named `name`, valid through the given years.
    pub(crate) fn authority(name: &str, years: std::ops::Range<i32>) -> CertifiedIssuer<'static, KeyPair> {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(years.start, 1, 1);
        params.not_after = rcgen::date_time_ymd(years.end, 1, 1);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::{testing::authority, *};

    #[test]
    fn a_bundle_survives_text_and_loses_repetitions() {
        let (one, two) = (authority("one", 2020..2090), authority("two", 2020..2090));
        let text = format!("# a remark\n{}{}{}", one.pem(), two.pem(), one.pem());
        let bundle = Bundle::parse(text.as_bytes()).unwrap();
        assert_eq!(bundle.certificates().len(), 2);
        assert_eq!(bundle.to_pem(), format!("{}{}", one.pem(), two.pem()));
        assert_eq!(Bundle::parse(bundle.to_pem().as_bytes()), Ok(bundle));
    }

    #[test]
    fn a_bundle_that_karmada_could_not_use_is_refused() {
        assert_eq!(Bundle::parse(b""), Err(BundleError::Empty));
        assert_eq!(Bundle::parse(b"hello"), Err(BundleError::Empty));
        let block = b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        assert_eq!(Bundle::parse(block), Err(BundleError::NotACertificate(1)));
        assert!(matches!(
            Bundle::parse(b"-----BEGIN CERTIFICATE-----\naGVsbG8=\n"),
            Err(BundleError::Pem(_))
        ));
    }

    #[test]
    fn facts_are_read() {
        let issuer = authority("ca", 2020..2021);
        let facts = Facts::read(issuer.der()).unwrap();
        assert!(facts.subject.contains("CN=ca"), "{}", facts.subject);
        assert_eq!(facts.not_after, "2021-01-01T00:00:00Z".parse().unwrap());
        assert!(facts.expired("2021-01-01T00:00:01Z".parse().unwrap()));
        assert!(!facts.expired("2020-12-31T00:00:00Z".parse().unwrap()));
    }
}
