//! Karmada's JSON back into the SDK's types.

use std::collections::BTreeMap;

use popcell_sdk::{Component, Dependency, Error, Json, NodeClaim, Quantity, Replicas, Requirements, Result};

pub(super) fn replicas(result: &Json) -> Result<Replicas> {
    let replicas = result.int("/replicas")?.ok_or_else(|| Error::failed("no replicas"))?;
    let requirements = result.get("/replicaRequirements").map(requirements).transpose()?;
    Ok(Replicas { replicas, requirements })
}

pub(super) fn components(result: &Json) -> Result<Vec<Component>> {
    let read = |each: &Json| {
        Ok(Component {
            name: text(each, "/name")?.unwrap_or_default(),
            replicas: each.int("/replicas")?.unwrap_or_default(),
            requirements: each.get("/replicaRequirements").map(requirements).transpose()?,
        })
    };
    result
        .items("/components")?
        .unwrap_or_default()
        .iter()
        .map(read)
        .collect()
}

pub(super) fn dependencies(result: &Json) -> Result<Vec<Dependency>> {
    let read = |each: &Json| {
        Ok(Dependency {
            api_version: text(each, "/apiVersion")?.unwrap_or_default(),
            kind: text(each, "/kind")?.unwrap_or_default(),
            namespace: text(each, "/namespace")?,
            name: text(each, "/name")?,
            label_selector: each.get("/labelSelector").cloned(),
        })
    };
    result
        .items("/dependencies")?
        .unwrap_or_default()
        .iter()
        .map(read)
        .collect()
}

fn requirements(json: &Json) -> Result<Requirements> {
    let mut resource_request = BTreeMap::new();
    if let Some(fields) = json.fields("/resourceRequest")? {
        for (name, amount) in fields {
            let amount = amount.text("")?.unwrap_or_default();
            let amount: Quantity = amount
                .parse()
                .map_err(|_| Error::failed(format!("{amount} is no quantity")))?;
            resource_request.insert(name.to_owned(), amount);
        }
    }
    Ok(Requirements {
        node_claim: json.get("/nodeClaim").map(node_claim).transpose()?,
        resource_request,
        namespace: text(json, "/namespace")?,
        priority_class_name: text(json, "/priorityClassName")?,
    })
}

fn node_claim(json: &Json) -> Result<NodeClaim> {
    let mut node_selector = BTreeMap::new();
    if let Some(fields) = json.fields("/nodeSelector")? {
        for (key, value) in fields {
            node_selector.insert(key.to_owned(), value.text("")?.unwrap_or_default().to_owned());
        }
    }
    Ok(NodeClaim {
        hard_node_affinity: json.get("/hardNodeAffinity").cloned(),
        node_selector,
        tolerations: json.items("/tolerations")?.unwrap_or_default().to_vec(),
    })
}

fn text(json: &Json, pointer: &str) -> Result<Option<String>> {
    Ok(json.text(pointer)?.map(str::to_owned))
}
