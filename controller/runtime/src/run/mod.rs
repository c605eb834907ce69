//! The program from its settings to its exit: connect, engage, serve, lead, stop (design.md 7).
//!
//! Invariants: every replica watches and reviews; only the one that may write runs passes; at a stop passes end before the
//! Lease is released, and the Lease before the planes are left.

mod controllers;
mod error;
mod gauges;
mod lead;
mod meters;
mod notices;
mod ports;
mod release;

use std::process::ExitCode;
use std::sync::Arc;

use popcell_core::plan::Plane;
use popcell_https::log;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::info;

use controllers::Controllers;
use error::RunError;

use crate::apply::MayWrite;
use crate::config::{Connections, Discovery, Settings};
use crate::error::chain;
use crate::flags::{Flags, LogFormat};
use crate::lease::{Keeper, Permit, identity};
use crate::metrics::Metrics;
use crate::planes::{Addressing, Direct, Projects, client};
use lead::Leadership;
use ports::Ports;

/// Runs the program; the exit code is 0 after a signal, 2 where settings are wrong, 4 otherwise.
pub fn run(flags: &Flags) -> ExitCode {
    log::install(flags.log_format == LogFormat::Json);
    let code = match start(flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => {
            log::error("popcell-controller", &chain(&failed));
            ExitCode::from(failed.exit_code())
        }
    };
    log::flush();
    code
}

fn start(flags: &Flags) -> Result<(), RunError> {
    let settings = Settings::read(flags)?;
    settings.tell();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(RunError::System)?.block_on(serve(&settings))
}

async fn serve(settings: &Settings) -> Result<(), RunError> {
    let stop = on_signal().map_err(RunError::System)?;
    let connections = settings.connect().await?;
    let (metrics, transport) = (Metrics::new(), direct(settings, &connections));
    let keeper = keeper(settings, &connections)?;
    let permit = keeper.as_ref().map_or_else(Permit::sole, Keeper::permit);
    let mut ports = Ports::default();
    ports.serve_admission(settings, &transport, &metrics).await?;
    let mut controllers = None;
    if settings.controllers.any() {
        let may_write = may_write(&permit, &stop);
        controllers = Some(Controllers::start(settings, &connections, transport, &metrics, may_write).await?);
    }
    let checks = controllers.as_mut().map(Controllers::checks).unwrap_or_default();
    ports.serve_health(settings, checks, &metrics).await?;
    info!("started");

    let leadership = Leadership { keeper, permit };
    let ended = tokio::select! {
        ended = leadership.run(controllers.as_ref(), &stop) => ended,
        ended = ports.failed() => ended,
    };
    ports.leave();
    if let Some(controllers) = controllers {
        controllers.end().await;
    }
    ports.stop().await;
    info!("stopped");
    ended
}

/// While the permit holds, until a stop: a plan may have any length, and a stop waits for the passes that run.
fn may_write(permit: &Permit, stop: &CancellationToken) -> MayWrite {
    let (permit, stop) = (permit.clone(), stop.clone());
    Arc::new(move || permit.holds() && !stop.is_cancelled())
}

/// Cancelled at SIGTERM and SIGINT.
fn on_signal() -> std::io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping");
        told.cancel();
    });
    Ok(stop)
}

fn direct(settings: &Settings, connections: &Connections) -> Direct {
    let projects = match (&settings.discovery, &connections.template, &connections.quota) {
        (Discovery::Milo(milo), Some(template), _) => Projects::Milo {
            addressing: milo.addressing,
            config: Box::new(template.clone()),
        },
        // A cell's own server is nobody's project, whatever a project is called (domain.md B16).
        (Discovery::Single, _, Some(quota)) if !settings.controllers.management => Projects::Milo {
            addressing: Addressing::Path,
            config: Box::new(quota.clone()),
        },
        _ => Projects::Local,
    };
    Direct {
        local: connections.local.clone(),
        hub: connections.hub.clone(),
        projects,
        claims: connections.quota.clone(),
        tokens: connections.tokens.clone(),
    }
}

/// Who keeps the Lease; `None` where this process writes without one.
fn keeper(settings: &Settings, connections: &Connections) -> Result<Option<Keeper>, RunError> {
    let Some(lease) = settings.lease.as_ref().filter(|_| settings.controllers.any()) else {
        return Ok(None);
    };
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(Keeper::new(client, lease, identity())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_ends_the_right_to_write_before_the_lease_is_released() {
        let stop = CancellationToken::new();
        let may_write = may_write(&Permit::sole(), &stop);
        assert!(may_write());
        stop.cancel();
        assert!(!may_write());
    }
}
