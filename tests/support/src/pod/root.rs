//! The root directory of a container: what stands in for its image.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::write;
use crate::artifacts::{self, Profile};

/// What of this machine stands in for the image: libraries, some by symbolic links, and authorities.
const SHARED: [&str; 5] = ["lib", "lib64", "usr/lib", "usr/lib64", "etc/ssl"];

/// Makes the directory, and answers what has to be mounted in it. `hosts` is added to its /etc/hosts.
pub(super) fn make(root: &Path, hosts: &str) -> Result<Vec<Value>> {
    write(
        &root.join("etc/hosts"),
        format!("127.0.0.1 localhost\n{hosts}").as_bytes(),
    )?;
    // As in the image.
    write(&root.join("etc/nsswitch.conf"), b"hosts: files dns\n")?;
    write(
        &root.join("etc/passwd"),
        b"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    )?;
    fs::create_dir_all(root.join("tmp")).context("failed to make the container's /tmp")?;
    let mut mounts = Vec::new();
    for shared in SHARED {
        let here = Path::new("/").join(shared);
        if let Ok(target) = fs::read_link(&here) {
            symlink(target, root.join(shared)).with_context(|| format!("failed to link {}", here.display()))?;
        } else if here.is_dir() {
            mounts.push(json!({ "from": here, "to": here }));
        }
    }
    let programs = artifacts::programs(Profile::Dev)?;
    for program in [
        programs.webhook,
        programs.controller,
        programs.provider,
        programs.popcell,
    ] {
        let name = program.file_name().context("a program without a name")?;
        mounts.push(json!({ "from": program, "to": Path::new("/usr/local/bin").join(name) }));
    }
    mounts.push(json!({ "from": artifacts::modules()?, "to": "/modules" }));
    Ok(mounts)
}
