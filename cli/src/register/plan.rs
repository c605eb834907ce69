//! What our webhook entry has to be: from the descriptions of the modules and the flags. No IO.
//!
//! Invariants: one rule per target, never merged, so that no operation is claimed for a kind that lacks it; entries of
//! others and unknown fields of the object stay as they are; the same input gives the same object.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use itertools::Itertools as _;
use jiff::Timestamp;
use popcell_core::names::{is_dns_label, is_dns_subdomain};
use popcell_engine::Description;
use popcell_protocol::{Gvk, Operation, UnknownOperation};
use serde_json::{Value, json};

use crate::{
    endpoint::certificate::{Bundle, Facts},
    exit::Failure,
    planes::karmada::ServiceReference,
};

/// One kind and the operations that Karmada shall ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The kind.
    pub kind: Gvk,
    /// In Karmada's order.
    pub operations: Vec<Operation>,
}

/// Where Karmada finds the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A URL.
    Url(String),
    /// A Service that Karmada resolves.
    Service(ServiceReference),
}

/// Our entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Name of the configuration object.
    pub config: String,
    /// Name of the webhook in it.
    pub webhook: String,
    /// Where it is.
    pub location: Location,
    /// PEM; `None` = the system's roots.
    pub ca_pem: Option<String>,
    /// What it is asked.
    pub rules: Vec<Rule>,
    /// Deadline of a call.
    pub timeout_seconds: u8,
}

/// The rules of the modules: every operation that they register, and the added ones that they implement.
pub fn rules(descriptions: &[&Description], additions: &[String]) -> Result<Vec<Rule>, Failure> {
    let additions: Vec<(String, Operation)> = additions
        .iter()
        .map(|text| addition(text, descriptions))
        .try_collect()?;
    let added = |kind: &Gvk, operation| {
        additions
            .iter()
            .any(|(name, wanted)| *name == kind.kind && *wanted == operation)
    };
    let mut rules = Vec::new();
    for target in descriptions.iter().flat_map(|description| &description.targets) {
        let wanted = |operation: &Operation| {
            target
                .operations
                .iter()
                .any(|known| known.operation == *operation && (known.register || added(&target.kind, *operation)))
        };
        let operations: Vec<_> = Operation::ALL.into_iter().filter(wanted).collect();
        if !operations.is_empty() {
            rules.push(Rule {
                kind: target.kind.clone(),
                operations,
            });
        }
    }
    if rules.is_empty() {
        let reason = "failed to make rules: no module registers an operation";
        return Err(Failure::Module(reason.to_owned()));
    }
    Ok(rules)
}

fn addition(text: &str, descriptions: &[&Description]) -> Result<(String, Operation), Failure> {
    let wrong = |reason: &str| Failure::Usage(format!("--add-operation {text:?}: {reason}"));
    let (kind, operation) = text
        .split_once('=')
        .ok_or_else(|| wrong("expected KIND=OPERATION, for example WorkloadDeployment=Retain"))?;
    let operation: Operation = operation
        .parse()
        .map_err(|error: UnknownOperation| wrong(&error.to_string()))?;
    let targets = || descriptions.iter().flat_map(|description| &description.targets);
    let mut of_kind = targets().filter(|target| target.kind.kind == kind).peekable();
    if of_kind.peek().is_none() {
        let known = targets().map(|target| &target.kind.kind).join(", ");
        return Err(wrong(&format!("no module serves kind {kind}; they serve {known}")));
    }
    if of_kind.any(|target| target.operations.iter().any(|known| known.operation == operation)) {
        Ok((kind.to_owned(), operation))
    } else {
        Err(wrong(&format!("no module implements {operation} for it")))
    }
}

/// Reads `namespace/name[:port][/path]`.
pub fn service(text: &str) -> Result<ServiceReference, Failure> {
    let fail = || {
        Failure::Usage(format!(
            "--service {text:?}: expected NAMESPACE/NAME[:PORT][/PATH], for example popcell-system/popcell-webhook:443/interpret"
        ))
    };
    let (namespace, rest) = text.split_once('/').ok_or_else(fail)?;
    let (address, path) = rest.split_once('/').unwrap_or((rest, "interpret"));
    let (name, port) = address.split_once(':').unwrap_or((address, "443"));
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(fail)?;
    if !is_dns_label(namespace) || !is_dns_label(name) || !path.split('/').all(is_dns_subdomain) {
        return Err(fail());
    }
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(ServiceReference {
        namespace,
        name,
        port: Some(port),
        path: Some(format!("/{path}")),
    })
}

/// Checks the names that the API server or Karmada's webhook would refuse.
pub fn names(config: &str, webhook: &str) -> Result<(), Failure> {
    let fail = |flag, name: &str, expected| Err(Failure::Usage(format!("--{flag} {name:?}: expected {expected}")));
    if !is_dns_subdomain(config) {
        let expected = "lower-case letters, digits, dashes and dots (a DNS-1123 subdomain)";
        return fail("config-name", config, expected);
    }
    if !is_dns_subdomain(webhook) || webhook.split('.').count() < 3 {
        let expected = "a domain name of at least three labels, as in interpreter.example.org";
        return fail("webhook-name", webhook, expected);
    }
    Ok(())
}

impl Entry {
    /// The entry as Karmada stores it.
    pub fn to_json(&self) -> Value {
        let mut client = match &self.location {
            Location::Url(url) => json!({ "url": url }),
            Location::Service(service) => json!({ "service": service }),
        };
        if let Some(pem) = &self.ca_pem {
            set(&mut client, "caBundle", BASE64_STANDARD.encode(pem).into());
        }
        let rules = self.rules.iter().map(Rule::to_json).collect_vec();
        json!({
            "name": self.webhook,
            "clientConfig": client,
            "rules": rules,
            "interpreterContextVersions": ["v1alpha1"],
            "timeoutSeconds": self.timeout_seconds,
        })
    }

    /// The object with our entry in it: in its old place, or at the end. Everything else stays.
    pub fn merged(&self, existing: Option<&Value>) -> Value {
        let mut object = existing.cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "config.karmada.io/v1alpha1",
                "kind": "ResourceInterpreterWebhookConfiguration",
                "metadata": { "name": self.config },
            })
        });
        let ours = self.to_json();
        let mut webhooks = webhooks(&object);
        match webhooks.iter_mut().find(|webhook| named(webhook, &self.webhook)) {
            Some(old) => *old = ours,
            None => webhooks.push(ours),
        }
        set(&mut object, "webhooks", Value::Array(webhooks));
        object
    }
}

impl Rule {
    fn to_json(&self) -> Value {
        let operations = self.operations.iter().map(|operation| operation.as_str()).collect_vec();
        json!({
            "operations": operations,
            "apiGroups": [self.kind.group],
            "apiVersions": [self.kind.version],
            "kinds": [self.kind.kind],
        })
    }
}

/// The object without our entry; `None` when it has no other entry.
pub fn without(object: &Value, webhook: &str) -> Option<Value> {
    let mut left = webhooks(object);
    left.retain(|entry| !named(entry, webhook));
    if left.is_empty() {
        return None;
    }
    let mut object = object.clone();
    set(&mut object, "webhooks", Value::Array(left));
    Some(object)
}

/// The base64 caBundle that our entry has now.
pub fn registered_ca(object: &Value, webhook: &str) -> Option<String> {
    let ours = webhooks(object).into_iter().find(|entry| named(entry, webhook))?;
    Some(ours.pointer("/clientConfig/caBundle")?.as_str()?.to_owned())
}

fn webhooks(object: &Value) -> Vec<Value> {
    object
        .get("webhooks")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn named(entry: &Value, name: &str) -> bool {
    entry.get("name").and_then(Value::as_str) == Some(name)
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// The caBundle: what was registered, as long as it is of use, and the new certificates. Both are needed while a rotation runs,
/// since server and registration do not change at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// The new bundle; `None` = the system's roots.
    pub bundle: Option<Bundle>,
    /// Remarks for the person who runs the command.
    pub remarks: Vec<String>,
}

/// Old and new certificates. `registered` is base64 of PEM, as the object holds it; without `new` the old ones stay.
pub fn ca_bundle(registered: Option<&str>, new: Option<&Bundle>, replace: bool, now: Timestamp) -> Merged {
    let mut merged = Merged {
        bundle: new.cloned(),
        remarks: Vec::new(),
    };
    let Some(registered) = registered.filter(|text| !text.is_empty() && !replace) else {
        return merged;
    };
    let pem = BASE64_STANDARD.decode(registered).map_err(|error| error.to_string());
    let old = match pem.and_then(|pem| Bundle::parse(&pem).map_err(|error| error.to_string())) {
        Ok(old) => old,
        Err(error) => {
            merged.remarks.push(format!(
                "dropped the registered caBundle, which Karmada could not use: {error}"
            ));
            return merged;
        }
    };
    for certificate in old.certificates() {
        let Some(facts) = Facts::read(certificate) else {
            continue;
        };
        let (subject, end) = (&facts.subject, facts.not_after);
        let known = merged
            .bundle
            .iter()
            .flat_map(Bundle::certificates)
            .contains(certificate);
        if facts.expired(now) {
            let remark = format!("dropped {subject} from the caBundle: expired {end}");
            merged.remarks.push(remark);
        } else if !known {
            let remark = format!("kept {subject} in the caBundle, valid until {end}");
            merged.remarks.push(remark);
            merged.bundle.get_or_insert_default().add(certificate.clone());
        }
    }
    merged
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
