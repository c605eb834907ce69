//! ConfigMaps and Secrets that a template names: whether they are in the city, so that Instances made from it may start.
//!
//! - An Instance has the gate `ReferencedData` from its creation or never.
//! - The gate goes once all are there as the WorkloadDeployment says ([`Expected`]), after the status that says what is there.
//! - What each place of the template calls optional may be absent.
//! - Nothing is read but for an Instance that has the gate: a later change of the data changes nothing here.
//! - An Instance of another template waits for its replacement: nothing is read for it.
//!
//! Why: `docs/decisions/31-configuration-and-secrets.md`.

use std::time::Duration;

use jiff::Timestamp;
use popcell_api::conditions::messages;
use popcell_api::{gates, kind};
use serde_json::{Value, json};

use super::owns;
use super::template::{self, Template};
use crate::edit::Edit;
use crate::instance::{has_gate, tier};
use crate::names::is_dns_subdomain;
use crate::object::{Fields, Object};
use crate::paused;
use crate::plan::{Patch, Plane};
use crate::referenced_data::{self, Expected};
use crate::references::{self, Reference};

/// The most ConfigMaps and Secrets of one template that are read for it.
pub const MOST: usize = 256;

/// How a city has an object that a template names.
#[derive(Clone, Debug)]
pub enum Presence {
    /// It is there, with this [`referenced_data::version`].
    Found(String),
    /// The same, and it is no copy of ours.
    Own(String),
    /// It is not there, or on its way out.
    Absent,
    /// The server gives no right to read it.
    Forbidden,
    /// It was not read.
    Unknown,
}

impl Presence {
    /// By the answer of a server; `None` = NotFound.
    pub fn of(found: Option<&Object>) -> Self {
        let there = found.filter(|object| !object.deleting());
        there.map_or(Self::Absent, |object| {
            let version = referenced_data::version(object);
            if object.marked() {
                Self::Found(version)
            } else {
                Self::Own(version)
            }
        })
    }
}

/// How far the data of a template are in their city.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferencedData {
    /// They are there: [`referenced_data::hash`] of what is there.
    Ready(String),
    /// Why Instances wait for them, for users.
    Waiting(String),
    /// It is not known, or no Instance asks for it.
    Unknown,
}

/// Whether an Instance that is made from the template waits for its data.
pub fn awaits_data(deployment: &Object, instances: &[&Object]) -> bool {
    if deployment.deleting() || paused::is_paused(deployment) || deployment.excess().is_some() {
        return false;
    }
    let mut gated = instances
        .iter()
        .filter(|one| owns(deployment, one) && is_gated(one))
        .peekable();
    if gated.peek().is_none() {
        return false;
    }
    Template::of(deployment).is_some_and(|template| gated.any(|one| is_made_from(&template, one)))
}

/// What is to be read of the city: nothing where what is there does not count yet, or is too much.
pub fn data_to_read(deployment: &Object) -> Vec<Reference> {
    let named = match Expected::of(deployment) {
        Expected::Pending(_) => Vec::new(),
        Expected::Anything | Expected::Hash(_) => references::data(deployment),
    };
    // What is no name would lead elsewhere in the path of a request.
    let is_read = named.len() <= MOST && named.iter().all(|one| is_dns_subdomain(&one.name));
    if is_read { named } else { Vec::new() }
}

/// How far they are, by how the city has each; one that each of its places calls optional may be missing. The first that keeps Instances waiting is the one that is reported: those after it
/// are not asked for.
pub fn judge(deployment: &Object, presence: impl Fn(&Reference) -> Presence) -> ReferencedData {
    use ReferencedData::{Ready, Unknown, Waiting};
    let city = deployment.text("/spec/cityCode").unwrap_or_default();
    let expected = match Expected::of(deployment) {
        Expected::Pending(Some(why)) => return Waiting(why.to_owned()),
        Expected::Pending(None) => return Waiting(messages::data_on_its_way(city)),
        Expected::Anything => None,
        Expected::Hash(hash) => Some(hash),
    };
    let named = references::data(deployment);
    if named.len() > MOST {
        return Waiting(messages::too_much_data(named.len(), MOST));
    }
    let absent = |one: &Reference| Waiting(messages::data_not_in_city(one.kind.kind, &one.name, city));
    if let Some(impossible) = named.iter().find(|one| !is_dns_subdomain(&one.name)) {
        return absent(impossible);
    }
    let (mut versions, mut own) = (Vec::new(), None);
    for one in &named {
        match presence(one) {
            Presence::Found(version) => versions.push((one, version)),
            Presence::Own(version) => {
                own = own.or(Some(one));
                versions.push((one, version));
            }
            Presence::Absent if references::is_optional(deployment, one) => {}
            Presence::Absent => return absent(one),
            Presence::Forbidden => return Waiting(messages::data_unreadable_in_city(one.kind.kind, &one.name, city)),
            Presence::Unknown => return Unknown,
        }
    }
    let found = referenced_data::hash(versions.iter().map(|(one, version)| (*one, version.as_str())));
    match expected {
        Some(expected) if expected != found => Waiting(own.map_or_else(
            || messages::data_on_its_way(city),
            |one| messages::data_held_in_city(one.kind.kind, &one.name, city),
        )),
        _ => Ready(found),
    }
}

/// Whether an Instance is let go: the hash of what it starts with.
pub(super) fn lets_go<'a>(data: &'a ReferencedData, template: &Template<'_>, instance: &Object) -> Option<&'a str> {
    match data {
        ReferencedData::Ready(hash) if is_gated(instance) && is_made_from(template, instance) => Some(hash),
        _ => None,
    }
}

/// Writes on an Instance what it starts with.
pub(super) fn note(instance: &Object, hash: &str) -> Option<Patch> {
    let status = instance.at("/status").and_then(Value::as_object);
    let mut status = status.cloned().unwrap_or_default();
    status.insert("referencedDataHash".to_owned(), json!(hash));
    Edit::status(&Plane::Cell, kind::INSTANCE, instance, Value::Object(status))
}

/// When what Instances wait for is read again. What does not count yet begins to with a change of the WorkloadDeployment.
pub(super) fn next_look(
    deployment: &Object,
    data: &ReferencedData,
    instances: &[&Object],
    now: Timestamp,
) -> Option<Duration> {
    if !matches!(data, ReferencedData::Waiting(_)) || matches!(Expected::of(deployment), Expected::Pending(_)) {
        return None;
    }
    let waiting = instances.iter().filter(|one| is_gated(one));
    waiting.map(|one| tier(one.created(), now)).min()
}

fn is_gated(instance: &Object) -> bool {
    !instance.deleting() && has_gate(instance, gates::REFERENCED_DATA)
}

fn is_made_from(template: &Template<'_>, instance: &Object) -> bool {
    template::stamped(instance) == Some(&template.hash)
}
