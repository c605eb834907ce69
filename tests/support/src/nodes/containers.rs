//! What a node needs that runs containers: a kubelet of the lab, and containerd and runc of the machine.

use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::Node;
use crate::address::free_address;
use crate::guarded::Guarded;
use crate::{Plane, artifacts};

const PORT: u16 = 10_250;
const HEALTH_PORT: u16 = 10_248;

/// Started by root, with its files, its programs and its name.
const SCRIPT: &str = include_str!("containers.sh");
const PROGRAMS: [&str; 4] = ["containerd", "ctr", "runc", "unshare"];
/// Where distributions have the plugins that give Pods their network.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Why this machine cannot run containers, and what to do about it.
#[must_use]
pub fn missing() -> Option<String> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return Some("only root may start containers".to_owned());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&str| std::env::split_paths(&paths).any(|dir| dir.join(program).is_file());
    let absent: Vec<&str> = PROGRAMS.into_iter().filter(|program| !is_there(program)).collect();
    if !absent.is_empty() || plugins().is_none() {
        return Some(format!(
            "missing are {absent:?} or the plugins ptp and host-local in {}: apt-get install containerd runc \
             containernetworking-plugins",
            PLUGINS.join(" or ")
        ));
    }
    None
}

fn plugins() -> Option<&'static Path> {
    let has_all = |dir: &&Path| ["ptp", "host-local"].iter().all(|plugin| dir.join(plugin).is_file());
    PLUGINS.into_iter().map(Path::new).find(has_all)
}

/// Starts it in a directory for its files, for an API server that it registers with by this name.
pub(super) fn start(plane: &Plane, dir: &Path, name: String) -> Result<Node> {
    if let Some(missing) = missing() {
        bail!("failed to start a node that runs containers: {missing}");
    }
    let address = free_address(&[PORT, HEALTH_PORT])?;
    let programs = artifacts::lab_programs_and_kubelet()?;
    let group = format!("popcell-lab-{}", address.to_string().replace('.', "-"));
    write(dir, "containers.sh", SCRIPT)?;
    write(dir, "containerd.toml", &containerd(dir)?)?;
    write(dir, "kubelet.yaml", &kubelet(dir, address, &group).to_string())?;
    std::fs::create_dir(dir.join("cni")).context("failed to make a directory")?;
    write(&dir.join("cni"), "lab.conflist", &network(dir, address).to_string())?;
    let arguments = [
        dir.join("containers.sh"),
        dir.to_owned(),
        programs,
        PathBuf::from(group),
        plane.kubeconfig().to_owned(),
        PathBuf::from(&name),
    ];
    let arguments = arguments.map(|one| one.display().to_string());
    Ok(Node {
        name,
        process: Guarded::spawn(Path::new("sh"), &arguments, &dir.join("containers.log"))?,
        health: (address, HEALTH_PORT, "/healthz"),
    })
}

fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let file = dir.join(name);
    std::fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))
}

fn containerd(dir: &Path) -> Result<String> {
    let plugins = plugins().context("no plugins")?.display();
    let dir = dir.display();
    // Without CAP_SYS_RESOURCE, as in many sandboxes, nobody may make a process less likely to be killed than it is.
    Ok(format!(
        r#"version = 2
root = "{dir}/containerd"
state = "{dir}/state"
[grpc]
address = "{dir}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "lab.test/pause:1"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{dir}/cni"
"#
    ))
}

fn kubelet(dir: &Path, address: Ipv4Addr, group: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "port": PORT,
        "readOnlyPort": 0,
        "healthzBindAddress": address,
        "healthzPort": HEALTH_PORT,
        "authentication": { "anonymous": { "enabled": false }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "containerRuntimeEndpoint": format!("unix://{}/containerd.sock", dir.display()),
        "volumePluginDir": dir.join("plugins"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{group}"),
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "makeIPTablesUtilChains": false,
        "resolvConf": "",
        "oomScoreAdj": 0,
        "enableControllerAttachDetach": false,
        // The disk of the machine is not the lab's to clean.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "1Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
        },
    })
}

/// Pods are reached from the machine; nothing else is reached from them. Of the addresses that are for tests of networks (RFC 2544).
fn network(dir: &Path, address: Ipv4Addr) -> serde_json::Value {
    let [_, _, third, fourth] = address.octets();
    json!({
        "cniVersion": "0.4.0",
        "name": "lab",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "dataDir": dir.join("addresses"),
                "subnet": format!("198.{}.{fourth}.0/24", 18 + third % 2),
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    })
}
