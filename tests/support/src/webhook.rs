//! The webhook as a process, on an address of its own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::address::{free_address, free_ports};
use crate::artifacts::{self, Profile};
use crate::eventually;
use crate::guarded::Guarded;
use crate::probe::{get, sum_of};

const PORT: u16 = 8443;
const HEALTH_PORT: u16 = 8080;
/// Compiling modules takes long in an unoptimised build on a busy machine.
const START: Duration = Duration::from_mins(2);

/// How to run the webhook.
#[derive(Clone, Debug, Default)]
pub struct WebhookSpec {
    modules: Vec<PathBuf>,
    names: Vec<String>,
    flags: Vec<String>,
    program: Option<PathBuf>,
    address: Option<Ipv4Addr>,
}

impl WebhookSpec {
    /// With modules of this repository, by the name of their folder, such as `compute`. They are built when needed.
    pub fn with_modules(names: &[&str]) -> Result<Self> {
        let dir = artifacts::modules()?;
        let modules = names.iter().map(|name| dir.join(format!("{name}.wasm"))).collect();
        Ok(Self {
            modules,
            ..Self::default()
        })
    }

    /// Adds a module file.
    #[must_use]
    pub fn module(mut self, file: impl Into<PathBuf>) -> Self {
        self.modules.push(file.into());
        self
    }

    /// Adds a name to the certificate; the address is in it anyway.
    #[must_use]
    pub fn san(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }

    /// Adds a flag with its value, such as `--call-timeout=1s`.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// Listens on free ports of this address of the machine, instead of a loopback address of its own.
    #[must_use]
    pub fn at(mut self, address: Ipv4Addr) -> Self {
        self.address = Some(address);
        self
    }

    /// Runs this program, such as an optimised build, instead of one that is built for tests.
    #[must_use]
    pub fn program(mut self, file: impl Into<PathBuf>) -> Self {
        self.program = Some(file.into());
        self
    }
}

/// A running webhook. It ends with this value, or with this process. Address, port and certificate authority stay the
/// same through [`Webhook::stop`] and [`Webhook::start_again`].
pub struct Webhook {
    spec: WebhookSpec,
    address: Ipv4Addr,
    port: u16,
    health_port: u16,
    dir: TempDir,
    process: Option<Guarded>,
}

impl Webhook {
    /// Builds the program when needed, starts it and waits until it is ready.
    ///
    /// # Errors
    /// With the program's log, when it ends instead.
    pub async fn start(spec: WebhookSpec) -> Result<Self> {
        let mut webhook = Self::prepare(spec)?;
        webhook.start_again().await?;
        Ok(webhook)
    }

    /// Starts the program and waits for its end: for what must be refused. Answers its exit status and its log.
    pub async fn refused(spec: WebhookSpec) -> Result<(ExitStatus, String)> {
        let mut webhook = Self::prepare(spec)?;
        let mut process = webhook.spawn()?;
        let status = eventually("the webhook ends by itself", START, async || {
            process.try_wait()?.context("the webhook goes on running")
        });
        let status = status.await?;
        let log = process.log();
        webhook.process = None;
        Ok((status, log))
    }

    fn prepare(spec: WebhookSpec) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("popcell-webhook-").tempdir();
        let dir = dir.context("failed to make a directory for the webhook")?;
        let modules = dir.path().join("modules");
        std::fs::create_dir(&modules).context("failed to make a directory for modules")?;
        for file in &spec.modules {
            let name = file
                .file_name()
                .with_context(|| format!("{} is no file", file.display()))?;
            std::fs::copy(file, modules.join(name))
                .with_context(|| format!("failed to copy the module {}", file.display()))?;
        }
        let (address, port, health_port) = match spec.address {
            Some(address) => {
                let [port, health_port] = free_ports(address)?;
                (address, port, health_port)
            }
            None => (free_address(&[PORT, HEALTH_PORT])?, PORT, HEALTH_PORT),
        };
        Ok(Self {
            spec,
            address,
            port,
            health_port,
            dir,
            process: None,
        })
    }

    fn spawn(&mut self) -> Result<Guarded> {
        let program = match &self.spec.program {
            Some(program) => program.clone(),
            None => artifacts::programs(Profile::Dev)?.webhook,
        };
        let mut arguments = vec![
            format!("--module-dir={}", self.module_dir().display()),
            format!("--listen={}:{}", self.address, self.port),
            format!("--health-listen={}:{}", self.address, self.health_port),
            "--self-signed".to_owned(),
            format!("--ca-dir={}", self.dir.path().join("ca").display()),
            format!("--san={}", self.address),
        ];
        arguments.extend(self.spec.names.iter().map(|name| format!("--san={name}")));
        arguments.extend(self.spec.flags.iter().cloned());
        Guarded::spawn(&program, &arguments, &self.log_file())
    }

    /// Starts the program after [`Webhook::stop`] or [`Webhook::kill`], at the same address, and waits until it is
    /// ready.
    pub async fn start_again(&mut self) -> Result<()> {
        ensure!(self.process.is_none(), "the webhook runs already");
        let mut process = self.spawn()?;
        let health = (self.address, self.health_port);
        let ready = eventually("the webhook is ready", START, async || {
            if let Some(status) = process.try_wait()? {
                return Ok(Err(status));
            }
            let (code, body) = get(health, "/readyz").await?;
            ensure!(code == 200, "/readyz answers {code}: {body}");
            Ok(Ok(()))
        });
        match ready.await {
            Ok(Ok(())) => {}
            Ok(Err(status)) => bail!("the webhook ended with {status}:\n{}", process.log()),
            Err(error) => return Err(error.context(format!("the webhook wrote:\n{}", process.log()))),
        }
        self.process = Some(process);
        Ok(())
    }

    /// Ends the program gracefully (SIGTERM) and answers its exit status.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        self.process.take().context("the webhook does not run")?.terminate()
    }

    /// Ends the program without warning (SIGKILL).
    pub fn kill(&mut self) -> Result<()> {
        let mut process = self.process.take().context("the webhook does not run")?;
        process.signal("KILL")?;
        process.wait().map(|_| ())
    }

    /// Sends a signal by its name, such as `STOP` and `CONT`.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.as_ref().context("the webhook does not run")?.signal(name)
    }

    /// Process id, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Guarded::pid)
    }

    /// Where Karmada calls.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}:{}/interpret", self.address, self.port)
    }

    /// Address and port of the TLS listener.
    #[must_use]
    pub fn endpoint(&self) -> (Ipv4Addr, u16) {
        (self.address, self.port)
    }

    /// The authority that signed its certificate, as a PEM file.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.dir.path().join("ca").join("ca.crt")
    }

    /// Directory with exactly the modules that it serves.
    #[must_use]
    pub fn module_dir(&self) -> PathBuf {
        self.dir.path().join("modules")
    }

    /// What it has written since the first start.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read(self.log_file())
            .map(|log| String::from_utf8_lossy(&log).into_owned())
            .unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("webhook.log")
    }

    /// Status and body of `/livez`, `/readyz` or `/metrics`.
    pub async fn health(&self, path: &str) -> Result<(u16, String)> {
        get((self.address, self.health_port), path).await
    }

    /// The metrics page.
    pub async fn metrics(&self) -> Result<String> {
        let (code, body) = self.health("/metrics").await?;
        ensure!(code == 200, "/metrics answers {code}: {body}");
        Ok(body)
    }

    /// The sum of the samples of one metric whose labels contain every text of `with`, such as `kind="Widget"`.
    pub async fn metric(&self, name: &str, with: &[&str]) -> Result<f64> {
        Ok(sum_of(&self.metrics().await?, name, with))
    }

    /// Registers the webhook with Karmada by `popcell register`.
    pub fn register(&self, hub_kubeconfig: &Path, flags: &[&str]) -> Result<()> {
        let output = artifacts::popcell()?
            .arg("register")
            .arg(format!("--module-dir={}", self.module_dir().display()))
            .arg(format!("--url={}", self.url()))
            .arg(format!("--ca-file={}", self.ca_file().display()))
            .arg(format!("--kubeconfig={}", hub_kubeconfig.display()))
            .args(flags)
            .output()
            .context("failed to start popcell")?;
        ensure!(
            output.status.success(),
            "popcell register ended with {}:\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }
}
