//! Writing while the Lease is held.

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::info;

use super::RunError;
use super::controllers::Controllers;
use crate::lease::{LeaderElector, LeaseError, Permit, Releases};

/// The Lease of this process.
pub(super) struct Leadership {
    /// Who keeps it; `None` where there is none to keep.
    pub(super) elector: Option<LeaderElector>,
    /// Permission to write.
    pub(super) permit: Permit,
}

/// Ends with whoever waits for it: what is not renewed any more expires.
type Keeping = AbortOnDropHandle<Result<(), LeaseError>>;

/// The task, for reports.
const RENEWAL: &str = "the renewal of the Lease";

impl Leadership {
    /// Waits for the permit, runs reconciles until `stop`, and releases the Lease when the last one has ended.
    pub(super) async fn run(self, controllers: Option<&Controllers>, stop: &CancellationToken) -> Result<(), RunError> {
        let releases = self.elector.as_ref().map(LeaderElector::releases);
        let written = CancellationToken::new();
        let keep = |elector: LeaderElector| AbortOnDropHandle::new(tokio::spawn(elector.run(written.clone())));
        let mut keeping = self.elector.map(keep);
        let led = tokio::select! {
            led = lead(&self.permit, controllers, releases.as_ref(), stop) => Ok(led),
            lost = lost(keeping.as_mut()) => Err(lost),
        };
        // When it is lost others write now: reconciles that run find no permit, and the process ends.
        led?;
        written.cancel();
        match keeping {
            Some(keeping) => ended(keeping.await),
            None => Ok(()),
        }
    }
}

async fn lead(
    permit: &Permit,
    controllers: Option<&Controllers>,
    releases: Option<&Releases>,
    stop: &CancellationToken,
) {
    if !permit.wait(stop).await {
        return stop.cancelled().await;
    }
    info!("became leader");
    let Some(controllers) = controllers else {
        return stop.cancelled().await;
    };
    let running = controllers.run(stop);
    let releasing = async {
        loop {
            let value = match releases {
                Some(releases) => releases.next().await,
                None => controllers.next_release().await,
            };
            controllers.release_deletion_guards(&value);
        }
    };
    stop.run_until_cancelled(releasing).await;
    running.join_all().await;
}

/// Waits for an unexpected end of the elector.
async fn lost(keeping: Option<&mut Keeping>) -> RunError {
    match keeping {
        Some(keeping) => match ended(keeping.await) {
            Ok(()) => RunError::ended(RENEWAL),
            Err(lost) => lost,
        },
        None => std::future::pending().await,
    }
}

fn ended(keeping: Result<Result<(), LeaseError>, JoinError>) -> Result<(), RunError> {
    let kept = keeping.map_err(|how| RunError::died(RENEWAL, how))?;
    kept.map_err(RunError::from)
}
