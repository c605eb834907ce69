//! The environment of this suite: Karmada with one member that has the provider of Pods, a project behind the gateway, the
//! controllers of both, and stand-ins. The hub, milo, the project and the cell have an etcd of their own each.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_api::annotations::{MASS_DELETE, MASS_DELETE_ALLOW};
use popcell_suites::definitions;
use popcell_suites::environment::{DFW, SOON, webhook};
use popcell_suites::suite::Shared;
use popcell_test_support::kind::{CLUSTER, CONFIG_MAP};
use popcell_test_support::stand_ins::{Budget, Networks, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, Gateway, Lab, LabSpec, Member, Nodes, Plane, PodProvider, PodProviderSpec, Webhook,
    WebhookSpec, eventually, manifests, users,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// Milo: Projects.
pub(crate) const INFRA: &str = "infra";
/// The project.
pub(crate) const P1: &str = "p1";
pub(crate) const HUB: &str = "hub";
/// The city of the cell.
pub(crate) const CITY: &[&str] = &["DFW"];
/// `--project-grace` of the management plane.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
const PLENTY: i64 = 1000;
/// Where whoever may do so lets the deletion guard of a program without a Lease go.
const RELEASE: &str = "popcell-deletion-guard";

pub(crate) struct Environment {
    pub(crate) lab: Lab,
    pub(crate) management: Controller,
    pub(crate) cell: Controller,
    provider: Mutex<PodProvider>,
    /// What the cell has that keeps what it has seen, and the quota of the project.
    others: Mutex<(Option<(Nodes, Networks)>, Quota)>,
    // Held: they end with their values.
    _gateway: Gateway,
    _webhook: Webhook,
    _files: TempDir,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        // Karmada is to notice soon whom it cannot reach.
        let spec = LabSpec::karmada()
            .member(Member::push(DFW).city("DFW"))
            .hub_flag("karmada-controller-manager", "--cluster-failure-threshold=1s")
            .hub_flag("karmada-controller-manager", "--cluster-status-update-frequency=1s")
            .plane(INFRA)
            .plane(P1);
        let spec = [HUB, DFW, P1, INFRA]
            .iter()
            .fold(spec, |spec, plane| spec.own_etcd(plane));
        let lab = Lab::start(&spec).await?;
        let webhook = webhook(&lab, WebhookSpec::with_modules(&["compute"])?).await?;
        let (infra, project, cell) = (lab.plane(INFRA).await?, lab.plane(P1).await?, lab.plane(DFW).await?);
        definitions::discovery(&infra, &[P1]).await?;
        definitions::hub(&lab.hub().await?).await?;
        definitions::project(&project, &[DFW], CITY).await?;
        definitions::cell(&cell, "DFW").await?;
        let others = Mutex::new((Some(in_cell(&cell).await?), in_project(&project)));

        let files = tempfile::tempdir().context("failed to make a directory")?;
        let account = users::of_provider(&lab, DFW, files.path()).await?;
        let provider = Mutex::new(PodProvider::start(PodProviderSpec::of(&account)).await?);
        let gateway = Gateway::of_planes(&lab, INFRA, &[P1]).await?;
        let hub_user = users::of_hub(&lab, files.path()).await?;
        users::cells_on_hub(&lab.hub().await?, &[DFW]).await?;
        let home = users::at_home(&lab, INFRA, manifests::MANAGEMENT_PLANE, files.path()).await?;
        let milo = gateway.kubeconfig(files.path(), Some(users::USER))?;
        let spec = ControllerSpec::management(&home, &hub_user).milo(&milo);
        let spec = spec.flag(format!("--project-grace={}s", GRACE.as_secs()));
        let management = Controller::start(spec).await?;
        let cell_user = users::cell(DFW);
        let to_hub = users::of_cell(&lab, DFW).await?;
        let to_projects = gateway.kubeconfig(files.path(), Some(&cell_user))?;
        let home = users::at_home(&lab, DFW, manifests::CELL, files.path()).await?;
        let cell = Controller::start(ControllerSpec::cell(&home, DFW, &to_hub, &to_projects)).await?;
        Ok(Self {
            management,
            cell,
            provider,
            others,
            _gateway: gateway,
            _webhook: webhook,
            _files: files,
            lab,
        })
    }

    async fn last_words(&self) -> String {
        let words = [("the management plane", &self.management), ("the cell", &self.cell)]
            .map(|(who, controller)| format!("{who} wrote:\n{}", controller.last_words()));
        let provider = self.provider.lock().await.last_words();
        format!("{}\n\nthe provider wrote:\n{provider}", words.join("\n\n"))
    }

    async fn end(mut self) -> Result<()> {
        for controller in [&mut self.cell, &mut self.management] {
            controller.end()?;
        }
        self.provider.into_inner().end()?;
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

async fn in_cell(cell: &Plane) -> Result<(Nodes, Networks)> {
    let nodes = Nodes::start(cell, Duration::ZERO).await?;
    Ok((nodes, Networks::start(cell.client())))
}

fn in_project(project: &Plane) -> Quota {
    Quota::start(project.client(), Budget::instances(PLENTY))
}

impl Environment {
    /// Sets a plane back, and starts again who keeps what it has seen there, but for our own programs.
    pub(crate) async fn restore(&self, plane: &str, snapshot: &Path) -> Result<()> {
        let mut others = self.others.lock().await;
        if plane == DFW {
            // They write much, and the provider is to notice before the cell is as new as it was.
            others.0 = None;
        }
        self.lab.restore(plane, snapshot).await?;
        let restored = self.lab.plane(plane).await?;
        match plane {
            DFW => {
                self.provider_is_replaced().await?;
                others.0 = Some(in_cell(&restored).await?);
            }
            P1 => others.1 = in_project(&restored),
            _ => {}
        }
        Ok(())
    }

    /// Waits until the provider has ended because its server went back, and starts it again as a kubelet does.
    async fn provider_is_replaced(&self) -> Result<()> {
        let mut provider = self.provider.lock().await;
        let ended = eventually("the provider notices that its server went back", SOON, async || {
            provider.ended()?.context("it runs")
        });
        let status = ended.await?;
        ensure!(status.code() == Some(4), "it ended with {status}");
        let words = provider.last_words();
        ensure!(words.contains("older state than before"), "{words}");
        provider.start_again().await
    }

    /// Waits until these controllers, and no others, say that a plane went back.
    pub(crate) async fn noticed(&self, plane: &str, who: [bool; 2]) -> Result<()> {
        let plane = format!("plane=\"{plane}\"");
        for (controller, expected) in [&self.management, &self.cell].into_iter().zip(who) {
            eventually("who rests on it has noticed that it went back", SOON, async || {
                let held = controller
                    .metric("popcell_deletion_guard_held", &[&plane, "kind=\"*\""])
                    .await
                    .unwrap_or_default();
                ensure!((held > 0.5) == expected, "{plane}: {held}, not {expected}");
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Lets the deletes go that rest on what went back, as an operator who has looked at it does.
    pub(crate) async fn release(&self) -> Result<()> {
        self.release_of(MASS_DELETE_ALLOW).await
    }

    /// The same, of one plane only: nothing else is held.
    pub(crate) async fn release_of(&self, what: &str) -> Result<()> {
        for (plane, controller) in [(INFRA, &self.management), (DFW, &self.cell)] {
            let plane = self.lab.plane(plane).await?;
            let allow = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": RELEASE,
                "namespace": users::NAMESPACE, "annotations": { MASS_DELETE: what } } });
            let held = async || {
                Ok(controller
                    .metric("popcell_deletion_guard_held", &[])
                    .await
                    .unwrap_or_default()
                    > 0.5)
            };
            if !held().await.unwrap_or(false) {
                continue;
            }
            plane.apply(&allow).await?;
            eventually("nothing is held any more", SOON, async || {
                let still: Result<bool> = held().await;
                ensure!(!still?, "it holds");
                Ok(())
            })
            .await?;
            if plane.get(CONFIG_MAP, Some(users::NAMESPACE), RELEASE).await?.is_some() {
                plane.delete(CONFIG_MAP, Some(users::NAMESPACE), RELEASE).await?;
            }
        }
        Ok(())
    }

    /// Takes the cell out of Karmada while Karmada cannot reach it, as one does who wants it to go on running, and answers
    /// with what it takes to join it.
    pub(crate) async fn unjoin(&self) -> Result<Value> {
        let hub = self.lab.hub().await?;
        let cluster = hub.expect(CLUSTER, None, DFW).await?;
        let joined = json!({ "apiVersion": CLUSTER.api_version(), "kind": CLUSTER.kind,
            "metadata": { "name": DFW, "labels": cluster.metadata.labels }, "spec": cluster.data["spec"] });
        let misplaced = json!({ "spec": { "apiEndpoint": "https://127.0.0.1:1" } });
        hub.merge(CLUSTER, None, DFW, &misplaced).await?;
        eventually("Karmada cannot reach the cell", SOON, async || {
            let cluster = hub.expect(CLUSTER, None, DFW).await?;
            let ready = popcell_suites::read::condition(&cluster, "Ready")?;
            ensure!(ready["status"] != "True", "{ready}");
            Ok(())
        })
        .await?;
        hub.delete(CLUSTER, None, DFW).await?;
        popcell_suites::steps::gone(&hub, CLUSTER, "", DFW).await?;
        Ok(joined)
    }

    /// Joins the cell, as `karmadactl join` does.
    pub(crate) async fn join(&self, cluster: &Value) -> Result<()> {
        let hub = self.lab.hub().await?;
        let mut joined = cluster.clone();
        if let Some(spec) = joined["spec"].as_object_mut() {
            spec.remove("taints");
        }
        eventually("the cell can be joined", SOON, async || {
            hub.create(&joined, false).await
        })
        .await?;
        eventually("Karmada reaches the cell", SOON, async || {
            let cluster = hub.expect(CLUSTER, None, DFW).await?;
            popcell_suites::read::says(&cluster, "Ready", "True", "ClusterReady")
        })
        .await
    }
}
