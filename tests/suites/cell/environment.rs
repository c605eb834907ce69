//! The environment of this suite: Karmada with a Push and a Pull member and our webhook, projects behind the gateway, the
//! controllers of the management plane and of both cells as the users that the manifests describe, and stand-ins for the
//! provider, network services and quota.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::future::try_join_all;
use popcell_suites::definitions::{catalogue, cell, discovery, hub, project};
use popcell_suites::environment::{DFW, ORD, webhook};
use popcell_suites::suite::Shared;
use popcell_test_support::stand_ins::{Budget, Networks, Pace, Provider, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, FaultProxy, Gateway, Lab, LabSpec, Member, Webhook, WebhookSpec, lab, manifests,
    objects, users, workspace,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::Mutex;

/// Milo: Projects.
const INFRA: &str = "infra";
/// The project of most tests, with quota for all of them.
pub(crate) const P1: &str = "p1";
/// A project whose budget tests change.
pub(crate) const P2: &str = "p2";
/// An instance type that only the catalogue has: four processors and 8 GiB.
pub(crate) const LARGE: &str = "acme/large";
/// Both cells.
pub(crate) const CELLS: [(&str, &str); 2] = [(DFW, "DFW"), (ORD, "ORD")];
/// Cells that single tests run (see [`crate::spare_cell`]).
const SPARES: [&str; 2] = ["lhr-old", "lhr-new"];
const PLENTY: i64 = 1000;
/// How long to watch for what must not happen: many passes.
pub(crate) const WATCHED: Duration = Duration::from_secs(5);

pub(crate) struct Environment {
    pub(crate) lab: Lab,
    pub(crate) gateway: Gateway,
    pub(crate) management: Mutex<Controller>,
    /// In the order of [`CELLS`].
    pub(crate) cells: [Mutex<Controller>; 2],
    /// Between the controller of each cell, in the same order, and the hub; Karmada does not pass here.
    pub(crate) to_hub: [FaultProxy; 2],
    /// Between the controller of the management plane and the hub.
    pub(crate) management_to_hub: FaultProxy,
    /// Between the controller of each cell and the gateway.
    pub(crate) to_projects: [FaultProxy; 2],
    /// Kubeconfig of the management plane for the hub.
    pub(crate) hub_user: PathBuf,
    /// Files with the token of each cell for projects.
    pub(crate) tokens: [PathBuf; 2],
    /// Quota of the second project. Who locks it sets the budget, and is alone in that project.
    pub(crate) quota: Mutex<Quota>,
    /// Members without a city and without a controller. Who locks them has them, and the city [`crate::spare_cell::CITY`].
    pub(crate) spares: Mutex<[&'static str; 2]>,
    // Held: they end with their values.
    _stand_ins: (Vec<Provider>, Vec<Networks>, Quota),
    _webhook: Webhook,
    _files: TempDir,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let spec = LabSpec::karmada()
            .notices_soon()
            // It goes away without what holds the other planes.
            .own_etcd(lab::HUB)
            .member(with_autoscaler(Member::push(DFW).city("DFW")))
            .member(Member::pull(ORD).city("ORD"));
        let spec = SPARES.iter().fold(spec, |spec, name| spec.member(Member::push(name)));
        let spec = [INFRA, P1, P2].iter().fold(spec, |spec, name| spec.plane(name));
        let lab = Lab::start(&spec).await?;
        hub(&lab.hub().await?).await?;
        let webhook = webhook(&lab, WebhookSpec::with_modules(&["compute"])?).await?;
        let projects = [lab.plane(P1).await?, lab.plane(P2).await?];
        let (users, cities) = (users_of_cells(), CELLS.map(|(_, city)| city));
        try_join_all(projects.iter().map(|plane| project(plane, &users, &cities))).await?;
        let infra = lab.plane(INFRA).await?;
        discovery(&infra, &[P1, P2]).await?;
        // Of two types: each test may name one of them.
        catalogue(&infra).await?;
        for object in [
            workspace::yaml(&workspace::root().join("manifests/instance-types/d1-standard-2.yaml"))?,
            objects::instance_type(LARGE, "4", "8Gi"),
        ] {
            infra.apply(&object).await?;
        }
        let planes = try_join_all(CELLS.map(|(name, _)| lab.plane(name))).await?;
        try_join_all(planes.iter().zip(CELLS).map(|(plane, (_, city))| cell(plane, city))).await?;
        let (mut providers, mut networks) = (Vec::new(), Vec::new());
        for plane in &planes {
            providers.push(Provider::start(plane.client(), Pace::INSTANT));
            networks.push(Networks::start(plane.client()));
        }
        let plenty = Quota::start(lab.plane(P1).await?.client(), Budget::instances(PLENTY));
        let quota = Quota::start(lab.plane(P2).await?.client(), Budget::instances(PLENTY));

        let files = tempfile::tempdir().context("failed to make a directory")?;
        let gateway = Gateway::of_planes(&lab, INFRA, &[P1, P2]).await?;
        let hub_user = users::of_hub(&lab, files.path()).await?;
        users::cells_on_hub(&lab.hub().await?, &users_of_cells()).await?;
        let home = users::at_home(&lab, INFRA, manifests::MANAGEMENT_PLANE, files.path()).await?;
        let milo = gateway.kubeconfig(files.path(), Some(users::USER))?;
        let management_to_hub = FaultProxy::start(&hub_user).await?;
        let hub = management_to_hub.kubeconfig(files.path(), "hub-of-management")?;
        let spec = ControllerSpec::management(&home, &hub).milo(&milo);
        let management = Mutex::new(Controller::start(spec).await?);
        let to_hub = [to_hub(&lab, DFW).await?, to_hub(&lab, ORD).await?];
        let anybody = gateway.kubeconfig(files.path(), None)?;
        let to_projects = [FaultProxy::start(&anybody).await?, FaultProxy::start(&anybody).await?];
        let tokens = CELLS.map(|(name, _)| files.path().join(format!("token-of-{name}")));
        let mut cells = Vec::new();
        for (index, (name, _)) in CELLS.iter().enumerate() {
            let hub = to_hub[index].kubeconfig(files.path(), &format!("hub-of-{name}"))?;
            put_token(&tokens[index], &users::cell(name))?;
            let user = json!({ "tokenFile": tokens[index] });
            let milo = to_projects[index].kubeconfig_of(files.path(), &format!("projects-of-{name}"), &user)?;
            let home = users::at_home(&lab, name, manifests::CELL, files.path()).await?;
            let spec = ControllerSpec::cell(&home, name, &hub, &milo);
            cells.push(Mutex::new(Controller::start(spec).await?));
        }
        let cells = <[_; 2]>::try_from(cells).ok().context("there are two cells")?;
        Ok(Self {
            management,
            cells,
            to_hub,
            management_to_hub,
            to_projects,
            hub_user,
            tokens,
            quota: Mutex::new(quota),
            spares: Mutex::new(SPARES),
            gateway,
            _stand_ins: (providers, networks, plenty),
            _webhook: webhook,
            _files: files,
            lab,
        })
    }

    async fn last_words(&self) -> String {
        let management = self.management.lock().await.last_words();
        let mut words = vec![format!("the management plane wrote:\n{management}")];
        for (cell, (name, _)) in self.cells.iter().zip(CELLS) {
            words.push(format!("cell {name} wrote:\n{}", cell.lock().await.last_words()));
        }
        words.join("\n\n")
    }

    async fn end(self) -> Result<()> {
        let controllers = self.cells.into_iter().chain([self.management]);
        for mut controller in controllers.map(Mutex::into_inner) {
            refused_nothing(&controller)?;
            controller.end()?;
        }
        drop(self.gateway);
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

/// With Kubernetes' own autoscaler, which looks every second.
fn with_autoscaler(member: Member) -> Member {
    [
        "--controllers=namespace-controller,garbage-collector-controller,horizontal-pod-autoscaler-controller",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-downscale-stabilization=1s",
    ]
    .into_iter()
    .fold(member, |member, flag| member.flag("kube-controller-manager", flag))
}

/// To the hub as the user of a cell.
pub(crate) async fn to_hub(lab: &Lab, name: &str) -> Result<FaultProxy> {
    FaultProxy::start(&users::of_cell(lab, name).await?).await
}

/// Puts a token where a cell looks for it.
pub(crate) fn put_token(file: &Path, token: &str) -> Result<()> {
    std::fs::write(file, token).with_context(|| format!("failed to write {}", file.display()))
}

/// Names of the cells that have a user on the hub and in projects.
fn users_of_cells() -> Vec<&'static str> {
    CELLS.iter().map(|(name, _)| *name).chain(SPARES).collect()
}

/// Every right that it needed (`User "..." cannot ...`) was among those that are shipped, and no policy refused it anything.
pub(crate) fn refused_nothing(controller: &Controller) -> Result<()> {
    controller.expect_log_without(&["\" cannot ", "ValidatingAdmissionPolicy"])
}
