//! A watch of our own that notes when it saw what.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::TryStreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use popcell_test_support::{Kind, Plane};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What does not come within this time does not come.
const PATIENCE: Duration = Duration::from_mins(2);

enum Seen {
    /// All that was there at first was told.
    Listed,
    Object(Instant, Box<DynamicObject>),
}

/// Objects of one kind on a plane, as they come and change.
pub struct StatusWatch {
    kind: Kind,
    seen: UnboundedReceiver<Seen>,
    task: JoinHandle<()>,
}

impl StatusWatch {
    /// Begins to watch; what is there already counts as not seen.
    ///
    /// # Errors
    /// The list of what is there does not come.
    pub async fn of(plane: &Plane, kind: Kind) -> Result<Self> {
        let (tell, seen) = unbounded_channel();
        let task = tokio::spawn(look(plane.api(kind, None), kind, tell));
        let mut watch = Self { kind, seen, task };
        while !matches!(watch.next().await?, Seen::Listed) {}
        Ok(watch)
    }

    /// When an object that fits was seen for the first time since the last call; what comes before it is passed over.
    ///
    /// # Errors
    /// Nothing at all was heard for two minutes.
    pub async fn of_one(&mut self, fits: impl Fn(&DynamicObject) -> bool) -> Result<Instant> {
        loop {
            match self.next().await? {
                Seen::Object(at, object) if fits(&object) => return Ok(at),
                _ => {}
            }
        }
    }

    async fn next(&mut self) -> Result<Seen> {
        let kind = self.kind.kind;
        let seen = timeout(PATIENCE, self.seen.recv()).await;
        let seen = seen.with_context(|| format!("nothing was heard of any {kind} for {PATIENCE:?}"))?;
        seen.with_context(|| format!("the watch of {kind} ended"))
    }
}

/// Whether it is the object of this name.
#[must_use]
pub fn is(object: &DynamicObject, namespace: &str, name: &str) -> bool {
    object.metadata.name.as_deref() == Some(name) && object.metadata.namespace.as_deref() == Some(namespace)
}

impl Drop for StatusWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn look(api: Api<DynamicObject>, kind: Kind, tell: UnboundedSender<Seen>) {
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    loop {
        let reported = match events.try_next().await {
            Ok(Some(Event::Apply(object) | Event::InitApply(object))) => {
                tell.send(Seen::Object(Instant::now(), Box::new(object)))
            }
            Ok(Some(Event::InitDone)) => tell.send(Seen::Listed),
            Ok(Some(Event::Init | Event::Delete(_))) => Ok(()),
            Ok(None) => return,
            // It begins again by itself.
            Err(error) => {
                eprintln!("watch of {}: {error}", kind.kind);
                Ok(())
            }
        };
        if reported.is_err() {
            return;
        }
    }
}
