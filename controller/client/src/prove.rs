//! Which answers say that an object is not there, and whether live answers confirm what a delete depends on, asked right before it
//! is sent (docs/decisions/22-proofs-and-deletion-guard.md).

use std::fmt;

use kube::core::Status;
use popcell_api::kind::{CLUSTER, Kind, WORKLOAD_DEPLOYMENT};
use popcell_core::object::{Fields, Listed, Object};
use popcell_core::plan::{NAMESPACE, Plane, Proof, Target};
use popcell_core::{identity, removed_cells};
use serde_json::Value;

/// Reads of the servers themselves, never of a cache. An error means that a server did not answer, which proves nothing.
pub trait LiveReads: Sync {
    /// What a read met instead of an answer.
    type Error: Send;

    /// An object as it is now; `None` = NotFound for this very object (see [`crate::absent`]).
    fn get(&self, target: &Target) -> impl Future<Output = Result<Option<Object>, Self::Error>> + Send;

    /// How many objects of a kind a namespace has by a label selector.
    fn count(
        &self,
        plane: &Plane,
        kind: Kind,
        namespace: &str,
        selector: &str,
    ) -> impl Future<Output = Result<usize, Self::Error>> + Send;

    /// All objects of a kind in a namespace, whole.
    fn list(
        &self,
        plane: &Plane,
        kind: Kind,
        namespace: &str,
    ) -> impl Future<Output = Result<Listed, Self::Error>> + Send;

    /// What the discovery server says of a project.
    fn project(&self, id: &str) -> impl Future<Output = Result<ProjectAnswer, Self::Error>> + Send;

    /// The durable record of the cells that were declared gone; `None` while there is none.
    fn removed_cells(&self) -> impl Future<Output = Result<Option<Object>, Self::Error>> + Send;
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

/// What was to be proven, and what is there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproven {
    /// The proof.
    pub proof: Box<Proof>,
    /// What speaks against it.
    pub found: String,
}

impl Unproven {
    /// A proof that does not hold because of what was found.
    pub fn new(proof: &Proof, found: impl Into<String>) -> Self {
        Self {
            proof: Box::new(proof.clone()),
            found: found.into(),
        }
    }
}

/// Asks the servers. `Some` says what speaks against the proof, and then its delete must not be sent; so it is for an error.
///
/// # Errors
/// A server did not answer.
pub async fn prove<L: LiveReads>(live: &L, proof: &Proof) -> Result<Option<Unproven>, L::Error> {
    Ok(against(live, proof).await?.map(|found| Unproven::new(proof, found)))
}

async fn against<L: LiveReads>(live: &L, proof: &Proof) -> Result<Option<String>, L::Error> {
    let unless = |holds: bool, found: &str| (!holds).then(|| found.to_owned());
    Ok(match proof {
        Proof::Gone { source, uid } => {
            let found = live.get(source).await?;
            unless(Proof::is_gone(found.as_ref(), uid.as_deref()), "it is there")
        }
        Proof::Lives { source, uid } => not_alive(live.get(source).await?.as_ref(), uid),
        Proof::NoneLeft {
            plane,
            kind,
            namespace,
            selector,
        } => {
            let left = live.count(plane, *kind, namespace, selector).await?;
            (left > 0).then(|| format!("{left} are"))
        }
        Proof::NotNamed { namespace, reference } => {
            let left = live.list(&Plane::Hub, WORKLOAD_DEPLOYMENT, namespace).await?;
            let holds = Proof::is_not_named(&left.objects, left.unreadable.len(), reference);
            unless(holds, "one does or cannot be read")
        }
        Proof::SourceGone { cluster, id } => source_not_gone(live, cluster, id).await?,
        Proof::NotServed { cluster, deployment } => {
            let cluster = live.get(&Target::cluster(&Plane::Hub, CLUSTER, cluster)).await?;
            let deployment = live.get(deployment).await?;
            unless(Proof::is_not_served(cluster.as_ref(), deployment.as_ref()), "it may")
        }
        Proof::Server { project, uid } => {
            let plane = Plane::Project(project.clone());
            let system = Target::cluster(&plane, NAMESPACE, identity::SYSTEM_NAMESPACE);
            not_server(live.get(&system).await?.as_ref(), uid)
        }
        Proof::ProjectGone { project, uid } => match live.project(project).await? {
            ProjectAnswer::Unasked => Some("no server knows which projects there are".to_owned()),
            ProjectAnswer::Gone => None,
            ProjectAnswer::Is(found) => unless(found != *uid, "it is there"),
        },
    })
}

async fn source_not_gone<L: LiveReads>(live: &L, cluster: &str, id: &str) -> Result<Option<String>, L::Error> {
    let target = Target::cluster(&Plane::Hub, CLUSTER, cluster);
    let Some(found) = live.get(&target).await? else {
        return Ok(None);
    };
    let stored = found.text("/spec/id").unwrap_or_default();
    if !stored.is_empty() && stored != id {
        return Ok(None);
    }
    let removed = live.removed_cells().await?;
    let source = removed_cells::Source { name: cluster, id };
    let is_removed = removed
        .as_ref()
        .is_some_and(|record| removed_cells::is_removed(record, source));
    Ok((!is_removed).then(|| "it is there and not recorded as removed".to_owned()))
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

impl fmt::Display for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        match self.proof.as_ref() {
            Proof::Gone { source, .. } => write!(f, "{source} should be gone, but {found}"),
            Proof::Lives { source, .. } => write!(f, "{source} should live, but {found}"),
            Proof::NoneLeft {
                plane, kind, namespace, ..
            } => write!(
                f,
                "no {} should be left in {namespace} of the {plane}, but {found}",
                kind.kind
            ),
            Proof::NotNamed { namespace, reference } => write!(
                f,
                "no WorkloadDeployment in {namespace} of the hub should name {} {}, but {found}",
                reference.kind.kind, reference.name
            ),
            Proof::SourceGone { cluster, .. } => write!(f, "Cluster {cluster} should be gone, but {found}"),
            Proof::NotServed { cluster, deployment } => {
                write!(
                    f,
                    "Cluster {cluster} should not serve the city of {deployment}, but {found}"
                )
            }
            Proof::ProjectGone { project, .. } => write!(f, "project {project} should be gone, but {found}"),
            Proof::Server { project, uid } => write!(
                f,
                "the API server of project {project} should be the one whose kube-system has uid {uid}, but {found}: correct \
                 its kubeconfig; if the project has moved to another server, see \"orphans\" in docs/operations.md"
            ),
        }
    }
}

/// Plural and name of the object that an API server says is not there.
///
/// Any other 404 says nothing about an object: that of a proxy, of a path that is not served, of a namespace. kube makes a
/// Status of whatever body it gets, with another reason.
pub fn absent(status: &Status) -> Option<(&str, &str)> {
    let details = status.details.as_ref().filter(|_| status.reason == "NotFound")?;
    Some((&details.kind, &details.name))
}

/// Whether the resources of a group and version have a kind. An answer that is no list of resources may have any.
pub fn serves_resource(resources: &Value, kind: Kind) -> bool {
    let Some(resources) = resources.get("resources").and_then(Value::as_array) else {
        return true;
    };
    let named = |one: &Value| one.get("name").and_then(Value::as_str) == Some(kind.plural);
    resources.iter().any(named)
}

/// Whether the groups of a server have that of a kind, in its version. An answer that is no list of groups may have any.
pub fn serves_group(groups: &Value, kind: Kind) -> bool {
    let Some(groups) = groups.get("groups").and_then(Value::as_array) else {
        return true;
    };
    groups.iter().any(|group| {
        let versions = group.get("versions").and_then(Value::as_array);
        let is_version = |one: &Value| one.get("version").and_then(Value::as_str) == Some(kind.version);
        group.get("name").and_then(Value::as_str) == Some(kind.group)
            && versions.is_some_and(|all| all.iter().any(is_version))
    })
}
