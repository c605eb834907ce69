//! Names of claims that others hold. The watch on claims brings those of this cell only, so it does not bring when a name
//! is free again; and objects are kept without what says who wrote them.
//!
//! Invariants: a name is watched while it is held, by itself and by its metadata only; no more than [`AT_ONCE`] are, of one
//! project no more than [`SHARE`], and the rest wait for the next look at them
//! ([`popcell_core::remote::NAME_CONFLICT_RETRY`]).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{StreamExt, pin_mut};
use kube::Api;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use popcell_api::conditions::reasons;
use popcell_core::plan::{Plane, Target};
use popcell_core::remote::claim;
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{debug, info};

use super::{Cell, INSTANCE_CLAIM_RECONCILER, Refusal, lock};
use crate::context::Context;
use crate::queue::Key;

/// Names that are watched at the same time.
const AT_ONCE: usize = 64;
/// Of one project: whoever makes claims in it decides how many are in the way.
const SHARE: usize = 8;
/// Who waits may have gone: that is looked at this often.
const CHECK: Duration = Duration::from_secs(30);

/// Keys of [`INSTANCE_CLAIM_RECONCILER`] and the claims of others that are in their way.
#[derive(Debug, Default)]
pub struct NamesInUse {
    names: Mutex<BTreeMap<Key, Name>>,
    changed: Notify,
}

#[derive(Debug)]
struct Name {
    target: Target,
    watched: bool,
    /// Who made the claim.
    maker: Option<String>,
}

impl NamesInUse {
    /// The object in the way of a key, if any.
    pub fn set(&self, key: &Key, held: Option<&Target>) {
        let mut names = lock(&self.names);
        match held {
            None => {
                names.remove(key);
            }
            Some(target) if names.get(key).is_none_or(|name| name.target != *target) => {
                let name = Name {
                    target: target.clone(),
                    watched: false,
                    maker: None,
                };
                names.insert(key.clone(), name);
                self.changed.notify_one();
            }
            Some(_) => {}
        }
    }

    /// What the Instance of a key says of the claim in its way; `seen`: who made it, as far as a reconcile has seen.
    pub fn reported(&self, key: &Key, target: &Target, seen: Option<&str>) -> Refusal {
        let names = lock(&self.names);
        let maker = names.get(key).and_then(|name| name.maker.as_deref()).or(seen);
        let maker = maker.map(|maker| format!(" ({maker})")).unwrap_or_default();
        let message = format!("{target} is held by another owner{maker}: delete it, or rename the Workload");
        (reasons::QUOTA_MISCONFIGURED, message)
    }

    /// It is known who made the claim in the way of a key; whether that is new.
    fn made(&self, key: &Key, maker: Option<String>) -> bool {
        let mut names = lock(&self.names);
        let Some(name) = names.get_mut(key).filter(|name| name.maker != maker) else {
            return false;
        };
        name.maker = maker;
        true
    }

    /// A project that is left is not watched any more.
    pub(super) fn forget(&self, plane: &Plane) {
        lock(&self.names).retain(|key, _| key.plane != *plane);
    }

    /// Those to begin with, while there is room for so many.
    fn begin(&self, room: usize) -> Vec<(Key, Target)> {
        let mut names = lock(&self.names);
        let mut watched: BTreeMap<Plane, usize> = BTreeMap::new();
        for name in names.values().filter(|name| name.watched) {
            *watched.entry(name.target.plane.clone()).or_default() += 1;
        }
        let waiting = names.iter_mut().filter(|(_, name)| {
            let of_plane = watched.entry(name.target.plane.clone()).or_default();
            let begins = !name.watched && *of_plane < SHARE;
            *of_plane += usize::from(begins);
            begins
        });
        let begun = waiting.take(room).map(|(key, name)| {
            name.watched = true;
            (key.clone(), name.target.clone())
        });
        begun.collect()
    }

    fn is_held(&self, key: &Key, target: &Target) -> bool {
        lock(&self.names).get(key).is_some_and(|name| name.target == *target)
    }
}

/// Enqueues the keys that wait for a name once it is free. Runs forever: drop the future to end it.
pub(crate) async fn run(cell: &Cell, context: &Context) {
    let mut watches = FuturesUnordered::new();
    loop {
        for (key, target) in cell.names_in_use.begin(AT_ONCE.saturating_sub(watches.len())) {
            watches.push(async {
                until_free(cell, context, &key, &target).await;
                (key, target)
            });
        }
        tokio::select! {
            () = cell.names_in_use.changed.notified() => {}
            Some((key, target)) = watches.next(), if !watches.is_empty() => {
                if cell.names_in_use.is_held(&key, &target) {
                    info!(%target, "the name of a claim is free again");
                    cell.names_in_use.set(&key, None);
                    context.wait_list.enqueue(INSTANCE_CLAIM_RECONCILER, key);
                }
            }
        }
    }
}

/// Ends when the claim is gone, or when no key waits for its name any more.
async fn until_free(cell: &Cell, context: &Context, key: &Key, target: &Target) {
    let Some(engaged) = context.planes.get(&target.plane) else {
        return;
    };
    let namespace = target.namespace.as_deref().unwrap_or_default();
    let (client, resource) = (engaged.client().clone(), target.kind.resource());
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::namespaced_with(client, namespace, &resource);
    let named = Config::default().fields(&format!("metadata.name={}", target.name));
    let events = watcher(api, named).default_backoff();
    pin_mut!(events);
    let mut found = false;
    while cell.names_in_use.is_held(key, target) {
        let Ok(Some(event)) = timeout(CHECK, events.next()).await else {
            continue;
        };
        match event {
            Ok(Event::Init) => found = false,
            Ok(Event::InitApply(claim) | Event::Apply(claim)) => {
                found = true;
                if cell.names_in_use.made(key, claim::maker(&claim.metadata)) {
                    let reported = cell.names_in_use.reported(key, target, None);
                    cell.refused(context, &key.namespace, &key.name, Some(reported));
                }
            }
            Ok(Event::InitDone) if found => {}
            Ok(Event::InitDone | Event::Delete(_)) => return,
            Err(error) => debug!(%target, %error, "the name of a claim is not watched now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use popcell_api::kind::RESOURCE_CLAIM;

    use super::*;

    #[test]
    fn the_names_of_one_project_leave_watches_to_others() {
        let names_in_use = NamesInUse::default();
        let plane = |id: &str| Plane::Project(id.to_owned());
        let held = |id: &str, name: &str| {
            let target = Target::namespaced(&plane(id), RESOURCE_CLAIM, "default", name);
            names_in_use.set(&Key::new(&plane(id), "default", name), Some(&target));
        };
        for number in 0..2 * AT_ONCE {
            held("a", &format!("web-{number}"));
        }
        held("b", "web-0");
        let count = |begun: &[(Key, Target)], id: &str| begun.iter().filter(|(key, _)| key.plane == plane(id)).count();
        let begun = names_in_use.begin(AT_ONCE);
        assert_eq!((count(&begun, "a"), count(&begun, "b")), (SHARE, 1));
        assert!(names_in_use.begin(AT_ONCE).is_empty());
        // One that ends makes room for the next of its project.
        names_in_use.set(&begun.first().unwrap().0, None);
        assert_eq!(count(&names_in_use.begin(AT_ONCE), "a"), 1);
        assert_eq!(names_in_use.begin(0).len(), 0);
    }
}
