//! Whether the kernel may write memory of this process to swap.
//!
//! wasmtime's `pagemap_scan` clears the pages that an instance wrote, and looks for them among the pages that are present.
//! A page that was swapped out is not present: it keeps its bytes, and the next instance in that place reads them
//! (bytecodealliance/wasmtime#14357). So the scan is used only where nothing can be swapped out.

use std::fs;
use std::path::{Path, PathBuf};

/// Whether memory of this process may be swapped out. What cannot be read counts as yes.
pub(crate) fn may_swap() -> bool {
    let devices = fs::read_to_string("/proc/swaps").ok();
    let group = fs::read_to_string("/proc/self/cgroup").ok();
    let limits = group.as_deref().map(|group| limits(Path::new("/sys/fs/cgroup"), group));
    decide(devices.as_deref(), &limits.unwrap_or_default())
}

/// `devices` is /proc/swaps; `limits` are the texts of memory.swap.max from this process's group upwards.
fn decide(devices: Option<&str>, limits: &[String]) -> bool {
    // The first line is a heading.
    let has_device = devices.is_none_or(|devices| devices.lines().skip(1).any(|line| !line.trim().is_empty()));
    has_device && !limits.iter().any(|limit| limit.trim() == "0")
}

/// The limits on swap of the group in /proc/self/cgroup (version 2: `0::/path`) and of all groups around it.
fn limits(root: &Path, group: &str) -> Vec<String> {
    let path = group.lines().find_map(|line| line.strip_prefix("0::/"));
    let Some(path) = path.filter(|path| !path.split('/').any(|part| part == "..")) else {
        return Vec::new();
    };
    let group: PathBuf = root.join(path);
    group
        .ancestors()
        .take_while(|group| group.starts_with(root))
        .filter_map(|group| fs::read_to_string(group.join("memory.swap.max")).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
    const ONE: &str = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0 partition 8388604 0 100\n";

    #[test]
    fn swap_is_possible_with_a_device_and_without_a_limit_of_zero() {
        let max = || vec!["max\n".to_owned(), "1073741824\n".to_owned()];
        let zero = vec!["max\n".to_owned(), "0\n".to_owned()];
        assert!(!decide(Some(NONE), &max()));
        assert!(!decide(Some(NONE), &[]));
        assert!(decide(Some(ONE), &max()));
        assert!(decide(Some(ONE), &[]));
        assert!(!decide(Some(ONE), &zero));
    }

    #[test]
    fn what_cannot_be_read_counts_as_swap() {
        assert!(decide(None, &[]));
        assert!(!decide(None, &["0\n".to_owned()]));
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(limits(nowhere.path(), "0::/a/b\n"), Vec::<String>::new());
    }

    #[test]
    fn a_limit_of_any_group_around_the_process_counts() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("kubepods/pod");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.swap.max"), "max\n").unwrap();
        fs::write(root.path().join("kubepods/memory.swap.max"), "0\n").unwrap();
        let found = limits(root.path(), "1:name=x:/y\n0::/kubepods/pod\n");
        assert_eq!(found, ["max\n", "0\n"]);
        // The process sees its own group as the root, as in a container.
        fs::write(root.path().join("memory.swap.max"), "max\n").unwrap();
        assert_eq!(limits(root.path(), "0::/\n"), ["max\n"]);
        // A group outside of what is mounted here says nothing.
        assert_eq!(limits(root.path(), "0::/../other\n"), Vec::<String>::new());
    }
}
