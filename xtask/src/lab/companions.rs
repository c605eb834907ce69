//! What `lab up --stand-ins` leaves running beside the lab: a project with quota, and in each member a provider and network
//! services. One process runs them all; it ends by itself soon after the lab, however that ends.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use popcell_test_support::definitions::define;
use popcell_test_support::lab::Detached;
use popcell_test_support::stand_ins::{Budget, FAIL, Failure, IN_CELLS, IN_PROJECTS, Networks, Pace, Provider, Quota};
use popcell_test_support::{Plane, objects};

use super::MEMBERS;

/// The plane that stands for a project's control plane.
pub(super) const PROJECT: &str = "project";
const NAMESPACE: &str = "default";
/// What the process says when its controllers run.
const AT_WORK: &str = "stand-ins: at work";

const PAUSE: Duration = Duration::from_millis(200);
const SOON: Duration = Duration::from_mins(1);

/// The process beside a lab.
pub(super) struct Companions {
    pid: u32,
    log: PathBuf,
}

impl Companions {
    /// What runs, and how to make it fail.
    pub(super) fn describe(&self) -> String {
        let failures: Vec<&str> = Failure::ALL.into_iter().map(Failure::name).collect();
        format!(
            "{:40} pid {}, log {}\n  annotation {FAIL} on an Instance, or in a template: {}\n  what the project may use: \
             ResourceGrant {NAMESPACE}/{PROJECT}-compute-quota",
            "stand-ins",
            self.pid,
            self.log.display(),
            failures.join(", "),
        )
    }

    /// Waits until it has ended, which it does after its lab.
    pub(super) fn ended(self) -> Result<()> {
        let end = Instant::now() + SOON;
        while is_companion(self.pid) {
            ensure!(Instant::now() < end, "the stand-ins, process {}, do not end", self.pid);
            sleep(PAUSE);
        }
        Ok(())
    }
}

/// The process beside this lab, if there is one.
pub(super) fn of(lab: &Detached) -> Option<Companions> {
    let pid = fs::read_to_string(pid_file(lab)).ok()?.trim().parse().ok()?;
    is_companion(pid).then(|| Companions { pid, log: log(lab) })
}

/// Gives the planes what the stand-ins need, and starts the process.
pub(super) fn start(lab: &Detached) -> Result<()> {
    runtime()?.block_on(furnish(lab))?;
    let log = log(lab);
    let create = || File::create(&log).with_context(|| format!("failed to create {}", log.display()));
    let itself = std::env::current_exe().context("failed to find this program")?;
    let mut child = Command::new(itself)
        .args(["lab", "stand-ins"])
        .stdin(Stdio::null())
        .stdout(create()?)
        .stderr(
            File::options()
                .append(true)
                .open(&log)
                .context("failed to open the log")?,
        )
        // Not in our group: an interrupt in this terminal is not for it.
        .process_group(0)
        .spawn()
        .context("failed to start the stand-ins")?;
    fs::write(pid_file(lab), child.id().to_string()).context("failed to note the stand-ins' process")?;
    let end = Instant::now() + SOON;
    loop {
        let ended = child
            .try_wait()
            .context("failed to ask for the stand-ins' exit status")?;
        let said = fs::read_to_string(&log).unwrap_or_default();
        if said.contains(AT_WORK) {
            return Ok(());
        }
        if let Some(status) = ended {
            bail!("the stand-ins ended with {status}:\n{said}");
        }
        ensure!(Instant::now() < end, "the stand-ins do not begin:\n{said}");
        sleep(PAUSE);
    }
}

/// Runs the stand-ins until the lab is down.
pub(super) fn run() -> Result<()> {
    let lab = Detached::find()?.context("no lab is up: cargo xtask lab up --stand-ins")?;
    runtime()?.block_on(async {
        let mut cells = Vec::new();
        for (member, _) in MEMBERS {
            let cell = plane(&lab, member).await?;
            cells.push((
                Provider::start(cell.client(), Pace::LIFELIKE),
                Networks::start(cell.client()),
            ));
        }
        let project = plane(&lab, PROJECT).await?;
        let _quota = Quota::by_grants(project.client());
        println!("{AT_WORK}");
        while lab.is_up() {
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    })
}

/// Kinds, sites, the network that examples use, and what a new project is granted.
async fn furnish(lab: &Detached) -> Result<()> {
    define(&plane(lab, "hub").await?, &[]).await?;
    let project = plane(lab, PROJECT).await?;
    define(&project, &IN_PROJECTS).await?;
    project.apply(&objects::network(NAMESPACE, "default")).await?;
    let grant = objects::resource_grant(NAMESPACE, PROJECT, &Budget::SHIPPED);
    project.apply(&grant).await?;
    for (member, city) in MEMBERS {
        project.apply(&objects::location_binding(city)).await?;
        let cell = plane(lab, member).await?;
        define(&cell, &IN_CELLS).await?;
        cell.apply(&objects::location(city)).await?;
        // Where a cell records which projects hold its claims.
        cell.apply(&objects::namespace("compute-system")).await?;
    }
    Ok(())
}

async fn plane(lab: &Detached, name: &str) -> Result<Plane> {
    let found = lab.planes().find(|(plane, ..)| *plane == name);
    let (.., kubeconfig) =
        found.with_context(|| format!("the lab has no plane {name}: it was not started with --stand-ins"))?;
    Plane::connect(name, kubeconfig).await
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Runtime::new().context("failed to start a runtime")
}

fn pid_file(lab: &Detached) -> PathBuf {
    lab.dir().join("stand-ins.pid")
}

fn log(lab: &Detached) -> PathBuf {
    lab.logs().join("stand-ins.log")
}

/// Whether the process is there and is ours: the id may have gone to another program since.
fn is_companion(pid: u32) -> bool {
    let command = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
    command.ends_with(b"lab\0stand-ins\0")
}
