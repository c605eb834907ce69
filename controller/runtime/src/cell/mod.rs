//! What the reconcilers of a cell share beside the context: who the cell is, what planes that it does not watch have
//! answered, and which of its claims are refused.
//!
//! Invariants: nothing is written to another plane before the hub has agreed since it was last reached that this process is
//! the cell that it says it is (docs/decisions/05-cell-identity.md); what is remembered of the hub falls when it is listed
//! again.

mod claim_relist;
mod engage;
mod holder;
mod identity_cache;
mod names_in_use;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use popcell_api::kind::{INSTANCE, RESOURCE_CLAIM};
use popcell_api::labels;
use popcell_core::object::{Fields, Listed, Object};
use popcell_core::plan::{NAMESPACE, Plane};
use popcell_core::remote::claim::{ProjectNamespace, project_namespace};
use popcell_core::remote::projects;
use popcell_core::removed_cells::Source;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use claim_relist::ClaimRelists;
pub use engage::engage;
pub use identity_cache::IdentityCache;
pub use names_in_use::NamesInUse;
#[cfg(test)]
pub(crate) use names_in_use::run as watch_names;

use crate::apply::ApplyError;
use crate::config::Settings;
use crate::context::Context;
use crate::queue::Key;
use crate::sync::lock;

/// Name of the reconciler of Instances.
pub const INSTANCE_RECONCILER: &str = "instance";

/// Name of the reconciler of their claims.
pub const INSTANCE_CLAIM_RECONCILER: &str = "instance-claim";

/// How long a claim may stay pending before that is reported as "no budget": one that was just made is pending too.
const NO_BUDGET_GRACE: Duration = Duration::from_secs(5);

/// How long a read of the record of projects counts. Only this process writes it, unless a person deletes it.
const RECORD: Duration = Duration::from_secs(10);

/// Why the last write of a claim was refused: a reason of the condition, and what the server said.
pub type Refusal = (&'static str, String);

/// The cell that this process runs.
#[allow(clippy::struct_excessive_bools, reason = "each is a setting")]
#[derive(Debug, Default)]
pub struct Cell {
    /// Name of its Karmada Cluster.
    pub cluster: String,
    /// Whether there is a hub to write copies to.
    pub hub: bool,
    /// Whether claims are made.
    pub quota: bool,
    /// The one project, in single-cluster mode.
    pub single: Option<String>,
    /// Single-cluster mode: the management controllers run in this process too, and the cell is their project.
    pub is_project: bool,
    /// Whether Instances wait for networks.
    pub networking: bool,
    /// The program's namespace.
    pub namespace: String,
    /// See [`NO_BUDGET_GRACE`].
    pub no_budget_grace: Duration,
    /// What planes that are not watched said.
    pub identity_cache: IdentityCache,
    /// Something changed that decides which projects are engaged.
    changed: Notify,
    id: OnceLock<String>,
    /// Why claims of Instances were refused last, by namespace and name of the Instance.
    refusals: Mutex<BTreeMap<(String, String), Refusal>>,
    /// Projects that are written down as holding claims.
    recorded: Mutex<BTreeSet<String>>,
    /// The record of projects that hold claims as it was read last, and when.
    record: Mutex<Option<(Arc<Object>, Instant)>>,
    /// Projects whose claims are to be read again.
    pub claim_relists: ClaimRelists,
    /// Names of claims that others hold.
    pub names_in_use: NamesInUse,
    /// The server does not serve the kinds that Instances wait for.
    lacks_networks: AtomicBool,
}

impl Cell {
    /// As it is configured; `networking`: whether Instances wait for networks.
    pub fn new(settings: &Settings, networking: bool) -> Self {
        Self {
            networking,
            cluster: settings.cluster_name.clone(),
            hub: settings.hub.is_some(),
            quota: settings.quota.is_some(),
            single: settings.quota.as_ref().and_then(|quota| quota.project.clone()),
            is_project: settings.is_single_cluster(),
            namespace: settings.namespace.clone(),
            no_budget_grace: NO_BUDGET_GRACE,
            ..Self::default()
        }
    }

    /// Who it is; `None` until its kube-system namespace was read.
    pub fn source(&self) -> Option<Source<'_>> {
        let id = self.id.get()?;
        Some(Source {
            name: &self.cluster,
            id,
        })
    }

    /// Whose the Instances of a cell namespace are.
    pub fn project_namespace<'a>(&'a self, name: &'a str, namespace: Option<&'a Object>) -> ProjectNamespace<'a> {
        project_namespace(name, namespace, self.single.as_deref())
    }

    /// Takes in whether the server serves the kinds of networks; whether that is another than before.
    pub fn networks_are_served(&self, served: bool) -> bool {
        self.lacks_networks.swap(!served, Ordering::Relaxed) == served
    }

    /// Whether Instances wait for networks of kinds that are not served.
    pub fn lacks_networks(&self) -> bool {
        self.lacks_networks.load(Ordering::Relaxed)
    }

    /// The projects to engage may be others now.
    pub fn look_again(&self) {
        self.changed.notify_one();
    }

    /// The projects that are written down as holding claims, as they were read.
    pub fn set_recorded(&self, projects: BTreeSet<String>) {
        let mut recorded = lock(&self.recorded);
        if *recorded != projects {
            *recorded = projects;
            drop(recorded);
            self.look_again();
        }
    }

    fn recorded(&self) -> BTreeSet<String> {
        lock(&self.recorded).clone()
    }

    /// The record of projects that hold claims, where it was read lately and has this one.
    pub fn record_with(&self, project: &str) -> Option<Arc<Object>> {
        let record = lock(&self.record);
        let (record, _) = record.as_ref().filter(|(_, at)| at.elapsed() < RECORD)?;
        let mut recorded = projects::recorded(Some(record));
        recorded.any(|(one, _)| one == project).then(|| Arc::clone(record))
    }

    /// The record was read.
    pub fn keep_record(&self, record: Option<Arc<Object>>) {
        *lock(&self.record) = record.map(|record| (record, Instant::now()));
    }

    /// Projects may be taken out of the record: it is read again before a claim is made.
    pub fn forget_record(&self) {
        *lock(&self.record) = None;
    }

    /// The project that a cell namespace is of, as far as it is known.
    pub fn project(&self, context: &Context, namespace: &str) -> Option<String> {
        self.project_namespace_of(context, namespace)
            .map(|(project, _)| project)
    }

    /// Project and namespace that a cell namespace is of, as far as they are known.
    pub fn project_namespace_of(&self, context: &Context, namespace: &str) -> Option<(String, String)> {
        let store = context.store(&Plane::Cell, NAMESPACE)?;
        let stored = store.get("", namespace).known().flatten();
        match self.project_namespace(namespace, stored.as_deref()) {
            ProjectNamespace::In { project, namespace } => Some((project.to_owned(), namespace.to_owned())),
            ProjectNamespace::None | ProjectNamespace::Bad(_) => None,
        }
    }

    /// Instances in the namespaces of a project, as far as they are known.
    pub fn instances(&self, context: &Context, project: &str) -> Vec<Arc<Object>> {
        let Some(instances) = context.store(&Plane::Cell, INSTANCE) else {
            return Vec::new();
        };
        if let Some(single) = &self.single {
            let all = (single == project).then(|| instances.all().known());
            return all.flatten().unwrap_or_default();
        }
        let namespaces = context.store(&Plane::Cell, NAMESPACE);
        let namespaces = namespaces.and_then(|store| store.all().known());
        let namespaces = namespaces.into_iter().flatten();
        let of_it = namespaces.filter(|one| self.project_namespace(one.name(), Some(one)).project() == Some(project));
        of_it
            .filter_map(|one| instances.in_namespace(one.name()).known())
            .flatten()
            .collect()
    }

    /// The claims of this cell in a project, read live.
    ///
    /// # Errors
    /// The project's server is unreachable, or refuses.
    pub async fn list_claims(&self, context: &Context, project: &Plane) -> Result<Listed, ApplyError> {
        let selector = format!("{}={}", labels::SOURCE_CLUSTER, self.cluster);
        context.applier.list(project, RESOURCE_CLAIM, None, &selector).await
    }

    /// Why the claim of an Instance was refused.
    pub fn refusal(&self, namespace: &str, instance: &str) -> Option<Refusal> {
        let key = (namespace.to_owned(), instance.to_owned());
        lock(&self.refusals).get(&key).cloned()
    }

    /// The claim of an Instance was refused, or was not (`None`): that is no event, and enqueues the Instance where it is new.
    pub fn refused(&self, context: &Context, namespace: &str, instance: &str, refusal: Option<Refusal>) {
        let key = (namespace.to_owned(), instance.to_owned());
        let is_new = match refusal {
            Some(refusal) => lock(&self.refusals).insert(key, refusal.clone()).as_ref() != Some(&refusal),
            None => lock(&self.refusals).remove(&key).is_some(),
        };
        if is_new {
            let instance = Key::new(&Plane::Cell, namespace, instance);
            context.wait_list.enqueue(INSTANCE_RECONCILER, instance);
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::planes::testing::CLUSTER;

    /// A cell with quota and a hub; `single`: the one project of its only server, and no hub.
    pub(crate) fn cell(single: Option<&str>) -> Cell {
        let cell = Cell {
            cluster: CLUSTER.to_owned(),
            hub: single.is_none(),
            quota: true,
            single: single.map(str::to_owned),
            networking: false,
            namespace: "compute-system".to_owned(),
            no_budget_grace: NO_BUDGET_GRACE,
            ..Cell::default()
        };
        cell.id.set("cell-uid".to_owned()).unwrap();
        cell
    }
}
