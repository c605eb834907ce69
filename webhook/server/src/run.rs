//! The program from its flags to its exit: load, bind, serve, stop.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use popcell_engine::{Dispatcher, Engine, EngineError, LoadError, Modules, Settings};
use popcell_https::health::{self, Health, Readiness};
use popcell_https::{CertificateError, Certificates, Drained, Limits, ListenError, Listener, Source, log};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::flags::{Flags, LogFormat};
use crate::metrics::{Metrics, max_files};
use crate::routes::{Deadline, Webhook, listed, router};

/// File descriptors that are not connections: modules, certificates, the health port, epoll.
const OTHER_FILES: usize = 64;

/// At a stop, what the longest call gets beyond its own time, for its answer to leave.
const MARGIN: Duration = Duration::from_secs(3);

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The engine cannot be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A module is refused, or there is none to be read.
    #[error(transparent)]
    Module(#[from] LoadError),
    /// There is no certificate to serve.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// A port cannot be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system refuses a thread or a signal handler.
    #[error("failed to start: {0}")]
    System(std::io::Error),
    /// A thread that must not end ended: a bug, and the log has the panic.
    #[error("failed to go on: {0} ended")]
    Ended(&'static str),
}

impl StartError {
    /// 2 wrong flags, 3 a refused module, 4 the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Engine(EngineError::Setting { .. }) => 2,
            Self::Module(error) if error.refuses_module() => 3,
            _ => 4,
        }
    }
}

/// Everything that a served webhook is made of.
#[derive(Debug)]
pub struct Config {
    /// Directory with the modules.
    pub module_dir: PathBuf,
    /// Limits of the engine.
    pub settings: Settings,
    /// The TLS port; 0 takes a free one.
    pub listen: SocketAddr,
    /// The plain port; 0 takes a free one.
    pub health_listen: SocketAddr,
    /// Where the certificate comes from.
    pub source: Source,
    /// How often to look for a new one.
    pub reload_period: Duration,
    /// Limits of the TLS port.
    pub limits: Limits,
}

impl Config {
    fn new(flags: &Flags) -> Result<Self, clap::Error> {
        Ok(Self {
            module_dir: flags.module_dir.clone(),
            settings: flags.settings(),
            listen: flags.listen,
            health_listen: flags.health_listen,
            source: flags.source()?,
            reload_period: flags.tls_reload_period,
            limits: within_open_files(Limits {
                drain: Deadline::longest(flags.call_timeout) + MARGIN,
                ..Limits::default()
            }),
        })
    }
}

/// Refusing a connection is better than failing to accept it: keeps the cap under the limit on open files.
fn within_open_files(limits: Limits) -> Limits {
    let Some(files) = max_files() else { return limits };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of files, saturating"
    )]
    let room = (files as usize).saturating_sub(OTHER_FILES).max(OTHER_FILES);
    if room < limits.connections {
        tracing::warn!(
            open_files = files,
            connections = room,
            "few open files are allowed: fewer connections too"
        );
    }
    Limits {
        connections: limits.connections.min(room),
        ..limits
    }
}

/// A webhook that serves.
#[derive(Debug)]
pub struct Running {
    /// The TLS port.
    pub address: SocketAddr,
    /// The plain port.
    pub health_address: SocketAddr,
    /// The served certificate.
    pub certificates: Arc<Certificates>,
    readiness: Readiness,
    stop: CancellationToken,
    serving: JoinHandle<Result<Drained, ListenError>>,
    health: Health,
    threads: JoinHandle<&'static str>,
}

/// Resolves with the name of a thread of the engine that has ended, which none must.
async fn ended(clock: impl Future<Output = ()>, slots: impl Future<Output = ()>) -> &'static str {
    tokio::select! {
        () = clock => "the clock of deadlines",
        () = slots => "a thread for long calls",
    }
}

/// Loads the modules, then the certificate, then binds: what cannot answer everything does not listen.
pub async fn start(config: Config) -> Result<Running, StartError> {
    let engine = Engine::new(&config.settings)?;
    let modules = Arc::new(load(&engine, &config)?);
    let dispatcher = Dispatcher::new(Arc::clone(&modules), &config.settings)?;
    let threads = tokio::spawn(ended(engine.ended(), dispatcher.ended()));
    let certificates = Arc::new(Certificates::open(config.source.clone())?);
    let listener = Listener::bind(config.listen, config.limits)
        .await?
        .on_threads(available_parallelism().unwrap_or(NonZeroUsize::MIN))?;

    let mut metrics = Metrics::new(&modules, engine.allocator());
    metrics.add_listener(listener.status(), certificates.status());
    let webhook = Webhook {
        interpreter: dispatcher,
        calls: metrics.calls(),
        limits: config.limits,
        call_timeout: config.settings.call_timeout,
        loaded: listed(
            modules
                .iter()
                .flat_map(|module| module.description().targets.iter().map(|target| &target.kind)),
        ),
    };
    let readiness = Readiness::default();
    let probed = health::routes(vec![readiness.check()], move || metrics.text());
    let health = Health::start(config.health_listen, probed).await?;
    let (address, stop) = (listener.address(), CancellationToken::new());
    let serving = {
        let (certificates, stop) = (Arc::clone(&certificates), stop.clone());
        tokio::spawn(listener.serve_renewing(certificates, config.reload_period, router(webhook), stop))
    };
    if let Source::SelfSigned(own) = &config.source {
        tracing::info!(ca = %own.public_file().display(), "clients have to trust this authority");
    }
    tracing::info!(%address, health = %health.address(), names = certificates.names(), "serving");
    Ok(Running {
        address,
        health_address: health.address(),
        certificates,
        readiness,
        stop,
        serving,
        health,
        threads,
    })
}

fn load(engine: &Arc<Engine>, config: &Config) -> Result<Modules, LoadError> {
    let modules = engine.load_dir(&config.module_dir)?;
    for module in modules.iter() {
        tracing::info!(
            module = module.label(),
            digest = module.digest(),
            bytes = module.size(),
            kinds = listed(module.description().targets.iter().map(|target| &target.kind)),
            "loaded"
        );
    }
    tracing::info!(allocator = %engine.allocator(), "engine ready");
    Ok(modules)
}

impl Running {
    /// Begins the stop: not ready any more, every answer sends its client away.
    pub fn leave(&self) {
        self.readiness.leave();
        self.stop.cancel();
    }

    /// Resolves when a part ends by itself that must not.
    pub async fn failed(&mut self) -> StartError {
        let ended = tokio::select! {
            ended = &mut self.serving => ended,
            () = self.health.ended() => return StartError::Ended("the health port"),
            Ok(thread) = &mut self.threads => return StartError::Ended(thread),
        };
        match ended {
            Ok(Err(error)) => error.into(),
            Ok(Ok(_)) | Err(_) => StartError::Ended("the task that serves calls and renews the certificate"),
        }
    }

    /// Waits for the end of the stop.
    pub async fn finished(self) -> Result<Drained, StartError> {
        let drained = self.serving.await.map_err(|error| StartError::System(error.into()))??;
        self.health.stop().await;
        Ok(drained)
    }
}

/// Runs the program until a signal ends it.
pub fn run(flags: &Flags) -> ExitCode {
    log::install(flags.log_format == LogFormat::Json);
    let config = match Config::new(flags) {
        Ok(config) => config,
        Err(error) => {
            log::flush();
            error.exit()
        }
    };
    // It only accepts, watches certificates and waits for signals: calls run on the listener's threads.
    let ran = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::System)
        .and_then(|runtime| runtime.block_on(until_signal(config)));
    let code = match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error("popcell-webhook", &error.to_string());
            ExitCode::from(error.exit_code())
        }
    };
    log::flush();
    code
}

async fn until_signal(config: Config) -> Result<(), StartError> {
    let mut signals = Signals::new().map_err(StartError::System)?;
    let mut running = tokio::select! {
        running = start(config) => running?,
        // Nothing has been promised to a client yet.
        _ = signals.next() => return Ok(()),
    };
    let (name, _) = tokio::select! {
        signal = signals.next() => signal,
        failed = running.failed() => return Err(failed),
    };
    tracing::info!(signal = name, "stopping");
    running.leave();
    tokio::select! {
        drained = running.finished() => {
            match drained? {
                Drained::Complete => tracing::info!("stopped, every call was answered"),
                Drained::Cut(connections) => tracing::warn!(connections, "stopped, calls that went on were cut"),
            }
            Ok(())
        }
        (name, code) = signals.next() => {
            tracing::warn!(signal = name, "stopping at once");
            log::flush();
            std::process::exit(code)
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Its name, and the exit code of a process that it ends.
    async fn next(&mut self) -> (&'static str, i32) {
        tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM", 143),
            _ = self.interrupt.recv() => ("SIGINT", 130),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn the_thread_that_ended_is_named() {
        assert_eq!(ended(ready(()), pending()).await, "the clock of deadlines");
        assert_eq!(ended(pending(), ready(())).await, "a thread for long calls");
    }
}
