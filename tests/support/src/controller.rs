//! `popcell-controller` as a process, on an address of its own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::address::free_address;
use crate::artifacts::{self, Profile};
use crate::eventually;
use crate::guarded::Guarded;
use crate::probe::{get, sum_of};

const HEALTH_PORT: u16 = 8081;
const METRICS_PORT: u16 = 8080;
const WEBHOOK_PORT: u16 = 9443;
const START: Duration = Duration::from_mins(1);
/// Lines of the log that a failure shows, and characters of each: patches are long.
const LAST_LINES: usize = 60;
const LAST_CHARACTERS: usize = 400;

/// How to run the controller.
#[derive(Clone, Debug)]
pub struct ControllerSpec {
    flags: Vec<String>,
    config: Value,
    program: Option<PathBuf>,
}

impl ControllerSpec {
    /// The controllers of the management plane. `local` is the kubeconfig of the server that the process runs on: in mode
    /// `single` that is the project. It writes without a Lease.
    #[must_use]
    pub fn management(local: &Path, hub: &Path) -> Self {
        Self {
            flags: vec![
                "--enable-management-controllers".to_owned(),
                format!("--kubeconfig={}", local.display()),
                format!("--federation-kubeconfig={}", hub.display()),
                "--leader-elect=false".to_owned(),
            ],
            config: json!({
                "apiVersion": "apiserver.config.datumapis.com/v1alpha1",
                "kind": "WorkloadOperator",
                "discovery": { "mode": "single" },
            }),
            program: None,
        }
    }

    /// The controllers of a cell, whose Karmada Cluster has this name. `milo` is the kubeconfig for claims. It writes without
    /// a Lease.
    #[must_use]
    pub fn cell(local: &Path, cluster: &str, hub: &Path, milo: &Path) -> Self {
        let mut spec = Self::management(local, hub);
        if let Some(group) = spec.flags.first_mut() {
            "--enable-cell-controllers".clone_into(group);
        }
        spec.config["discovery"] = json!({ "mode": "single", "clusterName": cluster, "quotaKubeconfigPath": milo });
        spec
    }

    /// As [`ControllerSpec::cell`] without a hub: claims in projects are all that it has elsewhere.
    #[must_use]
    pub fn cell_without_hub(local: &Path, cluster: &str, milo: &Path) -> Self {
        let mut spec = Self::cell(local, cluster, milo, milo);
        spec.flags.retain(|flag| !flag.starts_with("--federation-kubeconfig="));
        spec
    }

    /// Both groups of controllers on one server and without a hub: the project `id`, and what runs its Workloads. `milo` is
    /// the kubeconfig for claims. It writes without a Lease.
    #[must_use]
    pub fn single_cluster(local: &Path, id: &str, milo: &Path) -> Self {
        let mut spec = Self::management(local, milo);
        spec.flags.retain(|flag| !flag.starts_with("--federation-kubeconfig="));
        spec.flags.push("--enable-cell-controllers".to_owned());
        spec.config["discovery"] = json!({
            "mode": "single",
            "clusterName": "single",
            "quotaKubeconfigPath": milo,
            "projectID": id,
        });
        spec
    }

    /// Many projects, found and reached by a kubeconfig of milo's API server.
    #[must_use]
    pub fn milo(mut self, milo: &Path) -> Self {
        self.config["discovery"] = json!({
            "mode": "milo",
            "discoveryKubeconfigPath": milo,
            "projectKubeconfigPath": milo,
        });
        self
    }

    /// Adds a flag with its value, such as `--project-grace=5s`; of two the last counts.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<String>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Sets a key at the top of the configuration file.
    #[must_use]
    pub fn section(mut self, key: &str, value: Value) -> Self {
        self.config[key] = value;
        self
    }

    /// Runs this program, such as an optimised build, instead of one that is built for tests.
    #[must_use]
    pub fn program(mut self, file: impl Into<PathBuf>) -> Self {
        self.program = Some(file.into());
        self
    }
}

/// A running controller. It ends with this value, or with this process. Its address stays the same through
/// [`Controller::stop`], [`Controller::kill`] and [`Controller::start_again`].
#[derive(Debug)]
pub struct Controller {
    spec: ControllerSpec,
    address: Ipv4Addr,
    dir: TempDir,
    process: Option<Guarded>,
}

impl Controller {
    /// Builds the program when needed, starts it and waits until it is ready.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn start(spec: ControllerSpec) -> Result<Self> {
        let mut controller = Self::unstarted(spec)?;
        controller.start_again().await?;
        Ok(controller)
    }

    /// One that is still to be started, for what its configuration says of its address.
    pub fn unstarted(spec: ControllerSpec) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("popcell-controller-").tempdir();
        Ok(Self {
            spec,
            address: free_address(&[HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT])?,
            dir: dir.context("failed to make a directory for the controller")?,
            process: None,
        })
    }

    /// Serves the admission webhook from the next start on, with this certificate and key.
    pub fn serve_webhook(&mut self, certificate: &Path, key: &Path) {
        let file = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.spec.config["webhookServer"] = json!({
            "host": self.address.to_string(),
            "port": WEBHOOK_PORT,
            "tls": { "certDir": certificate.parent(), "certName": file(certificate), "keyName": file(key) },
        });
    }

    /// Where its admission webhook is.
    #[must_use]
    pub fn webhook_url(&self) -> String {
        format!("https://{}:{WEBHOOK_PORT}", self.address)
    }

    /// Starts the program after its end and waits until it is ready.
    pub async fn start_again(&mut self) -> Result<()> {
        self.launch()?;
        self.ready().await
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn ready(&mut self) -> Result<()> {
        let process = self.process.as_mut().context("the controller does not run")?;
        let health = (self.address, HEALTH_PORT);
        let ready = eventually("the controller is ready", START, async || {
            if let Some(status) = process.try_wait()? {
                return Ok(Err(status));
            }
            let (code, body) = get(health, "/readyz").await?;
            ensure!(code == 200, "/readyz answers {code}: {body}");
            Ok(Ok(()))
        });
        match ready.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(status)) => bail!("the controller ended with {status}:\n{}", self.last_words()),
            Err(error) => Err(error.context(format!("the controller wrote:\n{}", self.last_words()))),
        }
    }

    /// Starts the program after its end; it may take a while until it is ready.
    pub fn launch(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the controller runs already");
        let program = match &self.spec.program {
            Some(program) => program.clone(),
            None => artifacts::programs(Profile::Dev)?.controller,
        };
        let mut config = self.spec.config.clone();
        if config.get("metricsServer").is_none() {
            let address = format!("{}:{METRICS_PORT}", self.address);
            config["metricsServer"] = json!({ "bindAddress": address, "secureServing": false });
        }
        let file = self.dir.path().join("config.yaml");
        // JSON is YAML.
        std::fs::write(&file, config.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
        let mut arguments = vec![
            format!("--server-config={}", file.display()),
            format!("--health-probe-bind-address={}:{HEALTH_PORT}", self.address),
        ];
        arguments.extend(self.spec.flags.iter().cloned());
        self.process = Some(Guarded::spawn(&program, &arguments, &self.log_file())?);
        Ok(())
    }

    /// Ends the program gracefully (SIGTERM) and answers its exit status.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.take().context("the controller does not run")?.terminate()
    }

    /// Ends the program as [`Controller::stop`] does.
    ///
    /// # Errors
    /// With the program's log, when it had ended before or does not end well.
    pub fn end(&mut self) -> Result<()> {
        self.expect_alive()?;
        let status = self.stop()?;
        ensure!(
            status.success(),
            "the controller ended with {status}:\n{}",
            self.last_words()
        );
        Ok(())
    }

    /// Fails at a line of its log that contains one of these texts, such as those in which API servers refuse.
    pub fn expect_log_without(&self, texts: &[&str]) -> Result<()> {
        let log = self.log();
        let mut found = log.lines().filter(|line| texts.iter().any(|text| line.contains(text)));
        match found.next() {
            None => Ok(()),
            Some(line) => bail!("its log has, and {} times more: {line}", found.count()),
        }
    }

    /// Ends the program without warning (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the controller does not run")?;
        process.signal("KILL")?;
        process.wait().map(|_| ())
    }

    /// Sends a signal by its name, such as `STOP` and `CONT`.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process
            .as_ref()
            .context("the controller does not run")?
            .signal(name)
    }

    /// Process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Guarded::pid)
    }

    /// Fails when it ended by itself.
    pub fn expect_alive(&mut self) -> Result<()> {
        let process = self.process.as_mut().context("the controller does not run")?;
        match process.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the controller ended with {status}:\n{}", self.last_words()),
        }
    }

    /// The exit status when it ended by itself; then it can be started again.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let process = self.process.as_mut().context("the controller does not run")?;
        let status = process.try_wait()?;
        if status.is_some() {
            self.process = None;
        }
        Ok(status)
    }

    /// What it has written since the first start.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(self.log_file())
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    /// The end of its log, for a failure to show.
    #[must_use]
    pub fn last_words(&self) -> String {
        let log = self.log();
        let cut = |line: &str| line.chars().take(LAST_CHARACTERS).collect::<String>();
        let lines: Vec<String> = log.lines().map(cut).collect();
        lines
            .get(lines.len().saturating_sub(LAST_LINES)..)
            .unwrap_or_default()
            .join("\n")
    }

    /// Its own loopback address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("controller.log")
    }

    /// Status and body of a page of the health port.
    pub async fn health(&self, path: &str) -> Result<(u16, String)> {
        get((self.address, HEALTH_PORT), path).await
    }

    /// The sum of the samples of one metric whose labels contain every text of `with`, such as `kind="Widget"`.
    pub async fn metric(&self, name: &str, with: &[&str]) -> Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, with))
    }

    /// The page of its metrics.
    pub async fn metrics(&self) -> Result<String> {
        let (code, body) = get((self.address, METRICS_PORT), "/metrics").await?;
        ensure!(code == 200, "/metrics answers {code}: {body}");
        Ok(body)
    }
}
