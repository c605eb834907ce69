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

/// Pages that it had to be given so far: memory that it asks for and touches shows here, also where it gives it back.
pub fn page_faults(pid: u32) -> Result<f64> {
    let file = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&file).with_context(|| format!("failed to read {file}"))?;
    faults(&stat).with_context(|| format!("{file} counts no page faults"))
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

/// The sum of the minor and the major ones: fields 10 and 12. What is before the last `)` may hold spaces.
fn faults(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let [minor, major] = [7, 9].map(|field| fields.get(field).and_then(|count| count.parse::<f64>().ok()));
    Some(minor? + major?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_faults_are_found_behind_any_name() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 700 9 3 0 12 5 0 0 20 0 5 0 100 1000 200";
        assert!((faults(stat).unwrap() - 703.0).abs() < 0.5);
        assert!(faults("42 (a").is_none());
    }

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
