//! The webhook as a process, on an address of its own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::address::{free_address, free_ports};
use crate::artifacts::{self, Profile};
use crate::running::{Place, Program, Running, directory};

const PORT: u16 = 8443;
const HEALTH_PORT: u16 = 8080;

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

/// A running webhook. Its certificate authority stays the same as its place does.
pub type Webhook = Running<WebhookSpec>;

impl Program for WebhookSpec {
    const NAME: &'static str = "webhook";
    /// Compiling modules takes long in an unoptimised build on a busy machine.
    const START: Duration = Duration::from_mins(2);

    fn place(&self) -> Result<Place> {
        let dir = directory(Self::NAME)?;
        let modules = dir.path().join("modules");
        std::fs::create_dir(&modules).context("failed to make a directory for modules")?;
        for file in &self.modules {
            let name = file
                .file_name()
                .with_context(|| format!("{} is no file", file.display()))?;
            std::fs::copy(file, modules.join(name))
                .with_context(|| format!("failed to copy the module {}", file.display()))?;
        }
        let (address, [port, health_port]) = match self.address {
            Some(address) => (address, free_ports(address)?),
            None => (free_address(&[PORT, HEALTH_PORT])?, [PORT, HEALTH_PORT]),
        };
        Ok(Place {
            address,
            port,
            health_port,
            metrics_port: health_port,
            dir,
        })
    }

    fn command(&self, place: &Place) -> Result<(PathBuf, Vec<String>)> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => artifacts::programs(Profile::Dev)?.webhook,
        };
        let mut arguments = vec![
            format!("--module-dir={}", place.file("modules").display()),
            format!("--listen={}:{}", place.address, place.port),
            format!("--health-listen={}:{}", place.address, place.health_port),
            "--self-signed".to_owned(),
            format!("--ca-dir={}", place.file("ca").display()),
            format!("--san={}", place.address),
        ];
        arguments.extend(self.names.iter().map(|name| format!("--san={name}")));
        arguments.extend(self.flags.iter().cloned());
        Ok((program, arguments))
    }
}

impl Webhook {
    /// Where Karmada calls.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}:{}/interpret", self.place.address, self.place.port)
    }

    /// Address and port of the TLS listener.
    #[must_use]
    pub fn endpoint(&self) -> (Ipv4Addr, u16) {
        (self.place.address, self.place.port)
    }

    /// The authority that signed its certificate, as a PEM file.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.place.file("ca").join("ca.crt")
    }

    /// Directory with exactly the modules that it serves.
    #[must_use]
    pub fn module_dir(&self) -> PathBuf {
        self.place.file("modules")
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
