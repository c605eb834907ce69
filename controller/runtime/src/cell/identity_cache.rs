//! What the hub said when it was asked: whether this is the cell that it says it is, whose its namespaces are, and which
//! WorkloadDeployments live there. None of it is watched.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use popcell_api::kind::{CLUSTER, WORKLOAD_DEPLOYMENT};
use popcell_api::names::REMOVED_CELLS;
use popcell_core::identity;
use popcell_core::object::{Fields, Object};
use popcell_core::observed::Observed;
use popcell_core::plan::{CONFIG_MAP, NAMESPACE, Plan, Plane, Target};
use popcell_core::remote::cell::{Identity, identify};
use tokio::time::Instant;
use tracing::{debug, error, info};

use super::Cell;
use crate::apply::{Applier, ApplyError};
use crate::sync::lock;

/// How long a hub that knows another cell by this name is believed before it is asked again.
const MISMATCH_AGAIN: Duration = Duration::from_secs(15);

/// What was said, and when.
#[derive(Debug, Default)]
pub struct IdentityCache {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    identity: Option<(Identity, Instant)>,
    /// See [`IdentityCache::doubt_identity`].
    doubted: bool,
    /// `None`: it was not there.
    namespaces: BTreeMap<String, Option<Arc<Object>>>,
    /// Whether the one of a uid was there.
    deployments: BTreeMap<String, bool>,
    /// What was logged last.
    reported: Option<Identity>,
    /// See [`IdentityCache::set_rival`].
    rival: Option<String>,
}

impl IdentityCache {
    /// The hub was relisted: everything is to be asked for again.
    pub fn forget(&self) {
        let mut known = self.known();
        *known = Known {
            reported: known.reported.take(),
            rival: known.rival.take(),
            ..Known::default()
        };
    }

    /// Whether this is the cell that it says it is, and no other process is.
    pub fn identity(&self) -> Identity {
        let rival = self.known().rival.clone();
        rival.map_or_else(|| self.answered(), Identity::Mismatch)
    }

    /// A plan whose key is looked at again while this is not the cell that it says it is.
    pub fn until_matched(&self, mut plan: Plan) -> Plan {
        if matches!(self.identity(), Identity::Mismatch(_)) {
            plan.requeue_within(MISMATCH_AGAIN);
        }
        plan
    }

    /// What the hub has answered.
    pub(super) fn answered(&self) -> Identity {
        let known = self.known();
        let answered = known.identity.as_ref();
        answered.map_or(Identity::Unknown, |(identity, _)| identity.clone())
    }

    /// Another process is the same cell, as this says, or none is any more.
    pub(super) fn set_rival(&self, rival: Option<String>) {
        let mut known = self.known();
        if known.rival.is_some() != rival.is_some() {
            if let Some(why) = &rival {
                error!("nothing is written to other planes: {why}");
            } else {
                info!("no other process is this cell any more");
            }
        }
        known.rival = rival;
    }

    /// Asks the hub, unless it has answered.
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub async fn identify(&self, cell: &Cell, applier: &Applier) -> Result<(), ApplyError> {
        let is_asked = match &self.known().identity {
            Some((Identity::Matches, _)) => true,
            Some((_, at)) => at.elapsed() < MISMATCH_AGAIN,
            None => false,
        };
        if is_asked {
            return Ok(());
        }
        self.ask(cell, applier).await
    }

    /// What this cell had on another plane was deleted: by itself, by hand, or by the management plane, which counts the
    /// cell as removed. See [`IdentityCache::confirm`].
    pub fn doubt_identity(&self) {
        self.known().doubted = true;
    }

    /// Asks the hub again, before anything is made elsewhere, where there is reason to. A hub that is unreachable has
    /// said nothing.
    pub async fn confirm(&self, cell: &Cell, applier: &Applier) {
        if !self.known().doubted {
            return;
        }
        if let Err(error) = self.ask(cell, applier).await {
            debug!(%error, "the hub does not say whether this cell was removed");
        }
    }

    /// Asks the hub, whatever it has answered.
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub(super) async fn ask(&self, cell: &Cell, applier: &Applier) -> Result<(), ApplyError> {
        let Some(source) = cell.source() else { return Ok(()) };
        let identity = if cell.hub {
            let cluster = applier
                .read(&Target::cluster(&Plane::Hub, CLUSTER, source.name))
                .await?;
            let record = Target::namespaced(&Plane::Hub, CONFIG_MAP, &cell.namespace, REMOVED_CELLS);
            let record = applier.read(&record).await?;
            identify(
                source,
                Observed::Known(cluster.as_ref()),
                Observed::Known(record.as_ref()),
            )
        } else {
            // With quota but no hub there is no server to ask: the configured name is trusted.
            Identity::Matches
        };
        self.settle(identity);
        Ok(())
    }

    fn settle(&self, identity: Identity) {
        let mut known = self.known();
        if known.reported.as_ref() != Some(&identity) {
            match &identity {
                Identity::Matches => info!("the hub knows this cell"),
                Identity::Mismatch(why) => error!("nothing is written to other planes: {why}"),
                Identity::Unknown => {}
            }
            known.reported = Some(identity.clone());
        }
        known.identity = Some((identity, Instant::now()));
        known.doubted = false;
    }

    /// Reads a hub Namespace, unless it is known whose it is. Without labels it may get them: it is read again.
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub async fn read_namespace(&self, applier: &Applier, name: &str) -> Result<Option<Arc<Object>>, ApplyError> {
        let says_whose = |one: &Arc<Object>| identity::of_namespace(one).is_some();
        let known = self.namespace(name).known().flatten();
        if known.as_ref().is_some_and(says_whose) {
            return Ok(known);
        }
        let found = applier
            .read(&Target::cluster(&Plane::Hub, NAMESPACE, name))
            .await?
            .map(Arc::new);
        self.known().namespaces.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// A hub Namespace as it was when it was last read.
    pub fn namespace(&self, name: &str) -> Observed<Option<Arc<Object>>> {
        match self.known().namespaces.get(name) {
            Some(found) => Observed::Known(found.clone()),
            None => Observed::Unknown,
        }
    }

    /// A namespace of the cell is gone: its owner is not needed any more.
    pub fn forget_namespace(&self, name: &str) {
        self.known().namespaces.remove(name);
    }

    /// Whether the hub's WorkloadDeployment of this uid was there; unknown before it is read, and once that is doubted.
    pub fn lives(&self, uid: &str) -> Observed<bool> {
        let known = self.known().deployments.get(uid).copied();
        known.map_or(Observed::Unknown, Observed::Known)
    }

    /// Reads whether it lives, for [`IdentityCache::lives`].
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub async fn read_deployment(
        &self,
        applier: &Applier,
        namespace: &str,
        (name, uid): (&str, &str),
    ) -> Result<(), ApplyError> {
        let target = Target::namespaced(&Plane::Hub, WORKLOAD_DEPLOYMENT, namespace, name);
        let lives = applier.read(&target).await?.is_some_and(|found| found.uid() == uid);
        self.known().deployments.insert(uid.to_owned(), lives);
        Ok(())
    }

    /// Something about a WorkloadDeployment of the cell may mean that the hub's is gone.
    pub fn doubt(&self, uid: &str) {
        self.known().deployments.remove(uid);
    }

    // Each access is one step: there is no half-done state that a panic could leave.
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }
}

#[cfg(test)]
mod tests;
