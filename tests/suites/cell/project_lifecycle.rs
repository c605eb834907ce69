//! Projects that come to a cell and go, on a small lab of their own: the cell has claims and no hub.

use anyhow::{Context, Result, ensure};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::labels;
use popcell_suites::definitions::define;
use popcell_suites::environment::SOON;
use popcell_suites::read::{condition, says};
use popcell_test_support::kind::INSTANCE;
use popcell_test_support::probe::sum_of;
use popcell_test_support::stand_ins::{Budget, IN_CELLS, IN_PROJECTS, Quota};
use popcell_test_support::{
    Controller, ControllerSpec, Fault, FaultProxy, Gateway, Lab, LabSpec, Plane, always, eventually, manifests,
    objects, process, users,
};
use serde_json::json;

use crate::environment::{Environment, WATCHED};

const CELL: &str = "cell";
const PROJECTS: &str = "projects";
/// Projects that are there at once, and how often others take their place.
const AT_ONCE: usize = 20;
const WAVES: usize = 7;
/// Waves after which everything is as large as it gets.
const WARM: usize = 3;
/// Connections that a pool may hold on to, whatever the number of projects.
const FILES: usize = 16;
/// What an allocator may hold on to, in KiB.
const SLACK: f64 = 16.0 * 1024.0;

/// Answers that came for the first time have series of their own; projects have none.
const SERIES: usize = 10;

/// What the process holds.
#[derive(Clone, Copy, Debug)]
struct ResourceUsage {
    files: usize,
    kib: f64,
    series: usize,
}

impl ResourceUsage {
    async fn by(controller: &Controller) -> Result<Self> {
        let pid = controller.pid().context("the controller does not run")?;
        let page = controller.metrics().await?;
        Ok(Self {
            files: process::files(pid)?,
            kib: process::resident_kib(pid)?,
            series: page.lines().filter(|line| !line.starts_with('#')).count(),
        })
    }
}

struct Site {
    cell: Plane,
    projects: Plane,
    proxy: FaultProxy,
    controller: Controller,
}

/// Neither streams nor files, memory, series or requests are left of a project that is served no more.
pub(crate) async fn many(_: &Environment, _: &str) -> Result<()> {
    let lab = Lab::start(&LabSpec::planes(&[CELL, PROJECTS])).await?;
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let (cell, projects) = (lab.plane(CELL).await?, lab.plane(PROJECTS).await?);
    define(&cell, &IN_CELLS).await?;
    define(&projects, &IN_PROJECTS).await?;
    cell.apply(&objects::namespace("compute-system")).await?;
    let quota = Quota::start(projects.client(), Budget::default());
    let gateway = Gateway::start(&projects).await?;
    let proxy = FaultProxy::start(&gateway.kubeconfig(files.path(), None)?).await?;
    let home = users::at_home(&lab, CELL, manifests::CELL, files.path()).await?;
    let milo = proxy.kubeconfig(files.path(), PROJECTS)?;
    let controller = Controller::start(ControllerSpec::cell_without_hub(&home, CELL, &milo)).await?;
    let mut site = Site {
        cell,
        projects,
        proxy,
        controller,
    };
    let outcome = come_and_go(&site)
        .await
        .with_context(|| format!("the controller wrote:\n{}", site.controller.last_words()));
    let stopped = site.controller.stop();
    drop((gateway, quota, site));
    outcome?;
    ensure!(stopped?.success());
    lab.end().await
}

async fn come_and_go(site: &Site) -> Result<()> {
    let mut warm = None;
    for wave in 0..WAVES {
        let ids: Vec<String> = (0..AT_ONCE).map(|number| format!("p{wave}-{number}")).collect();
        site.serve(&ids).await?;
        site.leave(&ids).await?;
        if wave + 1 == WARM {
            warm = Some(ResourceUsage::by(&site.controller).await?);
        }
    }
    let (warm, last) = (
        warm.context("too few waves")?,
        ResourceUsage::by(&site.controller).await?,
    );
    eprintln!("coming: after {WARM} waves {warm:?}, after {WAVES} {last:?}");
    ensure!(
        last.files <= warm.files + FILES && last.kib <= warm.kib + SLACK && last.series <= warm.series + SERIES,
        "after {WARM} waves {warm:?}, after {WAVES} {last:?}"
    );
    let asked = site.proxy.count(|_| true);
    always("nobody is asked any more", WATCHED, async || {
        let now = site.proxy.count(|_| true);
        ensure!(now == asked, "{} requests more", now - asked);
        Ok(())
    })
    .await
}

impl Site {
    /// The cell has work of these projects; the first of them takes no claims.
    async fn serve(&self, ids: &[String]) -> Result<()> {
        let busy = ids.first().cloned().unwrap_or_default();
        let refuses = busy.clone();
        let fault = self.proxy.inject(Fault::refused(429, "TooManyRequests"), move |asked| {
            asked.verb == "create" && asked.is_of(&refuses)
        });
        for id in ids {
            self.projects.apply(&objects::namespace(id)).await?;
            let below = below(id);
            let mut namespace = objects::namespace(&below);
            namespace["metadata"]["labels"] = json!({
                labels::UPSTREAM_CLUSTER_NAME: format!("cluster-{id}"),
                labels::UPSTREAM_NAMESPACE: id,
            });
            self.cell.apply(&namespace).await?;
            let instance = objects::instance(&below, "one", &["Quota"]);
            self.cell.create(&instance, false).await?;
        }
        eventually("claims are granted, or it is said why not", SOON, async || {
            for id in ids {
                let one = self.cell.expect(INSTANCE, Some(&below(id)), "one").await?;
                if *id == busy {
                    says(&one, "QuotaGranted", "False", "QuotaBackendUnavailable")?;
                } else {
                    let said = condition(&one, "QuotaGranted")?;
                    ensure!(said["status"] == "True", "{id}: {said}");
                }
            }
            let engaged = self.controller.metric("popcell_projects_engaged", &[]).await?;
            ensure!(
                (engaged - f64::from(u32::try_from(ids.len())?)).abs() < 0.5,
                "{engaged} are engaged"
            );
            Ok(())
        })
        .await?;
        ensure!(fault.hits() > 0, "none was refused");
        Ok(())
    }

    /// The work ends, and with it what the cell has in the projects.
    async fn leave(&self, ids: &[String]) -> Result<()> {
        for id in ids {
            self.cell.delete(INSTANCE, Some(&below(id)), "one").await?;
        }
        eventually("no claim is left", SOON, async || {
            let left = self.projects.list(RESOURCE_CLAIM, None, "").await?.len();
            ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await?;
        for id in ids {
            self.cell
                .delete(popcell_test_support::kind::NAMESPACE, None, &below(id))
                .await?;
        }
        eventually("no watch is left", SOON, async || {
            let page = self.controller.metrics().await?;
            for gauge in ["popcell_projects_engaged", "popcell_planes_not_synced"] {
                let value = sum_of(&page, gauge, &[]);
                ensure!(value < 0.5, "{gauge} is {value}");
            }
            let streams = sum_of(&page, "popcell_watch_streams", &["plane_kind=\"project\""]);
            ensure!(streams < 0.5, "{streams} streams of projects");
            let page = self.projects.metrics().await?;
            let of_projects = ["verb=\"WATCH\"", "resource=\"resourceclaims\"", "scope=\"namespace\""];
            let open = sum_of(&page, "apiserver_longrunning_requests", &of_projects);
            ensure!(open < 0.5, "{open} watches at the server");
            Ok(())
        })
        .await
    }
}

/// The namespace in the cell for the one of a project.
fn below(id: &str) -> String {
    format!("ns-{id}")
}
