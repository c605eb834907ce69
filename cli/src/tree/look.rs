//! Reading. Every answer is live.

use std::collections::{BTreeMap, BTreeSet};

use popcell_api::kind::{self, Kind, Scope};
use popcell_controller_runtime::planes::SINGLE;
use popcell_core::{
    names,
    object::{Fields as _, Object},
    plan::NAMESPACE,
};

use super::sight::{Cell, Found, Hub, Sight};
use crate::{
    args::{cluster::Cluster, tree::Tree},
    exit::Failure,
    planes::{PlaneError, Projects, Server},
};

/// Label of ResourceBindings and of their Works, set by Karmada's webhook (karmada.md 4.1).
const BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";
const WORK: Kind = Kind::of("work.karmada.io", "v1alpha1", "Work", "works", Scope::Namespaced);

/// All servers.
pub(super) struct Planes {
    project: Server,
    /// `None` where the project is its own cell.
    hub: Option<Server>,
    cells: Vec<(String, Server)>,
}

impl Planes {
    /// Reads the kubeconfigs. No request is made yet.
    pub(super) async fn open(args: &Tree) -> Result<Self, Failure> {
        let projects = Projects::open(&args.projects).await?;
        let id = match (&projects, &args.project) {
            (Projects::Milo { .. }, None) => {
                return Err(Failure::Usage("give --project: in mode milo there are many".to_owned()));
            }
            (Projects::Single(_), Some(_)) => {
                return Err(Failure::Usage("--project is for --mode milo: leave it out".to_owned()));
            }
            (_, id) => id.as_deref().unwrap_or(SINGLE),
        };
        let mut cells = Vec::new();
        for (name, file) in &args.cells {
            let cluster = Cluster {
                kubeconfig: Some(file.clone()),
                context: None,
            };
            cells.push((name.clone(), Server::open(&cluster).await?));
        }
        let hub = if args.single_cluster {
            None
        } else {
            Some(Server::open(&args.cluster).await?)
        };
        Ok(Self {
            project: projects.of(id)?,
            hub,
            cells,
        })
    }

    /// Everything that has to do with one Workload. Only a project that does not answer leaves nothing to show.
    pub(super) async fn look(&self, args: &Tree) -> Result<Sight, Failure> {
        let (project, here) = (&self.project, Some(args.namespace.as_str()));
        let Some(namespace) = project.get(&NAMESPACE.resource(), None, &args.namespace).await? else {
            let (name, server) = (&args.namespace, project.name());
            return Err(Failure::Usage(format!(
                "no namespace {name} is at {server}: give the Workload's with -n"
            )));
        };
        let workload = project.get(&kind::WORKLOAD.resource(), here, &args.workload).await?;
        let mut deployments = project.list(&kind::WORKLOAD_DEPLOYMENT.resource(), here, "").await?;
        deployments.retain(|one| one.text("/spec/workloadRef/name") == Some(&args.workload));
        let claims = found(project.list(&kind::RESOURCE_CLAIM.resource(), here, "").await);
        let hub_namespace = match &self.hub {
            Some(_) => names::hub_namespace(namespace.uid()),
            None => args.namespace.clone(),
        };
        let mut cells = BTreeMap::new();
        for (name, server) in &self.cells {
            cells.insert(name.clone(), found(cell(server, &hub_namespace).await));
        }
        let (mut hub, mut instances) = (None, Vec::new());
        match &self.hub {
            Some(server) => hub = Some(found(look_at_hub(server, &hub_namespace).await)),
            None => instances = project.list(&kind::INSTANCE.resource(), here, "").await?,
        }
        Ok(Sight {
            namespace: args.namespace.clone(),
            name: args.workload.clone(),
            hub,
            hub_namespace,
            instances,
            workload,
            deployments,
            claims,
            cells,
        })
    }
}

async fn look_at_hub(hub: &Server, namespace: &str) -> Result<Hub, PlaneError> {
    let within = async |kind: Kind| hub.list(&kind.resource(), Some(namespace), "").await;
    let bindings = within(kind::RESOURCE_BINDING).await?;
    Ok(Hub {
        namespace: hub.get(&NAMESPACE.resource(), None, namespace).await?,
        deployments: within(kind::WORKLOAD_DEPLOYMENT).await?,
        policies: within(kind::PROPAGATION_POLICY).await?,
        copies: within(kind::INSTANCE).await?,
        clusters: hub.list(&kind::CLUSTER.resource(), None, "").await?,
        works: works(hub, &bindings).await?,
        bindings,
    })
}

/// Works of these bindings, and of no other.
async fn works(hub: &Server, bindings: &[Object]) -> Result<Vec<Object>, PlaneError> {
    let ids: BTreeSet<&str> = bindings.iter().filter_map(|one| one.label(BINDING_ID)).collect();
    let clusters: BTreeSet<&str> = bindings
        .iter()
        .flat_map(|one| one.items("/spec/clusters"))
        .filter_map(|one| one.get("name")?.as_str())
        .collect();
    let mut works = Vec::new();
    let selector = format!("{BINDING_ID} in ({})", Vec::from_iter(ids).join(","));
    for cluster in clusters {
        let space = format!("karmada-es-{cluster}");
        works.extend(hub.list(&WORK.resource(), Some(&space), &selector).await?);
    }
    Ok(works)
}

async fn cell(server: &Server, namespace: &str) -> Result<Cell, PlaneError> {
    let here = Some(namespace);
    Ok(Cell {
        deployments: server.list(&kind::WORKLOAD_DEPLOYMENT.resource(), here, "").await?,
        instances: server.list(&kind::INSTANCE.resource(), here, "").await?,
    })
}

fn found<T>(answer: Result<T, PlaneError>) -> Found<T> {
    answer.map_or_else(|error| Found::Away(error.to_string()), Found::Known)
}
