//! Kubeconfigs: which there are, and what becomes of them.

use std::path::{Path, PathBuf};

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::ConfigError;
use super::settings::{Discovery, Settings};
use crate::planes::{Tokens, tuned};

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

/// Every server that settings name. Servers of projects are made from `template` (see [`crate::planes::Direct`]).
#[derive(Clone, Debug)]
pub struct Connections {
    /// The one that the process runs on.
    pub local: Config,
    /// Karmada.
    pub hub: Option<Config>,
    /// Mode `milo`: the one that has the objects that stand for projects.
    pub projects: Option<Config>,
    /// Mode `milo`: credentials for the servers of projects.
    pub template: Option<Config>,
    /// Credentials for claims in the servers of projects.
    pub quota: Option<Config>,
    /// Files that tokens are read from.
    pub tokens: Tokens,
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
            // kube takes $HTTPS_PROXY, which is for the world outside, and then fails for want of proxy support.
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

impl Settings {
    /// Loads every kubeconfig that is named.
    ///
    /// # Errors
    /// See [`Credentials::load`].
    pub async fn connect(&self) -> Result<Connections, ConfigError> {
        let (projects, template) = match &self.discovery {
            Discovery::Single => (None, None),
            Discovery::Milo(milo) => (Some(milo.projects.load().await?), Some(milo.template.load().await?)),
        };
        Ok(Connections {
            tokens: Tokens::default(),
            local: self.local.load().await?,
            hub: optional(self.hub.as_ref()).await?,
            projects,
            template,
            quota: optional(self.quota.as_ref().map(|quota| &quota.credentials)).await?,
        })
    }
}

async fn optional(credentials: Option<&Credentials>) -> Result<Option<Config>, ConfigError> {
    match credentials {
        Some(credentials) => credentials.load().await.map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
