//! What is on each plane, for one Workload. Every answer is live.

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools as _;
use popcell_api::kind::{self, Kind, Scope};
use popcell_api::names::SINGLE;
use popcell_core::{
    names,
    object::{Fields as _, Object, Unreadable},
    plan::NAMESPACE,
};

use super::node::{HUB, PROJECT};
use crate::{
    args::planes::Tree,
    exit::Failure,
    planes::{PlaneError, Projects, Server},
};

/// Label of ResourceBindings and of their Works, set by Karmada's webhook.
const BINDING_ID: &str = "resourcebinding.karmada.io/permanent-id";
const WORK: Kind = Kind::of("work.karmada.io", "v1alpha1", "Work", "works", Scope::Namespaced);

/// What a plane answered, or why it did not.
pub(super) type Found<T> = Result<T, String>;

/// Everything that was found.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The Namespace in the project.
    pub(super) namespace: String,
    /// Name of the Workload.
    pub(super) name: String,
    /// Name of the hub namespace, which the cell's has as well.
    pub(super) hub_namespace: String,
    /// The Workload; `None` = NotFound.
    pub(super) workload: Option<Object>,
    /// Its WorkloadDeployments in the project.
    pub(super) deployments: Vec<Object>,
    /// ResourceClaims of its namespace in the project.
    pub(super) claims: Found<Vec<Object>>,
    /// The hub; `None` where the project is its own cell.
    pub(super) hub: Option<Found<Hub>>,
    /// Instances of its namespace in the project, where the project is its own cell.
    pub(super) instances: Vec<Object>,
    /// Cells that were asked, by the name of their Cluster.
    pub(super) cells: BTreeMap<String, Found<Cell>>,
    /// What is in the lists and cannot be read.
    pub(super) unreadable: Vec<Strange>,
}

/// An object that is there and cannot be read.
#[derive(Clone, Debug)]
pub(super) struct Strange {
    /// As that of a [`Node`](super::node::Node).
    pub(super) plane: String,
    /// Its kind.
    pub(super) kind: &'static str,
    /// Where it is, and why it cannot be read.
    pub(super) item: Unreadable,
}

/// What is on the hub, in the one namespace unless said otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct Hub {
    /// The Namespace itself; `None` = NotFound.
    pub(super) namespace: Option<Object>,
    /// WorkloadDeployments.
    pub(super) deployments: Vec<Object>,
    /// PropagationPolicies.
    pub(super) policies: Vec<Object>,
    /// ResourceBindings.
    pub(super) bindings: Vec<Object>,
    /// Works in the namespaces of Clusters that a binding names.
    pub(super) works: Vec<Object>,
    /// Copies of Instances.
    pub(super) copies: Vec<Object>,
    /// All Karmada Clusters.
    pub(super) clusters: Vec<Object>,
}

/// What is in a cell, in the one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// WorkloadDeployments.
    pub(super) deployments: Vec<Object>,
    /// Instances.
    pub(super) instances: Vec<Object>,
}

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
            cells.push((name.clone(), Server::open(&file.clone().into()).await?));
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
    pub(super) async fn look(&self, args: &Tree) -> Result<Snapshot, Failure> {
        let (project, here) = (&self.project, Some(args.namespace.as_str()));
        let Some(namespace) = project.at(NAMESPACE, None).get(&args.namespace).await? else {
            let (name, server) = (&args.namespace, project.name());
            return Err(Failure::Usage(format!(
                "namespace {name} not found at {server}: give the Workload's with -n"
            )));
        };
        let workload = project.at(kind::WORKLOAD, here).get(&args.workload).await?;
        let mut reader = Reader::of(project, PROJECT);
        let mut deployments = reader.list(kind::WORKLOAD_DEPLOYMENT, here, "").await?;
        deployments.retain(|one| one.text("/spec/workloadRef/name") == Some(&args.workload));
        let claims = found(reader.list(kind::RESOURCE_CLAIM, here, "").await);
        let (hub_namespace, instances) = match &self.hub {
            Some(_) => (names::hub_namespace(namespace.uid()), Vec::new()),
            None => (args.namespace.clone(), reader.list(kind::INSTANCE, here, "").await?),
        };
        let mut unreadable = reader.unreadable;
        let mut cells = BTreeMap::new();
        for (name, server) in &self.cells {
            let mut reader = Reader::of(server, &format!("cell {name}"));
            cells.insert(name.clone(), found(cell(&mut reader, &hub_namespace).await));
            unreadable.extend(reader.unreadable);
        }
        let mut hub = None;
        if let Some(server) = &self.hub {
            let mut reader = Reader::of(server, HUB);
            hub = Some(found(look_at_hub(&mut reader, &hub_namespace).await));
            unreadable.extend(reader.unreadable);
        }
        Ok(Snapshot {
            namespace: args.namespace.clone(),
            name: args.workload.clone(),
            hub,
            hub_namespace,
            instances,
            workload,
            deployments,
            claims,
            cells,
            unreadable,
        })
    }
}

/// Lists of one server; what cannot be read of them is put by.
struct Reader<'a> {
    server: &'a Server,
    plane: String,
    unreadable: Vec<Strange>,
}

impl<'a> Reader<'a> {
    fn of(server: &'a Server, plane: &str) -> Self {
        Self {
            server,
            plane: plane.to_owned(),
            unreadable: Vec::new(),
        }
    }

    async fn list(&mut self, kind: Kind, namespace: Option<&str>, selector: &str) -> Result<Vec<Object>, PlaneError> {
        let found = self.server.at(kind, namespace).list(selector).await?;
        let strange = found.unreadable.into_iter().map(|item| Strange {
            plane: self.plane.clone(),
            kind: kind.kind,
            item,
        });
        self.unreadable.extend(strange);
        Ok(found.objects)
    }
}

async fn look_at_hub(hub: &mut Reader<'_>, namespace: &str) -> Result<Hub, PlaneError> {
    let here = Some(namespace);
    let bindings = hub.list(kind::RESOURCE_BINDING, here, "").await?;
    Ok(Hub {
        namespace: hub.server.at(NAMESPACE, None).get(namespace).await?,
        deployments: hub.list(kind::WORKLOAD_DEPLOYMENT, here, "").await?,
        policies: hub.list(kind::PROPAGATION_POLICY, here, "").await?,
        copies: hub.list(kind::INSTANCE, here, "").await?,
        clusters: hub.list(kind::CLUSTER, None, "").await?,
        works: works(hub, &bindings).await?,
        bindings,
    })
}

/// Works of these bindings, and of no other.
async fn works(hub: &mut Reader<'_>, bindings: &[Object]) -> Result<Vec<Object>, PlaneError> {
    let ids: BTreeSet<&str> = bindings.iter().filter_map(|one| one.label(BINDING_ID)).collect();
    let clusters: BTreeSet<&str> = bindings
        .iter()
        .flat_map(|one| one.items("/spec/clusters"))
        .filter_map(|one| one.get("name")?.as_str())
        .collect();
    let mut works = Vec::new();
    let selector = format!("{BINDING_ID} in ({})", ids.iter().join(","));
    for cluster in clusters {
        let space = format!("karmada-es-{cluster}");
        works.extend(hub.list(WORK, Some(&space), &selector).await?);
    }
    Ok(works)
}

async fn cell(reader: &mut Reader<'_>, namespace: &str) -> Result<Cell, PlaneError> {
    let here = Some(namespace);
    Ok(Cell {
        deployments: reader.list(kind::WORKLOAD_DEPLOYMENT, here, "").await?,
        instances: reader.list(kind::INSTANCE, here, "").await?,
    })
}

fn found<T>(answer: Result<T, PlaneError>) -> Found<T> {
    answer.map_err(|error| error.to_string())
}
