//! The environment of this suite: a plain API server as a cell with a node, our cell controllers, and the provider of Pods, both
//! with the rights that are shipped.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::api::DynamicObject;
use popcell_suites::definitions::define;
use popcell_suites::environment::SOON;
use popcell_suites::steps::awaited;
use popcell_suites::suite::Shared;
use popcell_test_support::kind::{INSTANCE, POD};
use popcell_test_support::stand_ins::IN_CELLS;
use popcell_test_support::{
    Controller, ControllerSpec, Lab, LabSpec, Nodes, Plane, PodProvider, PodProviderSpec, eventually, manifests,
    objects, users,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

const CELL: &str = "cell";
/// A second cell, whose node runs containers. Nothing runs in it but for the test that does.
pub(crate) const MACHINE: &str = "machine";
/// The account of the provider, as a token of it says it.
pub(crate) const USER: &str = "system:serviceaccount:compute-system:popcell-provider-pod";

pub(crate) struct Environment {
    pub(crate) lab: Lab,
    pub(crate) provider: Mutex<PodProvider>,
    /// A kubeconfig of the provider's account.
    pub(crate) account: PathBuf,
    controller: Mutex<Controller>,
    // Held: they end with their values.
    _nodes: Nodes,
    _files: TempDir,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let lab = Lab::start(&LabSpec::planes(&[CELL, MACHINE])).await?;
        let files = tempfile::tempdir().context("failed to make a directory")?;
        let cell = lab.plane(CELL).await?;
        define(&cell, &IN_CELLS).await?;
        let nodes = Nodes::start(&cell, Duration::ZERO).await?;
        let home = users::at_home(&lab, CELL, manifests::CELL, files.path()).await?;
        let controller = Controller::start(ControllerSpec::cell_alone(&home)).await?;
        let account = users::of_provider(&lab, CELL, files.path()).await?;
        let provider = PodProvider::start(PodProviderSpec::of(&account)).await?;
        Ok(Self {
            lab,
            provider: Mutex::new(provider),
            account,
            controller: Mutex::new(controller),
            _nodes: nodes,
            _files: files,
        })
    }

    async fn last_words(&self) -> String {
        let provider = self.provider.lock().await.last_words();
        let controller = self.controller.lock().await.last_words();
        format!("the provider wrote:\n{provider}\n\nthe controller wrote:\n{controller}")
    }

    async fn end(self) -> Result<()> {
        let mut provider = self.provider.into_inner();
        // Every right that it needed was among those that are shipped, and no policy refused it anything.
        provider.expect_log_without(&["\" cannot ", "ValidatingAdmissionPolicy"])?;
        provider.end()?;
        self.controller.into_inner().end()?;
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

/// A namespace of the cell, whose Pods may do nothing to their node.
pub(crate) struct Site {
    pub(crate) cell: Plane,
    pub(crate) namespace: String,
}

impl Site {
    pub(crate) async fn new(environment: &Environment, namespace: &str) -> Result<Self> {
        Self::on(environment.lab.plane(CELL).await?, namespace).await
    }

    /// In another cell than the suite's.
    pub(crate) async fn on(cell: Plane, namespace: &str) -> Result<Self> {
        let mut made = objects::namespace(namespace);
        made["metadata"]["labels"] = json!({ "pod-security.kubernetes.io/enforce": "baseline" });
        eventually("the namespace can be made", SOON, async || cell.apply(&made).await).await?;
        Ok(Self {
            cell,
            namespace: namespace.to_owned(),
        })
    }

    /// Makes an Instance that these gates hold, once it was changed.
    pub(crate) async fn make(&self, name: &str, gates: &[&str], change: impl FnOnce(&mut Value)) -> Result<()> {
        let mut instance = objects::instance(&self.namespace, name, gates);
        change(&mut instance);
        self.cell.create(&instance, false).await.map(|_| ())
    }

    /// The Instance, once `check` accepts it.
    pub(crate) async fn instance(
        &self,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.cell, INSTANCE, &self.namespace, name, check).await
    }

    /// The Pod, once `check` accepts it.
    pub(crate) async fn pod(
        &self,
        name: &str,
        check: impl FnMut(&DynamicObject) -> Result<()>,
    ) -> Result<DynamicObject> {
        awaited(&self.cell, POD, &self.namespace, name, check).await
    }
}
