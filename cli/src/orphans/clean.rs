//! Deleting, each object by itself and only under the proofs of its plan, asked for right before.

use popcell_api::{annotations, kind::Kind};
use popcell_client::{LiveReads, ProjectAnswer, prove};
use popcell_core::{
    object::{Fields as _, Object},
    plan::{Action, Delete, Patch, Plane, Target},
};

use super::read::Planes;
use crate::planes::{Answer, PlaneError, no_server};

/// What became of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The server took the delete.
    Deleted,
    /// It was noted that the project is gone: the time of grace begins.
    Noted,
    /// Left alone; the text says why.
    Left(String),
}

impl Planes {
    /// Carries one action out.
    pub(super) async fn carry_out(&self, action: &Action) -> Result<Outcome, PlaneError> {
        match action {
            Action::Delete(delete) => self.delete(delete).await,
            Action::Patch(patch) => self.note(patch).await,
            Action::Create { .. } => Ok(Outcome::Left("this command creates nothing".to_owned())),
        }
    }

    async fn delete(&self, delete: &Delete) -> Result<Outcome, PlaneError> {
        for proof in &delete.proofs {
            if let Some(unproven) = prove(self, proof).await? {
                return Ok(Outcome::Left(unproven.to_string()));
            }
        }
        let target = &delete.target;
        let (resource, namespace) = (target.kind.resource(), target.namespace.as_deref());
        let answer = self.hub.delete(&resource, namespace, &target.name, &delete.on).await?;
        Ok(match answer {
            Answer::Done | Answer::Gone => Outcome::Deleted,
            Answer::Changed(message) => Outcome::Left(format!("it has changed: {message}")),
            Answer::Refused { code, message } => Outcome::Left(format!("refused ({code}): {message}")),
        })
    }

    async fn note(&self, patch: &Patch) -> Result<Outcome, PlaneError> {
        let target = &patch.target;
        let (resource, namespace) = (target.kind.resource(), target.namespace.as_deref());
        let body = kube::api::Patch::Json(patch.patch.clone());
        Ok(match self.hub.patch(&resource, namespace, &target.name, &body).await? {
            Answer::Done => Outcome::Noted,
            Answer::Gone => Outcome::Left("it is gone".to_owned()),
            Answer::Changed(message) | Answer::Refused { message, .. } => {
                Outcome::Left(format!("{} was not noted: {message}", annotations::PROJECT_GONE_SINCE))
            }
        })
    }
}

impl LiveReads for Planes {
    type Error = PlaneError;

    async fn get(&self, target: &Target) -> Result<Option<Object>, PlaneError> {
        let server = self.of(&target.plane)?;
        let namespace = target.namespace.as_deref();
        server.get(&target.kind.resource(), namespace, &target.name).await
    }

    async fn count(&self, plane: &Plane, kind: Kind, namespace: &str, selector: &str) -> Result<usize, PlaneError> {
        let server = self.of(plane)?;
        let left = server.metadata(&kind.resource(), Some(namespace), selector).await?;
        Ok(left.count())
    }

    async fn project(&self, id: &str) -> Result<ProjectAnswer, PlaneError> {
        let found = self.discovered(id).await?;
        Ok(found.map_or(ProjectAnswer::Gone, |found| ProjectAnswer::Is(found.uid().to_owned())))
    }

    async fn removed_cells(&self) -> Result<Option<Object>, PlaneError> {
        Err(no_server(
            &Plane::Hub,
            "this command does not read which cells were removed",
        ))
    }
}
