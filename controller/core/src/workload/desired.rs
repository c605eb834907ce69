//! The WorkloadDeployments that a Workload asks for: one for each placement and city.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use popcell_api::conditions::reasons;
use popcell_api::kind::{self, Kind};
use popcell_api::{API_VERSION, labels};
use serde_json::{Value, json};

use crate::names;
use crate::object::{Fields, Object};
use crate::slots;

/// One placement in one city.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Slot<'a> {
    pub(super) placement: &'a str,
    pub(super) city: &'a str,
    /// Name of the WorkloadDeployment.
    pub(super) name: String,
    workload: &'a Object,
    template: &'a Value,
    settings: &'a Value,
    /// Why it can never be made from this Workload.
    pub(super) trouble: Option<Trouble>,
}

impl Slot<'_> {
    /// The whole spec of the WorkloadDeployment. There may be a thousand slots of one large template: each spec is made
    /// when it is needed.
    pub(super) fn spec(&self) -> Value {
        json!({
            "workloadRef": { "name": self.workload.name(), "uid": self.workload.uid() },
            "placementName": self.placement,
            "cityCode": self.city,
            "template": self.template,
            "scaleSettings": self.settings,
        })
    }
}

/// Why a city of a placement does not have what was asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trouble {
    pub(super) placement: String,
    pub(super) city: String,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Where a field that is needed cannot be read.
pub(super) struct Unreadable(pub(super) String);

/// All slots, in the order of the spec; the same city twice in one placement is one slot. `ours` are the WorkloadDeployments of
/// the Workload: one with a name from before names were shortened keeps it.
pub(super) fn slots<'a>(workload: &'a Object, ours: &[&Object]) -> Result<Vec<Slot<'a>>, Unreadable> {
    let template = workload
        .at("/spec/template")
        .ok_or_else(|| Unreadable("/spec/template".to_owned()))?;
    let is_long = |one: &&&Object| one.name().len() > names::DEPLOYMENT_LENGTH;
    let long: BTreeMap<&str, &Object> = ours.iter().filter(is_long).map(|one| (one.name(), *one)).collect();
    let mut slots: Vec<Slot<'_>> = Vec::new();
    let mut taken: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    for (index, placement) in workload.items("/spec/placements").iter().enumerate() {
        let unreadable = |field: &str| Unreadable(format!("/spec/placements/{index}/{field}"));
        let name = text(placement, "name").ok_or_else(|| unreadable("name"))?;
        let settings = placement
            .get("scaleSettings")
            .ok_or_else(|| unreadable("scaleSettings"))?;
        let cities = placement
            .get("cityCodes")
            .and_then(Value::as_array)
            .ok_or_else(|| unreadable("cityCodes"))?;
        for city in cities {
            let city = city.as_str().ok_or_else(|| unreadable("cityCodes"))?;
            let unshortened = names::unshortened(workload.name(), name, city);
            let is_kept = long.get(unshortened.as_str()).is_some_and(|one| {
                one.text("/spec/placementName") == Some(name) && one.text("/spec/cityCode") == Some(city)
            });
            let derived = if is_kept {
                unshortened
            } else {
                names::workload_deployment(workload.name(), name, city)
            };
            let holder = taken.get(&derived).copied();
            if holder == Some((name, city)) {
                continue;
            }
            let trouble = why_never(workload.name(), name, city, &derived, holder);
            taken.entry(derived.clone()).or_insert((name, city));
            slots.push(Slot {
                placement: name,
                city,
                name: derived,
                workload,
                template,
                settings,
                trouble,
            });
        }
    }
    Ok(slots)
}

fn why_never(
    workload: &str,
    placement: &str,
    city: &str,
    derived: &str,
    holder: Option<(&str, &str)>,
) -> Option<Trouble> {
    let trouble = |reason, message| {
        Some(Trouble {
            placement: placement.to_owned(),
            city: city.to_owned(),
            reason,
            message,
        })
    };
    if let Some((reason, message)) = names::fault(city, derived) {
        return trouble(reason, message);
    }
    if let Err(error) = names::check_workload(workload) {
        return trouble(names::INVALID_NAME, error.to_string());
    }
    let (other_placement, other_city) = holder?;
    trouble(
        reasons::NAME_CONFLICT,
        format!("city {other_city} of placement {other_placement} has the same WorkloadDeployment {derived}"),
    )
}

/// The object to create for a slot.
pub(super) fn deployment(workload: &Object, slot: &Slot<'_>) -> Object {
    let mut object = Object::new(&slot.name, &kind::WORKLOAD_DEPLOYMENT.resource())
        .within(workload.namespace())
        .data(json!({ "spec": slot.spec() }));
    object.metadata.labels = Some(BTreeMap::from([(
        labels::WORKLOAD_UID.to_owned(),
        workload.uid().to_owned(),
    )]));
    object.metadata.owner_references = Some(vec![owner(kind::WORKLOAD, workload, true)]);
    object
}

/// A reference to an owner; `controller` also blocks its deletion in the foreground.
pub(crate) fn owner(kind: Kind, owner: &Object, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: kind.kind.to_owned(),
        name: owner.name().to_owned(),
        uid: owner.uid().to_owned(),
        controller: controller.then_some(true),
        block_owner_deletion: controller.then_some(true),
    }
}

/// The spec with what is not the Workload's to say: `replicas`, which an autoscaler writes where the project is its own cell.
pub(super) fn with_own_fields(mut spec: Value, stored: Option<&Value>) -> Value {
    let own = stored
        .and_then(|stored| stored.get(REPLICAS))
        .filter(|own| !own.is_null());
    if let (Some(own), Some(fields)) = (own, spec.as_object_mut()) {
        fields.insert(REPLICAS.to_owned(), own.clone());
    }
    spec
}

/// The field of a WorkloadDeployment that no management controller writes or carries.
pub(crate) const REPLICAS: &str = "replicas";

/// The spec of a city whose binding is lost: as it is, but for fewer replicas.
pub(crate) fn lowered(stored: &Value, desired: &Value) -> Value {
    const BOUNDS: [&str; 2] = ["/scaleSettings/minReplicas", "/scaleSettings/maxReplicas"];
    let number = |spec: &Value, path: &str| spec.pointer(path).and_then(Value::as_i64);
    let [least, most] = BOUNDS.map(|path| number(desired, path));
    let asked = slots::bounds(least, most);
    let mut spec = stored.clone();
    for (path, asked) in BOUNDS.into_iter().zip([asked.0, asked.1]) {
        if least.is_some()
            && number(stored, path).is_some_and(|stored| asked < stored)
            && let Some(place) = spec.pointer_mut(path)
        {
            *place = json!(asked);
        }
    }
    spec
}

/// Networks that the template names, as (namespace, name); the namespace is the Workload's own where none is given.
pub fn networks(workload: &Object) -> BTreeSet<(String, String)> {
    named_networks(workload)
        .map(|(_, namespace, name)| (namespace.to_owned(), name.to_owned()))
        .collect()
}

/// The same, with the index of the interface before each.
pub(crate) fn named_networks(workload: &Object) -> impl Iterator<Item = (usize, &str, &str)> {
    let interfaces = workload
        .items("/spec/template/spec/networkInterfaces")
        .iter()
        .enumerate();
    interfaces.filter_map(|(index, interface)| {
        let network = interface.get("network")?;
        let namespace = text(network, "namespace").filter(|namespace| !namespace.is_empty());
        Some((index, namespace.unwrap_or(workload.namespace()), text(network, "name")?))
    })
}

/// Cities of the Workload: a LocationBinding of one of them enqueues it.
pub fn cities(workload: &Object) -> BTreeSet<&str> {
    workload
        .items("/spec/placements")
        .iter()
        .filter_map(|placement| placement.get("cityCodes")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn text<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str)
}
