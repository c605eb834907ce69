//! The Lease with requests and a clock.

use std::hash::{BuildHasher, Hasher, RandomState};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::clock::{Clock, Time};
use super::permit::{Permit, Releases};
use super::state_machine::{Machine, Step};
use super::{DURATION, LeaseError, REQUEST};
use crate::config::LeaseSettings;
use crate::error::chain;

/// Who writes, in managedFields.
const MANAGER: &str = "popcell-controller";
/// How often to try to release a Lease that others change.
const RELEASES: u32 = 3;
const CONFLICT: u16 = 409;
const NOT_FOUND: u16 = 404;

/// A name for this process that no other has had: its host, and a random number.
pub fn identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("popcell");
    // What the standard library has that is random: the keys of a new hasher.
    let number = RandomState::new().build_hasher().finish();
    format!("{host}_{number:016x}")
}

/// Keeps the Lease for one process.
#[derive(Debug)]
pub struct LeaderElector {
    api: Api<Lease>,
    lease: String,
    name: &'static str,
    clock: Clock,
    machine: Machine,
    permit: watch::Sender<Option<Time>>,
    releases: Releases,
    /// What the log was told of last, so that a server which is unreachable costs one line.
    reported: Option<String>,
}

/// What a request came to.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
enum Outcome {
    Answer(Option<Lease>),
    Conflict,
    Failed(String),
}

impl LeaderElector {
    /// A replica that holds nothing yet. `client` is of the server that the process runs on, without retries
    /// ([`crate::planes::tuned`]); `identity` must be unique to the process ([`identity`]).
    pub fn new(client: Client, settings: &LeaseSettings, identity: String) -> Self {
        Self::timed(client, settings, identity, Clock::Boot)
    }

    fn timed(client: Client, settings: &LeaseSettings, identity: String, clock: Clock) -> Self {
        let LeaseSettings { namespace, name } = settings;
        Self {
            api: Api::namespaced(client, namespace),
            lease: format!("{namespace}/{name}"),
            name,
            clock,
            machine: Machine::new(identity, namespace, name, clock.now()),
            permit: watch::Sender::new(None),
            releases: Releases::default(),
            reported: None,
        }
    }

    /// Permission to write, as this keeper has it.
    pub fn permit(&self) -> Permit {
        Permit::of(self.permit.subscribe(), self.clock)
    }

    /// Reports when the deletion guard is released.
    pub fn releases(&self) -> Releases {
        self.releases.clone()
    }

    /// Takes and keeps the Lease until `stop`, then releases it: cancel `stop` only when the last write has ended.
    ///
    /// # Errors
    /// The Lease was held and is lost. The process has to exit.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), LeaseError> {
        while !stop.is_cancelled() {
            let now = self.clock.now();
            match self.machine.step(now, Timestamp::now()) {
                // By a clock that may stand meanwhile: then the next step comes late, and finds out how late.
                Step::Sleep(until) => tokio::select! {
                    () = sleep(until.since(now)) => {}
                    () = stop.cancelled() => {}
                },
                Step::Read => self.read().await,
                Step::Create(lease) => self.create(&lease).await,
                Step::Replace(lease) => self.replace(&lease).await,
                Step::Lost(loss) => {
                    self.permit.send_replace(None);
                    let lease = self.lease;
                    return Err(LeaseError { lease, loss });
                }
            }
        }
        self.release().await;
        Ok(())
    }

    async fn read(&mut self) {
        let sent = self.clock.now();
        match self.look().await {
            Outcome::Answer(lease) => {
                self.machine.read(lease, self.clock.now());
                self.reported = None;
            }
            other => self.unanswered("read", other, sent),
        }
    }

    async fn create(&mut self, lease: &Lease) {
        let (sent, parameters) = (self.clock.now(), parameters());
        let request = async { self.api.create(&parameters, lease).await.map(Some) };
        let answer = self.ask(request, &[CONFLICT]).await;
        self.written("create", answer, sent);
    }

    async fn replace(&mut self, lease: &Lease) {
        let sent = self.clock.now();
        let answer = self.put(lease).await;
        self.written("write", answer, sent);
    }

    async fn look(&self) -> Outcome {
        self.ask(self.api.get_opt(self.name), &[]).await
    }

    async fn put(&self, lease: &Lease) -> Outcome {
        let parameters = parameters();
        let request = async { self.api.replace(self.name, &parameters, lease).await.map(Some) };
        // A Lease that was deleted is news too.
        self.ask(request, &[CONFLICT, NOT_FOUND]).await
    }

    fn written(&mut self, verb: &str, answer: Outcome, sent: Time) {
        match answer {
            Outcome::Answer(Some(lease)) => {
                if self.machine.until().is_none() {
                    info!(lease = self.lease, "this process holds the Lease and writes");
                }
                let released = self.machine.written(lease, sent);
                self.reported = None;
                self.permit.send_replace(self.machine.until());
                if let Some(value) = released {
                    // Who handles it says what it was: it may be long.
                    info!(
                        lease = self.lease,
                        "a release of the deletion guard is taken off the Lease"
                    );
                    self.releases.notify(value);
                }
            }
            other => self.unanswered(verb, other, sent),
        }
    }

    fn unanswered(&mut self, verb: &str, outcome: Outcome, sent: Time) {
        let now = self.clock.now();
        match outcome {
            Outcome::Failed(error) => {
                if self.reported.as_ref() != Some(&error) {
                    warn!(lease = self.lease, error, "failed to {verb} the Lease");
                    self.reported = Some(error);
                }
                self.machine.failed(sent, now);
            }
            Outcome::Conflict | Outcome::Answer(_) => self.machine.conflict(now),
        }
    }

    /// Sends a request, and waits no longer than the permission lasts: an answer after its end would find it lost.
    async fn ask(&self, request: impl Future<Output = kube::Result<Option<Lease>>>, news: &[u16]) -> Outcome {
        let left = self.machine.until().map(|until| until.since(self.clock.now()));
        let limit = left.map_or(REQUEST, |left| left.min(REQUEST));
        match timeout(limit, request).await {
            Ok(Ok(answer)) => Outcome::Answer(answer),
            Ok(Err(kube::Error::Api(status))) if news.contains(&status.code) => Outcome::Conflict,
            Ok(Err(error)) => Outcome::Failed(chain(&error)),
            Err(_) => Outcome::Failed(format!("no answer for {} ms", limit.as_millis())),
        }
    }

    /// Best effort: what is not released expires.
    async fn release(&mut self) {
        // First this process stops writing, then others may write.
        self.permit.send_replace(None);
        if !self.machine.give_up(self.clock.now()) {
            return;
        }
        let mut found = self.machine.known();
        for _ in 0..RELEASES {
            if found.is_none() {
                found = match self.look().await {
                    Outcome::Answer(found) => found,
                    other => return self.unreleased(&other),
                };
            }
            // It is gone, or another replica holds it.
            let free = found
                .take()
                .and_then(|lease| self.machine.released(lease, Timestamp::now()));
            let Some(lease) = free else { return };
            match self.put(&lease).await {
                Outcome::Answer(_) => return info!(lease = self.lease, "the Lease is released"),
                // An annotation was set meanwhile.
                Outcome::Conflict => {}
                failed @ Outcome::Failed(_) => return self.unreleased(&failed),
            }
        }
        self.unreleased(&Outcome::Conflict);
    }

    fn unreleased(&self, outcome: &Outcome) {
        let error = match outcome {
            Outcome::Failed(error) => error,
            Outcome::Conflict | Outcome::Answer(_) => "it changes all the time",
        };
        let seconds = DURATION.as_secs();
        warn!(
            lease = self.lease,
            error, "failed to release the Lease: others wait {seconds} s"
        );
    }
}

fn parameters() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

#[cfg(test)]
mod tests;
