//! From a cell to its Instances and their claims. Pure.

use popcell_api::{annotations, conditions as types, conditions::reasons, labels, names::RESOURCE_CLAIM_PREFIX};
use popcell_core::{
    conditions::{find, says, text},
    object::{Fields as _, Object},
    slots,
};

use super::{
    fault,
    node::{CLAIM, DEPLOYMENT, HUB, INSTANCE, PROJECT, counts},
    node::{Node, State},
    read::{Found, Snapshot},
};

/// A WorkloadDeployment in a cell. `origin` gives its name and what is asked for; `on_hub` is what Karmada brought, where
/// somebody knows it. Of a cell that was not asked, the copies of its Instances on the hub are shown.
pub(super) fn deployment(snapshot: &Snapshot, cluster: &str, origin: &Object, on_hub: Option<&Object>) -> Node {
    let plane = format!("cell {cluster}");
    let name = format!("{}/{}", snapshot.hub_namespace, origin.name());
    let stand_in = |state, text: &str| Node::place(&plane, DEPLOYMENT, name.clone(), state, text);
    let copies = |mut node: Node| {
        let copies = snapshot
            .hub
            .as_ref()
            .and_then(Found::known)
            .map(|hub| hub.copies.as_slice())
            .unwrap_or_default();
        let of_cell = |one: &&Object| one.label(labels::SOURCE_CLUSTER) == Some(cluster);
        let copies: Vec<&Object> = copies.iter().filter(of_cell).collect();
        node.children = instances(snapshot, HUB, Some(cluster), origin, &copies);
        node
    };
    let cell = match snapshot.cells.get(cluster) {
        None => return copies(stand_in(State::Unasked, &format!("give --cell {cluster}=KUBECONFIG"))),
        Some(Found::Away(why)) => return copies(stand_in(State::Unknown, why)),
        Some(Found::Known(cell)) => cell,
    };
    let Some(found) = cell.deployments.iter().find(|one| one.name() == origin.name()) else {
        return stand_in(
            State::Broken,
            "not there: has the cell our CRDs, and does Karmada reach it?",
        );
    };
    let mut node =
        Node::of(&plane, DEPLOYMENT, found).with(brought(found, on_hub).or_else(|| fault::of_available(found)));
    if node.state == State::Fine {
        node.text = counts(found);
    }
    let all: Vec<&Object> = cell.instances.iter().collect();
    node.children = instances(snapshot, &plane, Some(cluster), found, &all);
    node
}

/// What is wrong with what Karmada brought.
fn brought(found: &Object, on_hub: Option<&Object>) -> Option<String> {
    let on_hub = on_hub?;
    let other = || {
        let uid = found.annotation(annotations::RESOURCE_TEMPLATE_UID)?;
        (uid != on_hub.uid()).then(|| "it is of a former object on the hub".to_owned())
    };
    let behind = || {
        let carries: i64 = found
            .annotation(annotations::RESOURCE_TEMPLATE_GENERATION)?
            .parse()
            .ok()?;
        let now = on_hub.generation()?;
        (carries < now).then(|| format!("it carries generation {carries}, the hub has {now}"))
    };
    other().or_else(behind)
}

/// Instances of a WorkloadDeployment by ordinal, and the first slot that has none.
pub(super) fn instances(
    snapshot: &Snapshot,
    plane: &str,
    cluster: Option<&str>,
    deployment: &Object,
    all: &[&Object],
) -> Vec<Node> {
    let name = deployment.name();
    let mut found: Vec<(i64, &Object)> = all
        .iter()
        .filter_map(|one| Some((slots::ordinal_of(name, one.name())?, *one)))
        .collect();
    found.sort_by_key(|(ordinal, _)| *ordinal);
    let desired = slots::desired(deployment);
    let mut nodes: Vec<Node> = found
        .iter()
        .map(|(ordinal, one)| instance(snapshot, plane, cluster, one, *ordinal >= desired))
        .collect();
    let mut missing = (0..desired).filter(|slot| !found.iter().any(|(ordinal, _)| ordinal == slot));
    if let Some(first) = missing.next() {
        let unready = found
            .iter()
            .find(|(ordinal, one)| *ordinal < first && !says(one, types::READY, "True"));
        let waits = unready.map(|(_, one)| format!(": waits until {} is Ready", one.name()));
        let more = match missing.count() {
            0 => String::new(),
            more => format!(", and {more} more after it"),
        };
        let why = format!("not there{}{more}", waits.unwrap_or_default());
        let slot = format!("{}/{}", snapshot.hub_namespace, slots::instance_name(name, first));
        nodes.push(Node::place(plane, INSTANCE, slot, State::Broken, why));
    }
    nodes
}

fn instance(snapshot: &Snapshot, plane: &str, cluster: Option<&str>, instance: &Object, surplus: bool) -> Node {
    let unready = || fault::unless(instance, types::READY, "no status yet");
    let beyond = || surplus.then(|| "surplus replica".to_owned());
    let mut node = Node::of(plane, INSTANCE, instance).with(fault::of_any(instance).or_else(beyond).or_else(unready));
    if node.state == State::Fine {
        "ready".clone_into(&mut node.text);
    }
    node.children.extend(claim(snapshot, cluster, instance));
    node
}

/// The claim of an Instance; nothing where the cell has no quota.
fn claim(snapshot: &Snapshot, cluster: Option<&str>, instance: &Object) -> Option<Node> {
    let name = format!("{RESOURCE_CLAIM_PREFIX}{}", instance.name());
    let place = |state, text: &str| Node::place(PROJECT, CLAIM, format!("{}/{name}", snapshot.namespace), state, text);
    let granted = instance
        .at("/status")
        .and_then(|status| find(status, types::QUOTA_GRANTED));
    let is_off = granted.is_some_and(|one| text(one, "reason") == reasons::QUOTA_DISABLED);
    let claims = match &snapshot.claims {
        Found::Known(claims) => claims,
        _ if is_off => return None,
        Found::Away(why) => return Some(place(State::Unknown, why)),
    };
    let Some(found) = claims.iter().find(|one| one.name() == name) else {
        let why = fault::unless(instance, types::QUOTA_GRANTED, "no status yet");
        let why = why.map_or_else(|| "not there".to_owned(), |why| format!("not there: {why}"));
        return (!is_off).then(|| place(State::Broken, &why));
    };
    let foreign = || match found.label(labels::SOURCE_CLUSTER) {
        Some(other) if cluster.is_none_or(|cluster| cluster == other) => None,
        Some(other) => Some(format!("it is of cell {other}")),
        None => Some("it is not ours".to_owned()),
    };
    let pending = || fault::unless(found, "Granted", "the quota system has not answered yet");
    let mut node = Node::of(PROJECT, CLAIM, found).with(fault::of_any(found).or_else(foreign).or_else(pending));
    if node.state == State::Fine {
        "granted".clone_into(&mut node.text);
    }
    Some(node)
}
