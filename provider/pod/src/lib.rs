//! The program `popcell-provider-pod`: an Instance whose gates are gone becomes one Pod of its cell.
//!
//! Deciding is pure: [`pod`] makes a Pod of an Instance, [`conditions`] makes conditions of a Pod, [`lifecycle`] says what is to be
//! done next. [`controller`] watches, and sends what was decided.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

pub mod conditions;
pub mod controller;
pub mod lifecycle;
pub mod pod;
#[cfg(test)]
mod testing;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use popcell_client::tuned;
use popcell_https::health::{self, Check, Health};
use popcell_https::log;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing::info;

use pod::{PullPolicy, Settings};

/// Runs the Instances of a cell as Pods of the same cluster
#[derive(Debug, Parser)]
#[command(name = "popcell-provider-pod", version, args_override_self = true)]
pub struct Flags {
    /// Kubeconfig of the cell [default: $KUBECONFIG or ~/.kube/config, else the pod's own]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// RuntimeClass of all Pods, such as that of a sandboxed runtime [default: the cell's default runtime]
    #[arg(long, env = "RUNTIME_CLASS", value_name = "NAME")]
    pub runtime_class: Option<String>,

    /// When nodes ask the registry for an image. With IfNotPresent any tenant can run an image that another has pulled
    #[arg(long, env = "IMAGE_PULL_POLICY", value_name = "POLICY", default_value = "Always")]
    pub image_pull_policy: PullPolicy,

    /// Address of the plain port with /livez, /readyz and /metrics
    #[arg(
        long,
        env = "HEALTH_PROBE_BIND_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0:8081"
    )]
    pub health_probe_bind_address: SocketAddr,

    /// Form of the log lines. What is logged is set by RUST_LOG
    #[arg(long, env = "LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object for each line.
    Json,
}

/// Runs the program; the exit code is 0 after a signal, 4 where it failed.
pub fn run(flags: &Flags) -> ExitCode {
    log::install(flags.log_format == LogFormat::Json);
    let code = match start(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error("popcell-provider-pod", &format!("{error:#}"));
            ExitCode::from(4)
        }
    };
    log::flush();
    code
}

fn start(flags: &Flags) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("failed to start a runtime")?.block_on(serve(flags))
}

async fn serve(flags: &Flags) -> Result<()> {
    let config = connection(flags).await?;
    let server = config.cluster_url.to_string();
    let client = Client::try_from(tuned(config)).context("failed to make a client for the cell")?;
    let settings = Settings {
        // An empty variable is as if it were not given: manifests pass on what may be unset.
        runtime_class: flags.runtime_class.clone().filter(|name| !name.is_empty()),
        image_pull_policy: flags.image_pull_policy,
    };
    let mut interrupted = signal(SignalKind::interrupt()).context("failed to wait for signals")?;
    let mut terminated = signal(SignalKind::terminate()).context("failed to wait for signals")?;
    let (started, provider) = oneshot::channel();
    let running = controller::run(client, settings, move |provider| drop(started.send(provider)));
    let serving = async {
        let provider = provider.await.context("failed to start the controller")?;
        let probed = provider.clone();
        let synced = Check::new("synced", move || {
            let missing = || "Instances and Pods are not listed yet".to_owned();
            probed.is_synced().then_some(()).ok_or_else(missing)
        });
        let routes = health::routes(vec![synced], move || Ok(provider.metrics()));
        let health = Health::start(flags.health_probe_bind_address, routes).await;
        let health = health.context("failed to serve the health port")?;
        info!(server, health = %health.address(), "provider started: Instances without gates become Pods");
        health.ended().await;
        bail!("the health port ended")
    };
    // A write that is cut off here is decided again by the next process: each has a precondition.
    tokio::select! {
        ended = running => Err(ended.into()),
        outcome = serving => outcome,
        _ = interrupted.recv() => Ok(()),
        _ = terminated.recv() => Ok(()),
    }
}

async fn connection(flags: &Flags) -> Result<Config> {
    let Some(file) = &flags.kubeconfig else {
        return Config::infer()
            .await
            .context("failed to find the API server of the cell: give --kubeconfig");
    };
    let named = || format!("failed to use {}, which --kubeconfig names", file.display());
    let read = Kubeconfig::read_from(file).with_context(named)?;
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(read, &options).await.with_context(named)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent_and_have_working_defaults() {
        Flags::command().debug_assert();
        let flags = Flags::try_parse_from(["popcell-provider-pod"]).unwrap();
        assert_eq!(flags.health_probe_bind_address.port(), 8081);
        assert_eq!((flags.kubeconfig, flags.runtime_class), (None, None));
        assert_eq!(flags.image_pull_policy, PullPolicy::Always);
    }
}
