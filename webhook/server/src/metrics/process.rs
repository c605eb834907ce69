//! The process as Linux sees it, under the names that every dashboard knows.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::{counter, gauge};

/// `USER_HZ`: fixed at 100 in Linux's interface to user space (proc(5)).
const TICKS_PER_SECOND: f64 = 100.0;
/// proc(5) counts fields from 1; these are `utime`, `stime` and `vsize` after the two that precede the state.
const AFTER_NAME: [usize; 3] = [11, 12, 20];

#[derive(Debug)]
pub(super) struct Process {
    started: f64,
}

impl Default for Process {
    fn default() -> Self {
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            started: started.as_secs_f64(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let out = &mut encoder;
        if let Some([user, system, virtual_bytes]) = stat() {
            let cpu = (user + system) / TICKS_PER_SECOND;
            counter(out, "process_cpu_seconds", "CPU time of the process", cpu)?;
            gauge(
                out,
                "process_virtual_memory_bytes",
                "Address space of the process",
                virtual_bytes,
            )?;
        }
        if let Some(resident) = resident_bytes() {
            gauge(out, "process_resident_memory_bytes", "Memory of the process", resident)?;
        }
        if let Some(open) = open_files() {
            gauge(out, "process_open_fds", "Open file descriptors", open)?;
        }
        if let Some(max) = max_files() {
            gauge(out, "process_max_fds", "File descriptors that may be open", max)?;
        }
        gauge(
            out,
            "process_start_time_seconds",
            "Start of the process, in seconds since 1970",
            self.started,
        )
    }
}

fn stat() -> Option<[f64; 3]> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may contain anything, so count from its end.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let [user, system, virtual_bytes] = AFTER_NAME.map(|index| fields.get(index)?.parse::<f64>().ok());
    Some([user?, system?, virtual_bytes?])
}

fn resident_bytes() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}

fn open_files() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u32::try_from(count).ok().map(f64::from)
}

/// The soft limit; `None` where there is none.
pub(crate) fn max_files() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_can_be_read() {
        let [user, system, virtual_bytes] = stat().unwrap();
        let resident = resident_bytes().unwrap();
        assert!(user + system < 1e9);
        assert!(resident > 1e5 && virtual_bytes > resident, "{virtual_bytes} {resident}");
        assert!(open_files().unwrap() >= 3.0);
        assert!(max_files().unwrap() >= 3.0);
    }
}
