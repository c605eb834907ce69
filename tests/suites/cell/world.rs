//! The world of this suite: Karmada with a Push and a Pull member and our webhook, a project behind the gateway, the
//! controllers of the management plane and of both cells, and stand-ins for the provider, network services and quota.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use popcell_api::kind;
use popcell_suites::definitions::{define, ready_project};
use popcell_suites::suite::Shared;
use popcell_suites::world::{DFW, ORD};
use popcell_test_support::stand_ins::{Budget, IN_CELLS, IN_PROJECTS, Networks, Pace, Provider, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, Gateway, Lab, LabSpec, Member, Plane, Webhook, WebhookSpec, objects,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// Milo: Projects.
const INFRA: &str = "infra";
/// The project of most tests, with quota for all of them.
pub(crate) const P1: &str = "p1";
/// A project whose budget tests change.
pub(crate) const P2: &str = "p2";
/// Both cells.
pub(crate) const CELLS: [(&str, &str); 2] = [(DFW, "DFW"), (ORD, "ORD")];
const PLENTY: i64 = 1000;

pub(crate) struct World {
    pub(crate) lab: Lab,
    pub(crate) gateway: Gateway,
    pub(crate) management: Mutex<Controller>,
    /// In the order of [`CELLS`].
    pub(crate) cells: [Mutex<Controller>; 2],
    /// Quota of the second project.
    pub(crate) quota: Quota,
    // Held: they end with their values.
    _stand_ins: (Vec<Provider>, Vec<Networks>, Quota),
    _webhook: Webhook,
    _files: TempDir,
}

impl Shared for World {
    async fn start() -> Result<Self> {
        let spec = LabSpec::karmada()
            .member(Member::push(DFW).city("DFW"))
            .member(Member::pull(ORD).city("ORD"));
        let spec = [INFRA, P1, P2].iter().fold(spec, |spec, name| spec.plane(name));
        let lab = Lab::start(&spec).await?;
        let webhook = Webhook::start(WebhookSpec::with_modules(&["compute"])?).await?;
        webhook
            .register(lab.kubeconfig("hub")?, &[])
            .context("failed to register the webhook")?;
        let infra = lab.plane(INFRA).await?;
        define(&infra, &[kind::PROJECT]).await?;
        try_join_all([P1, P2].map(|name| project(&lab, name))).await?;
        for id in [P1, P2] {
            ready_project(&infra, id).await?;
        }
        try_join_all(CELLS.map(|(name, city)| cell(&lab, name, city))).await?;
        let (mut providers, mut networks) = (Vec::new(), Vec::new());
        for (name, _) in CELLS {
            let plane = lab.plane(name).await?;
            providers.push(Provider::start(plane.client(), Pace::INSTANT));
            networks.push(Networks::start(plane.client()));
        }
        let plenty = Quota::start(lab.plane(P1).await?.client(), Budget::instances(PLENTY));
        let quota = Quota::start(lab.plane(P2).await?.client(), Budget::instances(PLENTY));

        let files = tempfile::tempdir().context("failed to make a directory")?;
        let gateway = Gateway::of_planes(&lab, INFRA, &[P1, P2]).await?;
        let milo = gateway.kubeconfig(files.path(), None)?;
        let hub = lab.kubeconfig("hub")?.to_owned();
        let spec = ControllerSpec::management(lab.kubeconfig(INFRA)?, &hub).milo(&milo);
        let management = Mutex::new(Controller::start(spec).await?);
        let start = |name: &str| {
            let kubeconfig = lab.kubeconfig(name).map(Path::to_owned);
            let (hub, milo, name) = (hub.clone(), milo.clone(), name.to_owned());
            async move { Controller::start(ControllerSpec::cell(&kubeconfig?, &name, &hub, &milo)).await }
        };
        let cells = [start(DFW).await?, start(ORD).await?].map(Mutex::new);
        Ok(Self {
            management,
            cells,
            quota,
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
            controller.expect_alive()?;
            let status = controller.stop()?;
            ensure!(
                status.success(),
                "a controller ended with {status}:\n{}",
                controller.last_words()
            );
        }
        drop(self.gateway);
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

async fn project(lab: &Lab, name: &str) -> Result<()> {
    let plane = lab.plane(name).await?;
    define(&plane, &IN_PROJECTS).await?;
    for (_, city) in CELLS {
        plane.apply(&objects::location_binding(city)).await?;
    }
    Ok(())
}

async fn cell(lab: &Lab, name: &str, city: &str) -> Result<()> {
    let plane: Plane = lab.plane(name).await?;
    define(&plane, &IN_CELLS).await?;
    // Where the program keeps what it must not lose.
    plane.apply(&objects::namespace("compute-system")).await?;
    plane.apply(&objects::location(city)).await.map(|_| ())
}
