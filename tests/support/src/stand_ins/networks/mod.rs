//! The network services of a cell, as far as popcell sees them: a NetworkBinding whose Network is on the same server is
//! answered by a NetworkContext, which all bindings of one network in one site share and which goes with the Network, and a
//! SubnetClaim by a Subnet. Reasons and messages are those of the real ones.
//!
//! What goes wrong goes wrong by the annotation [`FAIL`](super::FAIL) on the object.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, PostParams};
use kube::runtime::controller::{Action, Config, Error as PassError};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, watcher};
use kube::{Client, Resource, ResourceExt};
use popcell_api::conditions;
use popcell_api::kind::{self, Kind};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::draft::Draft;
use answers::Verdict;

mod answers;

/// The network services of one cell. They end with this value; what they have made stays.
#[derive(Debug)]
pub struct Networks {
    // Held: they end with their value.
    _tasks: JoinSet<()>,
}

impl Networks {
    /// Starts them on the cell's API server, which serves [`super::IN_CELLS`].
    #[must_use]
    pub fn start(cell: &Client) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(bindings(cell.clone()));
        tasks.spawn(claims(cell.clone()));
        Self { _tasks: tasks }
    }
}

/// An object that comes late is looked at again by its event, so errors are all that is repeated.
const AGAIN: Duration = Duration::from_millis(500);

async fn bindings(client: Client) {
    let everywhere = |kind: Kind| Api::<DynamicObject>::all_with(client.clone(), &kind.resource());
    let all = everywhere(kind::NETWORK_BINDING);
    let controller = Controller::new_with(all, watcher::Config::default(), kind::NETWORK_BINDING.resource());
    let known = controller.store();
    let of_context = move |context: DynamicObject| {
        let mine = known.state().into_iter().filter(move |binding| {
            let (namespace, name) = answers::context_of(binding);
            context.metadata.name == Some(name) && context.metadata.namespace == Some(namespace)
        });
        mine.map(|binding| ObjectRef::from_obj_with(&*binding, kind::NETWORK_BINDING.resource()))
            .collect::<Vec<_>>()
    };
    let contexts = everywhere(kind::NETWORK_CONTEXT);
    controller
        .watches_with(
            contexts,
            kind::NETWORK_CONTEXT.resource(),
            watcher::Config::default(),
            of_context,
        )
        .run(answer_binding, |_, _, _| Action::requeue(AGAIN), Arc::new(client))
        .for_each(async |outcome| report(outcome))
        .await;
}

async fn claims(client: Client) {
    let everywhere = |kind: Kind| Api::<DynamicObject>::all_with(client.clone(), &kind.resource());
    let all = everywhere(kind::SUBNET_CLAIM);
    // One at a time: two claims must not be given one range of addresses.
    Controller::new_with(all, watcher::Config::default(), kind::SUBNET_CLAIM.resource())
        .with_config(Config::default().concurrency(1))
        .owns_with(
            everywhere(kind::SUBNET),
            kind::SUBNET.resource(),
            watcher::Config::default(),
        )
        .run(answer_claim, |_, _, _| Action::requeue(AGAIN), Arc::new(client))
        .for_each(async |outcome| report(outcome))
        .await;
}

fn report<T>(outcome: Result<T, PassError<kube::Error, watcher::Error>>) {
    if let Err(PassError::ReconcilerFailed(error, object)) = outcome {
        eprintln!("stand-in of the network services: {}: {error}", object.name);
    }
}

async fn answer_binding(binding: Arc<DynamicObject>, client: Arc<Client>) -> Result<Action, kube::Error> {
    if binding.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let mut draft = Draft::of(&binding, Timestamp::now());
    match answers::to(&binding) {
        Verdict::Never => return Ok(Action::await_change()),
        Verdict::Failed(reason, message) => draft.condition(conditions::READY, "False", reason, &message),
        Verdict::Ready => {
            let (namespace, name) = answers::network_of(&binding);
            let network = api(&client, kind::NETWORK, &namespace).get_opt(&name).await?;
            let Some(network) = network else {
                let message = "The network referenced in the binding was not found.";
                draft.condition(
                    conditions::READY,
                    "False",
                    conditions::reasons::NETWORK_NOT_FOUND,
                    message,
                );
                let namespace = binding.namespace().unwrap_or_default();
                draft.write(&api(&client, kind::NETWORK_BINDING, &namespace)).await?;
                // Asked for again, as the real ones do.
                return Ok(Action::requeue(AGAIN));
            };
            let (namespace, name) = answers::context_of(&binding);
            let contexts = api(&client, kind::NETWORK_CONTEXT, &namespace);
            let owner = network.controller_owner_ref(&kind::NETWORK.resource());
            let context = found_or_made(&contexts, &answers::context(&binding, &json!(owner))).await?;
            let mut its = Draft::of(&context, Timestamp::now());
            its.condition(conditions::READY, "True", "Ready", "The network is there");
            if !its.write(&contexts).await? {
                return Ok(Action::requeue(AGAIN));
            }
            draft.set("networkContextRef", json!({ "namespace": namespace, "name": name }));
            draft.condition(
                conditions::READY,
                "True",
                "NetworkContextReady",
                "Network context is ready.",
            );
        }
    }
    let namespace = binding.namespace().unwrap_or_default();
    draft.write(&api(&client, kind::NETWORK_BINDING, &namespace)).await?;
    Ok(Action::await_change())
}

async fn answer_claim(claim: Arc<DynamicObject>, client: Arc<Client>) -> Result<Action, kube::Error> {
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change());
    }
    let mut draft = Draft::of(&claim, Timestamp::now());
    let namespace = claim.namespace().unwrap_or_default();
    match answers::to(&claim) {
        Verdict::Never => return Ok(Action::await_change()),
        Verdict::Failed(reason, message) => draft.condition(conditions::READY, "False", reason, &message),
        Verdict::Ready => {
            let subnets = api(&client, kind::SUBNET, &namespace);
            let others = subnets.list(&kube::api::ListParams::default()).await?.items;
            let owner = claim.controller_owner_ref(&kind::SUBNET_CLAIM.resource());
            let subnet = answers::subnet(&claim, &others, &json!(owner));
            let subnet = found_or_made(&subnets, &subnet).await?;
            let mut its = Draft::of(&subnet, Timestamp::now());
            serve(&mut its);
            if !its.write(&subnets).await? {
                return Ok(Action::requeue(AGAIN));
            }
            for field in ["startAddress", "prefixLength"] {
                draft.set(field, subnet.data["spec"][field].clone());
            }
            draft.set("subnetRef", json!({ "name": subnet.name_any() }));
            serve(&mut draft);
        }
    }
    draft.write(&api(&client, kind::SUBNET_CLAIM, &namespace)).await?;
    Ok(Action::await_change())
}

/// The conditions of a Subnet and of its claim.
fn serve(draft: &mut Draft<'_>) {
    for (type_, message) in [
        ("Allocated", "Addresses are allocated"),
        (conditions::PROGRAMMED, "The subnet is programmed"),
        (conditions::READY, "The subnet is there"),
    ] {
        draft.condition(type_, "True", type_, message);
    }
}

/// The object of this name, made now if there is none. One that is being deleted is found as well: its end is an event.
async fn found_or_made(api: &Api<DynamicObject>, wanted: &Value) -> Result<DynamicObject, kube::Error> {
    let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
    if let Some(found) = api.get_opt(name).await? {
        return Ok(found);
    }
    let wanted: DynamicObject = serde_json::from_value(wanted.clone()).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &wanted).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(name).await,
        made => made,
    }
}

fn api(client: &Client, kind: Kind, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &kind.resource())
}
