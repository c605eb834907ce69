//! Which requests meet which fault now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::{Asked, Fault};

type Matching = Box<dyn Fn(&Asked) -> bool + Send + Sync>;

struct Rule {
    id: u64,
    fault: Fault,
    matching: Matching,
    hits: Arc<AtomicU64>,
}

/// Faults and cuts at one moment.
#[derive(Clone, Default)]
pub(super) struct Snapshot {
    rules: Vec<Arc<Rule>>,
    pub(super) cuts: u64,
}

impl Snapshot {
    fn of(&self, asked: &Asked) -> Option<&Arc<Rule>> {
        self.rules.iter().rev().find(|rule| (rule.matching)(asked))
    }

    /// Whether nothing more may be told by a watch that runs.
    pub(super) fn silences(&self, asked: &Asked) -> bool {
        self.of(asked).is_some_and(|rule| matches!(rule.fault, Fault::Silent))
    }
}

/// All rules of a proxy.
#[derive(Clone)]
pub(super) struct Rules(watch::Sender<Snapshot>);

impl Default for Rules {
    fn default() -> Self {
        Self(watch::Sender::new(Snapshot::default()))
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let snapshot = self.0.borrow();
        let faults = snapshot.rules.iter().map(|rule| &rule.fault);
        f.debug_list().entries(faults).finish()
    }
}

impl Rules {
    pub(super) fn inject(&self, fault: Fault, matching: Matching) -> Injected {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (id, hits) = (NEXT.fetch_add(1, Ordering::Relaxed), Arc::default());
        let rule = Arc::new(Rule {
            id,
            fault,
            matching,
            hits: Arc::clone(&hits),
        });
        self.0.send_modify(|snapshot| snapshot.rules.push(rule));
        Injected {
            id,
            hits,
            rules: self.clone(),
        }
    }

    /// The fault that a request meets, and what ends when it is lifted.
    pub(super) fn fault(&self, asked: &Asked) -> Option<(Fault, impl Future<Output = ()> + Send + 'static)> {
        let rule = self.0.borrow().of(asked).cloned()?;
        rule.hits.fetch_add(1, Ordering::Relaxed);
        let (mut changes, id) = (self.0.subscribe(), rule.id);
        let lifted = async move {
            let is_lifted = |snapshot: &Snapshot| snapshot.rules.iter().all(|rule| rule.id != id);
            // An error means that the proxy is gone, and its faults with it.
            let _ = changes.wait_for(is_lifted).await;
        };
        Some((rule.fault.clone(), lifted))
    }

    pub(super) fn cut(&self) {
        self.0.send_modify(|snapshot| snapshot.cuts += 1);
    }

    pub(super) fn watch(&self) -> watch::Receiver<Snapshot> {
        self.0.subscribe()
    }
}

/// A fault while it is there; dropping it lifts it.
#[derive(Debug)]
pub struct Injected {
    id: u64,
    hits: Arc<AtomicU64>,
    rules: Rules,
}

impl Injected {
    /// How many requests have met it.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Lifts it.
    pub fn lift(self) {
        drop(self);
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        let id = self.id;
        self.rules
            .0
            .send_modify(|snapshot| snapshot.rules.retain(|rule| rule.id != id));
    }
}
