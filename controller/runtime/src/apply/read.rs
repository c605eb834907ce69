//! Live reads, and what they must confirm right before a delete is sent
//! (docs/decisions/22-proofs-and-deletion-guard.md): through the circuit breakers and under the deadlines of all requests.

use http::Request;
use popcell_api::kind::{Kind, PROJECT, Scope};
use popcell_api::names::{ABSENT_CELLS, REMOVED_CELLS};
use popcell_client::{LiveReads, Unproven, prove, serves_group, serves_resource};
use popcell_core::object::{Fields, List, Listed, Object};
use popcell_core::plan::{CONFIG_MAP, Plane, Proof, Target};
use serde_json::Value;
use tracing::debug;

use super::answer::Text;
use super::server::Server;
use super::{Applier, ProjectAnswer, request};
use crate::memory::Access;
use crate::refusal::{ApplyError, Refusal};

/// What tells contents of requests apart, where there is only one.
const SAME: u64 = 0;

/// What a server answers with who asks.
const SELF_SUBJECT_REVIEW: Kind = Kind::of(
    "authentication.k8s.io",
    "v1",
    "SelfSubjectReview",
    "selfsubjectreviews",
    Scope::Cluster,
);

impl Applier {
    /// An object as it is now; `None` = NotFound.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn read(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        self.get(&self.server(&target.plane)?, target, request::get(target))
            .await
    }

    /// The same without what the object holds: that is not sent.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn read_metadata(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        self.get(&self.server(&target.plane)?, target, request::get_metadata(target))
            .await
    }

    /// An object as it is now, also for a replica that does not lead: this is not for a reconcile.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn look(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        let mut server = self.server(&target.plane)?;
        server.is_for_all = true;
        self.get(&server, target, request::get(target)).await
    }

    async fn get(
        &self,
        server: &Server,
        target: &Target,
        request: Result<Request<Vec<u8>>, Refusal>,
    ) -> Result<Option<Object>, ApplyError> {
        let asked = (target, Access::Get);
        match self.attempt(server, asked, SAME, request).await {
            Ok(text) => match Object::read(text.get()) {
                Ok(object) => Ok(Some(object)),
                Err(error) => Err(unreadable(asked, error.to_string())),
            },
            Err(error) if error.is_absence() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Objects of a kind by label, read live. `namespace` `None` = all. One that cannot be read is its own trouble only, and
    /// is there.
    ///
    /// # Errors
    /// The server is unreachable, or refuses; [`ApplyError::is_not_found`] where it does not serve the kind.
    pub async fn list(
        &self,
        plane: &Plane,
        kind: Kind,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Listed, ApplyError> {
        let target = Target {
            plane: plane.clone(),
            kind,
            namespace: namespace.map(str::to_owned),
            name: String::new(),
        };
        let (server, asked) = (self.server(plane)?, (&target, Access::List));
        let request = request::list(&target, selector);
        let list = self.attempt(&server, asked, SAME, request).await?;
        listed(&list, asked)
    }

    /// The objects of a kind in a namespace, read live without anything but their metadata. It waits for nothing that the
    /// namespace refused before: who asks may have been given the right a moment ago.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn list_metadata(&self, plane: &Plane, kind: Kind, namespace: &str) -> Result<Listed, ApplyError> {
        let target = Target::namespaced(plane, kind, namespace, "");
        let (server, asked) = (self.server(plane)?, (&target, Access::List));
        let request = request::list_metadata(&target);
        listed(&self.send(&server, &target, Access::List, request).await?, asked)
    }

    /// The user that a server takes this process for.
    ///
    /// # Errors
    /// The server is unreachable, or refuses, or does not say.
    pub async fn user(&self, plane: &Plane) -> Result<String, ApplyError> {
        let target = Target::cluster(plane, SELF_SUBJECT_REVIEW, "");
        let (server, asked) = (self.server(plane)?, (&target, Access::Get));
        let answer = self
            .send(&server, &target, Access::Get, request::self_subject_review())
            .await?;
        let answer: Value = serde_json::from_str(answer.get()).unwrap_or_default();
        let user = answer.pointer("/status/userInfo/username").and_then(Value::as_str);
        user.map(str::to_owned)
            .ok_or_else(|| unreadable(asked, "it names no user".to_owned()))
    }

    /// Whether a plane serves a kind of a named group, after a request for it was answered 404: an API server says that it
    /// does not. A gateway that has no such project answers so too, and says nothing about claims in it.
    ///
    /// # Errors
    /// The server is unreachable, or refuses, or is none.
    pub async fn serves(&self, plane: &Plane, kind: Kind) -> Result<bool, ApplyError> {
        match self.discover(plane, kind, Some((kind.group, kind.version))).await {
            Ok(served) => Ok(serves_resource(&served, kind)),
            Err(error) if error.is_not_found() => {
                let groups = self.discover(plane, kind, None).await?;
                if serves_group(&groups, kind) {
                    return Err(error);
                }
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    async fn discover(&self, plane: &Plane, kind: Kind, of: Option<(&str, &str)>) -> Result<Value, ApplyError> {
        let target = Target::cluster(plane, kind, "");
        let (server, asked) = (self.server(plane)?, (&target, Access::Discover));
        let answer = self
            .send(&server, &target, Access::Discover, request::discover(of))
            .await?;
        let unread = |_| unreadable(asked, "it is no answer to a discovery".to_owned());
        serde_json::from_str(answer.get()).map_err(unread)
    }

    /// Asks the discovery server, live, whether there is such a Project.
    ///
    /// # Errors
    /// The server is unreachable, or refuses.
    pub async fn project(&self, project: &str) -> Result<ProjectAnswer, ApplyError> {
        let Some((_, kind)) = &self.options.discovery else {
            return Ok(ProjectAnswer::Unasked);
        };
        let mut target = Target::cluster(&Plane::Project(project.to_owned()), PROJECT, project);
        target.kind = *kind;
        let server = self.server(&Plane::Discovery)?;
        let found = self.get(&server, &target, request::get(&target)).await?;
        Ok(found.map_or(ProjectAnswer::Gone, |found| ProjectAnswer::Is(found.uid().to_owned())))
    }

    /// Whether a proof holds now.
    ///
    /// # Errors
    /// It does not, or the server is unreachable, or refuses.
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

fn listed(list: &Text, asked: (&Target, Access)) -> Result<Listed, ApplyError> {
    let list: List = serde_json::from_str(list.get()).map_err(|_| unreadable(asked, "it is no list".to_owned()))?;
    let (listed, Target { plane, kind, .. }) = (Listed::from(list), asked.0);
    for one in &listed.unreadable {
        debug!(%plane, kind = kind.kind, namespace = one.namespace, name = one.name, why = one.why, "an object of a list cannot be read");
    }
    Ok(listed)
}

impl LiveReads for Applier {
    type Error = ApplyError;

    async fn get(&self, target: &Target) -> Result<Option<Object>, ApplyError> {
        self.read(target).await
    }

    async fn count(&self, plane: &Plane, kind: Kind, namespace: &str, selector: &str) -> Result<usize, ApplyError> {
        Ok(self.list(plane, kind, Some(namespace), selector).await?.count())
    }

    async fn list(&self, plane: &Plane, kind: Kind, namespace: &str) -> Result<Listed, ApplyError> {
        Self::list(self, plane, kind, Some(namespace), "").await
    }

    async fn project(&self, id: &str) -> Result<ProjectAnswer, ApplyError> {
        Self::project(self, id).await
    }

    async fn removed_cells(&self) -> Result<Option<Object>, ApplyError> {
        Self::removed_cells(self).await
    }
}

fn unreadable((target, access): (&Target, Access), why: String) -> ApplyError {
    ApplyError::of(target, access.verb(), Refusal::Unreadable(why))
}
