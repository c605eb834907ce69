//! Files that settings name: kubeconfigs, and the certificates of ports.

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::ProcessEnvironment;
use super::{ConfigError, TlsFiles};
use crate::planes::tuned;

/// How an API server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// By a kubeconfig.
    File {
        /// The flag or key that names it, for messages.
        setting: &'static str,
        /// The file.
        file: PathBuf,
        /// The context in it; `None`: its current one.
        context: Option<String>,
    },
    /// By what `$KUBECONFIG` names, a list of files.
    Variable {
        /// Its value.
        files: String,
    },
    /// By the service account of the pod.
    InCluster,
}

/// Files of a certificate; they were there at the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

/// What the defaults of a port's `tls` are.
#[derive(Clone, Copy, Debug)]
pub(super) struct TlsDefaults {
    pub(super) setting: &'static str,
    pub(super) directory: &'static str,
}

pub(super) const WEBHOOK: TlsDefaults = TlsDefaults {
    setting: "webhookServer.tls",
    directory: "k8s-webhook-server/serving-certs",
};
pub(super) const METRICS: TlsDefaults = TlsDefaults {
    setting: "metricsServer.tls",
    directory: "k8s-metrics-server/serving-certs",
};

impl Certificate {
    /// The files of a port, with the defaults that the file of settings leaves open.
    pub(super) fn of(tls: &TlsFiles, defaults: TlsDefaults, around: &dyn ProcessEnvironment) -> Self {
        let directory = tls.directory.as_ref().map_or_else(
            || {
                let temporary = around.variable("TMPDIR");
                Path::new(temporary.as_deref().unwrap_or("/tmp")).join(defaults.directory)
            },
            PathBuf::from,
        );
        Self {
            certificate: directory.join(tls.certificate.as_deref().unwrap_or("tls.crt")),
            key: directory.join(tls.key.as_deref().unwrap_or("tls.key")),
        }
    }
}

impl Credentials {
    pub(super) fn file(setting: &'static str, file: impl Into<PathBuf>) -> Self {
        Self::File {
            setting,
            file: file.into(),
            context: None,
        }
    }

    /// Reads all files, and makes a client to see that they can be used; no request is sent. Needs a tokio runtime.
    ///
    /// # Errors
    /// Names the setting and the file. Files with tokens are looked at too: kube would find them missing at the first
    /// request only.
    pub async fn load(&self) -> Result<Config, ConfigError> {
        let (setting, file, read, context) = match self {
            Self::InCluster => return Config::incluster().map_err(ConfigError::InCluster),
            Self::File { setting, file, context } => {
                (*setting, file.clone(), Kubeconfig::read_from(file), context.clone())
            }
            Self::Variable { files } => ("$KUBECONFIG", PathBuf::from(files), merged(files), None),
        };
        let failed = |source| ConfigError::Kubeconfig {
            setting,
            file: file.clone(),
            source,
        };
        let kubeconfig = read.map_err(failed)?;
        let proxied = kubeconfig.clusters.iter().any(|named| {
            named
                .cluster
                .as_ref()
                .is_some_and(|cluster| cluster.proxy_url.is_some())
        });
        let options = KubeConfigOptions {
            context,
            ..KubeConfigOptions::default()
        };
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(failed)?;
        if !proxied {
            // kube takes $HTTPS_PROXY, which is for the context outside, and then fails for want of proxy support.
            config.proxy_url = None;
        }
        readable(&config.auth_info).map_err(|(key, path, problem)| ConfigError::Credential {
            setting,
            file: file.clone(),
            key,
            path,
            problem,
        })?;
        Client::try_from(tuned(config.clone())).map_err(|source| ConfigError::Client {
            setting,
            file,
            source: Box::new(source),
        })?;
        Ok(config)
    }
}

/// The files of a list, the first that sets a value wins; as kubectl does.
fn merged(files: &str) -> Result<Kubeconfig, KubeconfigError> {
    std::env::split_paths(files)
        .filter(|path| !path.as_os_str().is_empty())
        .try_fold(Kubeconfig::default(), |all, path| {
            all.merge(Kubeconfig::read_from(path)?)
        })
}

/// Files that are read at the first request or at each. What is given as text wins over a file.
fn readable(auth: &AuthInfo) -> Result<(), (&'static str, PathBuf, String)> {
    let files = [
        ("tokenFile", auth.token_file.as_ref().filter(|_| auth.token.is_none())),
        (
            "client-certificate",
            auth.client_certificate
                .as_ref()
                .filter(|_| auth.client_certificate_data.is_none()),
        ),
        (
            "client-key",
            auth.client_key.as_ref().filter(|_| auth.client_key_data.is_none()),
        ),
    ];
    for (key, file) in files {
        let Some(file) = file else { continue };
        let problem = match std::fs::read(file) {
            Ok(content) if content.iter().all(u8::is_ascii_whitespace) => "is empty".to_owned(),
            Ok(_) => continue,
            Err(error) => format!("cannot be read: {error}"),
        };
        return Err((key, Path::new(file).to_owned(), problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
