//! The API servers behind the gateway.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use kube::Client;
use serde_json::json;

use super::route::{Route, of_project, route};
use crate::kubeconfig;
use crate::lab::Lab;
use crate::plane::Plane;

/// One server.
pub(super) struct Server {
    client: Client,
    takes_callers: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) enum Servers {
    /// Milo's own kinds and every project on one server.
    Shared(Server),
    /// A server for each.
    Each {
        /// Milo's own kinds.
        milo: Server,
        /// Projects by id.
        projects: BTreeMap<String, Server>,
    },
}

/// Where one request goes.
pub(super) struct Hop<'a> {
    pub(super) server: &'a Server,
    /// Path and query there.
    pub(super) target: String,
    /// The project whose own server it is.
    pub(super) project: Option<&'a str>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    fn new(client: Client, takes_callers: bool) -> Self {
        Self { client, takes_callers }
    }

    async fn behind_front_proxy(lab: &Lab, plane: &str) -> Result<Self> {
        let (certificate, key) = lab.front_proxy();
        let credentials = json!({ "client-certificate": certificate, "client-key": key });
        let document = kubeconfig::document(lab.url(plane)?, Some(lab.ca_file()), &credentials);
        let client = kubeconfig::client(document).await;
        let client = client.with_context(|| format!("failed to make a front proxy's client for plane {plane}"))?;
        Ok(Self::new(client, true))
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether it takes the caller from headers.
    pub(super) fn takes_callers(&self) -> bool {
        self.takes_callers
    }
}

impl Servers {
    pub(super) fn shared(plane: &Plane) -> Self {
        Self::Shared(Server::new(plane.client().clone(), false))
    }

    pub(super) async fn each(lab: &Lab, milo: &str, ids: &[&str]) -> Result<Self> {
        let mut projects = BTreeMap::new();
        for id in ids {
            projects.insert((*id).to_owned(), Server::behind_front_proxy(lab, id).await?);
        }
        let milo = Server::behind_front_proxy(lab, milo).await?;
        Ok(Self::Each { milo, projects })
    }

    /// Where a request goes; the error says what there is none of.
    pub(super) fn hop(&self, path: &str, query: Option<&str>) -> Result<Hop<'_>, &'static str> {
        match self {
            Self::Shared(server) => match route(path, query) {
                Route::To(target) => Ok(Hop {
                    server,
                    target,
                    project: None,
                }),
                Route::Nowhere => Err("the project has no such namespace"),
            },
            Self::Each { milo, projects } => {
                let (project, server, rest) = match of_project(path) {
                    None => (None, milo, path),
                    Some((id, rest)) => {
                        let (id, server) = projects.get_key_value(id).ok_or("there is no such project")?;
                        (Some(id.as_str()), server, rest)
                    }
                };
                let query = query.map(|query| format!("?{query}")).unwrap_or_default();
                Ok(Hop {
                    server,
                    target: format!("{rest}{query}"),
                    project,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;

    fn server() -> Server {
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        Server::new(Client::try_from(config).unwrap(), true)
    }

    /// Clients are made in a runtime.
    #[tokio::test]
    async fn each_request_reaches_its_server_without_the_prefix() {
        let servers = Servers::Each {
            milo: server(),
            projects: [("p1".to_owned(), server())].into(),
        };
        let below = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/p1/control-plane";
        let list = "/apis/compute.datumapis.com/v1alpha/workloads";
        let hop = servers.hop(&format!("{below}{list}"), Some("watch=true")).unwrap();
        assert_eq!(
            (hop.project, hop.target.as_str()),
            (Some("p1"), format!("{list}?watch=true").as_str())
        );
        let projects = "/apis/resourcemanager.miloapis.com/v1alpha1/projects";
        let hop = servers.hop(projects, None).unwrap();
        assert_eq!((hop.project, hop.target.as_str()), (None, projects));
        let absent = below.replace("p1", "p2");
        assert!(servers.hop(&format!("{absent}{list}"), None).is_err());
    }
}
