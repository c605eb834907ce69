//! Deleting, each object by itself and only under the proofs of its plan, asked for right before.

use popcell_api::annotations;
use popcell_core::{
    object::{Fields as _, Object},
    plan::{Action, Delete, Patch, Plane, Proof, Target},
};

use super::look::{Planes, identity_of};
use crate::planes::{Answer, PlaneError};

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
            if let Some(against) = self.against(proof).await? {
                return Ok(Outcome::Left(against));
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

    /// What a live server says against a proof; `None` = it holds.
    async fn against(&self, proof: &Proof) -> Result<Option<String>, PlaneError> {
        match proof {
            Proof::Gone { source, uid } => {
                let found = self.read(source).await?;
                let gone = Proof::is_gone(found.as_ref(), uid.as_deref());
                Ok((!gone).then(|| format!("{source} is there after all")))
            }
            Proof::NoneLeft {
                plane,
                kind,
                namespace,
                selector,
            } => {
                let server = self.of(plane)?;
                let left = server.metadata(&kind.resource(), Some(namespace), selector).await?;
                Ok((left.count() > 0).then(|| format!("{} {} left in it", left.count(), kind.plural)))
            }
            Proof::Server { project, uid } => {
                let found = identity_of(&self.of(&Plane::Project(project.clone()))?).await?;
                let other = found != *uid;
                Ok(other
                    .then(|| format!("the project's server is another: its kube-system has uid {found}, not {uid}")))
            }
            Proof::ProjectGone { project, uid } => {
                let found = self.discovered(project).await?;
                let there = found.is_some_and(|found| found.uid() == uid);
                Ok(there.then(|| format!("project {project} is there after all")))
            }
            Proof::Lives { .. } | Proof::SourceGone { .. } | Proof::NotServed { .. } => {
                Ok(Some("this command does not prove such a thing".to_owned()))
            }
        }
    }

    async fn read(&self, target: &Target) -> Result<Option<Object>, PlaneError> {
        let server = self.of(&target.plane)?;
        let namespace = target.namespace.as_deref();
        server.get(&target.kind.resource(), namespace, &target.name).await
    }
}
