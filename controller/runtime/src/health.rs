//! The port of `--health-probe-bind-address`: `/livez`, `/healthz`, `/readyz` and `/metrics` (domain.md 7.1, 7.3).

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use popcell_core::plan::Plane;
use popcell_https::ListenError;
use popcell_https::health::routes;
pub use popcell_https::health::{Check, Health, Readiness};

use crate::metrics::Metrics;
use crate::planes::{Planes, Progress, Store};

/// The list of Projects is known.
pub const DISCOVERY_SYNCED: &str = "project-discovery-synced";
/// The projects of that list are engaged; each then becomes known in its own time.
pub const PROJECTS_ENGAGED: &str = "projects-engaged";
/// Everything that is watched on the hub is known.
pub const HUB_SYNCED: &str = "hub-synced";

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
///
/// Like the other checks it holds for ever then: an API server that goes away later is no reason to send reviews at
/// admission elsewhere, since every replica sees the same.
pub fn discovery_synced(projects: Arc<Store>) -> Check {
    let synced = move || {
        if projects.is_known() {
            return Ok(());
        }
        Err(projects
            .trouble()
            .unwrap_or_else(|| "the first list is not there yet".to_owned()))
    };
    Check::new(DISCOVERY_SYNCED, synced).once()
}

/// [`PROJECTS_ENGAGED`]: discovery has gone through the first list.
pub fn projects_engaged(progress: Arc<Progress>) -> Check {
    let engaged = move || {
        let reason = || "the projects of the first list are not engaged yet".to_owned();
        progress.has_engaged().then_some(()).ok_or_else(reason)
    };
    Check::new(PROJECTS_ENGAGED, engaged).once()
}

/// [`HUB_SYNCED`], or the same of another plane under another name: what is watched there has been listed once.
pub fn plane_synced(name: &'static str, planes: Planes, plane: Plane) -> Check {
    Check::new(name, move || missing(&planes, &plane)).once()
}

fn missing(planes: &Planes, plane: &Plane) -> Result<(), String> {
    let engaged = planes.get(plane).ok_or_else(|| format!("the {plane} is not engaged"))?;
    if engaged.is_known() {
        return Ok(());
    }
    let unknown = engaged.stores().filter(|(_, store)| !store.is_known());
    let unknown = unknown.map(|(kind, store)| match store.trouble() {
        Some(trouble) => format!("{} ({trouble})", kind.kind),
        None => kind.kind.to_owned(),
    });
    Err(format!("not listed yet: {}", unknown.collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests;
