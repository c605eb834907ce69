//! The infrastructure provider, after the contract between it and popcell: it makes no machines, but reports as if it did.
//!
//! It waits until an Instance has no scheduling gates, puts its finalizer on it, and then writes `Programmed`, `Available`,
//! the hash of the template and addresses, over nothing that it has not read; never `Ready` or `QuotaGranted`. When the
//! Instance is deleted it tears the machine down and lets go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, watcher};
use kube::{Client, ResourceExt};
use popcell_api::{conditions, finalizers, kind};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::draft::{Draft, unless_overtaken};
use behaviour::Behaviour;
use machine::Phase;

mod behaviour;
mod machine;

pub use behaviour::Failure;

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// From the last gate to a running machine.
    pub start: Duration,
    /// From the deletion to the end of the machine.
    pub teardown: Duration,
    /// How long a machine that flaps is up, and how long it is down.
    pub flap: Duration,
}

impl Pace {
    /// As fast as the API server: what is measured then is not the provider.
    pub const INSTANT: Self = Self {
        start: Duration::ZERO,
        teardown: Duration::ZERO,
        flap: Duration::from_millis(500),
    };
    /// As fast as people watch.
    pub const LIFELIKE: Self = Self {
        start: Duration::from_secs(2),
        teardown: Duration::from_secs(1),
        flap: Duration::from_secs(5),
    };
}

/// The provider of one cell. Ends with this value; what it has made stays, and another one takes it over.
#[derive(Debug)]
pub struct Provider {
    // Held: it ends with its value.
    _task: JoinSet<()>,
}

impl Provider {
    /// Starts it on the cell's API server, which serves our kinds.
    #[must_use]
    pub fn start(cell: &Client, pace: Pace) -> Self {
        let site = Site {
            client: cell.clone(),
            pace,
            machines: Mutex::default(),
        };
        let mut task = JoinSet::new();
        task.spawn(run(Arc::new(site)));
        Self { _task: task }
    }
}

struct Site {
    client: Client,
    pace: Pace,
    /// By uid of the Instance.
    machines: Mutex<HashMap<String, Machine>>,
}

#[derive(Clone, Copy)]
struct Machine {
    since: Instant,
    /// It ran before this provider was started.
    inherited: bool,
    ending: Option<Instant>,
}

async fn run(site: Arc<Site>) {
    let instances = Api::<DynamicObject>::all_with(site.client.clone(), &kind::INSTANCE.resource());
    let controller = Controller::new_with(instances, watcher::Config::default(), kind::INSTANCE.resource());
    controller
        .run(look, |_, _, _| Action::requeue(Duration::from_millis(500)), site)
        .for_each(async |outcome| {
            if let Err(kube::runtime::controller::Error::ReconcilerFailed(error, instance)) = outcome {
                eprintln!("stand-in of the provider: {}: {error}", instance.name);
            }
        })
        .await;
}

async fn look(instance: Arc<DynamicObject>, site: Arc<Site>) -> Result<Action, kube::Error> {
    let uid = instance.uid().unwrap_or_default();
    let behaviour = Behaviour::of(instance.metadata.annotations.as_ref());
    let ours = instance
        .finalizers()
        .iter()
        .any(|one| one == finalizers::UNIKRAFT_PROVIDER);
    if instance.metadata.deletion_timestamp.is_some() {
        if ours {
            return end(&instance, &site, &uid, &behaviour).await;
        }
        site.forget(&uid);
        return Ok(Action::await_change());
    }
    if is_gated(&instance) {
        return Ok(Action::await_change());
    }
    if !ours {
        // The write is an event, which brings us back.
        let mut all = instance.finalizers().to_vec();
        all.push(finalizers::UNIKRAFT_PROVIDER.to_owned());
        return set_finalizers(&instance, &site, &all).await;
    }
    let machine = site.machine(&uid, &instance);
    let start = behaviour.start.unwrap_or(site.pace.start);
    let start = if machine.inherited { Duration::ZERO } else { start };
    let (phase, again) = Phase::at(&instance, &behaviour, machine.since.elapsed(), (start, site.pace.flap));
    say(&instance, &site, &phase, &behaviour).await?;
    Ok(again.map_or_else(Action::await_change, Action::requeue))
}

/// Tears down, and lets go of the Instance at the end.
async fn end(instance: &DynamicObject, site: &Site, uid: &str, behaviour: &Behaviour) -> Result<Action, kube::Error> {
    let teardown = behaviour.teardown.unwrap_or(site.pace.teardown);
    let elapsed = site.ending(uid, instance).elapsed();
    let stuck = behaviour.has(Failure::StuckTeardown);
    if stuck || elapsed < teardown {
        say(instance, site, &Phase::ending(), behaviour).await?;
        return Ok(if stuck {
            Action::await_change()
        } else {
            Action::requeue(teardown.saturating_sub(elapsed))
        });
    }
    let others = instance.finalizers().iter();
    let others: Vec<String> = others
        .filter(|one| *one != finalizers::UNIKRAFT_PROVIDER)
        .cloned()
        .collect();
    let action = set_finalizers(instance, site, &others).await?;
    site.forget(uid);
    Ok(action)
}

async fn say(instance: &DynamicObject, site: &Site, phase: &Phase, behaviour: &Behaviour) -> Result<(), kube::Error> {
    let mut draft = Draft::of(instance, Timestamp::now());
    phase.say(&mut draft, instance, behaviour);
    draft.write(&site.api(instance)).await.map(|_| ())
}

async fn set_finalizers(instance: &DynamicObject, site: &Site, all: &[String]) -> Result<Action, kube::Error> {
    let version = instance.resource_version();
    let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": all } });
    let written = site
        .api(instance)
        .patch(&instance.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await;
    unless_overtaken(written)?;
    Ok(Action::await_change())
}

fn is_gated(instance: &DynamicObject) -> bool {
    let gates = instance.data.pointer("/spec/controller/schedulingGates");
    gates.and_then(Value::as_array).is_some_and(|gates| !gates.is_empty())
}

/// Whether a provider has said that it runs.
fn runs(instance: &DynamicObject) -> bool {
    let all = instance.data.pointer("/status/conditions").and_then(Value::as_array);
    all.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == conditions::PROGRAMMED && one["status"] == "True")
    })
}

impl Site {
    fn api(&self, instance: &DynamicObject) -> Api<DynamicObject> {
        let namespace = instance.namespace().unwrap_or_default();
        Api::namespaced_with(self.client.clone(), &namespace, &kind::INSTANCE.resource())
    }

    /// The Instance's machine, started now if there is none.
    fn machine(&self, uid: &str, instance: &DynamicObject) -> Machine {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        *machines.entry(uid.to_owned()).or_insert_with(|| Machine {
            since: Instant::now(),
            inherited: runs(instance),
            ending: None,
        })
    }

    /// When the end of the Instance's machine began, which is now if it had not.
    fn ending(&self, uid: &str, instance: &DynamicObject) -> Instant {
        let mut machine = self.machine(uid, instance);
        let since = *machine.ending.get_or_insert_with(Instant::now);
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.insert(uid.to_owned(), machine);
        since
    }

    fn forget(&self, uid: &str) {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.remove(uid);
    }
}
