//! The program under the memory limit of its pod.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Environment, Webhook};

/// What one abuse may make the program use, which is less than all that a pod may: they do not come all at once here.
pub(crate) const MEMORY: u64 = 512 * 1024 * 1024;

/// A process, in a control group of its own where that is asked for.
pub(crate) struct Confined {
    pub(crate) webhook: Webhook,
    group: Option<Group>,
}

/// The most memory that a process had.
pub(crate) struct Peak {
    resident: u64,
    /// With what the kernel had for it, of sockets above all.
    group: Option<u64>,
}

struct Group {
    path: PathBuf,
    /// Files of which each has a part of the peak.
    peaks: &'static [&'static str],
}

impl Peak {
    /// As what it counts for the limit. Pages of the program's file may belong to another group here.
    pub(crate) fn bytes(&self) -> u64 {
        self.resident.max(self.group.unwrap_or(0))
    }
}

impl Confined {
    pub(crate) fn start(environment: &Environment, in_group: bool) -> Self {
        let group = in_group.then(Group::make);
        let mut command = environment.command();
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
            resident: kib * 1024,
            group: self.group.as_ref().map(Group::peak),
        }
    }
}

impl Group {
    /// Where there is no right to make one the test ends: without one it would prove less than it says.
    fn make() -> Self {
        // The older control groups count sockets by themselves, once there is a limit for them.
        let (root, limits, peaks): (_, &[&str], &[&str]) = if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
            ("/sys/fs/cgroup", &["memory.max"], &["memory.peak"])
        } else {
            (
                "/sys/fs/cgroup/memory",
                &["memory.limit_in_bytes", "memory.kmem.tcp.limit_in_bytes"],
                &["memory.max_usage_in_bytes", "memory.kmem.tcp.max_usage_in_bytes"],
            )
        };
        let path = Path::new(root).join(format!("popcell-abuse-{}", std::process::id()));
        let made = fs::create_dir_all(&path);
        made.unwrap_or_else(|error| panic!("failed to make the control group {}: {error}", path.display()));
        let group = Self { path, peaks };
        for file in limits {
            let file = group.path.join(file);
            let limited = fs::write(&file, MEMORY.to_string());
            limited.unwrap_or_else(|error| panic!("failed to write {}: {error}", file.display()));
        }
        group
    }

    fn peak(&self) -> u64 {
        let read = |file| fs::read_to_string(self.path.join(file)).unwrap();
        let parts = self.peaks.iter().map(|file| read(file).trim().parse::<u64>().unwrap());
        parts.sum()
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
        write!(f, "{} MiB resident", self.resident >> 20)?;
        match self.group {
            Some(group) => write!(f, ", {} MiB in its control group", group >> 20),
            None => write!(f, ", without a control group"),
        }
    }
}
