//! Where the served certificate comes from, and how it is replaced while connections go on: here a pair in two files
//! that another program renews (cert-manager, a Secret volume, a person), in `self_signed` an authority of one's own.
//!
//! Looking is polling: file notifications miss the swap of a Secret volume's `..data` link and do not survive a removed
//! directory. What counts is the content, compared by hash. Each look stands alone, so any number of rotations works like
//! the first one, and a failed look changes nothing but the status.

mod pair;
mod self_signed;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use arc_swap::{ArcSwap, ArcSwapOption};
use pair::{Pair, fingerprint};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::MissedTickBehavior;

pub use self_signed::SelfSigned;

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("failed to read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("failed to write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file has not the content that is expected there.
    #[error("failed to understand {path}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Certificate and key are of different pairs, as happens while one of two files has been replaced.
    #[error("failed to use {certificate} with {key}: the key is not the certificate's")]
    KeyMismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate does not cover a name that clients use.
    #[error("failed to accept {path}: it is for {found}, and clients use {missing}")]
    Names {
        /// The certificate's file.
        path: PathBuf,
        /// The names in it.
        found: String,
        /// The names that it lacks.
        missing: String,
    },
    /// The certificate is outside its validity while a better one is being served.
    #[error("failed to accept {path}: it is {state}")]
    Validity {
        /// The certificate's file.
        path: PathBuf,
        /// `expired since ...` or `not valid before ...`.
        state: String,
    },
    /// A self-signed certificate cannot be made.
    #[error("failed to make a certificate for {names}: {source}")]
    Make {
        /// The names asked for.
        names: String,
        /// What the generator says.
        source: rcgen::Error,
    },
    /// No name was given for a self-signed certificate.
    #[error("failed to make a certificate: no name was given for it")]
    NoNames,
    /// The certificate authority in the directory is no longer valid.
    #[error("failed to use the certificate authority {path}: it has expired; remove the file and register the new one")]
    ExpiredAuthority {
        /// The file with the authority.
        path: PathBuf,
    },
}

impl CertificateError {
    fn read(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    fn write(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    fn content(path: &Path, reason: String) -> Self {
        Self::Content {
            path: path.to_owned(),
            reason,
        }
    }
}

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A certificate chain and its key, in two PEM files that another program renews.
    Files(FilePair),
    /// An authority in a directory that the replicas share, and a certificate that each replica makes for itself.
    SelfSigned(SelfSigned),
}

/// The served certificate. Replacing it does not touch open connections.
#[derive(Debug)]
pub struct Certificates {
    source: Source,
    served: Arc<Served>,
    present: Mutex<Pair>,
    status: Arc<CertificateStatus>,
}

/// What rustls asks at each handshake.
#[derive(Debug)]
struct Served(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Served {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Certificates {
    /// Loads the first pair. An expired one is accepted with an error in the log: refusing it would turn a certificate
    /// that is about to be renewed into a process that cannot start, and a client's `certificate has expired` says more
    /// than a refused connection.
    pub fn open(source: Source) -> Result<Self, CertificateError> {
        let pair = match &source {
            Source::Files(files) => files.load()?,
            Source::SelfSigned(own) => own.create_or_load()?,
        };
        let now = SystemTime::now();
        if let Err(state) = pair.validity(now) {
            tracing::error!(
                names = pair.names(),
                "the certificate is {state}; clients will refuse it"
            );
        }
        let status = Arc::new(CertificateStatus::default());
        status.not_after.store(pair.facts.not_after, Relaxed);
        Ok(Self {
            source,
            served: Arc::new(Served(ArcSwap::new(Arc::clone(&pair.certified)))),
            present: Mutex::new(pair),
            status,
        })
    }

    /// Counters of this certificate.
    pub fn status(&self) -> Arc<CertificateStatus> {
        Arc::clone(&self.status)
    }

    /// The names in the served certificate, for a person to read.
    pub fn names(&self) -> String {
        self.present().names()
    }

    /// Looks once for another certificate and serves it when it is better than the present one. True when it was taken.
    pub fn reload(&self) -> Result<bool, CertificateError> {
        let looked = self.look();
        match &looked {
            Ok(taken) => {
                self.status.succeeded();
                self.status.reloads.fetch_add(u64::from(*taken), Relaxed);
            }
            Err(error) => self.status.failed(error.to_string()),
        }
        looked
    }

    fn look(&self) -> Result<bool, CertificateError> {
        let mut present = self.present();
        let now = SystemTime::now();
        let candidate = match &self.source {
            Source::Files(files) => files.reload(&present, now)?,
            Source::SelfSigned(own) => own.reload(&present, now)?,
        };
        let Some(pair) = candidate else { return Ok(false) };
        self.served.0.store(Arc::clone(&pair.certified));
        self.status.not_after.store(pair.facts.not_after, Relaxed);
        *present = pair;
        Ok(true)
    }

    /// Looks every `period`, forever. A failure is logged at each look until it is over: it needs a person.
    pub async fn watch(self: Arc<Self>, period: Duration) -> Infallible {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let own = Arc::clone(&self);
            match tokio::task::spawn_blocking(move || own.reload()).await {
                Ok(Ok(true)) => tracing::info!(names = self.names(), "serving a new certificate"),
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "keeping the present certificate"),
                Err(error) => {
                    self.status.failed(error.to_string());
                    tracing::error!(%error, "looking for a new certificate failed");
                }
            }
        }
    }

    pub(crate) fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        Arc::clone(&self.served) as Arc<dyn ResolvesServerCert>
    }

    fn present(&self) -> MutexGuard<'_, Pair> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The certificate that is served, and how reloading goes.
#[derive(Debug, Default)]
pub struct CertificateStatus {
    /// End of validity of the served certificate, in seconds since 1970.
    pub not_after: AtomicI64,
    /// How often another certificate has been taken.
    pub reloads: AtomicU64,
    /// How often looking for a new certificate failed, counted at each look.
    pub reload_errors: AtomicU64,
    /// Whether the last look failed.
    pub failing: AtomicBool,
    /// Why the last look failed.
    pub last_error: ArcSwapOption<String>,
}

impl CertificateStatus {
    pub(crate) fn failed(&self, message: String) {
        self.reload_errors.fetch_add(1, Relaxed);
        self.failing.store(true, Relaxed);
        self.last_error.store(Some(Arc::new(message)));
    }

    pub(crate) fn succeeded(&self) {
        self.failing.store(false, Relaxed);
        self.last_error.store(None);
    }
}

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
    fn load(&self) -> Result<Pair, CertificateError> {
        let pair = self.parse(&self.read()?)?;
        self.check_names(&pair, &self.names)?;
        Ok(pair)
    }

    /// Another pair than `present`, if there is one and nothing speaks against it.
    fn reload(&self, present: &Pair, now: SystemTime) -> Result<Option<Pair>, CertificateError> {
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
