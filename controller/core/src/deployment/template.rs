//! From the template of a WorkloadDeployment to Instances, and whether an Instance still is what the template says.

use std::collections::BTreeMap;

use popcell_api::{annotations, gates, kind, labels};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::names::is_label_value;
use crate::object::{Fields, Object};
use crate::references;
use crate::reserved::{self, Place};
use crate::sizing::Described;
use crate::slots;
use crate::workload::owner;

/// Length of our hashes, in hexadecimal digits.
const HASH_LENGTH: usize = 16;
/// Fields of an Instance's spec that are not the template's.
const OWN_FIELDS: [&str; 2] = ["location", "controller"];

/// Hash of the whole template, metadata included: 64 bits in hexadecimal. Neither the order of fields nor the difference
/// between absent, null and empty counts, so that a template has one hash on every plane that it crosses.
pub fn hash(template: &Value) -> String {
    let mut digest = Sha256::new();
    feed(&mut digest, template);
    let mut hash = format!("{:x}", digest.finalize());
    hash.truncate(HASH_LENGTH);
    hash
}

/// Each value is fed with its sort and its length or end, so that no two values feed the same bytes.
fn feed(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().filter(|(_, value)| !is_nothing(value)).collect();
            digest.update(b"{");
            for (key, value) in sorted {
                feed_text(digest, key);
                feed(digest, value);
            }
            digest.update(b"}");
        }
        Value::Array(items) => {
            digest.update(b"[");
            for item in items {
                feed(digest, item);
            }
            digest.update(b"]");
        }
        Value::String(text) => feed_text(digest, text),
        // Numbers, true, false, null: no two have the same text.
        other => {
            digest.update(b"=");
            digest.update(other.to_string());
            digest.update(b";");
        }
    }
}

fn feed_text(digest: &mut Sha256, text: &str) {
    digest.update(format!("\"{}:", text.len()));
    digest.update(text);
}

/// Whether a value is null or empty, or holds nothing but such values.
pub(crate) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_nothing),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Whether two values are one, where absent, null and empty are.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let within = |one: &Map<String, Value>, other: &Map<String, Value>| {
                one.iter().all(|(key, value)| {
                    other
                        .get(key)
                        .map_or_else(|| is_nothing(value), |other| same(value, other))
                })
            };
            within(left, right) && within(right, left)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => left == right || (is_nothing(left) && is_nothing(right)),
    }
}

/// What every Instance of one WorkloadDeployment is made from.
#[derive(Debug)]
pub(super) struct Template<'a> {
    deployment: &'a Object,
    /// The template.
    pub(super) value: &'a Value,
    /// Its hash.
    pub(super) hash: String,
    /// What goes with each Instance of the size of its instance type: what came from the hub, unless that is another type's.
    pub(super) type_size: Option<String>,
}

impl<'a> Template<'a> {
    /// `None` where there is no readable one.
    pub(super) fn of(deployment: &'a Object) -> Option<Self> {
        let value = deployment.at("/spec/template")?;
        value.get("spec").filter(|spec| spec.is_object())?;
        Some(Self {
            deployment,
            value,
            hash: hash(value),
            type_size: deployment
                .annotation(annotations::INSTANCE_TYPE_SIZE)
                .map(str::to_owned),
        })
    }

    /// What each Instance is.
    pub(super) fn described(&self) -> Option<Described<'_>> {
        Some(Described {
            spec: self.value.get("spec")?,
            type_size: self.type_size.as_deref(),
        })
    }

    /// Whether an Instance of the template's type lacks the size that the template knows of it.
    pub(super) fn knows_size_of(&self, instance: &Object) -> bool {
        let (known, found) = (self.described(), Described::instance(instance));
        let known = known.filter(|known| known.type_name() == found.type_name());
        known.is_some_and(|known| known.why_unsized().is_none()) && found.why_unsized().is_some()
    }

    /// Labels or annotations of the template; those that only we and Karmada set are none of a template's.
    fn texts(&self, pointer: &str, place: Place) -> BTreeMap<String, String> {
        let found = self.value.pointer(pointer).and_then(Value::as_object);
        found
            .into_iter()
            .flatten()
            .filter(|(key, _)| !reserved::in_template(place, key))
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    }

    /// The Instance of a slot, as it is created. Its labels are its own, not shared with the template. `waits`: its networks
    /// are not there yet.
    pub(super) fn instance(&self, ordinal: i64, location: Option<&Value>, waits: bool) -> Object {
        let names_data = !references::data(self.deployment).is_empty();
        let gates = [
            waits.then_some(gates::NETWORK),
            Some(gates::QUOTA),
            names_data.then_some(gates::REFERENCED_DATA),
        ];
        let gates: Vec<Value> = gates
            .into_iter()
            .flatten()
            .map(|name| json!({ "name": name }))
            .collect();
        let mut spec = shared(self.value.get("spec"));
        if let Some(fields) = spec.as_object_mut() {
            fields.extend(location.map(|location| ("location".to_owned(), location.clone())));
            let controller = json!({ "templateHash": self.hash, "schedulingGates": gates });
            fields.insert("controller".to_owned(), controller);
        }
        let name = slots::instance_name(self.deployment.name(), ordinal);
        let mut instance = Object::new(&name, &kind::INSTANCE.resource())
            .within(self.deployment.namespace())
            .data(json!({ "spec": spec }));
        let mut own = self.texts("/metadata/labels", Place::Label);
        own.extend(self.labels(ordinal));
        instance.metadata.labels = Some(own);
        let mut texts = self.texts("/metadata/annotations", Place::Annotation);
        let size = self.type_size.clone();
        texts.extend(size.map(|size| (annotations::INSTANCE_TYPE_SIZE.to_owned(), size)));
        instance.metadata.annotations = Some(texts).filter(|texts| !texts.is_empty());
        instance.metadata.owner_references = Some(vec![owner(kind::WORKLOAD_DEPLOYMENT, self.deployment, true)]);
        instance
    }

    /// Labels that lead from an Instance to what it is part of. A value that no label can have is skipped; only a
    /// WorkloadDeployment that a tenant made directly brings one.
    pub(super) fn labels(&self, ordinal: i64) -> Vec<(String, String)> {
        let spec = |pointer| self.deployment.text(pointer).unwrap_or_default();
        [
            (labels::WORKLOAD_UID, spec("/spec/workloadRef/uid")),
            (labels::WORKLOAD_NAME, spec("/spec/workloadRef/name")),
            (labels::PLACEMENT_NAME, spec("/spec/placementName")),
            (labels::INSTANCE_CITY_CODE, spec("/spec/cityCode")),
            (labels::WORKLOAD_DEPLOYMENT_UID, self.deployment.uid()),
            (labels::WORKLOAD_DEPLOYMENT_NAME, self.deployment.name()),
            (labels::INSTANCE_INDEX, ordinal.to_string().as_str()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty() && is_label_value(value))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
    }

    /// How an Instance stands to the template.
    pub(super) fn compare(&self, ordinal: i64, instance: &Object) -> Likeness {
        // What cannot be seen is no reason to replace it.
        if instance.excess().is_some() {
            return Likeness::Same;
        }
        let stamped = stamped(instance);
        if stamped == Some(&self.hash) {
            return Likeness::Same;
        }
        let (spec, wanted) = (shared(instance.at("/spec")), shared(self.value.get("spec")));
        let mut own = self.texts("/metadata/labels", Place::Label);
        own.extend(self.labels(ordinal));
        let keys = [
            (own, instance.metadata.labels.as_ref()),
            (
                self.texts("/metadata/annotations", Place::Annotation),
                instance.metadata.annotations.as_ref(),
            ),
        ];
        // Keys that are not the template's may be of others, who write on Instances too. But where the hash is one of ours
        // the template did change, and they may be what it lost.
        let ours = stamped.is_some_and(is_ours);
        let alike = |wanted: &BTreeMap<String, String>, found: Option<&BTreeMap<String, String>>| {
            let has = |(key, value)| found.and_then(|found| found.get(key)) == Some(value);
            let of_template = |key: &&String| *key != annotations::INSTANCE_TYPE_SIZE;
            let found = found.into_iter().flat_map(BTreeMap::keys).filter(of_template);
            wanted.iter().all(has) && (!ours || found.count() == wanted.len())
        };
        if same(&spec, &wanted) && keys.iter().all(|(wanted, found)| alike(wanted, *found)) {
            Likeness::Unstamped
        } else {
            Likeness::Drifted
        }
    }
}

/// The part of a spec that template and Instance have in common, without keys that only we and Karmada set.
fn shared(spec: Option<&Value>) -> Value {
    let mut spec = spec.cloned().unwrap_or_default();
    reserved::strip_disks(&mut spec);
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|field, _| !OWN_FIELDS.contains(&field.as_str()));
    }
    spec
}

/// How an Instance stands to the template of its WorkloadDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    /// It was made from it.
    Same,
    /// It was made from an equal one, by a client with another hash: only the hash is to be written.
    Unstamped,
    /// It was made from another one.
    Drifted,
}

/// The hash that an Instance was made with.
pub(super) fn stamped(instance: &Object) -> Option<&str> {
    instance.text("/spec/controller/templateHash")
}

fn is_ours(hash: &str) -> bool {
    hash.len() == HASH_LENGTH
        && hash
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
