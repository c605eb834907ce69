//! The servers: the hub's objects of ours, what owns them, and deleting them, each by itself and only under the proofs of
//! its plan. Every answer is live.

use std::collections::{BTreeMap, BTreeSet};

use futures::{StreamExt as _, stream};
use popcell_api::{
    annotations,
    kind::{self, Kind},
    labels,
    names::SINGLE,
};
use popcell_client::{LiveReads, ProjectAnswer, prove};
use popcell_core::{
    conditions::says,
    identity::{self, SYSTEM_NAMESPACE},
    object::{Fields as _, Listed, Object},
    plan::{Action, Delete, NAMESPACE, Patch, Plane, Target},
};

use super::{
    census::Census,
    subject::{Project, Subject},
};
use crate::{
    args::planes::Orphans,
    exit::Failure,
    planes::{Answer, PlaneError, Projects, Server, Write, no_server},
};

/// Projects that are asked at once.
const AT_ONCE: usize = 8;
/// The condition without which a project's own answers count for nothing.
const READY: &str = "Ready";

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

/// All servers.
pub(super) struct Planes {
    pub(super) hub: Server,
    projects: Projects,
    /// Uid of its kube-system, which no other server has.
    identity: String,
    /// Uids of the Projects that there are, and whether they are ready; empty in mode `single`.
    listed: BTreeMap<String, (String, bool)>,
    /// Ids of those that cannot be read, which are there all the same.
    unreadable: BTreeSet<String>,
}

impl Planes {
    /// Opens the servers, and lists the Projects: a server that does not serve them cannot say that one is gone.
    pub(super) async fn open(args: &Orphans) -> Result<Self, Failure> {
        let hub = Server::open(&args.cluster).await?;
        let projects = Projects::open(&args.projects).await?;
        let identity = identity_of(&hub).await?;
        let (mut listed, mut unreadable) = (BTreeMap::new(), BTreeSet::new());
        match &projects {
            // One that is unreachable now is asked again before anything is made of its answers.
            Projects::Single(project) if identity_of(project).await.is_ok_and(|uid| uid == identity) => {
                return Err(Failure::Usage(is_the_hub(project)));
            }
            Projects::Single(_) => {}
            Projects::Milo { discovery, .. } => {
                let found = discovery.at(kind::PROJECT, None).list("").await?;
                unreadable.extend(found.unreadable.into_iter().map(|one| one.name));
                for one in found.objects {
                    let ready = says(&one, READY, "True");
                    listed.insert(one.name().to_owned(), (one.uid().to_owned(), ready));
                }
            }
        }
        Ok(Self {
            hub,
            projects,
            identity,
            listed,
            unreadable,
        })
    }

    /// All namespaces of ours on the hub.
    pub(super) async fn namespaces(&self) -> Result<Listed, PlaneError> {
        let marker = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_POPCELL);
        self.hub.at(NAMESPACE, None).metadata(&marker).await
    }

    /// How many of the projects that they name discovery knows, and what it is called; `None` in mode `single`.
    pub(super) fn census(&self, namespaces: &[Object]) -> Option<(Census, &str)> {
        let Projects::Milo { discovery, .. } = &self.projects else {
            return None;
        };
        let is_readable =
            |one: &&Object| identity::of_namespace(one).is_none_or(|(id, _)| !self.unreadable.contains(id));
        let census = Census::of(namespaces.iter().filter(is_readable), |id| {
            self.listed.get(id).map(|(uid, _)| uid.clone())
        });
        Some((census, discovery.name()))
    }

    /// Everything of ours in these namespaces, or in one of them.
    pub(super) async fn look(&self, mut namespaces: Vec<Object>, only: Option<&str>) -> Result<Vec<Subject>, Failure> {
        namespaces.retain(|one| only.is_none_or(|only| only == one.name()));
        let mut unreadable = BTreeMap::new();
        let mut deployments = self.within(kind::WORKLOAD_DEPLOYMENT, only, &mut unreadable).await?;
        let mut copies = self.within(kind::INSTANCE, only, &mut unreadable).await?;
        let mut policies = self.within(kind::PROPAGATION_POLICY, only, &mut unreadable).await?;

        let mut by_project: BTreeMap<String, Vec<Object>> = BTreeMap::new();
        for one in namespaces {
            let id = identity::of_namespace(&one).map(|(id, _)| id.to_owned());
            by_project.entry(id.unwrap_or_default()).or_default().push(one);
        }
        let asked = stream::iter(by_project)
            .map(|(id, namespaces)| async move { self.ask(&id, namespaces).await })
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        let mut subjects: Vec<Subject> = asked
            .into_iter()
            .flatten()
            .map(|(namespace, project)| {
                let take = |all: &mut BTreeMap<String, Vec<Object>>| all.remove(namespace.name()).unwrap_or_default();
                Subject {
                    deployments: take(&mut deployments),
                    copies: take(&mut copies),
                    policies: take(&mut policies),
                    unreadable: unreadable.remove(namespace.name()).unwrap_or_default(),
                    namespace,
                    project,
                }
            })
            .collect();
        subjects.sort_by(|left, right| left.namespace.name().cmp(right.namespace.name()));
        Ok(subjects)
    }

    /// By namespace; what cannot be read goes to the others of its namespace.
    async fn within(
        &self,
        kind: Kind,
        only: Option<&str>,
        unreadable: &mut BTreeMap<String, Vec<(Target, String)>>,
    ) -> Result<BTreeMap<String, Vec<Object>>, PlaneError> {
        let mut by_namespace: BTreeMap<String, Vec<Object>> = BTreeMap::new();
        let found = self.hub.at(kind, only).metadata("").await?;
        for one in found.objects {
            by_namespace.entry(one.namespace().to_owned()).or_default().push(one);
        }
        for one in found.unreadable {
            let target = Target::namespaced(&Plane::Hub, kind, &one.namespace, &one.name);
            unreadable.entry(one.namespace).or_default().push((target, one.why));
        }
        Ok(by_namespace)
    }

    /// What a project says of its hub namespaces. One that is unreachable is asked once.
    async fn ask(&self, id: &str, namespaces: Vec<Object>) -> Vec<(Object, Project)> {
        let mut away = None;
        let mut answers = Vec::new();
        for namespace in namespaces {
            let answer = match &away {
                Some(reason) => Project::Unknown(String::clone(reason)),
                None => self.project(id, &namespace).await.unwrap_or_else(|error| {
                    let reason = format!("project not reachable: {error}");
                    away = Some(reason.clone());
                    Project::Unknown(reason)
                }),
            };
            answers.push((namespace, answer));
        }
        answers
    }

    async fn project(&self, id: &str, hub_namespace: &Object) -> Result<Project, PlaneError> {
        let Some((_, name)) = identity::of_namespace(hub_namespace) else {
            return Ok(Project::Unknown("its labels name no project and namespace".to_owned()));
        };
        let (server, uid, server_uid) = match &self.projects {
            Projects::Single(server) if id == SINGLE => {
                let found = identity_of(server).await?;
                if found == self.identity {
                    return Ok(Project::Unknown(is_the_hub(server)));
                }
                if found.is_empty() {
                    return Ok(Project::Unknown(format!(
                        "{} has no namespace {SYSTEM_NAMESPACE}, which says which server it is",
                        server.name()
                    )));
                }
                (server.clone(), None, Some(found))
            }
            Projects::Single(_) => {
                return Ok(Project::Unknown(format!(
                    "it is of project {id}, which mode single does not know"
                )));
            }
            Projects::Milo { .. } => {
                let Some((uid, ready)) = self.living(id).await? else {
                    return Ok(Project::Gone);
                };
                let of_project = identity::Project {
                    id,
                    uid: Some(&uid),
                    server: None,
                };
                if !identity::same_project(hub_namespace, of_project) {
                    return Ok(Project::Gone);
                }
                if !ready {
                    return Ok(Project::Unknown("the project is not Ready".to_owned()));
                }
                (self.projects.of(id)?, Some(uid), None)
            }
        };
        // The list first: a server that does not serve the kind, or a gateway that answers 404 to everything, proves nothing.
        let deployments = server.at(kind::WORKLOAD_DEPLOYMENT, Some(name)).metadata("").await?;
        // Any of them may stand behind what is on the hub.
        if let Some(one) = deployments.unreadable.first() {
            return Ok(Project::Unknown(format!(
                "WorkloadDeployment {}/{} of the project cannot be read: {}",
                one.namespace, one.name, one.why
            )));
        }
        let namespace = server.at(NAMESPACE, None).get(name).await?;
        Ok(Project::Engaged {
            uid,
            server: server_uid,
            namespace: namespace.map(Box::new),
            deployments: deployments.objects,
        })
    }

    /// Uid of the Project and whether it is ready; `None` where discovery answers NotFound.
    async fn living(&self, id: &str) -> Result<Option<(String, bool)>, PlaneError> {
        if let Some(listed) = self.listed.get(id) {
            return Ok(Some(listed.clone()));
        }
        let Some(found) = self.discovered(id).await? else {
            return Ok(None);
        };
        Ok(Some((found.uid().to_owned(), says(&found, READY, "True"))))
    }

    /// The Project as discovery has it now. In mode `single` no server can state that one is gone.
    async fn discovered(&self, id: &str) -> Result<Option<Object>, PlaneError> {
        match &self.projects {
            Projects::Milo { discovery, .. } => discovery.at(kind::PROJECT, None).get(id).await,
            Projects::Single(project) => {
                let action = format!("ask whether project {id} is there");
                Err(project.failure(&action, "in mode single no server knows"))
            }
        }
    }

    /// The server of a plane.
    fn of(&self, plane: &Plane) -> Result<Server, PlaneError> {
        match (plane, &self.projects) {
            (Plane::Hub, _) => Ok(self.hub.clone()),
            (Plane::Project(id), projects) => projects.of(id),
            (Plane::Cell, _) => Err(no_server(plane, "this command talks to no cell")),
            (Plane::Discovery, _) => Err(no_server(plane, "nothing but Projects is looked for there")),
        }
    }

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
        let answer = self.send(&delete.target, Write::Delete(&delete.on)).await?;
        Ok(match answer {
            Answer::Done | Answer::Gone => Outcome::Deleted,
            Answer::Changed(message) => Outcome::Left(format!("it has changed: {message}")),
            Answer::Refused { code, message } => Outcome::Left(format!("refused ({code}): {message}")),
        })
    }

    async fn note(&self, patch: &Patch) -> Result<Outcome, PlaneError> {
        let body = kube::api::Patch::Json(patch.patch.clone());
        let answer = self.send(&patch.target, Write::Patch(&body)).await?;
        Ok(match answer {
            Answer::Done => Outcome::Noted,
            Answer::Gone => Outcome::Left("it is gone".to_owned()),
            Answer::Changed(message) | Answer::Refused { message, .. } => {
                Outcome::Left(format!("{} was not noted: {message}", annotations::PROJECT_GONE_SINCE))
            }
        })
    }

    async fn send(&self, target: &Target, write: Write<'_>) -> Result<Answer, PlaneError> {
        let objects = self.hub.at(target.kind, target.namespace.as_deref());
        objects.write(&target.name, write).await
    }
}

impl LiveReads for Planes {
    type Error = PlaneError;

    async fn get(&self, target: &Target) -> Result<Option<Object>, PlaneError> {
        let server = self.of(&target.plane)?;
        let namespace = target.namespace.as_deref();
        server.at(target.kind, namespace).get(&target.name).await
    }

    async fn count(&self, plane: &Plane, kind: Kind, namespace: &str, selector: &str) -> Result<usize, PlaneError> {
        let server = self.of(plane)?;
        let left = server.at(kind, Some(namespace)).metadata(selector).await?;
        Ok(left.count())
    }

    async fn list(&self, plane: &Plane, kind: Kind, namespace: &str) -> Result<Listed, PlaneError> {
        self.of(plane)?.at(kind, Some(namespace)).list("").await
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

/// Tells servers apart, whatever they are called.
async fn identity_of(server: &Server) -> Result<String, PlaneError> {
    let system = server.at(NAMESPACE, None).get(SYSTEM_NAMESPACE).await?;
    Ok(system.map(|one| one.uid().to_owned()).unwrap_or_default())
}

/// A kubeconfig that leads to the hub would make an orphan of everything.
fn is_the_hub(project: &Server) -> String {
    let name = project.name();
    format!("{name} is the hub itself: give the kubeconfig of the project in --project-kubeconfig")
}
