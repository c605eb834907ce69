//! One API server for all projects, Karmada with one member, and the controller between them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_api::kind;
use popcell_benches::{FLOW, for_each};
use popcell_test_support::definitions::{define, ready_project};
use popcell_test_support::kind::{PROJECT, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{
    Controller, ControllerSpec, Gateway, Lab, LabSpec, Member, Plane, eventually, kubeconfig, objects, users,
};
use serde_json::json;
use tempfile::TempDir;

use crate::front::Front;
use crate::plan::Plan;
use crate::results::Way;

/// The city of the member; others have a binding and no cluster.
pub(crate) const CITY: &str = "DFW";

const SERVER: &str = "projects";
const PROJECTS_USER: &str = "popcell-projects";
const NETWORK: &str = "default";
const PATIENCE: Duration = Duration::from_mins(10);

/// The planes and what stands between them.
pub(crate) struct Environment {
    pub(crate) server: Plane,
    pub(crate) hub: Plane,
    program: PathBuf,
    hub_user: PathBuf,
    /// Milo, by the order of [`Way::ALL`].
    milo: [PathBuf; 3],
    /// Projects that have a namespace, and how many of them there are.
    prepared: usize,
    projects: usize,
    // Held: they end with their values.
    _front: Front,
    gateway: Gateway,
    files: TempDir,
    pub(crate) lab: Lab,
}

/// The id of a project, which is the name of its only namespace as well.
pub(crate) fn id(number: usize) -> String {
    format!("p{number:04}")
}

/// One of the cities without a cluster.
pub(crate) fn city(number: usize) -> String {
    format!("C{number:04}")
}

impl Environment {
    pub(crate) async fn start(plan: &Plan) -> Result<Self> {
        let program = popcell_benches::controller()?;
        let spec = LabSpec::karmada().member(Member::push("dfw").city(CITY)).plane(SERVER);
        let lab = Lab::start(&spec).await?;
        let (server, hub) = (lab.plane(SERVER).await?, lab.hub().await?);
        define(&server, &[kind::PROJECT, kind::NETWORK, kind::LOCATION_BINDING]).await?;
        server.apply(&objects::location_binding(CITY)).await?;
        for number in 0..plan.samples {
            server.apply(&objects::location_binding(&city(number))).await?;
        }
        let files = tempfile::tempdir().context("failed to make a directory")?;
        let hub_user = users::of_hub(&lab, files.path()).await?;
        users::count(&hub, FLOW, users::HUB_USER, &["*"]).await?;
        let gateway = Gateway::start(&users::administrator(&lab, &server, FLOW, PROJECTS_USER, &["*"]).await?).await?;
        let address = gateway.config()?.cluster_url;
        let target = address.authority().context("the gateway has no address")?.to_string();
        let address = address.to_string();
        let (certificate, key) = lab.server_certificate("front", "127.0.0.1").await?;
        let front = Front::start(target, &certificate, &key).await?;
        let token = json!({ "token": PROJECTS_USER });
        let over_tls = kubeconfig::document(front.url(), Some(lab.ca_file()), &token);
        let direct = kubeconfig::document(&address, Some(lab.ca_file()), &token);
        let milo = [
            kubeconfig::write(files.path(), "front", &over_tls)?,
            kubeconfig::write(files.path(), "plain", &direct)?,
            gateway.kubeconfig(files.path(), None)?,
        ];
        Ok(Self {
            server,
            hub,
            program,
            hub_user,
            milo,
            prepared: 0,
            projects: 0,
            _front: front,
            gateway,
            files,
            lab,
        })
    }

    /// Makes or deletes Projects until there are so many.
    pub(crate) async fn set_projects(&mut self, count: usize) -> Result<()> {
        let (server, prepared) = (&self.server, self.prepared);
        for_each(self.projects..count, async |number| {
            let id = id(number);
            if number >= prepared {
                server.apply(&objects::namespace(&id)).await?;
                server.apply(&objects::network(&id, NETWORK)).await?;
            }
            ready_project(server, &id).await
        })
        .await?;
        for_each(count..self.projects, async |number| {
            server.delete(PROJECT, None, &id(number)).await
        })
        .await?;
        self.prepared = self.prepared.max(count);
        self.projects = count;
        Ok(())
    }

    /// Starts a controller.
    pub(crate) async fn controller(&self, way: Way) -> Result<Controller> {
        let [over_tls, plain, system_roots] = &self.milo;
        let milo = match way {
            Way::Tls => over_tls,
            Way::Plain => plain,
            Way::PlainSystemRoots => system_roots,
        };
        let spec = ControllerSpec::management(self.server.kubeconfig(), &self.hub_user)
            .milo(milo)
            .program(&self.program);
        Controller::start(spec).await
    }

    /// Waits until so many projects are engaged and fully listed.
    pub(crate) async fn wait_engaged(&self, controller: &Controller, count: usize) -> Result<()> {
        eventually("all projects are watched", PATIENCE, async || {
            let engaged = controller.metric("popcell_projects_engaged", &[]).await?;
            let unknown = controller.metric("popcell_planes_not_synced", &[]).await?;
            #[expect(clippy::cast_precision_loss, reason = "there are few")]
            let expected = count as f64;
            ensure!(
                (engaged - expected).abs() < 0.5 && unknown < 0.5,
                "{engaged} of {count}, {unknown} of them not listed"
            );
            Ok(())
        })
        .await
    }

    /// Deletes every Workload, and waits until nothing of it is left.
    pub(crate) async fn clean(&self, projects: usize) -> Result<()> {
        let server = &self.server;
        for_each(0..projects, async |number| {
            let id = id(number);
            for workload in server.list(WORKLOAD, Some(&id), "").await? {
                let name = workload.metadata.name.unwrap_or_default();
                server.delete(WORKLOAD, Some(&id), &name).await?;
            }
            Ok(())
        })
        .await?;
        eventually("everything is gone", PATIENCE, async || {
            for plane in [server, &self.hub] {
                for kind in [WORKLOAD, WORKLOAD_DEPLOYMENT] {
                    let left = plane.list(kind, None, "").await?.len();
                    ensure!(left == 0, "{left} {} on {}", kind.kind, plane.name());
                }
            }
            Ok(())
        })
        .await
    }

    /// Ends all processes.
    pub(crate) async fn end(self) -> Result<()> {
        self.lab.expect_alive().await?;
        drop((self.gateway, self.files));
        self.lab.end().await
    }
}
