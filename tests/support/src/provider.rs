//! `popcell-provider-pod` as a process, on an address of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use crate::address::free_address;
use crate::artifacts::{self, Profile};
use crate::running::{Place, Program, Running, directory};

const PORT: u16 = 8081;

/// How to run the provider of Pods.
#[derive(Clone, Debug)]
pub struct PodProviderSpec {
    kubeconfig: PathBuf,
    flags: Vec<String>,
}

impl PodProviderSpec {
    /// For the cell of a kubeconfig.
    #[must_use]
    pub fn of(kubeconfig: &Path) -> Self {
        Self {
            kubeconfig: kubeconfig.to_owned(),
            flags: Vec::new(),
        }
    }

    /// Runs images that the nodes have, where no registry is.
    #[must_use]
    pub fn without_registry(mut self) -> Self {
        self.flags.push("--image-pull-policy=IfNotPresent".to_owned());
        self
    }
}

/// A running provider of Pods.
pub type PodProvider = Running<PodProviderSpec>;

impl Program for PodProviderSpec {
    const NAME: &'static str = "provider";
    const START: Duration = Duration::from_mins(1);

    fn place(&self) -> Result<Place> {
        Ok(Place {
            address: free_address(&[PORT])?,
            port: PORT,
            health_port: PORT,
            metrics_port: PORT,
            dir: directory(Self::NAME)?,
        })
    }

    fn command(&self, place: &Place) -> Result<(PathBuf, Vec<String>)> {
        let mut arguments = vec![
            format!("--kubeconfig={}", self.kubeconfig.display()),
            format!("--health-probe-bind-address={}:{}", place.address, place.health_port),
        ];
        arguments.extend_from_slice(&self.flags);
        Ok((artifacts::programs(Profile::Dev)?.provider, arguments))
    }
}
