//! The catalogue of instance types, as the server has it that the process runs on.
//!
//! Invariants: while that server does not serve the kind, or gives no right to it, there is the built-in type, as on servers from
//! before there was a catalogue; once objects were read, what they said stays while the server is unreachable.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use kube::Client;
use popcell_api::kind::INSTANCE_TYPE;
use popcell_core::instance_types::{Catalogue, Ignored};
use popcell_core::object::Object;
use popcell_core::observed::Observed;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{Instrument, info, info_span, warn};

use super::change::Change;
use super::kind_watch::{KindWatch, Reached, Streams};
use super::store::Store;
use super::watch_spec::{View, WatchCondition, WatchSpec};
use crate::error::chain;

/// How often a server that does not serve the kind is asked again.
const AGAIN: Duration = Duration::from_mins(1);
/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// Ignored objects that are logged by name at a time; of more, only their number.
const LOGGED: usize = 20;
/// How far apart two reads of what is stored are, of which each decodes and may log: changes within are read together.
const APART: Duration = Duration::from_millis(500);
/// Types that are told of one by one; where more have changed, all are looked at.
const ONE_BY_ONE: usize = 16;

/// `None` until the server has answered.
pub(crate) type Current = Option<Arc<Catalogue>>;

/// The catalogue as it is known. Clones share it.
#[derive(Clone, Debug)]
pub struct InstanceTypes(watch::Receiver<Current>);

impl Default for InstanceTypes {
    /// The built-in type, for good.
    fn default() -> Self {
        Self(watch::channel(Some(Arc::default())).1)
    }
}

impl InstanceTypes {
    /// What there is; unknown until the server has answered.
    pub fn known(&self) -> Observed<Arc<Catalogue>> {
        self.0.borrow().clone().map_or(Observed::Unknown, Observed::Known)
    }

    /// The same, after a wait for the first answer.
    pub async fn known_by(&self, by: Instant) -> Observed<Arc<Catalogue>> {
        let mut current = self.0.clone();
        // Late, or no process reads it any more: what there is.
        let _ = timeout_at(by, current.wait_for(Option::is_some)).await;
        self.known()
    }

    /// Tells of each type that is another than before, as of an object that is new; the first time that all are listed.
    pub async fn follow(mut self, notify: impl Fn(&Change)) {
        let mut before: Current = None;
        loop {
            let now = self.0.borrow_and_update().clone();
            if let Some(now) = now {
                let changed = before.as_ref().map(|before| before.differences(&now));
                match changed.filter(|changed| changed.len() <= ONE_BY_ONE) {
                    Some(changed) => changed.into_iter().for_each(|name| notify(&change_of(name))),
                    None => notify(&Change::Listed),
                }
                before = Some(now);
            }
            if self.0.changed().await.is_err() {
                // No process reads it any more.
                return std::future::pending().await;
            }
        }
    }
}

#[cfg(test)]
impl InstanceTypes {
    /// What a test says.
    pub(crate) fn said(first: Option<Catalogue>) -> (watch::Sender<Current>, Self) {
        let (current, types) = watch::channel(first.map(Arc::new));
        (current, Self(types))
    }
}

fn change_of(name: &str) -> Change {
    let object = Object::new(name, &INSTANCE_TYPE.resource()).data(json!({ "spec": { "name": name } }));
    Change::Applied {
        before: None,
        now: Arc::new(object),
    }
}

/// Reads the catalogue.
pub struct InstanceTypeWatch {
    client: Client,
    store: Store,
    changed: Notify,
    current: watch::Sender<Current>,
}

impl InstanceTypeWatch {
    /// Of this server; nothing is asked yet.
    pub fn new(client: Client) -> (Self, InstanceTypes) {
        let (current, types) = watch::channel(None);
        let watch = Self {
            client,
            store: Store::default(),
            changed: Notify::new(),
            current,
        };
        (watch, InstanceTypes(types))
    }

    /// Runs forever: drop the future to end it.
    pub async fn run(self) {
        self.serves().await;
        let watch_spec = WatchSpec {
            kind: INSTANCE_TYPE,
            selector: "".into(),
            view: View::Whole,
            when: WatchCondition::Optional,
        };
        let follow = KindWatch {
            client: &self.client,
            plane_kind: "discovery",
            list_permit: None,
            watch_spec: &watch_spec,
            store: &self.store,
            reached: &Reached::default(),
            notify: &|_| self.changed.notify_one(),
            went_back: &|| {},
        };
        let (streams, mut renewal) = (Streams::default(), None);
        let watch = follow.run(&streams, &mut renewal);
        let span = info_span!("watch", plane = "discovery", kind = INSTANCE_TYPE.kind);
        tokio::join!(watch.instrument(span), self.keep());
    }

    /// Takes in what is stored whenever it has changed.
    async fn keep(&self) {
        let mut ignored = BTreeSet::new();
        loop {
            self.changed.notified().await;
            self.read(&mut ignored);
            sleep(APART).await;
        }
    }

    /// Waits until the kind is served, and may be read.
    async fn serves(&self) {
        loop {
            match timeout(PATIENCE, self.asks()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) if self.current.borrow().is_none() => {
                    info!(
                        "the server does not serve InstanceTypes, or gives no right to list them: there is the built-in instance type"
                    );
                    self.current.send_replace(Some(Arc::default()));
                }
                Ok(Ok(false)) => {}
                Ok(Err(error)) => {
                    warn!(
                        error = chain(&error),
                        "failed to read instance types: new Instances wait until they are read"
                    );
                    // As soon as the server answers; the first answer is waited for.
                    sleep(PATIENCE).await;
                    continue;
                }
                Err(_) => {
                    warn!("failed to read instance types: no answer in time; new Instances wait until they are read");
                    continue;
                }
            }
            sleep(AGAIN).await;
        }
    }

    async fn asks(&self) -> Result<bool, kube::Error> {
        let path = format!("/apis/{}/{}?limit=1", INSTANCE_TYPE.api_version(), INSTANCE_TYPE.plural);
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        match self.client.request_text(request).await {
            Ok(_) => Ok(true),
            // A right is judged before the kind is looked for.
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes in what is stored. `before` is what was ignored, and logged.
    fn read(&self, before: &mut BTreeSet<Ignored>) {
        let Observed::Known(objects) = self.store.all() else {
            return;
        };
        let objects: Vec<&Object> = objects.iter().map(Arc::as_ref).collect();
        let (catalogue, ignored) = Catalogue::of(&objects);
        let unreadable = self.store.unreadable().into_iter();
        let unreadable = unreadable.map(|(_, object, why)| Ignored { object, why });
        let ignored: BTreeSet<Ignored> = ignored.into_iter().chain(unreadable).collect();
        let mut new = ignored.difference(before);
        for one in new.by_ref().take(LOGGED) {
            warn!(instance_type = one.object, why = one.why, "an InstanceType is ignored");
        }
        let more = new.count();
        if more > 0 {
            warn!(more, ignored = ignored.len(), "more InstanceTypes are ignored");
        }
        *before = ignored;
        self.current.send_if_modified(|current| {
            if current.as_deref() == Some(&catalogue) {
                return false;
            }
            info!(
                types = catalogue.names().len(),
                "the catalogue of instance types was read"
            );
            *current = Some(Arc::new(catalogue));
            true
        });
    }
}

#[cfg(test)]
mod tests;
