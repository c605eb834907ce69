//! What a live server must confirm right before a delete is sent
//! (docs/decisions/22-proofs-and-deletion-guard.md), asked through the circuit breakers and under the deadlines of all requests.

use popcell_api::kind::Kind;
use popcell_api::names::{ABSENT_CELLS, REMOVED_CELLS};
use popcell_client::{LiveReads, ProjectAnswer, Unproven, prove};
use popcell_core::object::Object;
use popcell_core::plan::{CONFIG_MAP, Plane, Proof, Target};

use super::Applier;
use crate::refusal::ApplyError;

impl Applier {
    pub(super) async fn prove(&self, proof: &Proof) -> Result<(), ApplyError> {
        let unproven = match self.not_listed(proof) {
            Some(unproven) => Some(unproven),
            None => prove(self, proof).await?,
        };
        unproven.map_or(Ok(()), |unproven| Err(ApplyError::Unproven(unproven)))
    }

    /// Where the source's kind is watched, its store must be fully listed since the last reconnect.
    fn not_listed(&self, proof: &Proof) -> Option<Unproven> {
        let Proof::Gone { source, .. } = proof else { return None };
        let engaged = self.planes.get(&source.plane)?;
        let store = engaged.store(source.kind)?;
        (!store.is_known()).then(|| Unproven::new(proof, "its store is not fully listed"))
    }

    /// The durable record of the cells that `popcell cell remove` declared gone, read live; `None` while there is none.
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub async fn removed_cells(&self) -> Result<Option<Object>, ApplyError> {
        let namespace = &self.options.namespace;
        self.read(&Target::namespaced(&Plane::Hub, CONFIG_MAP, namespace, REMOVED_CELLS))
            .await
    }

    /// The notes of cells that are absent, read live; `None` while there are none.
    ///
    /// # Errors
    /// The hub is unreachable, or refuses.
    pub async fn absent_cells(&self) -> Result<Option<Object>, ApplyError> {
        let namespace = &self.options.namespace;
        self.read(&Target::namespaced(&Plane::Hub, CONFIG_MAP, namespace, ABSENT_CELLS))
            .await
    }

    /// The program's namespace, which is that of its records on the hub.
    pub fn namespace(&self) -> &str {
        &self.options.namespace
    }
}

impl LiveReads for Applier {
    type Error = ApplyError;

    async fn get(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        self.read(target).await
    }

    async fn count(&self, plane: &Plane, kind: Kind, namespace: &str, selector: &str) -> Result<usize, ApplyError> {
        Ok(self.list(plane, kind, Some(namespace), selector).await?.count())
    }

    async fn project(&self, id: &str) -> Result<ProjectAnswer, ApplyError> {
        Self::project(self, id).await
    }

    async fn removed_cells(&self) -> Result<Option<Object>, ApplyError> {
        Self::removed_cells(self).await
    }
}
