//! Where planes are, and the seam between planes and connections.
//!
//! kube's own client speaks HTTP/1.1: each watch holds a connection. Shared HTTP/2 queued reconcilers can take its place
//! behind [`Transport`] unnoticed.

use std::time::Duration;

use http::Uri;
use kube::{Client, Config};
use popcell_api::names::SINGLE;
use popcell_core::names::check_project;
use popcell_core::plan::Plane;
use tokio::sync::watch;

use super::token::Tokens;
use crate::error::ConnectError;

/// A server that does not take a connection within this time is unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How a project's API server is addressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// Below a path of milo's API server.
    Path,
    /// By the name of its own Service, for processes inside the infrastructure cluster.
    Service,
}

/// The URL of a project's API server. Only here is one made of a project id; `base` is milo's, whose own path stays in front.
///
/// # Errors
/// An id that is no DNS-1123 subdomain, or is too long for a label, is refused before anything is made of it.
pub fn project_url(addressing: Addressing, base: &Uri, id: &str) -> Result<Uri, ConnectError> {
    check_project(id)?;
    let url = match addressing {
        Addressing::Path => {
            let base = base.to_string();
            let base = base.trim_end_matches('/');
            format!("{base}/apis/resourcemanager.miloapis.com/v1alpha1/projects/{id}/control-plane")
        }
        Addressing::Service if id.contains('.') => return Err(ConnectError::NoService(id.to_owned())),
        Addressing::Service => format!("https://milo-apiserver.project-{id}.svc.cluster.local:6443"),
    };
    url.parse().map_err(|source| ConnectError::Url {
        project: id.to_owned(),
        source,
    })
}

/// Makes clients. Each is used by one engagement of one plane and dropped at its end.
pub trait Transport: Send + Sync {
    /// A client of the plane. No request is sent.
    ///
    /// # Errors
    /// The plane has no address, or its credentials cannot be used.
    fn client(&self, plane: &Plane) -> Result<Client, ConnectError>;

    /// The same, with word of a token that is replaced.
    ///
    /// # Errors
    /// See [`Self::client`].
    fn connect(&self, plane: &Plane) -> Result<Connection, ConnectError> {
        let client = self.client(plane)?;
        Ok(Connection { client, renewed: None })
    }
}

/// A way to a server.
#[derive(Clone)]
pub struct Connection {
    /// For requests.
    pub client: Client,
    /// Changes when a token that the server refused is replaced by another; `None` where none can be.
    pub renewed: Option<watch::Receiver<()>>,
}

/// Where projects are.
#[derive(Clone, Debug)]
pub enum Projects {
    /// Mode `single`: the one project is on the server that the process runs on.
    Local,
    /// Mode `milo`: each has a server of its own, reached with milo's credentials.
    Milo {
        /// How their servers are addressed.
        addressing: Addressing,
        /// Milo's API server.
        config: Box<Config>,
    },
}

/// kube's own client, one for each engagement.
#[derive(Clone, Debug)]
pub struct Direct {
    /// The server that the process runs on; a cell, or that of mode `single`.
    pub local: Config,
    /// Karmada.
    pub hub: Option<Config>,
    /// Projects.
    pub projects: Projects,
    /// Milo's API server with the credentials of a cell, which has claims in projects; `None` where it has none.
    pub claims: Option<Config>,
    /// Files that tokens are read from.
    pub tokens: Tokens,
}

impl Direct {
    fn config(&self, plane: &Plane) -> Result<Config, ConnectError> {
        match (plane, &self.projects) {
            (Plane::Project(id), Projects::Local) if id != SINGLE => {
                let mut config = self.claims.clone().ok_or(ConnectError::NotConfigured(plane.clone()))?;
                config.cluster_url = project_url(Addressing::Path, &config.cluster_url, id)?;
                Ok(config)
            }
            (Plane::Cell, _) | (Plane::Project(_), Projects::Local) => Ok(self.local.clone()),
            // Its client is made where it is asked.
            (Plane::Discovery, _) => Err(ConnectError::NotConfigured(Plane::Discovery)),
            (Plane::Hub, _) => self.hub.clone().ok_or(ConnectError::NotConfigured(Plane::Hub)),
            (Plane::Project(id), Projects::Milo { addressing, config }) => {
                let mut config = config.as_ref().clone();
                config.cluster_url = project_url(*addressing, &config.cluster_url, id)?;
                Ok(config)
            }
        }
    }
}

impl Transport for Direct {
    fn client(&self, plane: &Plane) -> Result<Client, ConnectError> {
        self.connect(plane).map(|connection| connection.client)
    }

    fn connect(&self, plane: &Plane) -> Result<Connection, ConnectError> {
        connect(&self.tokens, plane, self.config(plane)?)
    }
}

/// A client for a server of the plane. No request is sent.
///
/// # Errors
/// Its credentials cannot be used.
pub fn client(tokens: &Tokens, plane: &Plane, config: Config) -> Result<Client, ConnectError> {
    connect(tokens, plane, config).map(|connection| connection.client)
}

fn connect(tokens: &Tokens, plane: &Plane, config: Config) -> Result<Connection, ConnectError> {
    tokens.connect(tuned(config)).map_err(|source| ConnectError::Client {
        plane: plane.clone(),
        source: Box::new(source),
    })
}

/// What our own layers need of a client: they repeat by themselves what failed, at a pace of their own, so the client must
/// not; and a server that is unreachable must be noticed.
pub fn tuned(mut config: Config) -> Config {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(projects: Projects) -> Direct {
        Direct {
            local: Config::new("https://local".parse().unwrap()),
            hub: None,
            projects,
            claims: Some(Config::new("https://quota".parse().unwrap())),
            tokens: Tokens::default(),
        }
    }

    #[test]
    fn each_plane_has_its_server() {
        let milo = Projects::Milo {
            addressing: Addressing::Path,
            config: Box::new(Config::new("https://milo".parse().unwrap())),
        };
        let [single, project] = [SINGLE, "p"].map(|id| Plane::Project(id.to_owned()));
        let url = |direct: &Direct, plane: &Plane| direct.config(plane).unwrap().cluster_url.to_string();
        assert_eq!(url(&direct(Projects::Local), &single), "https://local/");
        assert!(url(&direct(Projects::Local), &project).starts_with("https://quota/apis/"));
        assert!(url(&direct(milo.clone()), &project).starts_with("https://milo/apis/"));
        assert_eq!(url(&direct(milo.clone()), &Plane::Cell), "https://local/");
        let hubless = direct(milo).config(&Plane::Hub);
        assert!(matches!(hubless, Err(ConnectError::NotConfigured(Plane::Hub))));
    }

    fn url(addressing: Addressing, base: &str, id: &str) -> Result<String, ConnectError> {
        let base = base.parse().unwrap();
        project_url(addressing, &base, id).map(|url| url.to_string())
    }

    #[test]
    fn the_url_of_a_project_is_where_milo_serves_it() {
        for base in ["https://milo", "https://milo/"] {
            let path = "apis/resourcemanager.miloapis.com/v1alpha1/projects/p1.x/control-plane";
            assert_eq!(
                url(Addressing::Path, base, "p1.x").unwrap(),
                format!("https://milo/{path}")
            );
            assert_eq!(
                url(Addressing::Path, &format!("https://milo:8443{}", "/a/"), "p1.x").unwrap(),
                format!("https://milo:8443/a/{path}")
            );
            assert_eq!(
                url(Addressing::Service, base, "p1").unwrap(),
                "https://milo-apiserver.project-p1.svc.cluster.local:6443/"
            );
        }
    }

    #[test]
    fn a_project_id_that_would_lead_elsewhere_is_refused() {
        let long = "a".repeat(56);
        for id in [
            "", "..", "a/b", "a/../b", "A", "a%2fb", "a?b", "a#b", "a b", "-a", "a.", "ä", &long,
        ] {
            for addressing in [Addressing::Path, Addressing::Service] {
                let refused = url(addressing, "https://milo", id);
                assert!(matches!(refused, Err(ConnectError::Name(_))), "{id}: {refused:?}");
            }
        }
        assert!(matches!(
            url(Addressing::Service, "https://milo", "a.kube-system"),
            Err(ConnectError::NoService(_))
        ));
    }
}
