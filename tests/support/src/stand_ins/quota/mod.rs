//! The quota system of one project: it grants ResourceClaims out of a budget, all of a claim or nothing, and never more
//! than the budget in all.
//!
//! A grant stays until its claim is gone, also when the budget shrinks; what was refused is judged again when something is
//! given back or the budget grows. A claim can be refused by annotation [`FAIL`](super::FAIL): `denied`, `pending`, or any
//! other value for `ValidationFailed`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use popcell_api::kind;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::draft::unless_overtaken;
use book::Book;

mod book;
#[cfg(test)]
mod book_tests;
mod budget;
mod claim;
mod grants;

pub use budget::{Amounts, Budget};

/// How long after a write that failed the claims are judged again.
const AGAIN: Duration = Duration::from_millis(500);

/// What was granted at once, by what the API server told: an outsider's count, not that of who grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Claims that are granted now.
    pub claims: usize,
    /// What they hold.
    pub granted: Amounts,
    /// The most that was held at once since the budget is what it is, of each resource.
    pub most: Amounts,
}

/// The quota system of a project. Ends with this value; what it has granted stays granted, and another one counts it.
#[derive(Debug)]
pub struct Quota {
    setting: watch::Sender<Setting>,
    audit: Arc<Mutex<Audit>>,
    // They end with this value.
    tasks: JoinSet<()>,
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    budget: Budget,
    /// While it is off nothing is judged: new claims stay as they were born, False/PendingEvaluation.
    on: bool,
}

impl Quota {
    /// Starts it on the project's API server, which serves ResourceClaims.
    #[must_use]
    pub fn start(project: &Client, budget: Budget) -> Self {
        let (setting, settings) = watch::channel(Setting { budget, on: true });
        let audit = Arc::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(run(project.clone(), settings, Arc::clone(&audit)));
        Self { setting, audit, tasks }
    }

    /// Starts it on the project's API server, with the sum of the ResourceGrants there as budget: people can change it.
    #[must_use]
    pub fn by_grants(project: &Client) -> Self {
        let mut quota = Self::start(project, Budget::default());
        // Until the grants are listed.
        quota.setting.send_modify(|setting| setting.on = false);
        quota
            .tasks
            .spawn(grants::follow(project.clone(), quota.setting.clone()));
        quota
    }

    /// Changes the budget.
    pub fn set_budget(&self, budget: Budget) {
        self.setting.send_modify(|setting| setting.budget = budget);
    }

    /// What was granted until now.
    #[must_use]
    pub fn audit(&self) -> Audit {
        *self.audit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run(client: Client, mut settings: watch::Receiver<Setting>, audit: Arc<Mutex<Audit>>) {
    let all = Api::<DynamicObject>::all_with(client.clone(), &kind::RESOURCE_CLAIM.resource());
    let mut events = watcher(all, watcher::Config::default()).default_backoff().boxed();
    let mut book = Book::default();
    let mut unwritten = false;
    let mut audited = settings.borrow().budget;
    loop {
        tokio::select! {
            event = events.next() => {
                let mut next = Some(event);
                // All that is there is read before it is judged.
                while let Some(Some(event)) = next {
                    // Errors are a server that is unreachable: the watcher connects again by itself.
                    if let Ok(event) = event {
                        book.take(event);
                    }
                    next = events.next().now_or_never();
                }
                *audit.lock().unwrap_or_else(PoisonError::into_inner) = book.audit();
            }
            changed = settings.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = settings.borrow().budget;
                if std::mem::replace(&mut audited, now) != now {
                    book.audit_anew();
                    *audit.lock().unwrap_or_else(PoisonError::into_inner) = book.audit();
                }
            }
            () = sleep(AGAIN), if unwritten => {}
        }
        let Setting { budget, on } = *settings.borrow_and_update();
        unwritten = false;
        if !on {
            continue;
        }
        for (claim, patch) in book.judge(&budget, Timestamp::now()) {
            let namespace = claim.namespace().unwrap_or_default();
            let name = claim.name_any();
            let api = Api::namespaced_with(client.clone(), &namespace, &kind::RESOURCE_CLAIM.resource());
            let written = api
                .patch_status(&name, &PatchParams::default(), &Patch::Merge(patch))
                .await;
            let written = written.map(|claim| book.wrote(claim));
            match unless_overtaken(written) {
                Ok(written) => unwritten |= !written,
                Err(error) => {
                    eprintln!("stand-in of quota: {namespace}/{name}: {error}");
                    unwritten = true;
                }
            }
        }
    }
}
