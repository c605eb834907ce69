//! Claims that are read again while Instances wait for them: a watch can lose an event, and one whose server hangs
//! delivers nothing.
//!
//! Invariants: no reconcile waits for it; a project is read as a whole, at most once a tier of whoever waits there,
//! however many do, and while its watch brings anything at most once in [`BUSY`]; no more than [`AT_ONCE`] are read at
//! the same time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_core::object::Listed;
use popcell_core::plan::Plane;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tracing::{debug, info};

use super::{Cell, lock};
use crate::context::Context;

/// A project whose watch is not quiet is read this often all the same.
const BUSY: Duration = Duration::from_secs(15);
/// What a list has and the watch does not bring within this time is lost.
const LATE: Duration = Duration::from_secs(1);
/// Projects that are read at the same time.
const AT_ONCE: usize = 16;

/// Projects whose claims are to be read again.
#[derive(Debug, Default)]
pub struct ClaimRelists {
    projects: Mutex<Projects>,
    asked: Notify,
}

#[derive(Debug, Default)]
struct Projects {
    /// When each was asked for last.
    last: BTreeMap<String, Instant>,
    /// Who came first is read first.
    waiting: VecDeque<String>,
    reading: BTreeSet<String>,
}

impl ClaimRelists {
    /// An Instance of a project waits for its claim, and is looked at again within a tier. `quiet`: how long the watch on the
    /// claims has brought nothing.
    pub fn wait(&self, project: &str, tier: Duration, quiet: Duration) {
        let mut projects = lock(&self.projects);
        if projects.reading.contains(project) || projects.waiting.iter().any(|one| one == project) {
            return;
        }
        let Some(passed) = projects.last.get(project).map(Instant::elapsed) else {
            projects.last.insert(project.to_owned(), Instant::now());
            return;
        };
        if passed >= tier && (quiet >= tier || passed >= BUSY) {
            projects.last.insert(project.to_owned(), Instant::now());
            projects.waiting.push_back(project.to_owned());
            self.asked.notify_one();
        }
    }

    /// A project that is left is not read any more.
    pub(super) fn forget(&self, project: &str) {
        let mut projects = lock(&self.projects);
        projects.last.remove(project);
        projects.waiting.retain(|one| one != project);
    }

    fn begin(&self) -> Option<String> {
        let mut projects = lock(&self.projects);
        if projects.reading.len() >= AT_ONCE {
            return None;
        }
        let project = projects.waiting.pop_front()?;
        projects.reading.insert(project.clone());
        Some(project)
    }

    fn end(&self, project: &str) {
        lock(&self.projects).reading.remove(project);
    }
}

/// Reads what is waited for. Runs forever: drop the future to end it.
pub(super) async fn run(cell: &Cell, context: &Context) {
    let mut reads = FuturesUnordered::new();
    loop {
        while let Some(project) = cell.claim_relists.begin() {
            reads.push(async {
                reread(cell, context, &project).await;
                project
            });
        }
        tokio::select! {
            () = cell.claim_relists.asked.notified() => {}
            Some(project) = reads.next(), if !reads.is_empty() => cell.claim_relists.end(&project),
        }
    }
}

/// Compares the claims of a project with what its watch has brought. A watch that has lost something restarts, and whoever
/// waits is enqueued by its list.
async fn reread(cell: &Cell, context: &Context, project: &str) {
    let plane = Plane::Project(project.to_owned());
    let Some(claims) = context.store(&plane, RESOURCE_CLAIM) else {
        return;
    };
    let Some(listed) = list(cell, context, &plane).await else {
        return;
    };
    let missed = claims.missed(&listed);
    if missed.is_empty() {
        return;
    }
    sleep(LATE).await;
    let Some(listed) = list(cell, context, &plane).await else {
        return;
    };
    if claims.still_misses(&missed, &listed) {
        info!(%plane, "the watch on claims missed an event: restarting it");
        claims.suspect();
    }
}

async fn list(cell: &Cell, context: &Context, plane: &Plane) -> Option<Listed> {
    let listed = cell.list_claims(context, plane).await;
    listed
        .inspect_err(|error| debug!(%error, "claims that are waited for cannot be read again"))
        .ok()
}
