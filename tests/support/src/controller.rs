//! `popcell-controller` as a process, on an address of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::address::free_address;
use crate::artifacts::{self, Profile};
use crate::running::{Place, Program, Running, directory};

const HEALTH_PORT: u16 = 8081;
const METRICS_PORT: u16 = 8080;
const WEBHOOK_PORT: u16 = 9443;

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

    /// The controllers of a cell that has neither hub, quota nor network services: Instances start at once. It writes without a
    /// Lease.
    #[must_use]
    pub fn cell_alone(local: &Path) -> Self {
        let mut spec = Self::cell_without_hub(local, "alone", local);
        spec.config["discovery"] = json!({ "mode": "single" });
        spec.flag("--networking=false")
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

    /// Runs this program, such as an optimised build, instead of one that is built for tests.
    #[must_use]
    pub fn program(mut self, file: impl Into<PathBuf>) -> Self {
        self.program = Some(file.into());
        self
    }
}

/// A running controller.
pub type Controller = Running<ControllerSpec>;

impl Controller {
    /// Serves the admission webhook from the next start on, with this certificate and key.
    pub fn serve_webhook(&mut self, certificate: &Path, key: &Path) {
        let file = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.spec.config["webhookServer"] = json!({
            "host": self.place.address.to_string(),
            "port": self.place.port,
            "tls": { "certDir": certificate.parent(), "certName": file(certificate), "keyName": file(key) },
        });
    }

    /// Where its admission webhook is.
    #[must_use]
    pub fn webhook_url(&self) -> String {
        format!("https://{}:{}", self.place.address, self.place.port)
    }
}

impl Program for ControllerSpec {
    const NAME: &'static str = "controller";
    const START: Duration = Duration::from_mins(1);

    fn place(&self) -> Result<Place> {
        Ok(Place {
            address: free_address(&[HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT])?,
            port: WEBHOOK_PORT,
            health_port: HEALTH_PORT,
            metrics_port: METRICS_PORT,
            dir: directory(Self::NAME)?,
        })
    }

    fn command(&self, place: &Place) -> Result<(PathBuf, Vec<String>)> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => artifacts::programs(Profile::Dev)?.controller,
        };
        let mut config = self.config.clone();
        if config.get("metricsServer").is_none() {
            let address = format!("{}:{}", place.address, place.metrics_port);
            config["metricsServer"] = json!({ "bindAddress": address, "secureServing": false });
        }
        let file = place.file("config.yaml");
        // JSON is YAML.
        std::fs::write(&file, config.to_string()).with_context(|| format!("failed to write {}", file.display()))?;
        let mut arguments = vec![
            format!("--server-config={}", file.display()),
            format!("--health-probe-bind-address={}:{}", place.address, place.health_port),
        ];
        arguments.extend(self.flags.iter().cloned());
        Ok((program, arguments))
    }
}
