//! What a live server must confirm right before a delete is sent
//! (docs/decisions/22-proofs-and-deletion-guard.md).

use popcell_api::kind::CLUSTER;
use popcell_api::names::{ABSENT_CELLS, REMOVED_CELLS};
use popcell_core::object::{Fields, Object};
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Plane, Proof, Target};
use popcell_core::{identity, sources};

use super::Applier;
use crate::refusal::{ApplyError, Unproven};

impl Applier {
    pub(super) async fn prove(&self, proof: &Proof) -> Result<(), ApplyError> {
        let against = match proof {
            Proof::Gone { source, uid } => self.stores_are_known(source).err().or((!Proof::is_gone(
                self.read(source).await?.as_ref(),
                uid.as_deref(),
            ))
            .then(|| "it is there".to_owned())),
            Proof::Lives { source, uid } => not_alive(self.read(source).await?.as_ref(), uid),
            Proof::NoneLeft {
                plane,
                kind,
                namespace,
                selector,
            } => {
                let left = self.list(plane, *kind, Some(namespace), selector).await?;
                (left.count() > 0).then(|| format!("{} are", left.count()))
            }
            Proof::SourceGone { cluster, id } => self.source_not_gone(cluster, id).await?,
            Proof::NotServed { cluster, deployment } => {
                let cluster = self.read(&Target::cluster(&Plane::Hub, CLUSTER, cluster)).await?;
                let deployment = self.read(deployment).await?;
                let holds = Proof::is_not_served(cluster.as_ref(), deployment.as_ref());
                (!holds).then(|| "it may".to_owned())
            }
            Proof::Server { project, uid } => {
                let plane = Plane::Project(project.clone());
                let system = Target::cluster(&plane, NAMESPACE, identity::SYSTEM_NAMESPACE);
                not_server(self.read(&system).await?.as_ref(), uid)
            }
            Proof::ProjectGone { project, uid } => self.project_not_gone(project, uid).await?,
        };
        match against {
            None => Ok(()),
            Some(found) => Err(ApplyError::Unproven(Unproven {
                proof: Box::new(proof.clone()),
                found,
            })),
        }
    }

    /// Where the source's kind is watched, its store must be fully listed since the last reconnect.
    fn stores_are_known(&self, source: &Target) -> Result<(), String> {
        let engaged = self.planes.get(&source.plane);
        let store = engaged.as_ref().and_then(|engaged| engaged.store(source.kind));
        match store {
            Some(store) if !store.is_known() => Err("its store is not fully listed".to_owned()),
            _ => Ok(()),
        }
    }

    async fn source_not_gone(&self, cluster: &str, id: &str) -> Result<Option<String>, ApplyError> {
        let target = Target::cluster(&Plane::Hub, CLUSTER, cluster);
        let Some(found) = self.read(&target).await? else {
            return Ok(None);
        };
        let stored = found.text("/spec/id").unwrap_or_default();
        if !stored.is_empty() && stored != id {
            return Ok(None);
        }
        let removed = self.removed_cells().await?;
        let source = sources::Source { name: cluster, id };
        let is_removed = removed
            .as_ref()
            .is_some_and(|record| sources::is_removed(record, source));
        Ok((!is_removed).then(|| "it is there and not recorded as removed".to_owned()))
    }

    /// The durable record of the cells that `popcell cell remove` declared gone, read live; `None` while there is none.
    ///
    /// # Errors
    /// The hub is away, or refuses.
    pub async fn removed_cells(&self) -> Result<Option<Object>, ApplyError> {
        let namespace = &self.options.namespace;
        self.read(&Target::namespaced(&Plane::Hub, CONFIG_MAP, namespace, REMOVED_CELLS))
            .await
    }

    /// The notes of cells that are absent, read live; `None` while there are none.
    ///
    /// # Errors
    /// The hub is away, or refuses.
    pub async fn absent_cells(&self) -> Result<Option<Object>, ApplyError> {
        let namespace = &self.options.namespace;
        self.read(&Target::namespaced(&Plane::Hub, CONFIG_MAP, namespace, ABSENT_CELLS))
            .await
    }

    /// The program's namespace, which is that of its records on the hub.
    pub fn namespace(&self) -> &str {
        &self.options.namespace
    }

    async fn project_not_gone(&self, project: &str, uid: &str) -> Result<Option<String>, ApplyError> {
        match self.project(project).await? {
            ProjectAnswer::Unasked => Ok(Some("no server knows which projects there are".to_owned())),
            ProjectAnswer::Gone => Ok(None),
            ProjectAnswer::Is(found) if found != uid => Ok(None),
            ProjectAnswer::Is(_) => Ok(Some("it is there".to_owned())),
        }
    }
}

/// What the discovery server says of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectAnswer {
    /// There is no such server: mode `single`.
    Unasked,
    /// NotFound.
    Gone,
    /// It is there, with this uid.
    Is(String),
}

fn not_server(system: Option<&Object>, uid: &str) -> Option<String> {
    match system {
        Some(found) if found.uid() == uid => None,
        Some(found) => Some(format!("it has uid {}", found.uid())),
        None => Some("it is not there".to_owned()),
    }
}

fn not_alive(found: Option<&Object>, uid: &str) -> Option<String> {
    match found {
        None => Some("it is not there".to_owned()),
        Some(found) if found.uid() != uid => Some("another of that name is there".to_owned()),
        Some(found) if found.deleting() => Some("it is being deleted".to_owned()),
        Some(_) => None,
    }
}
