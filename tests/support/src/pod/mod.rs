//! A Pod of a Deployment or Job, run as a kubelet and a container runtime run it: the program with exactly the command, arguments,
//! environment, files and user of its container, in namespaces and in a root directory of its own. A setting of the Pod that
//! is not understood here is an error.
//!
//! The image is stood in for by programs of the target directory and the libraries of this machine. Limits, seccomp and what
//! NetworkPolicies allow are not enforced.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::kind::Kind;
use crate::probe::{get, sum_of};
use crate::{Lab, Plane, artifacts, eventually, manifests};

mod root;
mod volumes;

use volumes::Volumes;

/// How long it may take until the Pod is ready: an unoptimised webhook compiles its modules.
const START: Duration = Duration::from_mins(2);
/// What the image sets (`xtask/src/dist/image.rs`).
const IMAGE: [(&str, &str); 2] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"),
];
const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Why this machine cannot run a Pod, if it cannot.
pub fn obstacle() -> Result<Option<String>> {
    let program = artifacts::lab_programs()?.join("pod");
    let output = Command::new(&program).arg("check").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("failed to start {}", program.display()))?;
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Ok((!output.status.success()).then(|| format!("namespaces cannot be made here, run as root: {complaint}")))
}

/// A cluster of the lab whose Deployments and Jobs can be started.
pub struct Node<'a> {
    lab: &'a Lab,
    home: &'a Plane,
    /// Names that the Pods can resolve, and where these lead: host and port, and an address of this machine.
    names: Vec<(String, u16, String)>,
}

impl<'a> Node<'a> {
    /// Pods there reach the API servers of the lab at their own addresses, and nothing else.
    #[must_use]
    pub fn of(lab: &'a Lab, home: &'a Plane) -> Self {
        Self {
            lab,
            home,
            names: Vec::new(),
        }
    }

    /// Lets the Pods resolve a host name, and reach a server of this machine at a port of it: its URL, or its address and port.
    pub fn name(mut self, host: &str, port: u16, server: &str) -> Result<Self> {
        self.names.push((host.to_owned(), port, address(server)?));
        Ok(self)
    }

    /// Starts one Pod of a Deployment or CronJob as it is stored, with the ConfigMaps and Secrets that are stored beside it.
    pub async fn start(&self, kind: Kind, namespace: &str, name: &str) -> Result<Pod> {
        let stored = self.home.expect(kind, Some(namespace), name).await?;
        let template = manifests::pod_template(&stored.data);
        self.start_container(namespace, name, &template["spec"])
            .await
            .with_context(|| format!("failed to start a Pod of {} {namespace}/{name}", kind.kind))
    }

    async fn start_container(&self, namespace: &str, name: &str, pod: &Value) -> Result<Pod> {
        let container = only_container(pod)?;
        let dir = tempfile::Builder::new().prefix("popcell-pod-").tempdir();
        let dir = dir.context("failed to make a directory")?;
        let volumes = Volumes {
            lab: self.lab,
            home: self.home,
            namespace,
            pod,
            dir: dir.path(),
        };
        let (mut mounts, empty) = volumes.mounted(container).await?;
        let root = dir.path().join("root");
        let hosts = self
            .names
            .iter()
            .map(|(host, ..)| format!("{} {host}\n", self.lab.address()));
        mounts.extend(root::make(&root, &hosts.collect::<String>())?);
        let numbers = ["runAsUser", "runAsGroup", "fsGroup"].map(|key| pod["securityContext"][key].as_u64());
        let [Some(user), Some(group), Some(fs_group)] = numbers else {
            bail!("user, group or fsGroup is missing: {}", pod["securityContext"]);
        };
        ensure!(
            container["securityContext"]["readOnlyRootFilesystem"] == true,
            "its root would be writable: {container}"
        );
        let spec = json!({
            "dir": dir.path(),
            "root": root,
            "mounts": mounts,
            "empty": empty,
            "command": command(container)?,
            "env": self.environment(name, container)?,
            "user": user,
            "group": group,
            "fs_group": fs_group,
            "reach": self.reach()?,
            "ports": ports(container)?.into_values().collect::<Vec<u16>>(),
        });
        let file = dir.path().join("pod.json");
        fs::write(&file, spec.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
        let runner = self.lab.program("pod");
        let arguments = ["run".to_owned(), file.display().to_string()];
        let process = Guarded::spawn(&runner, &arguments, &dir.path().join("program.log"))?;
        let grace = pod["terminationGracePeriodSeconds"]
            .as_u64()
            .context("no grace period")?;
        Ok(Pod {
            name: name.to_owned(),
            container: container.clone(),
            grace: Duration::from_secs(grace),
            process: Some(process),
            dir,
        })
    }

    /// All of it: what the image sets, what a kubelet adds, and the container's own. Service links are off.
    fn environment(&self, name: &str, container: &Value) -> Result<Vec<String>> {
        let mut all: Vec<String> = IMAGE.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let home = address(self.lab.url(self.home.name())?)?;
        let (host, port) = home.rsplit_once(':').context("an address without a port")?;
        all.extend([
            format!("HOSTNAME={name}-0"),
            format!("KUBERNETES_SERVICE_HOST={host}"),
            format!("KUBERNETES_SERVICE_PORT={port}"),
        ]);
        for variable in list(&container["env"]) {
            let known = variable
                .as_object()
                .is_some_and(|keys| keys.keys().all(|key| key == "name" || key == "value"));
            ensure!(known, "a variable is neither literal nor empty: {variable}");
            let name = variable["name"].as_str().context("a variable without a name")?;
            let value = literal(variable["value"].as_str().unwrap_or_default())?;
            all.push(format!("{name}={value}"));
        }
        ensure!(container.get("envFrom").is_none(), "envFrom is not understood");
        Ok(all)
    }

    /// Every API server of the lab at its address, and those that have names.
    fn reach(&self) -> Result<Vec<Value>> {
        let mut routes = Vec::new();
        for url in self.lab.urls() {
            let server = address(url)?;
            routes.push(json!({ "from": server, "to": server }));
        }
        for (_, port, server) in &self.names {
            routes.push(json!({ "from": format!("{}:{port}", self.lab.address()), "to": server }));
        }
        Ok(routes)
    }
}

/// A running Pod. It ends with this value.
pub struct Pod {
    name: String,
    container: Value,
    grace: Duration,
    process: Option<Guarded>,
    dir: TempDir,
}

impl Pod {
    /// Waits until its readiness probe succeeds at the port that it declares.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn ready(&mut self) -> Result<()> {
        let (path, port) = probe(&self.container, "readinessProbe")?;
        let what = format!("{} is ready", self.name);
        let ready = eventually(&what, START, async || {
            if let Some(status) = self.process.as_mut().context("it has ended")?.try_wait()? {
                return Ok(Err(status));
            }
            let (code, body) = get((LOOPBACK, self.port(port)?), &path).await?;
            ensure!(code == 200, "{path} answers {code}: {body}");
            Ok(Ok(()))
        });
        match ready.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(status)) => bail!("{} ended with {status}:\n{}", self.name, self.log()),
            Err(error) => Err(error.context(format!("{} wrote:\n{}", self.name, self.log()))),
        }
    }

    /// Its other probes succeed, and something listens at each port that it declares.
    pub async fn serves(&self) -> Result<()> {
        for kind in ["livenessProbe", "startupProbe"] {
            if self.container.get(kind).is_none() {
                continue;
            }
            let (path, port) = probe(&self.container, kind)?;
            let (code, body) = get((LOOPBACK, self.port(port)?), &path).await?;
            ensure!(code == 200, "{kind} {path} answers {code}: {body}");
        }
        for (name, port) in ports(&self.container)? {
            ensure!(self.listens(port).await?, "nothing listens at port {name}, {port}");
        }
        Ok(())
    }

    /// The sum of the samples of a metric, at the port that its probes ask.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let (_, port) = probe(&self.container, "readinessProbe")?;
        let (code, body) = get((LOOPBACK, self.port(port)?), "/metrics").await?;
        ensure!(code == 200, "/metrics answers {code}: {body}");
        Ok(sum_of(&body, name, &[]))
    }

    /// A connection to a port that is closed ends at once.
    async fn listens(&self, port: u16) -> Result<bool> {
        use tokio::io::AsyncReadExt;
        let stream = tokio::net::TcpStream::connect((LOOPBACK, self.port(port)?)).await;
        let mut stream = stream.context("failed to connect to the Pod")?;
        let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut [0])).await;
        Ok(!matches!(read, Ok(Ok(0) | Err(_))))
    }

    /// Waits until it ends by itself, as a Job does, and well.
    pub async fn completes(&mut self) -> Result<()> {
        let ended = eventually("it ends", START, async || {
            let status = self.process.as_mut().context("it has ended")?.try_wait()?;
            status.context("it runs")
        });
        let status = ended.await?;
        ensure!(status.success(), "{} ended with {status}:\n{}", self.name, self.log());
        Ok(())
    }

    /// An address of this machine that leads to a port of the Pod, by the port's name.
    pub fn address(&self, port: &str) -> Result<String> {
        let port = ports(&self.container)?.get(port).copied();
        Ok(format!("{LOOPBACK}:{}", self.port(port.context("no such port")?)?))
    }

    /// Ends it as a kubelet does. It must end well, and within its grace period.
    pub fn end(&mut self) -> Result<()> {
        let started = Instant::now();
        let status = self.process.take().context("it has ended")?.terminate()?;
        ensure!(status.success(), "{} ended with {status}:\n{}", self.name, self.log());
        let took = started.elapsed();
        ensure!(took < self.grace, "{} took {took:?} to end", self.name);
        Ok(())
    }

    /// What the program has written.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(self.dir.path().join("program.log"))
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The port of this machine that leads to one of the Pod.
    fn port(&self, port: u16) -> Result<u16> {
        let text = fs::read_to_string(self.dir.path().join("ports.json")).context("the Pod has no ports yet")?;
        let ports: BTreeMap<String, u16> = serde_json::from_str(&text).context("not a list of ports")?;
        let found = ports.get(&port.to_string()).copied();
        found.with_context(|| format!("the Pod does not declare port {port}"))
    }
}

fn only_container(pod: &Value) -> Result<&Value> {
    ensure!(pod.get("initContainers").is_none(), "initContainers are not understood");
    match list(&pod["containers"]) {
        [container] => Ok(container),
        others => bail!("{} containers, not one", others.len()),
    }
}

fn command(container: &Value) -> Result<Vec<&str>> {
    ensure!(
        !list(&container["command"]).is_empty(),
        "no command: the image has another"
    );
    let words = list(&container["command"]).iter().chain(list(&container["args"]));
    words
        .map(|word| literal(word.as_str().context("a word of the command is no text")?))
        .collect()
}

/// A text without references to variables, which a kubelet would replace.
fn literal(text: &str) -> Result<&str> {
    ensure!(
        !text.contains("$("),
        "a reference to a variable is not understood: {text}"
    );
    Ok(text)
}

/// Ports by name.
fn ports(container: &Value) -> Result<BTreeMap<String, u16>> {
    let each = list(&container["ports"]).iter().map(|port| {
        let number = port["containerPort"].as_u64().context("a port without a number")?;
        let name = port["name"].as_str().context("a port without a name")?;
        Ok((name.to_owned(), u16::try_from(number)?))
    });
    each.collect()
}

/// Path and port of an HTTP probe.
fn probe(container: &Value, kind: &str) -> Result<(String, u16)> {
    let http = &container[kind]["httpGet"];
    let path = http["path"].as_str().with_context(|| format!("no {kind} by HTTP"))?;
    let port = http["port"].as_str().with_context(|| format!("{kind} names no port"))?;
    let port = ports(container)?.get(port).copied();
    Ok((path.to_owned(), port.with_context(|| format!("{kind} has no port"))?))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Host and port of a server's URL.
fn address(url: &str) -> Result<String> {
    let address = url.strip_prefix("https://").unwrap_or(url).trim_end_matches('/');
    ensure!(
        address.contains(':') && !address.contains('/'),
        "no host and port: {url}"
    );
    Ok(address.to_owned())
}

fn write(file: &Path, content: &[u8]) -> Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
    }
    fs::write(file, content).with_context(|| format!("failed to write {}", file.display()))
}
