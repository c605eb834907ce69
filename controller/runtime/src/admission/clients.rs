//! Clients of projects, made on demand.
//!
//! Invariant: at most [`MOST`] are kept, and none that nobody has used for [`IDLE`] when another is asked for. One that is
//! dropped here lives on in the reviews that use it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use popcell_client::ConnectError;
use popcell_core::plan::Plane;
use tokio::time::Instant;

use crate::planes::Transport;

/// So many are kept.
pub(super) const MOST: usize = 256;
/// One that has not been used for so long is dropped; a server closes an idle connection sooner.
pub(super) const IDLE: Duration = Duration::from_mins(5);

/// Clients by plane.
pub(super) struct Clients {
    transport: Arc<dyn Transport>,
    held: Mutex<BTreeMap<Plane, Held>>,
}

struct Held {
    client: Client,
    used: Instant,
}

impl Clients {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            held: Mutex::default(),
        }
    }

    /// The client of a plane; a new one where none is held. One that cannot be made is tried anew at the next review.
    pub(super) fn get(&self, plane: &Plane) -> Result<Client, ConnectError> {
        let now = Instant::now();
        // Held while a client is made, so that two reviews of one project share it. Each access is one step of a map.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, one| now.duration_since(one.used) < IDLE);
        if let Some(one) = held.get_mut(plane) {
            one.used = now;
            return Ok(one.client.clone());
        }
        let client = self.transport.client(plane)?;
        if held.len() >= MOST
            && let Some(oldest) = held.iter().min_by_key(|(_, one)| one.used)
        {
            let oldest = oldest.0.clone();
            held.remove(&oldest);
        }
        let one = Held {
            client: client.clone(),
            used: now,
        };
        held.insert(plane.clone(), one);
        Ok(client)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
