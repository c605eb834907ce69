//! The environment of this suite: Karmada with a Push and a Pull member and our webhook, API servers of projects behind the
//! gateway, and the controller of the management plane as the users that the manifests describe: that of hub-rbac in the hub,
//! that of project-rbac in projects, and that of overlays/management-plane where Projects and the Lease are. What it asks
//! the hub and milo for goes through proxies that can fail.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use popcell_api::kind;
use popcell_suites::definitions::{catalogue, define, discovery, hub};
use popcell_suites::environment::{DFW, ORD, webhook};
use popcell_suites::suite::Shared;
use popcell_suites::trust::Trust;
use popcell_test_support::{
    Controller, ControllerSpec, FaultProxy, Gateway, Lab, LabSpec, Member, Plane, Webhook, WebhookSpec, kubeconfig,
    manifests, objects, users,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Mutex;

/// Milo: Projects, and the Lease of the controllers of one test that take it.
pub(crate) const INFRA: &str = "infra";
/// The project of most tests.
pub(crate) const P1: &str = "p1";
/// A project for tests that disturb it, and for the other of two.
pub(crate) const P2: &str = "p2";
/// An API server whose Project one test makes and deletes, and whose tokens the hub learns to trust in another.
pub(crate) const P3: &str = "p3";
/// The server of mode `single`, of which milo knows nothing.
pub(crate) const SOLO: &str = "solo";
/// Cities with a binding in every project; nobody serves the last.
pub(crate) const CITIES: [&str; 3] = ["DFW", "ORD", "LHR"];
/// `--project-grace` of the controller.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long to watch for what must not happen: many reconciles.
pub(crate) const WATCHED: Duration = Duration::from_secs(4);

/// Requests of the controllers but for those that open watches; servers count them under this name.
pub(crate) const REQUESTS: &str = "popcell-requests";
/// Every verb but `watch`.
const COUNTED: [&str; 7] = ["get", "list", "create", "update", "patch", "delete", "deletecollection"];

pub(crate) struct Environment {
    pub(crate) lab: Lab,
    pub(crate) gateway: Gateway,
    /// Between the controllers of all projects and the hub.
    pub(crate) to_hub: FaultProxy,
    /// Between them and the gateway: projects, and what projects there are.
    pub(crate) to_milo: FaultProxy,
    /// The controller of all projects.
    pub(crate) controller: Mutex<Controller>,
    /// One of mode `single`.
    solo: Mutex<Controller>,
    hub_user: PathBuf,
    home: PathBuf,
    spec: ControllerSpec,
    /// The hub's trust in tokens of other clusters.
    pub(crate) trust: Trust,
    // Held: they end with their values.
    _webhook: Webhook,
    files: TempDir,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let files = tempfile::tempdir().context("failed to make a directory")?;
        let trust = Trust::in_none(files.path())?;
        let spec = LabSpec::karmada()
            .hub_flag("kube-apiserver", &trust.flag())
            .member(Member::push(DFW).city("DFW"))
            .member(Member::pull(ORD).city("ORD"))
            // As operators are told to, for the quotas of hub namespaces.
            .hub_flag(
                "kube-controller-manager",
                "--controllers=namespace-controller,garbage-collector-controller,resourcequota-controller",
            );
        let spec = [INFRA, P1, P2, P3, SOLO]
            .iter()
            .fold(spec, |spec, name| spec.plane(name));
        let lab = Lab::start(&spec).await?;
        hub(&lab.hub().await?).await?;
        let webhook = webhook(&lab, WebhookSpec::with_modules(&["compute"])?).await?;
        try_join_all([P1, P2, P3, SOLO].map(|name| project(&lab, name))).await?;
        let infra = lab.plane(INFRA).await?;
        discovery(&infra, &[P1, P2]).await?;
        // Where it is not served, it is looked for each minute.
        for home in [&infra, &lab.plane(SOLO).await?] {
            catalogue(home).await?;
        }
        users::count(&infra, REQUESTS, users::USER, &COUNTED).await?;
        let hub_user = users::of_hub(&lab, files.path()).await?;
        users::count(&lab.hub().await?, REQUESTS, users::HUB_USER, &COUNTED).await?;
        let home = users::at_home(&lab, INFRA, manifests::MANAGEMENT_PLANE, files.path()).await?;
        let gateway = Gateway::of_planes(&lab, INFRA, &[P1, P2, P3]).await?;
        let to_hub = FaultProxy::start(&hub_user).await?;
        let to_milo = FaultProxy::start(&gateway.kubeconfig(files.path(), Some(users::USER))?).await?;
        let hub = to_hub.kubeconfig(files.path(), "to-hub")?;
        let spec = milo_spec(&home, &hub, &to_milo.kubeconfig(files.path(), "to-milo")?);
        let mut controller = Controller::unstarted(spec.clone())?;
        let host = controller.address().to_string();
        let (certificate, key) = lab.server_certificate("admission", &host).await?;
        controller.serve_webhook(&certificate, &key);
        controller.start_again().await?;
        let alone = users::at_home(&lab, SOLO, manifests::MANAGEMENT_PLANE, files.path()).await?;
        let solo = ControllerSpec::management(&alone, &hub_user);
        Ok(Self {
            controller: Mutex::new(controller),
            solo: Mutex::new(Controller::start(solo).await?),
            hub_user,
            home,
            spec,
            trust,
            to_hub,
            to_milo,
            gateway,
            _webhook: webhook,
            files,
            lab,
        })
    }

    async fn last_words(&self) -> String {
        let milo = self.controller.lock().await.last_words();
        let solo = self.solo.lock().await.last_words();
        format!("controller in mode milo wrote:\n{milo}\n\ncontroller in mode single wrote:\n{solo}")
    }

    async fn end(self) -> Result<()> {
        let mut controllers = [self.controller.into_inner(), self.solo.into_inner()];
        for controller in &mut controllers {
            refused_nothing(controller)?;
            controller.end()?;
        }
        drop((self.to_hub, self.to_milo, self.gateway));
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

impl Environment {
    /// The kubeconfig of the controllers' user on the server that they run on.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// The kubeconfig of the controllers' user in the hub.
    pub(crate) fn hub_user(&self) -> &Path {
        &self.hub_user
    }

    /// A project as a user reaches it, with no right but those that RBAC gives.
    pub(crate) async fn as_user(&self, project: &str, user: &str) -> Result<Plane> {
        self.through_gateway(project, user, &json!({ "token": user })).await
    }

    /// A project as milo's administrator reaches it.
    pub(crate) async fn as_administrator(&self, project: &str) -> Result<Plane> {
        self.through_gateway(project, "admin", &json!({})).await
    }

    async fn through_gateway(&self, project: &str, name: &str, user: &serde_json::Value) -> Result<Plane> {
        let document = kubeconfig::document(&self.gateway.project_url(project), None, user);
        let file = kubeconfig::write(self.files.path(), &format!("{project}-{name}"), &document)?;
        Plane::connect(name, &file).await
    }

    /// A controller like that of this environment, for changes by a test; [`Environment::controller`] should not run
    /// beside it.
    pub(crate) fn spec(&self) -> ControllerSpec {
        self.spec.clone()
    }

    /// Does something while [`Environment::controller`] does not run.
    pub(crate) async fn without_controller(&self, doing: impl AsyncFnOnce() -> Result<()>) -> Result<()> {
        let mut alone = self.controller.lock().await;
        alone.stop()?;
        let outcome = doing().await;
        alone.start_again().await?;
        outcome
    }
}

fn milo_spec(home: &Path, hub_user: &Path, milo: &Path) -> ControllerSpec {
    let spec = ControllerSpec::management(home, hub_user).milo(milo);
    spec.flag(format!("--project-grace={}s", GRACE.as_secs()))
}

/// Every right that it needed was among those that are shipped.
fn refused_nothing(controller: &Controller) -> Result<()> {
    const OURS: [&str; 2] = [users::USER, users::HUB_USER];
    let log = controller.log();
    // As API servers say it.
    let mut refusals = log
        .lines()
        .filter(|line| line.contains(" cannot ") && OURS.iter().any(|user| line.contains(user)));
    match refusals.next() {
        None => Ok(()),
        Some(line) => anyhow::bail!("a right is missing, and {} times more: {line}", refusals.count()),
    }
}

async fn project(lab: &Lab, name: &str) -> Result<()> {
    let plane = lab.plane(name).await?;
    define(&plane, &[kind::NETWORK, kind::LOCATION_BINDING, kind::RESOURCE_CLAIM]).await?;
    for city in CITIES {
        plane.apply(&objects::location_binding(city)).await?;
    }
    users::in_project(&plane).await?;
    users::count(&plane, REQUESTS, users::USER, &COUNTED).await
}
