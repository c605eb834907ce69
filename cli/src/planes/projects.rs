//! The servers of projects, and which kubeconfigs lead to them: flags, then the controller's configuration file.

use std::path::PathBuf;

use kube::Config;
use popcell_client::{
    Addressing, Tokens, chain, client,
    config::{DiscoveryConfig, Mode as FileMode, ServerConfig},
    project_url,
};
use popcell_core::plan::Plane;

use super::{PlaneError, Server, config};
use crate::{
    args::planes::{self as args, Mode},
    exit::Failure,
};

/// Where projects are reached.
pub(crate) enum Projects {
    /// One server is the one project.
    Single(Server),
    /// Milo's.
    Milo {
        /// The server that lists them.
        discovery: Server,
        /// The server below which they are.
        template: Box<Config>,
        /// What their clients share.
        tokens: Tokens,
    },
}

impl Projects {
    /// Reads the kubeconfigs. No request is made yet.
    pub(crate) async fn open(args: &args::Projects) -> Result<Self, Failure> {
        let file = args.server_config.as_deref().map(ServerConfig::read).transpose();
        let file = file.map_err(|error| Failure::Usage(chain(&error)))?.unwrap_or_default();
        let Kubeconfigs { project, discovery } = Kubeconfigs::resolve(args, &file.discovery)?;
        match discovery {
            None => Ok(Self::Single(Server::open(&project.into()).await?)),
            Some(discovery) => Ok(Self::Milo {
                template: Box::new(config(Some(&project), None).await?),
                discovery: Server::open(&discovery.into()).await?,
                tokens: Tokens::default(),
            }),
        }
    }

    /// The server of a project.
    pub(crate) fn of(&self, id: &str) -> Result<Server, PlaneError> {
        match self {
            Self::Single(server) => Ok(server.clone()),
            Self::Milo { template, tokens, .. } => {
                let plane = Plane::Project(id.to_owned());
                let mut config = Config::clone(template);
                let client = project_url(Addressing::Path, &config.cluster_url, id).and_then(|url| {
                    config.cluster_url = url;
                    client(tokens, &plane, config)
                });
                match client {
                    Ok(client) => Ok(Server::of(client, plane.to_string())),
                    Err(error) => Err(no_server(&plane, &error.to_string())),
                }
            }
        }
    }
}

/// A plane that has no server.
pub(crate) fn no_server(plane: &Plane, reason: &str) -> PlaneError {
    PlaneError::Request {
        action: "connect".to_owned(),
        server: plane.to_string(),
        reason: reason.to_owned(),
    }
}

/// Where kubeconfigs are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kubeconfigs {
    /// The project; in mode `milo`, the server below which projects are.
    project: PathBuf,
    /// The server that lists projects; only in mode `milo`.
    discovery: Option<PathBuf>,
}

impl Kubeconfigs {
    /// Flags come before the file.
    fn resolve(args: &args::Projects, file: &DiscoveryConfig) -> Result<Self, Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        let mode = args.mode.unwrap_or(match file.mode {
            FileMode::Single => Mode::Single,
            FileMode::Milo => Mode::Milo,
        });
        // In mode single the project is the server that the controller runs on, which no key of the file names.
        let of_file = |path: &Option<String>| path.as_ref().filter(|_| mode == Mode::Milo).map(PathBuf::from);
        let project = args
            .project_kubeconfig
            .clone()
            .or_else(|| of_file(&file.project_kubeconfig));
        let discovery = args
            .discovery_kubeconfig
            .clone()
            .or_else(|| of_file(&file.discovery_kubeconfig));
        if mode == Mode::Milo && file.internal && args.project_kubeconfig.is_none() {
            return usage(
                "discovery.internalServiceDiscovery names projects as only milo's own cluster does: give --project-kubeconfig of \
                 milo's API server",
            );
        }
        match (mode, project, discovery) {
            (Mode::Single, _, Some(_)) => usage("--discovery-kubeconfig is for --mode milo: give --project-kubeconfig"),
            (Mode::Single, Some(project), None) => Ok(Self {
                project,
                discovery: None,
            }),
            (Mode::Milo, Some(one), None) | (Mode::Milo, None, Some(one)) => Ok(Self {
                project: one.clone(),
                discovery: Some(one),
            }),
            (Mode::Milo, Some(project), discovery) => Ok(Self { project, discovery }),
            (_, None, None) => usage("give --project-kubeconfig: nothing else says where the project is"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(mode: Option<Mode>, project: Option<&str>, discovery: Option<&str>) -> args::Projects {
        args::Projects {
            mode,
            project_kubeconfig: project.map(PathBuf::from),
            discovery_kubeconfig: discovery.map(PathBuf::from),
            server_config: None,
        }
    }

    fn single(project: &str) -> Kubeconfigs {
        Kubeconfigs {
            project: project.into(),
            discovery: None,
        }
    }

    fn milo(project: &str, discovery: &str) -> Kubeconfigs {
        Kubeconfigs {
            project: project.into(),
            discovery: Some(discovery.into()),
        }
    }

    #[test]
    fn flags_come_before_the_file() {
        let file = DiscoveryConfig {
            mode: FileMode::Milo,
            project_kubeconfig: Some("/file/project".to_owned()),
            discovery_kubeconfig: Some("/file/discovery".to_owned()),
            ..DiscoveryConfig::default()
        };
        let place = |flags: &args::Projects| Kubeconfigs::resolve(flags, &file).ok();
        assert_eq!(
            place(&flags(None, None, None)),
            Some(milo("/file/project", "/file/discovery"))
        );
        assert_eq!(place(&flags(None, Some("p"), None)), Some(milo("p", "/file/discovery")));
        assert_eq!(place(&flags(None, None, Some("d"))), Some(milo("/file/project", "d")));
        assert_eq!(place(&flags(Some(Mode::Single), Some("p"), None)), Some(single("p")));
        // The file's are milo's, and no project of its own.
        assert_eq!(place(&flags(Some(Mode::Single), None, None)), None);
    }

    #[test]
    fn without_a_file_one_kubeconfig_is_enough() {
        let place = |flags: &args::Projects| Kubeconfigs::resolve(flags, &DiscoveryConfig::default()).ok();
        assert_eq!(place(&flags(None, Some("p"), None)), Some(single("p")));
        assert_eq!(place(&flags(Some(Mode::Milo), Some("p"), None)), Some(milo("p", "p")));
        assert_eq!(place(&flags(Some(Mode::Milo), None, Some("d"))), Some(milo("d", "d")));
        assert_eq!(
            place(&flags(Some(Mode::Milo), Some("p"), Some("d"))),
            Some(milo("p", "d"))
        );
        assert_eq!(place(&flags(None, Some("p"), Some("d"))), None);
        assert_eq!(place(&flags(None, None, None)), None);
    }

    #[test]
    fn names_of_milos_own_cluster_lead_nowhere_from_here() {
        let file = DiscoveryConfig {
            mode: FileMode::Milo,
            internal: true,
            discovery_kubeconfig: Some("/file/discovery".to_owned()),
            ..DiscoveryConfig::default()
        };
        assert!(Kubeconfigs::resolve(&flags(None, None, None), &file).is_err());
        assert_eq!(
            Kubeconfigs::resolve(&flags(None, Some("p"), None), &file).ok(),
            Some(milo("p", "/file/discovery"))
        );
    }
}
