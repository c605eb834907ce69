//! What the network services make of NetworkBindings and SubnetClaims, without a server.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use kube::ResourceExt;
use kube::api::DynamicObject;
use popcell_api::conditions::reasons;
use popcell_api::kind;
use serde_json::{Value, json};

use super::super::FAIL;

/// The first subnet, and how long the prefix of each is.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 128, 0, 0);
const PREFIX: u32 = 20;

/// What becomes of an object.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Ready,
    /// Reason and message.
    Failed(&'static str, String),
    /// It stays as it was born.
    Never,
}

/// What becomes of a NetworkBinding or a SubnetClaim.
pub(super) fn to(object: &DynamicObject) -> Verdict {
    match object.annotations().get(FAIL).map(String::as_str) {
        None => Verdict::Ready,
        Some("never-ready") => Verdict::Never,
        Some("network-failure") => failed("The network cannot be made in this site"),
        Some(other) => failed(&format!("annotation {FAIL} names no failure of networks: {other}")),
    }
}

fn failed(message: &str) -> Verdict {
    Verdict::Failed(reasons::NETWORK_FAILED_TO_CREATE, message.to_owned())
}

/// Namespace and name of the Network that a NetworkBinding needs, on the same server.
pub(super) fn network_of(binding: &DynamicObject) -> (String, String) {
    let namespace = match text(binding, "/spec/network/namespace") {
        "" => binding.namespace().unwrap_or_default(),
        namespace => namespace.to_owned(),
    };
    (namespace, text(binding, "/spec/network/name").to_owned())
}

/// Namespace and name of a NetworkBinding's NetworkContext.
pub(super) fn context_of(binding: &DynamicObject) -> (String, String) {
    let (namespace, network) = network_of(binding);
    let location = text(binding, "/spec/location/name");
    (namespace, format!("{network}-{location}"))
}

/// The NetworkContext of a NetworkBinding, which goes with its Network.
pub(super) fn context(binding: &DynamicObject, network: &Value) -> Value {
    let (namespace, name) = context_of(binding);
    json!({
        "apiVersion": kind::NETWORK_CONTEXT.api_version(),
        "kind": kind::NETWORK_CONTEXT.kind,
        "metadata": { "namespace": namespace, "name": name, "ownerReferences": [network] },
        "spec": {
            "network": { "name": text(binding, "/spec/network/name") },
            "location": binding.data["spec"]["location"],
        },
    })
}

/// The Subnet of a SubnetClaim: the addresses that it asks for, or the lowest that none of the others has.
pub(super) fn subnet(claim: &DynamicObject, others: &[DynamicObject], owner: &Value) -> Value {
    let spec = &claim.data["spec"];
    let taken = others.iter().map(|other| text(other, "/spec/startAddress"));
    let taken: BTreeSet<&str> = taken.collect();
    let free = || {
        let size = 1_u32 << (32 - PREFIX);
        let starts = (0..).map(|index| Ipv4Addr::from_bits(FIRST.to_bits().wrapping_add(size.wrapping_mul(index))));
        let mut starts = starts.map(|start| start.to_string());
        starts.find(|start| !taken.contains(start.as_str()))
    };
    let start = spec["startAddress"].as_str().map(str::to_owned).or_else(free);
    json!({
        "apiVersion": kind::SUBNET.api_version(),
        "kind": kind::SUBNET.kind,
        "metadata": { "namespace": claim.namespace(), "name": claim.name_any(), "ownerReferences": [owner] },
        "spec": {
            "subnetClass": spec["subnetClass"],
            "networkContext": spec["networkContext"],
            "location": spec["location"],
            "ipFamily": spec["ipFamily"],
            "startAddress": start,
            "prefixLength": spec["prefixLength"].as_i64().unwrap_or(i64::from(PREFIX)),
        },
    })
}

fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    object.data.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(annotation: Option<&str>, spec: &Value) -> DynamicObject {
        let annotations = annotation.map(|value| json!({ FAIL: value }));
        serde_json::from_value(json!({
            "metadata": { "namespace": "ns-1", "name": "it", "annotations": annotations },
            "spec": spec,
        }))
        .unwrap()
    }

    fn binding(annotation: Option<&str>, network: &str) -> DynamicObject {
        let spec = json!({ "network": { "name": network }, "location": { "name": "dfw-a" } });
        object(annotation, &spec)
    }

    fn claim(annotation: Option<&str>, context: &str) -> DynamicObject {
        let spec = json!({ "networkContext": { "name": context }, "location": { "name": "dfw-a" },
            "subnetClass": "private", "ipFamily": "IPv4" });
        object(annotation, &spec)
    }

    fn reason(verdict: &Verdict) -> &str {
        match verdict {
            Verdict::Ready => "ready",
            Verdict::Never => "never",
            Verdict::Failed(reason, message) if !message.is_empty() => reason,
            Verdict::Failed(..) => "no message",
        }
    }

    #[test]
    fn networks_fail_by_annotation() {
        for (annotation, expected) in [
            (None, "ready"),
            (Some("never-ready"), "never"),
            (Some("network-failure"), "NetworkFailedToCreate"),
            (Some("network-faliure"), "NetworkFailedToCreate"),
        ] {
            assert_eq!(reason(&to(&binding(annotation, "default"))), expected, "{annotation:?}");
        }
    }

    #[test]
    fn bindings_of_one_network_in_one_site_share_a_context() {
        let mine = binding(None, "default");
        assert_eq!(context_of(&mine), ("ns-1".to_owned(), "default-dfw-a".to_owned()));
        let mut elsewhere = mine.clone();
        elsewhere.metadata.name = Some("other".to_owned());
        let owner = json!({ "uid": "n" });
        assert_eq!(context(&elsewhere, &owner), context(&mine, &owner));
        assert_eq!(context(&mine, &owner)["metadata"]["ownerReferences"], json!([owner]));
        assert_eq!(network_of(&mine), ("ns-1".to_owned(), "default".to_owned()));
        // The network's namespace, where the interface names one.
        elsewhere.data["spec"]["network"]["namespace"] = json!("shared");
        assert_eq!(
            (context_of(&elsewhere).0, network_of(&elsewhere).0),
            ("shared".into(), "shared".into())
        );
        assert_eq!(
            context(&elsewhere, &owner)["spec"],
            json!({ "network": { "name": "default" }, "location": { "name": "dfw-a" } })
        );
    }

    #[test]
    fn a_subnet_has_the_lowest_free_addresses_or_those_asked_for() {
        let mut claim = claim(None, "default-dfw-a");
        let taken = |start: &str| object(None, &json!({ "startAddress": start }));
        let start =
            |claim: &DynamicObject, others: &[DynamicObject]| subnet(claim, others, &Value::Null)["spec"].clone();
        assert_eq!(start(&claim, &[])["startAddress"], "10.128.0.0");
        let others = [taken("10.128.0.0"), taken("10.128.32.0")];
        let spec = start(&claim, &others);
        assert_eq!(
            (&spec["startAddress"], &spec["prefixLength"]),
            (&json!("10.128.16.0"), &json!(20))
        );
        assert_eq!(spec["networkContext"], json!({ "name": "default-dfw-a" }));
        claim.data["spec"]["startAddress"] = json!("192.168.0.0");
        claim.data["spec"]["prefixLength"] = json!(24);
        let spec = start(&claim, &others);
        assert_eq!(
            (&spec["startAddress"], &spec["prefixLength"]),
            (&json!("192.168.0.0"), &json!(24))
        );
    }
}
