//! The servers of projects.

use std::path::PathBuf;

use popcell_client::{Addressing, Direct, Projects as Places, Tokens, Transport as _};
use popcell_core::plan::Plane;

use super::{PlaneError, Server, config, place::Place};
use crate::{args, args::cluster::Cluster, exit::Failure};

/// Where projects are reached.
pub(crate) enum Projects {
    /// One server is the one project.
    Single(Server),
    /// Milo's.
    Milo {
        /// The server that lists them.
        discovery: Server,
        /// How each is reached.
        places: Box<Direct>,
    },
}

impl Projects {
    /// Reads the kubeconfigs. No request is made yet.
    pub(crate) async fn open(args: &args::hub::Projects) -> Result<Self, Failure> {
        match Place::of(args)? {
            Place::Single { project } => Ok(Self::Single(open(project).await?)),
            Place::Milo { template, discovery } => {
                let template = config(Some(&template), None).await?;
                let places = Direct {
                    local: template.clone(),
                    hub: None,
                    projects: Places::Milo {
                        addressing: Addressing::Path,
                        config: Box::new(template),
                    },
                    claims: None,
                    tokens: Tokens::default(),
                };
                Ok(Self::Milo {
                    discovery: open(discovery).await?,
                    places: Box::new(places),
                })
            }
        }
    }

    /// The server of a project.
    pub(crate) fn of(&self, id: &str) -> Result<Server, PlaneError> {
        let plane = Plane::Project(id.to_owned());
        match self {
            Self::Single(server) => Ok(server.clone()),
            Self::Milo { places, .. } => match places.client(&plane) {
                Ok(client) => Ok(Server::of(client, plane.to_string())),
                Err(error) => Err(no_server(&plane, &error.to_string())),
            },
        }
    }
}

async fn open(file: PathBuf) -> Result<Server, PlaneError> {
    let cluster = Cluster {
        kubeconfig: Some(file),
        context: None,
    };
    Server::open(&cluster).await
}

/// A plane that has no server.
pub(crate) fn no_server(plane: &Plane, reason: &str) -> PlaneError {
    PlaneError::Request {
        action: "connect".to_owned(),
        server: plane.to_string(),
        reason: reason.to_owned(),
    }
}
