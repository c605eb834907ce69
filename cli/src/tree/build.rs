//! From the Workload to its cells, their Instances and their claims. Pure.

use popcell_api::{
    annotations,
    conditions::{self as types, reasons},
    kind::CLUSTER,
    labels,
    names::RESOURCE_CLAIM_PREFIX,
};
use popcell_core::{
    conditions::{find, says, text},
    names,
    object::{Fields as _, Object},
    slots,
};
use serde_json::Value;

use super::{
    fault,
    node::{BINDING, CLAIM, DEPLOYMENT, HUB, INSTANCE, Node, POLICY, PROJECT, State, WORK, WORKLOAD},
    read::{Hub, Snapshot},
};
use crate::console::address;

/// The tree of one Workload. What cannot be read is in its place, or, where that has no name, below the Workload.
pub(super) fn tree(snapshot: &Snapshot) -> Node {
    let mut node = readable(snapshot);
    for strange in &snapshot.unreadable {
        let name = address(&strange.item.namespace, &strange.item.name);
        let why = format!("it cannot be read: {}", strange.item.why);
        let place = Node::place(&strange.plane, strange.kind, name, State::Unknown, why);
        // What is of other Workloads hides nothing of this one.
        if !node.put(&place) && may_be_of(snapshot, &strange.item.name, strange.kind) {
            node.children.push(place);
        }
    }
    node
}

fn may_be_of(snapshot: &Snapshot, name: &str, kind: &str) -> bool {
    let bare = name.strip_prefix(RESOURCE_CLAIM_PREFIX).unwrap_or(name);
    name.is_empty() || kind == CLUSTER.kind || bare.starts_with(names::start(&snapshot.name))
}

fn readable(snapshot: &Snapshot) -> Node {
    let name = format!("{}/{}", snapshot.namespace, snapshot.name);
    let Some(workload) = &snapshot.workload else {
        return Node::place(PROJECT, WORKLOAD, name, State::Broken, "not there");
    };
    let mut node = Node::of(PROJECT, WORKLOAD, workload).with(fault::of_available(workload));
    node.children = snapshot
        .deployments
        .iter()
        .map(|one| deployment(snapshot, one))
        .collect();
    for slot in slots_of(workload) {
        let is_of =
            |one: &Object| names::is_workload_deployment(one.name(), workload.name(), &slot.placement, &slot.city);
        if !snapshot.deployments.iter().any(is_of) {
            let place = format!("{}/{}", snapshot.namespace, slot.name);
            let why = fault::not_made(workload, &slot.placement, &slot.city);
            node.children
                .push(Node::place(PROJECT, DEPLOYMENT, place, State::Broken, &why));
        }
    }
    node
}

/// One city of one placement, and the name of its WorkloadDeployment.
struct Slot {
    placement: String,
    city: String,
    name: String,
}

fn slots_of(workload: &Object) -> Vec<Slot> {
    let mut slots = Vec::new();
    for placement in workload.items("/spec/placements") {
        let name = placement.get("name").and_then(Value::as_str).unwrap_or_default();
        let cities = placement.get("cityCodes").and_then(Value::as_array);
        for city in cities.into_iter().flatten().filter_map(Value::as_str) {
            slots.push(Slot {
                placement: name.to_owned(),
                city: city.to_owned(),
                name: names::workload_deployment(workload.name(), name, city),
            });
        }
    }
    slots
}

fn deployment(snapshot: &Snapshot, deployment: &Object) -> Node {
    let mut node = Node::of(PROJECT, DEPLOYMENT, deployment)
        .with(fault::of_available(deployment))
        .or_text(counts(deployment));
    node.children = match &snapshot.hub {
        Some(Ok(hub)) => vec![on_hub(snapshot, hub, deployment)],
        Some(Err(why)) => vec![hub_place(snapshot, deployment, State::Unknown, why)],
        None => instances(snapshot, PROJECT, None, deployment, &snapshot.instances),
    };
    node
}

fn hub_place(snapshot: &Snapshot, deployment: &Object, state: State, text: &str) -> Node {
    let name = format!("{}/{}", snapshot.hub_namespace, deployment.name());
    let mut node = Node::place(HUB, DEPLOYMENT, name, state, text);
    // Cells can be looked at without it.
    for cluster in holders(snapshot, deployment) {
        node.children.push(in_cell(snapshot, cluster, deployment, None));
    }
    node
}

/// Cells that have it.
fn holders<'a>(snapshot: &'a Snapshot, deployment: &Object) -> impl Iterator<Item = &'a str> {
    let name = deployment.name().to_owned();
    snapshot.cells.iter().filter_map(move |(cluster, cell)| {
        let mut deployments = cell.as_ref().ok()?.deployments.iter();
        deployments.any(|one| one.name() == name).then_some(cluster.as_str())
    })
}

fn on_hub(snapshot: &Snapshot, hub: &Hub, deployment: &Object) -> Node {
    let Some(found) = hub.deployments.iter().find(|one| one.name() == deployment.name()) else {
        let why = if hub.namespace.is_none() {
            format!(
                "not there, and neither is namespace {}: does the controller run?",
                snapshot.hub_namespace
            )
        } else {
            "not there: does the controller run, and reach the hub?".to_owned()
        };
        return hub_place(snapshot, deployment, State::Broken, &why);
    };
    let mut node = Node::of(HUB, DEPLOYMENT, found).with(carried(found, deployment));
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    node.children = vec![policy(snapshot, hub, city), binding(snapshot, hub, found, city)];
    node
}

/// What is wrong with the copy of a WorkloadDeployment on the hub. Whether its Instances run is told where they are.
fn carried(found: &Object, deployment: &Object) -> Option<String> {
    let other = || {
        let of = found.annotation(annotations::UPSTREAM_UID)?;
        (of != deployment.uid()).then(|| format!("it is of another WorkloadDeployment of that name, {of}"))
    };
    let behind = || {
        let carries: i64 = found.annotation(annotations::UPSTREAM_GENERATION)?.parse().ok()?;
        let now = deployment.generation()?;
        (carries != now).then(|| format!("it carries generation {carries}, the project has {now}"))
    };
    fault::of_any(found).or_else(other).or_else(behind)
}

fn policy(snapshot: &Snapshot, hub: &Hub, city: &str) -> Node {
    let name = names::city_policy(city);
    if let Some(found) = hub.policies.iter().find(|one| one.name() == name) {
        return Node::of(HUB, POLICY, found).with(fault::of_any(found));
    }
    let name = format!("{}/{name}", snapshot.hub_namespace);
    let why = "not there, so Karmada places nothing: does the controller run?";
    Node::place(HUB, POLICY, name, State::Broken, why)
}

fn binding(snapshot: &Snapshot, hub: &Hub, deployment: &Object, city: &str) -> Node {
    let is_its = |one: &&Object| {
        one.text("/spec/resource/kind") == Some(DEPLOYMENT)
            && one.text("/spec/resource/name") == Some(deployment.name())
    };
    let Some(found) = hub.bindings.iter().find(is_its) else {
        let name = format!("{}/{}-workloaddeployment", snapshot.hub_namespace, deployment.name());
        let why = "not there: does Karmada run, and does the policy select this object?";
        return Node::place(HUB, BINDING, name, State::Broken, why);
    };
    let clusters: Vec<&str> = found
        .items("/spec/clusters")
        .iter()
        .filter_map(|one| one.get("name")?.as_str())
        .collect();
    let mut node = Node::of(HUB, BINDING, found)
        .with(unplaced(hub, found, &clusters, city))
        .or_text(format!("on {}", clusters.join(", ")));
    node.children = clusters
        .iter()
        .map(|cluster| work(snapshot, hub, deployment, cluster))
        .collect();
    for cluster in holders(snapshot, deployment).filter(|one| !clusters.contains(one)) {
        let left = in_cell(snapshot, cluster, deployment, Some(deployment));
        let why = "it is here although the binding does not name this cell".to_owned();
        node.children.push(left.with(Some(why)));
    }
    node
}

fn unplaced(hub: &Hub, binding: &Object, clusters: &[&str], city: &str) -> Option<String> {
    let nowhere = || {
        let of_city = |one: &&Object| one.label(labels::CITY_CODE) == Some(city) && !one.deleting();
        let none = clusters.is_empty() && !hub.clusters.iter().any(|one| of_city(&one));
        none.then(|| format!("no Cluster carries label {}={city}", labels::CITY_CODE))
    };
    fault::of_any(binding)
        .or_else(nowhere)
        .or_else(|| fault::if_false(binding, "Scheduled"))
        .or_else(|| {
            clusters
                .is_empty()
                .then(|| "Karmada has chosen no Cluster yet".to_owned())
        })
}

fn work(snapshot: &Snapshot, hub: &Hub, deployment: &Object, cluster: &str) -> Node {
    let space = format!("karmada-es-{cluster}");
    let carries = |one: &&Object| {
        let manifest = |field: &str| {
            one.text(&format!("/spec/workload/manifests/0{field}"))
                .unwrap_or_default()
        };
        one.namespace() == space
            && manifest("/kind") == DEPLOYMENT
            && manifest("/metadata/namespace") == deployment.namespace()
            && manifest("/metadata/name") == deployment.name()
    };
    let state = hub.clusters.iter().find(|one| one.name() == cluster);
    let mut node = match hub.works.iter().find(carries) {
        Some(found) => Node::of(HUB, WORK, found).with(unapplied(found, state, cluster)),
        None => Node::place(
            HUB,
            WORK,
            format!("{space}/?"),
            State::Broken,
            "not there: does Karmada run?",
        ),
    };
    node.children = vec![in_cell(snapshot, cluster, deployment, Some(deployment))];
    node
}

fn unapplied(work: &Object, cluster: Option<&Object>, name: &str) -> Option<String> {
    let away = || match cluster {
        None => Some(format!("Cluster {name} is gone")),
        Some(cluster) if says(cluster, "Ready", "True") => None,
        Some(cluster) => {
            let why = fault::unless(cluster, "Ready", "no status yet")?;
            Some(format!("Cluster {name} is not Ready: {why}"))
        }
    };
    fault::of_any(work)
        .or_else(away)
        .or_else(|| fault::if_false(work, "Dispatching"))
        .or_else(|| fault::unless(work, "Applied", "not applied yet"))
}

/// City and ready instances.
fn counts(deployment: &Object) -> String {
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    let of = |field: &str| deployment.int(&format!("/status/{field}")).unwrap_or_default();
    format!("{city} {}/{} ready", of("readyReplicas"), of("desiredReplicas"))
}

/// A WorkloadDeployment in a cell. `origin` gives its name and what is asked for; `on_hub` is what Karmada brought, where
/// somebody knows it. Of a cell that was not asked, the copies of its Instances on the hub are shown.
fn in_cell(snapshot: &Snapshot, cluster: &str, origin: &Object, on_hub: Option<&Object>) -> Node {
    let plane = format!("cell {cluster}");
    let name = format!("{}/{}", snapshot.hub_namespace, origin.name());
    let stand_in = |state, text: &str| Node::place(&plane, DEPLOYMENT, name.clone(), state, text);
    let copies = |mut node: Node| {
        let hub = snapshot.hub.iter().flatten();
        let copies = hub.flat_map(|hub| &hub.copies);
        let of_cell = copies.filter(|one| one.label(labels::SOURCE_CLUSTER) == Some(cluster));
        node.children = instances(snapshot, HUB, Some(cluster), origin, of_cell);
        node
    };
    let cell = match snapshot.cells.get(cluster) {
        None => return copies(stand_in(State::Unasked, &format!("give --cell {cluster}=KUBECONFIG"))),
        Some(Err(why)) => return copies(stand_in(State::Unknown, why)),
        Some(Ok(cell)) => cell,
    };
    let Some(found) = cell.deployments.iter().find(|one| one.name() == origin.name()) else {
        return stand_in(
            State::Broken,
            "not there: has the cell our CRDs, and does Karmada reach it?",
        );
    };
    let mut node = Node::of(&plane, DEPLOYMENT, found)
        .with(brought(found, on_hub).or_else(|| fault::of_available(found)))
        .or_text(counts(found));
    node.children = instances(snapshot, &plane, Some(cluster), found, &cell.instances);
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
fn instances<'a>(
    snapshot: &Snapshot,
    plane: &str,
    cluster: Option<&str>,
    deployment: &Object,
    all: impl IntoIterator<Item = &'a Object>,
) -> Vec<Node> {
    let name = deployment.name();
    let mut found: Vec<(i64, &Object)> = all
        .into_iter()
        .filter_map(|one| Some((slots::ordinal_of(name, one.name())?, one)))
        .collect();
    found.sort_by_key(|(ordinal, _)| *ordinal);
    let desired = slots::reported(deployment);
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
    let mut node = Node::of(plane, INSTANCE, instance)
        .with(fault::of_any(instance).or_else(beyond).or_else(unready))
        .or_text("ready");
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
        Ok(claims) => claims,
        Err(_) if is_off => return None,
        Err(why) => return Some(place(State::Unknown, why)),
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
    let wrong = fault::of_any(found).or_else(foreign).or_else(pending);
    Some(Node::of(PROJECT, CLAIM, found).with(wrong).or_text("granted"))
}

#[cfg(test)]
mod tests;
