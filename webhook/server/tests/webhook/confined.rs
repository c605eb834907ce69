//! The program under the memory limit of its pod.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Webhook, World};

/// What a pod of the webhook may use.
pub(crate) const MEMORY: u64 = 512 * 1024 * 1024;

/// A process, in a control group of its own where the machine lets us make one.
pub(crate) struct Confined {
    pub(crate) webhook: Webhook,
    group: Option<Group>,
}

/// The most memory that a process had.
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    group: Option<u64>,
}

struct Group {
    path: PathBuf,
    peak: &'static str,
}

impl Confined {
    pub(crate) fn start(world: &World, in_group: bool) -> Self {
        let group = in_group.then(Group::make).flatten();
        let mut command = world.command();
        if let Some(Group { path, .. }) = &group {
            let inner = command;
            command = Command::new("sh");
            let script = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", path.display());
            command
                .args(["-c", &script])
                .arg(inner.get_program())
                .args(inner.get_args());
            command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        }
        let webhook = Webhook::start(command);
        Self { webhook, group }
    }

    pub(crate) fn peak(&self) -> Peak {
        let text = fs::read_to_string(format!("/proc/{}/status", self.webhook.pid())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib: u64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
        Peak {
            bytes: kib * 1024,
            group: self.group.as_ref().and_then(Group::peak),
        }
    }
}

impl Group {
    /// `None` where there is no right to make one.
    fn make() -> Option<Self> {
        let (root, limit, peak) = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            ("/sys/fs/cgroup", "memory.max", "memory.peak")
        } else {
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
            )
        };
        let path = Path::new(root).join(format!("popcell-abuse-{}", std::process::id()));
        fs::create_dir_all(&path).ok()?;
        let group = Self { path, peak };
        fs::write(group.path.join(limit), MEMORY.to_string()).ok()?;
        Some(group)
    }

    fn peak(&self) -> Option<u64> {
        fs::read_to_string(self.path.join(self.peak)).ok()?.trim().parse().ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The process ends before its group is dropped; its group may be busy for a moment.
        for _ in 0..50 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} MiB resident", self.bytes >> 20)?;
        match self.group {
            Some(group) => write!(f, ", {} MiB in its control group", group >> 20),
            None => write!(f, ", without a control group"),
        }
    }
}
