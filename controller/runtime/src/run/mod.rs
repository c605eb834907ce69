//! The program from its settings to its exit: connect, engage, serve, lead, stop.
//!
//! Invariants: every replica watches and reviews; only the one that may write runs reconciles; at a stop reconciles end before the
//! Lease is released, and the Lease before the planes are left.

mod controllers;
mod guard_events;
mod leadership;
mod networks;
mod observe;
mod ports;
mod release;

use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use popcell_core::metrics::LOG_LINES_LOST;
use popcell_core::plan::Plane;
use popcell_https::{ListenError, log};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use controllers::Controllers;

use crate::admission::ServeError;
use crate::apply::MayWrite;
use crate::config::{ConfigError, Connections, Discovery, Settings};
use crate::critical_tasks::{CriticalTasks, Ended, message};
use crate::error::chain;
use crate::flags::{Flags, LogFormat};
use crate::lease::{LeaderElector, LeaseError, Permit, identity};
use crate::metrics::Metrics;
use crate::planes::{Addressing, Direct, InstanceTypeWatch, InstanceTypes, Projects, client};
use leadership::Leadership;
use ports::Ports;

/// How long reconciles and the release of the Lease may take once the process has to end: a write and two requests for the Lease.
const LAST: Duration = Duration::from_secs(10);

/// What ends the program.
#[derive(Debug, Error)]
enum RunError {
    /// The settings are refused, or what they name cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A plane cannot be addressed.
    #[error(transparent)]
    Plane(#[from] popcell_client::ConnectError),
    /// The admission webhook cannot be served.
    #[error(transparent)]
    Admission(#[from] ServeError),
    /// A port cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The Lease was lost: another process writes now.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The system refuses a thread or a signal handler.
    #[error("failed to start")]
    System(#[source] std::io::Error),
    /// A task of the program panicked, or ended by itself.
    #[error("internal error: a required task exited: {0}")]
    Task(Ended),
}

impl RunError {
    /// A task ended that must not.
    fn ended(task: impl Into<String>) -> Self {
        let task = task.into();
        Self::Task(Ended { task, panic: None })
    }

    /// A task panicked, or was aborted.
    fn died(task: impl Into<String>, how: JoinError) -> Self {
        let panic = how.try_into_panic().ok();
        Self::Task(Ended {
            task: task.into(),
            panic: panic.map(|panic| message(panic.as_ref())),
        })
    }

    /// 2 wrong settings, 4 the rest.
    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 4,
        }
    }
}

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
    settings.log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(RunError::System)?.block_on(serve(&settings))
}

async fn serve(settings: &Settings) -> Result<(), RunError> {
    let required = CriticalTasks::default();
    let stop = on_signal(&required).map_err(RunError::System)?;
    let connections = settings.connect().await?;
    let (metrics, transport) = (Metrics::new(), direct(settings, &connections));
    metrics.before_scrape(Box::new(|metrics| metrics.reach(&LOG_LINES_LOST, &[], log::lost())));
    let elector = elector(settings, &connections)?;
    let permit = elector.as_ref().map_or_else(Permit::sole, LeaderElector::permit);
    let mut ports = Ports::default();
    let (types, _reading) = instance_types(settings, &connections, &required)?;
    ports.serve_admission(settings, &transport, &types, &metrics).await?;
    let mut controllers = None;
    if settings.controllers.any() {
        let may_write = may_write(&permit, &stop);
        let connected = (&connections, transport, types);
        controllers = Some(Controllers::start(settings, connected, &metrics, may_write, &stop).await?);
    }
    let checks = controllers.as_mut().map(Controllers::checks).unwrap_or_default();
    ports.serve_health(settings, checks, &metrics).await?;
    info!("started");

    let leading = Leadership { elector, permit }.run(controllers.as_ref(), &stop);
    let controlled = async {
        match &controllers {
            Some(controllers) => controllers.failed().await,
            None => std::future::pending().await,
        }
    };
    let failed = async {
        tokio::select! {
            error = ports.failed() => error,
            ended = controlled => RunError::Task(ended),
            ended = required.failed() => RunError::Task(ended),
            ended = connections.tokens.required().failed() => RunError::Task(ended),
        }
    };
    let ended = lead_until(leading, failed, &stop).await;
    ports.leave();
    if let Some(controllers) = controllers {
        controllers.end().await;
    }
    ports.stop().await;
    info!("stopped");
    ended
}

/// Leads until a stop, or until something ends without which the process is of no use. Then it stops as well, so that
/// another replica gets the Lease at once; but not for long, since whoever should carry that out may be what has ended.
async fn lead_until(
    leading: impl Future<Output = Result<(), RunError>>,
    failed: impl Future<Output = RunError>,
    stop: &CancellationToken,
) -> Result<(), RunError> {
    let mut leading = pin!(leading);
    let failure = tokio::select! {
        ended = &mut leading => return ended,
        failure = failed => failure,
    };
    stop.cancel();
    match timeout(LAST, leading).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => error!("{}", chain(&error)),
        Err(_) => warn!(
            "reconciles did not end within {} s: the Lease is not released",
            LAST.as_secs()
        ),
    }
    Err(failure)
}

/// While the permit holds, until a stop: a plan may have any length, and a stop waits for the reconciles that run.
fn may_write(permit: &Permit, stop: &CancellationToken) -> MayWrite {
    let (permit, stop) = (permit.clone(), stop.clone());
    Arc::new(move || permit.holds() && !stop.is_cancelled())
}

/// Cancelled at SIGTERM and SIGINT.
fn on_signal(required: &CriticalTasks) -> std::io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let reported = stop.clone();
    let listen = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("stopping");
        reported.cancel();
    };
    tokio::spawn(
        required
            .clone()
            .until(stop.clone(), "the signal handler".to_owned(), listen),
    );
    Ok(stop)
}

fn direct(settings: &Settings, connections: &Connections) -> Direct {
    let projects = match (&settings.discovery, &connections.template, &connections.quota) {
        (Discovery::Milo(milo), Some(template), _) => Projects::Milo {
            addressing: milo.addressing,
            config: Box::new(template.clone()),
        },
        // Claims of a cell go to the servers of projects, never to its own, whatever a project is called.
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

/// The instance types, which are read from the server that the process runs on where Workloads are reviewed or carried; and what
/// reads them, which ends when it is dropped.
fn instance_types(
    settings: &Settings,
    connections: &Connections,
    required: &CriticalTasks,
) -> Result<(InstanceTypes, JoinSet<()>), RunError> {
    let mut reading = JoinSet::new();
    if settings.webhook.is_none() && !settings.controllers.management {
        return Ok((InstanceTypes::default(), reading));
    }
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    let (watch, types) = InstanceTypeWatch::new(client);
    reading.spawn(required.clone().endless("the watch for instance types", watch.run()));
    Ok((types, reading))
}

/// Who keeps the Lease; `None` where this process writes without one.
fn elector(settings: &Settings, connections: &Connections) -> Result<Option<LeaderElector>, RunError> {
    let Some(lease) = settings.lease.as_ref().filter(|_| settings.controllers.any()) else {
        return Ok(None);
    };
    let client = client(&connections.tokens, &Plane::Cell, connections.local.clone())?;
    Ok(Some(LeaderElector::new(client, lease, identity())))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::sleep;

    use super::*;

    /// A process that leads: it ends some time after a stop, and releases the Lease then.
    async fn leads(stop: &CancellationToken, released: &AtomicBool) -> Result<(), RunError> {
        stop.cancelled().await;
        sleep(LAST / 2).await;
        released.store(true, Ordering::Relaxed);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_ends_the_process_with_a_message_and_a_code() {
        let planes = crate::planes::testing::silent();
        let (required, tokens) = (CriticalTasks::default(), crate::planes::Tokens::default());
        for dies in [&required, planes.required(), tokens.required()] {
            let (stop, released) = (CancellationToken::new(), AtomicBool::new(false));
            tokio::spawn(dies.clone().endless("the task", async { panic!("oh") }));
            let failed = async { RunError::Task(dies.failed().await) };
            let failure = lead_until(leads(&stop, &released), failed, &stop).await.unwrap_err();
            assert_eq!(
                chain(&failure),
                "internal error: a required task exited: the task panicked: oh"
            );
            assert_eq!(failure.exit_code(), 4);
            assert!(
                released.load(Ordering::Relaxed),
                "another replica would wait for the Lease"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_cannot_stop_ends_all_the_same() {
        let stop = CancellationToken::new();
        let failed = async { RunError::ended("a port") };
        let ended = tokio::time::timeout(2 * LAST, lead_until(std::future::pending(), failed, &stop)).await;
        assert!(matches!(ended, Ok(Err(RunError::Task(_)))));
        // And one that is told to stop does so without a failure.
        let (stop, released) = (CancellationToken::new(), AtomicBool::new(false));
        stop.cancel();
        assert!(
            lead_until(leads(&stop, &released), std::future::pending(), &stop)
                .await
                .is_ok()
        );
    }

    #[test]
    fn a_stop_ends_the_right_to_write_before_the_lease_is_released() {
        let stop = CancellationToken::new();
        let may_write = may_write(&Permit::sole(), &stop);
        assert!(may_write());
        stop.cancel();
        assert!(!may_write());
    }
}
