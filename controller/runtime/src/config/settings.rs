//! Settings: flags and file, checked against each other, with every default filled in.

use std::net::SocketAddr;
use std::time::Duration;

use kube::Config;
use popcell_api::kind::{self, Kind};
use popcell_api::names::{LEASE, SINGLE};
use popcell_core::limits::Limits;

use super::credentials::{Certificate, Credentials, METRICS, WEBHOOK};
use super::validation::check;
use super::{ConfigError, DiscoveryConfig, Mode, ServerConfig};
use super::{ProcessEnvironment, System};
use crate::flags::{Flags, Networking};
use crate::planes::{Addressing, Tokens};
use crate::queue::Workers;

/// Namespace of the program where nothing else says one.
const NAMESPACE: &str = "compute-system";

/// What the process is to do, and with what.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which controllers run. None: the process serves its ports only.
    pub controllers: Controllers,
    /// Nothing is written.
    pub dry_run: bool,
    /// Orphans are deleted, not only counted.
    pub reclaim_orphans: bool,
    /// How long a project must have been gone before what is left of it on the hub is deleted.
    pub project_grace: Duration,
    /// How large objects and projects may be that are carried.
    pub limits: Limits,
    /// How many Instances a namespace on the hub may have; 0 = any number.
    pub hub_instances: u32,
    /// Whether ConfigMaps and Secrets that templates name are carried to the cells.
    pub referenced_data: bool,
    /// How long nothing of a cell is released after its Cluster was found to be absent.
    pub cell_grace: Duration,
    /// Whether Instances of a cell wait for their networks.
    pub networking: Networking,
    /// Reconciles at once, for each queue.
    pub workers: Workers,
    /// The program's namespace: its pod's, else `compute-system`.
    pub namespace: String,
    /// Name of the cell's Karmada Cluster; `single` where none was given, which only a cell without hub and quota may do.
    pub cluster_name: String,
    /// The API server that the process runs on.
    pub local: Credentials,
    /// The hub. `None`: nothing is federated, and a cell writes nothing back.
    pub hub: Option<Credentials>,
    /// Where projects come from.
    pub discovery: Discovery,
    /// `None`: quota is not enforced. Always so without cell controllers, the only ones that claim.
    pub quota: Option<Quota>,
    /// The admission webhook. Depends on `webhookServer` in the file only, not on controllers.
    pub webhook: Option<Webhook>,
    /// The port of metrics.
    pub metrics: Option<Metrics>,
    /// The port of health probes.
    pub health: Option<SocketAddr>,
    /// `None`: this process writes without a Lease, because it is told to be the only one or because it writes nothing.
    pub lease: Option<LeaseSettings>,
    /// What is odd, but no reason not to start. See [`Settings::tell`].
    pub warnings: Vec<String>,
}

/// Every server that settings name. Servers of projects are made from `template` (see [`crate::planes::Direct`]).
#[derive(Clone, Debug)]
pub struct Connections {
    /// The one that the process runs on.
    pub local: Config,
    /// Karmada.
    pub hub: Option<Config>,
    /// Mode `milo`: the one that has the objects that stand for projects.
    pub projects: Option<Config>,
    /// Mode `milo`: credentials for the servers of projects.
    pub template: Option<Config>,
    /// Credentials for claims in the servers of projects.
    pub quota: Option<Config>,
    /// Files that tokens are read from.
    pub tokens: Tokens,
}

/// Groups of controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controllers {
    /// `workload`, `federation`, `policy`, `hub-quota`, `reference-copy`, `projection`, `projection-sweep`, `orphans`, `removed-cells`,
    /// `removed-cells-record`, `project-claims`.
    pub management: bool,
    /// `deployment`, `instance`, `instance-copy`, `instance-claim`, `claim-projects`.
    pub cell: bool,
}

/// Where projects come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Discovery {
    /// The server that the process runs on is the one project, `single`.
    Single,
    /// Projects are listed and engaged as they become ready.
    Milo(Box<Milo>),
}

/// Mode `milo`.
#[derive(Clone, Debug, PartialEq)]
pub struct Milo {
    /// The server that has the objects that stand for projects.
    pub projects: Credentials,
    /// Credentials for the servers of projects; with [`Addressing::Path`] its server is milo's.
    pub template: Credentials,
    /// How the servers of projects are addressed.
    pub addressing: Addressing,
    /// Which objects stand for projects.
    pub kind: Kind,
    /// Their condition that must be True.
    pub condition: &'static str,
}

/// Claims in the servers of projects.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Credentials of milo's server, below which those of projects are ([`Addressing::Path`]).
    pub credentials: Credentials,
    /// The project of every namespace, on a server without a hub only; elsewhere the labels of each namespace name its
    /// project.
    ///
    /// In single-cluster mode, both groups of controllers on one server, no federator labels namespaces, and the name of a
    /// namespace is no project id. With quota the setting is therefore required: without it no claim could be made, and every
    /// gated Instance would wait without end.
    pub project: Option<String>,
}

/// The port of the admission webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// What is bound.
    pub listen: SocketAddr,
    /// What is served there.
    pub certificate: Certificate,
}

/// The port of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// What is bound.
    pub listen: SocketAddr,
    /// `None`: plain HTTP, by `secureServing: false`.
    pub certificate: Option<Certificate>,
}

/// The Lease, on the server that the process runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: &'static str,
}

impl Controllers {
    /// Whether any group runs.
    pub fn any(self) -> bool {
        self.management || self.cell
    }
}

impl Settings {
    /// From flags, the file that they name, and this machine.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(flags: &Flags) -> Result<Self, ConfigError> {
        let file = flags.server_config.as_deref().map(ServerConfig::read).transpose()?;
        Self::resolve(flags, &file.unwrap_or_default(), &System)
    }

    /// The same as a function.
    ///
    /// # Errors
    /// Combinations that are refused, and files that are named and missing.
    pub fn resolve(flags: &Flags, file: &ServerConfig, around: &dyn ProcessEnvironment) -> Result<Self, ConfigError> {
        let controllers = Controllers {
            management: flags.enable_management_controllers,
            cell: flags.enable_cell_controllers,
        };
        check(flags, file, around)?;
        let local = local(flags, around)?;
        let namespace = around.pod_namespace().unwrap_or_else(|| NAMESPACE.to_owned());
        let cluster_name = file.discovery.cluster_name.clone();
        let workers = usize::from(flags.workers);
        let settings = Self {
            controllers,
            dry_run: flags.dry_run,
            reclaim_orphans: flags.reclaim_orphans,
            project_grace: flags.project_grace,
            limits: flags.limits(),
            // No project whose objects are all carried has more Instances.
            hub_instances: flags.hub_instances_per_namespace.unwrap_or(flags.max_project_objects),
            referenced_data: flags.referenced_data,
            cell_grace: flags.cell_grace,
            networking: flags.networking,
            workers: Workers {
                total: workers,
                share: share(file.discovery.mode, workers),
            },
            lease: (flags.leader_elect && !flags.dry_run).then(|| LeaseSettings {
                namespace: flags
                    .leader_elect_namespace
                    .clone()
                    .unwrap_or_else(|| namespace.clone()),
                name: LEASE,
            }),
            namespace,
            cluster_name: cluster_name.unwrap_or_else(|| SINGLE.to_owned()),
            hub: flags.federation_kubeconfig.as_ref().map(|path| Credentials::File {
                setting: "--federation-kubeconfig",
                file: path.clone(),
                context: flags.federation_context.clone(),
            }),
            discovery: discovery(&file.discovery, &local),
            quota: file
                .discovery
                .quota_file()
                .filter(|_| controllers.cell)
                .map(|(setting, path)| Quota {
                    credentials: Credentials::file(setting, path),
                    project: file.discovery.project.clone(),
                }),
            local,
            webhook: file.webhook.as_ref().map(|server| Webhook {
                listen: server.address().socket(around.ipv6()),
                certificate: Certificate::of(&server.tls, WEBHOOK, around),
            }),
            metrics: file.metrics.listen.socket(around.ipv6()).map(|listen| Metrics {
                listen,
                certificate: file
                    .metrics
                    .is_secure()
                    .then(|| Certificate::of(&file.metrics.tls, METRICS, around)),
            }),
            health: flags.health_probe_bind_address.socket(around.ipv6()),
            warnings: Vec::new(),
        };
        let warnings = settings.odd(file);
        Ok(Self { warnings, ..settings })
    }

    fn odd(&self, file: &ServerConfig) -> Vec<String> {
        let single = self.discovery == Discovery::Single;
        let of_milo = file.discovery.internal || file.discovery.discovery_kubeconfig.is_some();
        let idle = !self.controllers.any();
        let unused_quota = file.discovery.quota_kubeconfig.is_some() && !self.controllers.cell;
        let ignored = (!file.ignored.is_empty()).then(|| {
            let keys = file.ignored.join(", ");
            format!("the config file has keys of later upstream versions, which have no effect: {keys}")
        });
        [
            (
                idle && self.webhook.is_none(),
                "nothing is enabled: see --enable-management-controllers, --enable-cell-controllers and webhookServer",
            ),
            (
                self.controllers.management && self.hub.is_none() && !self.controllers.cell,
                "nothing is federated: --federation-kubeconfig is not given",
            ),
            (
                self.controllers.cell && self.hub.is_none() && !self.controllers.management,
                "instances are not written back to the hub: --federation-kubeconfig is not given",
            ),
            (
                single && of_milo,
                "discovery.internalServiceDiscovery and discovery.discoveryKubeconfigPath count in discovery.mode milo only",
            ),
            (
                unused_quota,
                "discovery.quotaKubeconfigPath counts with --enable-cell-controllers only",
            ),
        ]
        .into_iter()
        .filter(|(holds, _)| *holds)
        .map(|(_, warning)| warning.to_owned())
        .chain(ignored)
        .collect()
    }

    /// Loads every kubeconfig that is named.
    ///
    /// # Errors
    /// See [`Credentials::load`].
    pub async fn connect(&self) -> Result<Connections, ConfigError> {
        let (projects, template) = match &self.discovery {
            Discovery::Single => (None, None),
            Discovery::Milo(milo) => (Some(milo.projects.load().await?), Some(milo.template.load().await?)),
        };
        Ok(Connections {
            tokens: Tokens::default(),
            local: self.local.load().await?,
            hub: optional(self.hub.as_ref()).await?,
            projects,
            template,
            quota: optional(self.quota.as_ref().map(|quota| &quota.credentials)).await?,
        })
    }

    /// Whether a cell lets Instances start without quota.
    pub fn quota_is_off(&self) -> bool {
        self.controllers.cell && self.quota.is_none()
    }

    /// Whether project and cell are one server, and nothing is carried between.
    pub fn is_single_cluster(&self) -> bool {
        let both = self.controllers.management && self.controllers.cell;
        both && self.discovery == Discovery::Single && self.hub.is_none()
    }

    /// Logs what holds and what is odd.
    pub fn log(&self) {
        tracing::info!(
            management = self.controllers.management,
            cell = self.controllers.cell,
            hub = self.hub.is_some(),
            milo = matches!(self.discovery, Discovery::Milo(_)),
            webhook = self.webhook.is_some(),
            lease = self.lease.is_some(),
            dry_run = self.dry_run,
            "configured"
        );
        if self.quota_is_off() {
            // A cell that gives away capacity that was never granted must not go unnoticed.
            tracing::error!(
                "quota is not enforced: neither discovery.quotaKubeconfigPath nor discovery.projectKubeconfigPath is set"
            );
        }
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
    }
}

async fn optional(credentials: Option<&Credentials>) -> Result<Option<Config>, ConfigError> {
    match credentials {
        Some(credentials) => credentials.load().await.map(Some),
        None => Ok(None),
    }
}

/// How many workers one tenant may have: a project, or a namespace where there is one project only. There the others are
/// seldom many, so one gets more.
fn share(mode: Mode, workers: usize) -> usize {
    match mode {
        Mode::Single => (workers * 3 / 4).max(1),
        Mode::Milo => workers.div_ceil(2),
    }
}

fn local(flags: &Flags, around: &dyn ProcessEnvironment) -> Result<Credentials, ConfigError> {
    if let Some(file) = &flags.kubeconfig {
        return Ok(Credentials::file("--kubeconfig", file));
    }
    if around.in_pod() {
        return Ok(Credentials::InCluster);
    }
    // Never ~/.kube/config: whose current context a person's shell has must not decide where a controller writes.
    match around.variable("KUBECONFIG") {
        Some(files) => Ok(Credentials::Variable { files }),
        None => Err(ConfigError::Nowhere),
    }
}

fn discovery(config: &DiscoveryConfig, local: &Credentials) -> Discovery {
    if config.mode == Mode::Single {
        return Discovery::Single;
    }
    let named = |setting, path: &Option<String>| path.as_ref().map(|path| Credentials::file(setting, path));
    let projects = named("discovery.discoveryKubeconfigPath", &config.discovery_kubeconfig);
    let projects = projects.unwrap_or_else(|| local.clone());
    let template = named("discovery.projectKubeconfigPath", &config.project_kubeconfig);
    let (addressing, kind, condition) = if config.internal {
        (Addressing::Service, kind::PROJECT_CONTROL_PLANE, "ControlPlaneReady")
    } else {
        (Addressing::Path, kind::PROJECT, "Ready")
    };
    Discovery::Milo(Box::new(Milo {
        template: template.unwrap_or_else(|| projects.clone()),
        projects,
        addressing,
        kind,
        condition,
    }))
}

#[cfg(test)]
mod tests;
