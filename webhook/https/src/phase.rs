//! The life of a listener as its connections see it.

use tokio::sync::watch;

/// Phases only ever advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Serving.
    Open,
    /// The stop signal has come: still accepting, but every answer asks its client to leave.
    Leaving,
    /// The grace is over: what is being answered is finished, everything else ends.
    Stopping,
    /// Time is up.
    Aborted,
}

/// Resolves once the phase is at least `wanted`, also when it was so before.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    // The sender lives as long as the listener; without it nothing is served any more.
    drop(phase.wait_for(|now| *now >= wanted).await);
}
