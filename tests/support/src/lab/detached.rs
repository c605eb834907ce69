//! A lab that stays after the command that started it: `cargo xtask lab up`. There is one in a build directory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::LabSpec;
use super::events::{Event, Ready};
use crate::{artifacts, workspace};

const PAUSE: Duration = Duration::from_millis(100);
/// The supervisor gives each program ten seconds.
const END: Duration = Duration::from_mins(1);

/// A lab that stays.
#[derive(Debug)]
pub struct Detached {
    ready: Ready,
}

impl Detached {
    /// Starts the lab and waits until it serves; `progress` is told what happens.
    ///
    /// # Errors
    /// When one runs already, or cannot start.
    pub fn up(spec: &LabSpec, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        ensure!(
            Self::find()?.is_none(),
            "a lab is up already in {}",
            directory().display()
        );
        let bin = artifacts::lab_programs()?;
        let dir = directory();
        fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
        let file = dir.join("spec.json");
        fs::write(&file, super::document(spec, &dir, &bin)?)
            .with_context(|| format!("failed to write {}", file.display()))?;
        let create = |name: &str| File::create(dir.join(name)).with_context(|| format!("failed to create {name}"));
        let mut child = Command::new(bin.join("lab"))
            .args(["run", "--detached", "--spec"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(create("events.log")?)
            .stderr(create("supervisor.log")?)
            // Not in our group: an interrupt in this terminal is not for the lab.
            .process_group(0)
            .spawn()
            .context("failed to start the lab")?;
        let ready = follow(&dir, &mut child, progress)?;
        Ok(Self { ready })
    }

    /// The lab that is up, if one is.
    pub fn find() -> Result<Option<Self>> {
        let file = directory().join("lab.json");
        if !file.is_file() {
            return Ok(None);
        }
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        let ready: Ready = serde_json::from_str(&text).with_context(|| format!("{} makes no sense", file.display()))?;
        Ok(is_lab(ready.supervisor_pid).then_some(Self { ready }))
    }

    /// Whether it is still up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        is_lab(self.ready.supervisor_pid)
    }

    /// Directory of the lab.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.ready.dir
    }

    /// The loopback address that only this lab uses.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.ready.address
    }

    /// Ends the lab and waits until nothing of it is left.
    pub fn down(self) -> Result<()> {
        let pid = self.ready.supervisor_pid;
        let sent = Command::new("kill")
            .arg(pid.to_string())
            .status()
            .context("failed to start kill")?;
        ensure!(sent.success(), "failed to end the lab's supervisor, process {pid}");
        let end = Instant::now() + END;
        while is_lab(pid) {
            ensure!(
                Instant::now() < end,
                "the lab's supervisor, process {pid}, does not end"
            );
            sleep(PAUSE);
        }
        Ok(())
    }

    /// Name, mode (`Push`, `Pull` or empty), URL and kubeconfig of each plane, the hub first.
    pub fn planes(&self) -> impl Iterator<Item = (&str, &str, &str, &Path)> {
        let planes = self.ready.all_planes();
        planes.map(|(name, info)| (name, info.mode.as_str(), info.url.as_str(), info.kubeconfig.as_path()))
    }

    /// Name of each process, its id at the start, and whether that process is there.
    pub fn processes(&self) -> impl Iterator<Item = (&str, u32, bool)> {
        self.ready
            .pids
            .iter()
            .map(|(name, pid)| (name.as_str(), *pid, process(*pid).exists()))
    }

    /// A program that was built with the lab.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.ready.bin.join(name)
    }

    /// Directory of the processes' logs.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.ready.dir.join("logs")
    }
}

fn directory() -> PathBuf {
    workspace::target_dir().join("lab-up")
}

/// Reads the events as they are written, until the lab serves or has failed.
fn follow(dir: &Path, child: &mut Child, progress: &mut dyn FnMut(&str)) -> Result<Ready> {
    let events = File::open(dir.join("events.log")).context("failed to open the lab's events")?;
    let mut events = BufReader::new(events);
    let mut line = String::new();
    loop {
        // Asked before reading: what a program wrote before it ended is then read before its end is noticed.
        let ended = child.try_wait().context("failed to ask for the lab's exit status")?;
        events.read_line(&mut line).context("failed to read the lab's events")?;
        if line.ends_with('\n') {
            let event: Event =
                serde_json::from_str(&line).with_context(|| format!("a line that is no event: {line}"))?;
            if let Some(ready) = event.while_starting(progress)? {
                return Ok(ready);
            }
            line.clear();
        } else if let Some(status) = ended {
            let complaint = fs::read_to_string(dir.join("supervisor.log")).unwrap_or_default();
            bail!("failed to start the lab: the supervisor ended with {status}:\n{complaint}");
        } else {
            sleep(PAUSE);
        }
    }
}

fn process(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Whether the process is there and is a supervisor: the id may have gone to another program since.
fn is_lab(pid: u32) -> bool {
    let command = fs::read(process(pid).join("cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    program.ends_with(b"/lab")
}
