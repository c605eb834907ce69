//! Accepting connections, and the stop: grace, drain, end.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use axum::Router;
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::budget::Budget;
use crate::certificate::Certificates;
use crate::connection;
use crate::limits::{Limits, ListenerStatus, SEGMENT, SOCKET};
use crate::registry::{Full, Registry};
use crate::service::{Peer, Shared, Stop};
use crate::threads::Threads;
use crate::tls::Handshakes;

/// Pause after accept failed, most often for want of file descriptors; trying at once would only burn time.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often idle connections and unread answers are looked for.
const SWEEP: Duration = Duration::from_millis(500);
/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 4096;
/// Between two looks whether another connection may begin.
const LOOK: Duration = Duration::from_millis(5);
/// Why a listener cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is taken, not ours, or not permitted.
    #[error("failed to listen on {address}: {source}")]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The TLS library refuses the configuration.
    #[error("failed to set TLS up: {0}")]
    Tls(#[from] rustls::Error),
    /// The system refuses a thread.
    #[error("failed to start a thread for connections: {0}")]
    Thread(std::io::Error),
    /// A thread that serves connections ended by itself: a bug, and the log has the panic.
    #[error("failed to go on: a thread that serves connections of {address} ended")]
    Ended {
        /// Where they are accepted.
        address: SocketAddr,
    },
}

/// How a stop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every call that was being answered has its answer.
    Complete,
    /// The drain time was over first; so many connections were cut.
    Cut(usize),
}

/// A bound socket that is not served yet.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    limits: Limits,
    status: Arc<ListenerStatus>,
    threads: Option<Threads>,
}

impl Listener {
    /// Binds. Port 0 takes a free one. From here on clients can connect, and wait until [`Listener::serve`].
    #[allow(clippy::unused_async, reason = "it needs a runtime, which a future makes plain")]
    pub async fn bind(address: SocketAddr, limits: Limits) -> Result<Self, ListenError> {
        let failed = |source| ListenError::Bind { address, source };
        let socket = bind(address, &limits).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self {
            socket,
            address,
            limits,
            status: Arc::default(),
            threads: None,
        })
    }

    /// Serves connections on so many threads of the listener's own, each connection on one of them, instead of on the
    /// runtime that calls `serve`: for short calls, of which the switch between threads is a large part.
    pub fn on_threads(self, count: NonZeroUsize) -> Result<Self, ListenError> {
        let threads = Threads::start(count).map_err(ListenError::Thread)?;
        Ok(Self {
            threads: Some(threads),
            ..self
        })
    }

    /// The bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counters of this listener.
    pub fn status(&self) -> Arc<ListenerStatus> {
        Arc::clone(&self.status)
    }

    /// Serves `router` over TLS until `stop`, then for the grace and the drain time of the limits.
    pub async fn serve(
        self,
        certificates: &Certificates,
        router: Router,
        stop: CancellationToken,
    ) -> Result<Drained, ListenError> {
        let handshakes = Handshakes::new(certificates.resolver(), self.limits.http2_connections)?;
        self.run(Some(handshakes), router, stop).await
    }

    /// The same, and looks for another certificate every `period` meanwhile, as one task: neither goes on without the
    /// other.
    pub async fn serve_renewing(
        self,
        certificates: Arc<Certificates>,
        period: Duration,
        router: Router,
        stop: CancellationToken,
    ) -> Result<Drained, ListenError> {
        let watching = Arc::clone(&certificates).watch(period);
        tokio::select! {
            served = self.serve(&certificates, router, stop) => served,
            never = watching => match never {},
        }
    }

    /// The same without TLS and with HTTP/1 only: for health and metrics.
    pub async fn serve_plain(self, router: Router, stop: CancellationToken) -> Result<Drained, ListenError> {
        self.run(None, router, stop).await
    }

    async fn run(
        self,
        tls: Option<Handshakes>,
        router: Router,
        stop: CancellationToken,
    ) -> Result<Drained, ListenError> {
        let Self {
            socket,
            address,
            limits,
            status,
            threads,
        } = self;
        let registry = Arc::new(Registry::new(&limits, Arc::clone(&status)));
        let budget = Arc::new(Budget::new(&limits, Arc::clone(&registry), Arc::clone(&status)));
        let (ending, over) = (CancellationToken::new(), CancellationToken::new());
        let shared = Arc::new(Shared {
            router,
            tls,
            limits,
            status,
            registry,
            budget,
            stop: Stop {
                leaving: stop,
                ending,
                over,
            },
        });
        let stop = &shared.stop;
        let tasks = TaskTracker::new();
        let accepting = Accepting {
            shared: Arc::clone(&shared),
            tasks: tasks.clone(),
            threads,
        };

        let lost = async {
            match &accepting.threads {
                Some(threads) => threads.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = accepting.until(&socket, stop.leaving.cancelled()) => {}
            () = lost => return Err(ListenError::Ended { address }),
        }
        shared.registry.signal();
        accepting.until(&socket, tokio::time::sleep(limits.grace)).await;
        // From here on new connections are refused rather than left to wait.
        drop(socket);
        stop.ending.cancel();
        shared.registry.signal();

        tasks.close();
        if timeout(limits.drain, tasks.wait()).await.is_ok() {
            return Ok(Drained::Complete);
        }
        let left = tasks.len();
        stop.over.cancel();
        shared.registry.signal();
        tasks.wait().await;
        Ok(Drained::Cut(left))
    }
}

struct Accepting {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    threads: Option<Threads>,
}

impl Accepting {
    async fn until(&self, socket: &TcpListener, end: impl Future<Output = ()>) {
        let mut end = std::pin::pin!(end);
        let mut failing = false;
        let mut sweeps = tokio::time::interval(SWEEP);
        sweeps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (limits, registry) = (&self.shared.limits, &self.shared.registry);
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut end => return,
                _ = sweeps.tick() => {
                    registry.sweep(limits.write, limits.idle);
                    continue;
                }
                accepted = self.accept(socket) => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    failing = false;
                    self.spawn(stream, address);
                }
                Err(error) => {
                    self.shared.status.accept_errors.fetch_add(1, Relaxed);
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "failed to accept connections");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The next connection, once it may begin.
    async fn accept(&self, socket: &TcpListener) -> std::io::Result<(TcpStream, SocketAddr)> {
        while !self.shared.registry.may_begin() {
            tokio::time::sleep(LOOK).await;
        }
        socket.accept().await
    }

    fn spawn(&self, stream: TcpStream, address: SocketAddr) {
        self.shared.status.accepted.fetch_add(1, Relaxed);
        let tracked = match self.shared.registry.admit(address.ip()) {
            Ok(tracked) => tracked,
            Err(full) => return self.refuse(address, full),
        };
        let peer = Peer::new(address, Arc::clone(&self.shared), tracked);
        let open = Open::enter(peer.clone());
        let slot = self.threads.as_ref().and_then(Threads::slot);
        let runtime = slot.as_ref().map_or_else(Handle::current, |slot| slot.runtime.clone());
        let tasks = self.tasks.clone();
        self.tasks.spawn(async move {
            if !connection::speaks(&stream, &peer).await {
                return drop((open, slot));
            }
            let serving = async move {
                connection::serve(stream, peer).await;
                drop((open, slot));
            };
            tasks.spawn_on(serving, &runtime);
        });
    }

    fn refuse(&self, peer: SocketAddr, full: Full) {
        if !self.shared.status.refused.fetch_add(1, Relaxed).is_power_of_two() {
            return;
        }
        let limits = &self.shared.limits;
        let (limit, of) = match full {
            Full::All => (limits.connections, "all peers"),
            Full::Address => (limits.connections_per_peer, "this peer"),
        };
        tracing::warn!(%peer, limit, of, "too many connections: refusing new ones");
    }
}

/// A listening socket whose connections have small buffers in the kernel, for a limited time: those count for the pod, too.
fn bind(address: SocketAddr, limits: &Limits) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SOCKET)?;
    socket.set_recv_buffer_size(SOCKET)?;
    let options = SockRef::from(&socket);
    options.set_tcp_mss(SEGMENT)?;
    // A little later than the sweep, which knows whether there is more of the answer, and counts it.
    options.set_tcp_user_timeout(Some(limits.write + 2 * SWEEP))?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// One connection counts, and has its place, for as long as this lives: a panic ends it as well.
struct Open(Peer);

impl Open {
    fn enter(peer: Peer) -> Self {
        peer.shared.status.open.fetch_add(1, Relaxed);
        Self(peer)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.registry.leave(&self.0.tracked);
        self.0.shared.status.open.fetch_sub(1, Relaxed);
    }
}
