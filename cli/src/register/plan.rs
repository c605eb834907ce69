//! What our webhook entry has to be: from the descriptions of the modules and the flags. No IO.
//!
//! Invariants: one rule per target, never merged, so that no operation is claimed for a kind that lacks it; entries of
//! others and unknown fields of the object stay as they are; the same input gives the same object.

use popcell_core::names::{is_dns_label, is_dns_subdomain};
use popcell_engine::Description;
use popcell_protocol::{Gvk, Operation};
use serde_json::{Value, json};

use crate::planes::karmada::ServiceReference;

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

/// A flag that does not fit the modules.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Not `kind=operation`.
    #[error("--add-operation {0:?}: expected KIND=OPERATION, for example WorkloadDeployment=Retain")]
    Addition(String),
    /// The operation is none of Karmada's.
    #[error("--add-operation {0:?}: {1}")]
    Operation(String, String),
    /// No module has the kind.
    #[error("--add-operation {addition:?}: no module serves kind {kind}; they serve {known}")]
    Kind {
        /// The flag's value.
        addition: String,
        /// Its kind.
        kind: String,
        /// What there is.
        known: String,
    },
    /// No module can do it.
    #[error("--add-operation {0:?}: no module implements {1} for it")]
    NotImplemented(String, Operation),
    /// Nothing to register.
    #[error("failed to make rules: no module registers an operation")]
    Nothing,
    /// A Service that cannot be one.
    #[error(
        "--service {0:?}: expected NAMESPACE/NAME[:PORT][/PATH], for example popcell-system/popcell-webhook:443/interpret"
    )]
    Service(String),
    /// A name that Karmada refuses.
    #[error("--{flag} {name:?}: {reason}")]
    Name {
        /// The flag.
        flag: &'static str,
        /// Its value.
        name: String,
        /// What Karmada expects.
        reason: &'static str,
    },
}

/// The rules of the modules: every operation that they register, and the added ones that they implement.
pub fn rules(descriptions: &[&Description], additions: &[String]) -> Result<Vec<Rule>, PlanError> {
    let additions = additions
        .iter()
        .map(|text| addition(text, descriptions))
        .collect::<Result<Vec<_>, _>>()?;
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
        Err(PlanError::Nothing)
    } else {
        Ok(rules)
    }
}

fn addition(text: &str, descriptions: &[&Description]) -> Result<(String, Operation), PlanError> {
    let (kind, operation) = text
        .split_once('=')
        .ok_or_else(|| PlanError::Addition(text.to_owned()))?;
    let operation = crate::operation::parse(operation).map_err(|error| PlanError::Operation(text.to_owned(), error))?;
    let targets = || descriptions.iter().flat_map(|description| &description.targets);
    if !targets().any(|target| target.kind.kind == kind) {
        let known: Vec<_> = targets().map(|target| target.kind.kind.as_str()).collect();
        return Err(PlanError::Kind {
            addition: text.to_owned(),
            kind: kind.to_owned(),
            known: known.join(", "),
        });
    }
    let implemented = targets()
        .filter(|target| target.kind.kind == kind)
        .any(|target| target.operations.iter().any(|known| known.operation == operation));
    if implemented {
        Ok((kind.to_owned(), operation))
    } else {
        Err(PlanError::NotImplemented(text.to_owned(), operation))
    }
}

/// Reads `namespace/name[:port][/path]`.
pub fn service(text: &str) -> Result<ServiceReference, PlanError> {
    let fail = || PlanError::Service(text.to_owned());
    let (namespace, rest) = text.split_once('/').ok_or_else(fail)?;
    let (address, path) = rest
        .split_once('/')
        .map_or((rest, None), |(address, path)| (address, Some(path)));
    let (name, port) = address
        .split_once(':')
        .map_or((address, None), |(name, port)| (name, Some(port)));
    let port = match port {
        Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or_else(fail)?,
        None => 443,
    };
    let path = path.unwrap_or("interpret");
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
pub fn names(config: &str, webhook: &str) -> Result<(), PlanError> {
    let fail = |flag, name: &str, reason| {
        Err(PlanError::Name {
            flag,
            name: name.to_owned(),
            reason,
        })
    };
    if !is_dns_subdomain(config) {
        return fail(
            "config-name",
            config,
            "expected lower-case letters, digits, dashes and dots (a DNS-1123 subdomain)",
        );
    }
    if !is_dns_subdomain(webhook) || webhook.split('.').count() < 3 {
        return fail(
            "webhook-name",
            webhook,
            "expected a domain name of at least three labels, as in interpreter.example.org",
        );
    }
    Ok(())
}

impl Entry {
    /// The entry as Karmada stores it.
    pub fn to_json(&self) -> Value {
        let mut client = match &self.location {
            Location::Url(url) => json!({ "url": url }),
            Location::Service(ServiceReference {
                namespace,
                name,
                port,
                path,
            }) => {
                json!({ "service": { "namespace": namespace, "name": name, "port": port, "path": path } })
            }
        };
        if let Some(pem) = &self.ca_pem {
            use base64::Engine as _;
            set(
                &mut client,
                "caBundle",
                base64::engine::general_purpose::STANDARD.encode(pem).into(),
            );
        }
        let rules: Vec<_> = self.rules.iter().map(Rule::to_json).collect();
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
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.as_str()).collect();
        json!({
            "operations": operations,
            "apiGroups": [self.kind.group],
            "apiVersions": [self.kind.version],
            "kinds": [self.kind.kind],
        })
    }
}

/// The object without our entry; `None` when no other client has one in it.
pub fn without(object: &Value, webhook: &str) -> Option<Value> {
    let left: Vec<_> = webhooks(object)
        .into_iter()
        .filter(|entry| !named(entry, webhook))
        .collect();
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
    ours.pointer("/clientConfig/caBundle")
        .and_then(Value::as_str)
        .map(str::to_owned)
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

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
