//! `lab`: a lab that stays, to look around in; what `lab up --stand-ins` leaves running beside it; and how to run our
//! programs on it, by hand or under a debugger.
//!
//! The stand-ins are a project with quota, and in each member a provider and network services. One process runs them all; it
//! ends by itself soon after the lab, however that ends.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use popcell_test_support::definitions::define;
use popcell_test_support::lab::Detached;
use popcell_test_support::stand_ins::{
    Budget, FAIL, Failure, IN_CELLS, IN_PROJECTS, Networks, ON_HUB, Pace, Provider, Quota,
};
use popcell_test_support::{LabSpec, Member, Plane, artifacts, objects, workspace};
use serde_json::{Value, json};

/// The members, each with its city.
const MEMBERS: [(&str, &str); 2] = [("dfw", "DFW"), ("ord", "ORD")];

/// Start, end or look at a lab that stays.
#[derive(Subcommand)]
pub(crate) enum Lab {
    /// Build the lab's programs
    Build,
    /// Start a Karmada with the members dfw (Push, city DFW) and ord (Pull, city ORD)
    Up {
        /// Also run what is outside popcell: a project with quota, and in each member a provider and network services;
        /// and say how to run our programs on it, by hand or under a debugger
        #[arg(long)]
        stand_ins: bool,
    },
    /// End it
    Down,
    /// Say what runs and how to talk to it
    Status,
    /// What `up --stand-ins` leaves running: ends with the lab
    #[command(hide = true)]
    StandIns,
}

impl Lab {
    /// Carries the command out.
    pub(crate) fn run(&self) -> Result<()> {
        match self {
            Self::Build => println!("{}", artifacts::lab_programs()?.display()),
            Self::Up { stand_ins } => {
                let spec = if *stand_ins { spec().plane(PROJECT) } else { spec() };
                let lab = Detached::up(&spec, &mut |line| println!("lab: {line}"))?;
                if *stand_ins {
                    start_companions(&lab)?;
                }
                report(&lab)?;
            }
            Self::Down => match Detached::find()? {
                Some(lab) => {
                    let companions = companions_of(&lab);
                    lab.down()?;
                    if let Some(companions) = companions {
                        companions.ended()?;
                    }
                    println!("lab: down");
                }
                None => println!("lab: none is up"),
            },
            Self::StandIns => run_stand_ins()?,
            Self::Status => report(&Detached::find()?.context("no lab is up: cargo xtask lab up")?)?,
        }
        Ok(())
    }
}

/// A Push and a Pull member, each a city.
pub(crate) fn spec() -> LabSpec {
    let [(push, dallas), (pull, chicago)] = MEMBERS;
    LabSpec::karmada()
        .member(Member::push(push).city(dallas))
        .member(Member::pull(pull).city(chicago))
}

fn report(lab: &Detached) -> Result<()> {
    for (name, pid, alive) in lab.processes() {
        let state = if alive {
            format!("pid {pid}")
        } else {
            "ended, or restarted".to_owned()
        };
        println!("{name:40} {state}");
    }
    let companions = companions_of(lab);
    if let Some(companions) = &companions {
        println!("{}", companions.describe());
    }
    println!("\nlogs: {}\n", lab.logs().display());
    let karmadactl = lab.program("karmadactl");
    for (name, mode, url, kubeconfig) in lab.planes() {
        let mode = if mode.is_empty() {
            String::new()
        } else {
            format!(" ({mode})")
        };
        println!(
            "{name}{mode} at {url}\n  {} --kubeconfig {} get ns",
            karmadactl.display(),
            kubeconfig.display()
        );
    }
    if companions.is_some() {
        println!("\n{}", lines(lab)?);
    }
    println!("\nto end it: cargo xtask lab down");
    Ok(())
}

const WEBHOOK_PORT: u16 = 21_000;
const WEBHOOK_HEALTH_PORT: u16 = 21_001;
/// Health and metrics of the first controller; each further one has the next two.
const CONTROLLER_PORT: u16 = 21_010;

/// Writes the controllers' configuration into the lab's directory, and answers the lines that run each program on the
/// lab: webhook, management controllers of the project, and those of each cell, which start Instances without quota.
fn lines(lab: &Detached) -> Result<String> {
    let target = workspace::target_dir();
    let program = |name: &str| target.join("debug").join(name).display().to_string();
    let at = |port: u16| format!("{}:{port}", lab.address());
    let kubeconfig = |plane: &str| -> Result<String> {
        let found = lab.planes().find(|(name, ..)| *name == plane);
        let (.., file) = found.with_context(|| format!("the lab has no plane {plane}"))?;
        Ok(file.display().to_string())
    };
    let hub = kubeconfig("hub")?;
    let authority = lab.dir().join("webhook-ca");
    let modules = target.join("modules").display().to_string();
    let mut lines = vec![
        "to run our programs on it, each line also behind `rust-lldb --` or `rust-gdb --args`:".to_owned(),
        "  cargo build --bins && cargo xtask module".to_owned(),
        // The profile for tests leaves out what a debugger shows of variables.
        "  (for a debugger: CARGO_PROFILE_DEV_DEBUG=full CARGO_PROFILE_DEV_PACKAGE_POPCELL_CORE_OPT_LEVEL=0 cargo build \
         --bin popcell-controller)"
            .to_owned(),
        format!(
            "  {} --module-dir={modules} --listen={} --health-listen={} --self-signed --ca-dir={} --san={}",
            program("popcell-webhook"),
            at(WEBHOOK_PORT),
            at(WEBHOOK_HEALTH_PORT),
            authority.display(),
            lab.address(),
        ),
        format!(
            "  {} register --module-dir={modules} --url=https://{} --ca-file={} --kubeconfig={hub}",
            program("popcell"),
            at(WEBHOOK_PORT),
            authority.join("ca.crt").display(),
        ),
    ];
    let cells = MEMBERS
        .iter()
        .map(|(member, _)| ("cell", *member, json!({ "mode": "single", "clusterName": member })));
    let management = ("management", PROJECT, json!({ "mode": "single" }));
    for ((group, plane, discovery), port) in std::iter::once(management)
        .chain(cells)
        .zip((CONTROLLER_PORT..).step_by(2))
    {
        let file = configuration(lab.dir(), plane, &discovery, &at(port + 1))?;
        lines.push(format!(
            "  {} --enable-{group}-controllers --server-config={} --kubeconfig={} --federation-kubeconfig={hub} \
             --leader-elect=false --health-probe-bind-address={}",
            program("popcell-controller"),
            file.display(),
            kubeconfig(plane)?,
            at(port),
        ));
    }
    Ok(lines.join("\n"))
}

/// Writes the configuration of one controller, and answers its file.
fn configuration(dir: &Path, plane: &str, discovery: &Value, metrics: &str) -> Result<PathBuf> {
    let document = json!({
        "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
        "kind": "WorkloadOperator",
        "discovery": discovery,
        "metricsServer": { "bindAddress": metrics, "secureServing": false },
    });
    let file = dir.join(format!("controller-{plane}.yaml"));
    // JSON is YAML.
    fs::write(&file, document.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(file)
}

/// The plane that stands for a project's control plane.
const PROJECT: &str = "project";
const NAMESPACE: &str = "default";
/// What the process says when its controllers run.
const AT_WORK: &str = "stand-ins: at work";

const PAUSE: Duration = Duration::from_millis(200);
const SOON: Duration = Duration::from_mins(1);

/// The process beside a lab.
struct Companions {
    pid: u32,
    log: PathBuf,
}

impl Companions {
    /// What runs, and how to make it fail.
    fn describe(&self) -> String {
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
    fn ended(self) -> Result<()> {
        let end = Instant::now() + SOON;
        while is_companion(self.pid) {
            ensure!(Instant::now() < end, "the stand-ins, process {}, do not end", self.pid);
            sleep(PAUSE);
        }
        Ok(())
    }
}

/// The process beside this lab, if there is one.
fn companions_of(lab: &Detached) -> Option<Companions> {
    let pid = fs::read_to_string(pid_file(lab)).ok()?.trim().parse().ok()?;
    is_companion(pid).then(|| Companions { pid, log: log(lab) })
}

/// Gives the planes what the stand-ins need, and starts the process.
fn start_companions(lab: &Detached) -> Result<()> {
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
fn run_stand_ins() -> Result<()> {
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
    define(&plane(lab, "hub").await?, &ON_HUB).await?;
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
