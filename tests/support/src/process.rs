//! What a process takes, as Linux counts it.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory in KiB.
pub fn resident_kib(pid: u32) -> Result<f64> {
    status(pid, "VmRSS:", " kB")
}

/// The most resident memory that it ever had, in KiB.
pub fn peak_kib(pid: u32) -> Result<f64> {
    status(pid, "VmHWM:", " kB")
}

/// Threads of the system.
pub fn threads(pid: u32) -> Result<f64> {
    status(pid, "Threads:", "")
}

/// Open files, of which connections are some.
pub fn files(pid: u32) -> Result<usize> {
    let dir = format!("/proc/{pid}/fd");
    Ok(fs::read_dir(&dir)
        .with_context(|| format!("failed to list {dir}"))?
        .count())
}

fn status(pid: u32, key: &str, unit: &str) -> Result<f64> {
    let file = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&file).with_context(|| format!("failed to read {file}"))?;
    value(&status, key, unit).with_context(|| format!("{file} has no {key}"))
}

fn value(status: &str, key: &str, unit: &str) -> Option<f64> {
    status
        .lines()
        .find_map(|line| line.strip_prefix(key)?.trim().strip_suffix(unit)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_key() {
        let status = "VmHWM:\t   34560 kB\nVmRSS:\t   34000 kB\nThreads:\t3\n";
        let near = |key, unit, expected: f64| (value(status, key, unit).unwrap() - expected).abs() < 0.5;
        assert!(near("VmRSS:", " kB", 34000.0));
        assert!(near("VmHWM:", " kB", 34560.0));
        assert!(near("Threads:", "", 3.0));
        assert!(value(status, "VmSwap:", " kB").is_none());
    }
}
