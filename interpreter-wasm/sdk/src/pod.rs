//! Requirements and dependencies of a pod template: Karmada's `accuratePodRequirements` and `getPodDependencies`
//! (pkg/util/helper: GenerateReplicaRequirements, GetDependenciesFromPodTemplate), which its built-in interpreters and its
//! Lua scripts share.
//!
//! Every function takes the object and the JSON pointer of the template in it (`/spec/template`), so that an error names
//! the place from the object's root. Absent parts mean nothing is needed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Dependency, Json, NodeClaim, Object, Quantity, Requirements, Result};

/// Which field of each kind of volume names a Secret (core/v1 VolumeSource).
const VOLUME_SECRETS: [&str; 10] = [
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/csi/nodePublishSecretRef/name",
    "/flexVolume/secretRef/name",
    "/iscsi/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/secret/secretName",
    "/storageos/secretRef/name",
];

/// What one pod of the template needs; `None` where it asks for nothing.
///
/// As in Kubernetes, the amount of a resource is the sum over the containers or the largest init container, whichever is
/// more, plus the overhead; a container's limit stands in for a request that it does not make.
pub fn requirements(object: &Object, template: &str) -> Result<Option<Requirements>> {
    let spec = format!("{template}/spec");
    let node_claim = node_claim(object, &spec)?;
    let resource_request = resource_request(object, &spec)?;
    if node_claim.is_none() && resource_request.is_empty() {
        return Ok(None);
    }
    Ok(Some(Requirements {
        node_claim,
        resource_request,
        namespace: None,
        priority_class_name: None,
    }))
}

/// What has to go wherever pods of the template go: the ConfigMaps, Secrets, PersistentVolumeClaims and the
/// ServiceAccount that it names, each once, ordered by kind and name, in the object's namespace.
pub fn dependencies(object: &Object, template: &str) -> Result<Vec<Dependency>> {
    let spec = format!("{template}/spec");
    let mut found = BTreeSet::new();
    for container in containers(object, &spec, &["containers", "initContainers", "ephemeralContainers"])? {
        container_dependencies(object, &container, &mut found)?;
    }
    for secret in places(object, &format!("{spec}/imagePullSecrets"))? {
        add(object, "Secret", &format!("{secret}/name"), &mut found)?;
    }
    for volume in places(object, &format!("{spec}/volumes"))? {
        volume_dependencies(object, &volume, &mut found)?;
    }
    let account = object.text(&format!("{spec}/serviceAccountName"))?;
    if let Some(account) = account.filter(|account| !account.is_empty() && *account != "default") {
        found.insert(("ServiceAccount", account.to_owned()));
    }
    Ok(found
        .into_iter()
        .map(|(kind, name)| Dependency {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: object.namespace().map(str::to_owned),
            name: Some(name),
            label_selector: None,
        })
        .collect())
}

fn node_claim(object: &Object, spec: &str) -> Result<Option<NodeClaim>> {
    let affinity = format!("{spec}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let hard_node_affinity = object.get(&affinity).filter(|affinity| !affinity.is_null()).cloned();
    let mut node_selector = BTreeMap::new();
    let pointer = format!("{spec}/nodeSelector");
    for (key, _) in object.fields(&pointer)?.into_iter().flatten() {
        if let Some(value) = object.text(&below(&pointer, key))? {
            node_selector.insert(key.to_owned(), value.to_owned());
        }
    }
    let tolerations: Vec<Json> = object
        .items(&format!("{spec}/tolerations"))?
        .unwrap_or_default()
        .to_vec();
    let claims = hard_node_affinity.is_some() || !node_selector.is_empty() || !tolerations.is_empty();
    Ok(claims.then_some(NodeClaim {
        hard_node_affinity,
        node_selector,
        tolerations,
    }))
}

type Amounts = BTreeMap<String, Quantity>;

fn resource_request(object: &Object, spec: &str) -> Result<Amounts> {
    let mut total = Amounts::new();
    for container in containers(object, spec, &["containers"])? {
        add_all(&mut total, container_request(object, &container)?);
    }
    for container in containers(object, spec, &["initContainers"])? {
        for (name, amount) in container_request(object, &container)? {
            let known = total.entry(name).or_default();
            if amount > *known {
                *known = amount;
            }
        }
    }
    add_all(&mut total, amounts(object, &format!("{spec}/overhead"))?);
    total.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
    Ok(total)
}

fn container_request(object: &Object, container: &str) -> Result<Amounts> {
    let mut request = amounts(object, &format!("{container}/resources/limits"))?;
    request.append(&mut amounts(object, &format!("{container}/resources/requests"))?);
    Ok(request)
}

fn amounts(object: &Object, pointer: &str) -> Result<Amounts> {
    let mut amounts = Amounts::new();
    for (name, _) in object.fields(pointer)?.into_iter().flatten() {
        if let Some(amount) = object.quantity(&below(pointer, name))? {
            amounts.insert(name.to_owned(), amount);
        }
    }
    Ok(amounts)
}

fn add_all(total: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let known = total.entry(name).or_default();
        *known = *known + amount;
    }
}

type Found = BTreeSet<(&'static str, String)>;

fn container_dependencies(object: &Object, container: &str, found: &mut Found) -> Result<()> {
    for source in places(object, &format!("{container}/envFrom"))? {
        add(object, "ConfigMap", &format!("{source}/configMapRef/name"), found)?;
        add(object, "Secret", &format!("{source}/secretRef/name"), found)?;
    }
    for variable in places(object, &format!("{container}/env"))? {
        add(
            object,
            "ConfigMap",
            &format!("{variable}/valueFrom/configMapKeyRef/name"),
            found,
        )?;
        add(
            object,
            "Secret",
            &format!("{variable}/valueFrom/secretKeyRef/name"),
            found,
        )?;
    }
    Ok(())
}

fn volume_dependencies(object: &Object, volume: &str, found: &mut Found) -> Result<()> {
    for secret in VOLUME_SECRETS {
        add(object, "Secret", &format!("{volume}{secret}"), found)?;
    }
    add(object, "ConfigMap", &format!("{volume}/configMap/name"), found)?;
    add(
        object,
        "PersistentVolumeClaim",
        &format!("{volume}/persistentVolumeClaim/claimName"),
        found,
    )?;
    for source in places(object, &format!("{volume}/projected/sources"))? {
        add(object, "ConfigMap", &format!("{source}/configMap/name"), found)?;
        add(object, "Secret", &format!("{source}/secret/name"), found)?;
    }
    Ok(())
}

fn add(object: &Object, kind: &'static str, pointer: &str, found: &mut Found) -> Result<()> {
    if let Some(name) = object.text(pointer)?.filter(|name| !name.is_empty()) {
        found.insert((kind, name.to_owned()));
    }
    Ok(())
}

/// Pointers of the containers in these lists.
fn containers(object: &Object, spec: &str, lists: &[&str]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for list in lists {
        found.append(&mut places(object, &format!("{spec}/{list}"))?);
    }
    Ok(found)
}

/// Pointers of the items of a list.
fn places(object: &Object, list: &str) -> Result<Vec<String>> {
    let items = object.items(list)?.unwrap_or_default();
    Ok((0..items.len()).map(|index| format!("{list}/{index}")).collect())
}

/// The pointer of the field `key` of the value at `pointer`.
fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(spec: &str) -> Object {
        Object::parse(format!(
            r#"{{"metadata":{{"name":"a","namespace":"ns"}},"spec":{{"template":{{"spec":{spec}}}}}}}"#
        ))
        .unwrap()
    }

    fn request(spec: &str) -> Vec<(String, String)> {
        let found = requirements(&object(spec), "/spec/template")
            .unwrap()
            .unwrap_or_default();
        found
            .resource_request
            .iter()
            .map(|(name, amount)| (name.clone(), amount.to_string()))
            .collect()
    }

    fn pair(name: &str, amount: &str) -> (String, String) {
        (name.to_owned(), amount.to_owned())
    }

    #[test]
    fn a_limit_stands_in_for_a_request_and_containers_add_up() {
        let spec = r#"{"containers":[
            {"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"250m"}}},
            {"resources":{"requests":{"cpu":0.5,"nvidia.com/gpu":1,"memory":"0"}}}],"overhead":{"memory":"1Mi"}}"#;
        assert_eq!(
            request(spec),
            [
                pair("cpu", "750m"),
                pair("memory", "1025Mi"),
                pair("nvidia.com/gpu", "1")
            ]
        );
    }

    #[test]
    fn the_largest_init_container_counts_where_it_is_more() {
        let spec = r#"{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi"}}}],
            "initContainers":[{"resources":{"requests":{"cpu":"2"}}},{"resources":{"limits":{"cpu":"1500m","memory":"1Mi"}}}]}"#;
        assert_eq!(request(spec), [pair("cpu", "2"), pair("memory", "1Gi")]);
    }

    #[test]
    fn claims_on_nodes_go_with_the_requirements() {
        let spec = r#"{"nodeSelector":{"a/b":"c"},"tolerations":[{"operator":"Exists"}],"affinity":{"nodeAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}}"#;
        let claim = requirements(&object(spec), "/spec/template")
            .unwrap()
            .unwrap()
            .node_claim
            .unwrap();
        assert_eq!(claim.node_selector.get("a/b").map(String::as_str), Some("c"));
        assert_eq!(claim.tolerations.len(), 1);
        assert!(claim.hard_node_affinity.is_some());
        assert_eq!(requirements(&object("{}"), "/spec/template"), Ok(None));
    }

    #[test]
    fn dependencies_of_every_part_of_the_template_come_once() {
        let spec = r#"{"serviceAccountName":"runner","imagePullSecrets":[{"name":"pull"}],
            "containers":[{"envFrom":[{"configMapRef":{"name":"c1"}},{"secretRef":{"name":"s1"}}]},
                          {"env":[{"name":"X","valueFrom":{"configMapKeyRef":{"name":"c1","key":"k"}}}]}],
            "initContainers":[{"env":[{"name":"Y","valueFrom":{"secretKeyRef":{"name":"s2","key":"k"}}},{"name":"Z","value":"1"}]}],
            "volumes":[{"configMap":{"name":"c2"}},{"secret":{"secretName":"s3"}},{"persistentVolumeClaim":{"claimName":"p"}},
                       {"projected":{"sources":[{"configMap":{"name":"c3"}},{"secret":{"name":"s4"}}]}},{"emptyDir":{}},
                       {"csi":{"nodePublishSecretRef":{"name":"s5"}}}]}"#;
        let found = dependencies(&object(spec), "/spec/template").unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|found| (found.kind.as_str(), found.name.as_deref().unwrap()))
            .collect();
        assert_eq!(
            names,
            [
                ("ConfigMap", "c1"),
                ("ConfigMap", "c2"),
                ("ConfigMap", "c3"),
                ("PersistentVolumeClaim", "p"),
                ("Secret", "pull"),
                ("Secret", "s1"),
                ("Secret", "s2"),
                ("Secret", "s3"),
                ("Secret", "s4"),
                ("Secret", "s5"),
                ("ServiceAccount", "runner"),
            ]
        );
        assert!(
            found
                .iter()
                .all(|found| found.namespace.as_deref() == Some("ns") && found.api_version == "v1")
        );
    }

    #[test]
    fn c15_an_odd_template_is_an_error_with_its_place() {
        let error = |spec: &str| requirements(&object(spec), "/spec/template").unwrap_err().to_string();
        assert!(
            error(r#"{"containers":[{"resources":{"requests":{"cpu":"much"}}}]}"#)
                .starts_with("/spec/template/spec/containers/0/resources/requests/cpu: ")
        );
        assert!(error(r#"{"containers":{}}"#).starts_with("/spec/template/spec/containers: "));
        assert_eq!(dependencies(&object("null"), "/spec/template"), Ok(vec![]));
    }
}
