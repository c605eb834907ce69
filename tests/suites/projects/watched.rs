//! Planes that a test engages, and what is heard of them.

use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use popcell_api::kind::{self, Kind};
use popcell_controller_runtime::planes::{
    Addressing, Change, Direct, Discovery, Listener, Planes, Projects, Tokens, management, tuned,
};
use popcell_core::object::Fields;
use popcell_core::plan::Plane;
use popcell_suites::environment::SOON;
use popcell_test_support::eventually;
use tokio::task::JoinHandle;

use crate::environment::Environment;

/// What was told, as text: `p001 Workload web`, `p001 Workload lost`, `p001 disengaged`.
#[derive(Default)]
pub(crate) struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub(crate) fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|each| *each == what).count()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }

    fn hear(&self, plane: &Plane, what: &str) {
        let Plane::Project(id) = plane else { return };
        self.0.lock().unwrap().push(format!("{id} {what}"));
    }
}

impl Listener for Heard {
    fn changed(&self, plane: &Plane, kind: Kind, change: &Change) {
        let what = match change {
            Change::Applied { now, .. } => now.name().to_owned(),
            Change::Gone { name, .. } => format!("{name} gone"),
            Change::Unreadable { name, .. } => format!("{name} unreadable"),
            Change::Listed => "listed".to_owned(),
            Change::Lost => "lost".to_owned(),
            Change::Cleared => "cleared".to_owned(),
        };
        self.hear(plane, &format!("{} {what}", kind.kind));
    }

    fn disengaged(&self, plane: &Plane) {
        self.hear(plane, "disengaged");
    }
}

/// Planes behind the environment's gateway, none of which is engaged.
pub(crate) fn planes(environment: &Environment, listener: Arc<dyn Listener>) -> Result<Planes> {
    let config = tuned(environment.gateway.config()?);
    let transport = Direct {
        local: config.clone(),
        hub: None,
        projects: Projects::Milo {
            addressing: Addressing::Path,
            config: Box::new(config),
        },
        claims: None,
        tokens: Tokens::default(),
    };
    let limits = popcell_core::limits::Limits::DEFAULT;
    Ok(Planes::new(Box::new(transport), Box::new(management), limits, listener))
}

/// The planes of all Projects of the environment, as discovery keeps them.
pub(crate) struct Watched {
    pub(crate) planes: Planes,
    pub(crate) heard: Arc<Heard>,
    discovery: JoinHandle<()>,
}

impl Watched {
    /// Engages every Project; returns when `projects` of them are known.
    pub(crate) async fn start(environment: &Environment, projects: usize) -> Result<Self> {
        let heard = Arc::<Heard>::default();
        let config = tuned(environment.gateway.config()?);
        let discovery = Discovery::new(kube::Client::try_from(config)?, kind::PROJECT, "Ready");
        let planes = planes(environment, heard.clone())?;
        let discovery = tokio::spawn(discovery.run(planes.clone()));
        let watched = Self {
            planes,
            heard,
            discovery,
        };
        watched.known(projects).await?;
        Ok(watched)
    }

    /// Waits until exactly so many planes are engaged and their Workloads and WorkloadDeployments are known.
    pub(crate) async fn known(&self, projects: usize) -> Result<()> {
        eventually(&format!("{projects} projects are known"), SOON, async || {
            let planes = self.planes.planes();
            let known = planes.iter().filter(|plane| self.is_known(plane)).count();
            ensure!(
                known == projects && planes.len() == projects,
                "{known} of {} engaged",
                planes.len()
            );
            Ok(())
        })
        .await
    }

    fn is_known(&self, plane: &Plane) -> bool {
        let Some(engaged) = self.planes.get(plane) else {
            return false;
        };
        [kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT]
            .into_iter()
            .all(|kind| engaged.store(kind).is_some_and(|store| store.is_known()))
    }

    /// Waits until this was told.
    pub(crate) async fn hears(&self, what: &str) -> Result<()> {
        eventually(&format!("\"{what}\" is told"), SOON, async || {
            ensure!(self.heard.count(what) > 0, "{:?}", self.heard.0.lock().unwrap().last());
            Ok(())
        })
        .await
    }

    /// Frees everything.
    pub(crate) async fn end(self) {
        self.discovery.abort();
        let _ = self.discovery.await;
        self.planes.disengage_all().await;
    }
}
