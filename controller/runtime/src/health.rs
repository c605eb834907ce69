//! The port of `--health-probe-bind-address`: `/livez`, `/healthz`, `/readyz` and `/metrics`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use popcell_core::plan::Plane;
use popcell_https::ListenError;
use popcell_https::health::routes;
pub use popcell_https::health::{Check, Health, Readiness};
use tracing::warn;

use crate::metrics::Metrics;
use crate::planes::{Planes, Progress, Store};

/// The list of Projects is known.
pub const DISCOVERY_SYNCED: &str = "project-discovery-synced";
/// The projects of that list are engaged; each then becomes known in its own time.
pub const PROJECTS_ENGAGED: &str = "projects-engaged";
/// Everything that is watched on the hub is known.
pub const HUB_SYNCED: &str = "hub-synced";

/// How long a replica that reviews at admission waits for the planes that it watches.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long readiness waits for what is watched. It latches: an API server that goes away later is no reason to send reviews
/// at admission elsewhere, since every replica sees the same.
#[derive(Clone, Copy, Debug)]
pub struct Patience(Option<Instant>);

impl Patience {
    /// Of a process that starts now. It waits forever: a replica that cannot see its planes must not replace one that can.
    /// But one that reviews at admission needs no plane for that, and reviews are of projects that have no part in what is
    /// wrong with a plane: a list that is not answered, or cannot be read. It waits only so long that a rollout need not
    /// outrun the first lists.
    pub fn of(reviews: bool) -> Self {
        Self::until(reviews.then(|| Instant::now() + PATIENCE))
    }

    fn until(end: Option<Instant>) -> Self {
        Self(end)
    }

    /// A check that waits no longer.
    fn check(self, name: &'static str, holds: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Check {
        let patient = move || match holds() {
            Err(reason) if self.0.is_some_and(|end| end <= Instant::now()) => {
                warn!(
                    check = name,
                    reason, "ready all the same: admission does not depend on it"
                );
                Ok(())
            }
            other => other,
        };
        Check::new(name, patient).once()
    }
}

/// Binds the port and serves it on a thread of its own.
///
/// # Errors
/// The port cannot be bound, or the system refuses a thread.
pub async fn start(address: SocketAddr, checks: Vec<Check>, metrics: Metrics) -> Result<Health, ListenError> {
    Health::start(address, router(checks, metrics)).await
}

fn router(checks: Vec<Check>, metrics: Metrics) -> Router {
    // Upstream's probes ask here.
    routes(checks, move || Ok(metrics.encode())).route("/healthz", get(async || "ok\n"))
}

/// [`DISCOVERY_SYNCED`]: the store of [`crate::planes::Discovery`] has been listed once.
pub fn discovery_synced(projects: Arc<Store>, patience: Patience) -> Check {
    let synced = move || {
        if projects.is_known() {
            return Ok(());
        }
        Err(projects
            .trouble()
            .unwrap_or_else(|| "the first list is not there yet".to_owned()))
    };
    patience.check(DISCOVERY_SYNCED, synced)
}

/// [`PROJECTS_ENGAGED`]: discovery has gone through the first list.
pub fn projects_engaged(progress: Arc<Progress>, patience: Patience) -> Check {
    let engaged = move || {
        let reason = || "the projects of the first list are not engaged yet".to_owned();
        progress.has_engaged().then_some(()).ok_or_else(reason)
    };
    patience.check(PROJECTS_ENGAGED, engaged)
}

/// [`HUB_SYNCED`], or the same of another plane under another name: what is watched there has been listed once.
pub fn plane_synced(name: &'static str, planes: Planes, plane: Plane, patience: Patience) -> Check {
    patience.check(name, move || missing(&planes, &plane))
}

fn missing(planes: &Planes, plane: &Plane) -> Result<(), String> {
    let engaged = planes.get(plane).ok_or_else(|| format!("the {plane} is not engaged"))?;
    let missed = engaged.missed().map(|(kind, store)| match store.trouble() {
        Some(trouble) => format!("{} ({trouble})", kind.kind),
        None => kind.kind.to_owned(),
    });
    let missed: Vec<String> = missed.collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(format!("not listed yet: {}", missed.join(", ")))
}

#[cfg(test)]
mod tests;
