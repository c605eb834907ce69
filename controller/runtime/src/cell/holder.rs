//! The Lease of a cell on the hub: which process writes there for it.
//!
//! The Lease in the cell sees to it that one process of the cell writes. It says nothing where two clusters are one cell for
//! the hub, as after a restore of a cell's etcd elsewhere: both have its name, its uid and its credentials. The later process
//! takes the Lease on the hub, and the other one, which leads its cell still, finds it taken: it says so, and writes nothing
//! to other planes until the Lease has not been renewed for [`DURATION`].
//!
//! Invariant: what cannot be read or written changes nothing: a hub that is unreachable, or gives no right to Leases,
//! stops no cell.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::PostParams;
use popcell_core::plan::Plane;
use popcell_core::remote::cell::Identity;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use super::Cell;
use crate::context::Context;
use crate::error::chain;
use crate::lease::{REQUEST, identity, unchanged_since};

/// How often it is renewed, and looked at by who has lost it.
const RENEW: Duration = Duration::from_secs(20);
/// A record that has not changed for so long has no holder any more.
const DURATION: Duration = Duration::from_mins(1);

/// What the last look came to.
#[derive(Debug)]
struct Holder {
    me: String,
    /// Whether this process has held it since it leads.
    held: bool,
    /// The record of another one, and since when it is so.
    other: Option<(LeaseSpec, Instant)>,
    /// When the hub has said last who holds it.
    answered: Option<Instant>,
}

impl Holder {
    fn new(me: String) -> Self {
        Self {
            me,
            held: false,
            other: None,
            answered: None,
        }
    }

    /// Who else holds it, where it is not to be taken.
    fn rival(&mut self, lease: Option<&Lease>, now: Instant) -> Option<String> {
        let record = lease.and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let holder = record.holder_identity.clone().unwrap_or_default();
        if !self.held || holder.is_empty() || holder == self.me {
            self.other = None;
            return None;
        }
        let before = self.other.as_ref().map(|(seen, since)| (seen, *since));
        let since = unchanged_since(before, &record, now);
        self.other = Some((record, since));
        (now.duration_since(since) < DURATION).then_some(holder)
    }

    /// The Lease with this process in it.
    fn taken(&self, lease: Option<Lease>, name: &str, wall: Timestamp) -> Lease {
        let before = lease.unwrap_or_else(|| Lease {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            spec: None,
        });
        let spec = before.spec.unwrap_or_default();
        let is_mine = spec.holder_identity.as_deref() == Some(self.me.as_str());
        let now = Some(MicroTime(wall));
        let transitions = spec.lease_transitions.unwrap_or_default();
        Lease {
            metadata: before.metadata,
            spec: Some(LeaseSpec {
                holder_identity: Some(self.me.clone()),
                lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
                acquire_time: if is_mine { spec.acquire_time } else { now.clone() },
                lease_transitions: Some(if is_mine {
                    transitions
                } else {
                    transitions.saturating_add(1)
                }),
                renew_time: now,
                ..LeaseSpec::default()
            }),
        }
    }
}

/// Keeps the Lease while this process leads its cell. Runs forever: drop the future to end it.
pub(super) async fn run(cell: &Cell, context: &Context) {
    let mut holder = Holder::new(identity());
    let mut is_told = false;
    loop {
        if !context.applier.writes() {
            holder.held = false;
        } else if let Err(error) = look(&mut holder, cell, context).await {
            if !is_told {
                let error = chain(&error);
                warn!(
                    error,
                    "failed to renew the Lease of this cell on the hub: a second cluster of its uid is not noticed"
                );
            }
            is_told = true;
        } else {
            is_told = false;
        }
        sleep(RENEW).await;
    }
}

/// Renews it, or finds out who has taken it. What the hub has not said for [`DURATION`] counts no more.
async fn look(holder: &mut Holder, cell: &Cell, context: &Context) -> kube::Result<()> {
    let kept = if is_us(cell, context).await {
        timeout(REQUEST, keep(holder, cell, context)).await.ok()
    } else {
        None
    };
    if let Some(Ok(rival)) = &kept {
        holder.answered = Some(Instant::now());
        cell.identity_cache
            .set_rival(rival.as_deref().map(|rival| reported(cell, rival)));
    } else if holder.answered.is_none_or(|at| at.elapsed() >= DURATION) {
        cell.identity_cache.set_rival(None);
    }
    kept.unwrap_or(Ok(None)).map(drop)
}

/// Whether the hub knows this cell now: one that took its name by mistake, or was removed meanwhile, takes no Lease.
async fn is_us(cell: &Cell, context: &Context) -> bool {
    let asked = cell.identity_cache.ask(cell, &context.applier).await;
    asked.is_ok() && cell.identity_cache.answered() == Identity::Matches
}

async fn keep(holder: &mut Holder, cell: &Cell, context: &Context) -> kube::Result<Option<String>> {
    let Some(hub) = context.planes.get(&Plane::Hub) else {
        return Ok(None);
    };
    let api: Api<Lease> = Api::namespaced(hub.client().clone(), &cell.namespace);
    let name = name(&cell.cluster);
    let found = api.get_opt(&name).await?;
    if let Some(rival) = holder.rival(found.as_ref(), Instant::now()) {
        return Ok(Some(rival));
    }
    let (is_new, lease) = (found.is_none(), holder.taken(found, &name, Timestamp::now()));
    let parameters = PostParams::default();
    if is_new {
        api.create(&parameters, &lease).await?;
    } else {
        api.replace(&name, &parameters, &lease).await?;
    }
    holder.held = true;
    Ok(None)
}

/// The name of a cell's Lease. The shipped policy lets a cell write no other.
fn name(cluster: &str) -> String {
    format!("popcell-cell-{cluster}")
}

fn reported(cell: &Cell, rival: &str) -> String {
    let id = cell.source().map(|source| source.id).unwrap_or_default();
    format!(
        "another process, {rival}, holds Lease {}/{} on the hub as cell \"{}\": two clusters have the uid {id} of \
         kube-system, as after a restore of etcd elsewhere; stop one of them, the other continues within {} s",
        cell.namespace,
        name(&cell.cluster),
        cell.cluster,
        (DURATION + RENEW).as_secs()
    )
}

#[cfg(test)]
mod tests;
