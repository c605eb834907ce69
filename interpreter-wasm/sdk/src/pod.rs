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
/// As kube-scheduler counts it (k8s.io/component-helpers/resource, `PodRequests`): the amount of a resource is the sum over the
/// containers and the restartable init containers (sidecars), or what the pod needs while it starts, whichever is more. While
/// it starts, each init container runs beside the sidecars before it. Requests of the pod as a whole replace that, for the
/// resources that have them (CPU, memory, huge pages). The overhead comes on top. A limit stands in for a request that is not
/// made.
pub fn requirements(object: &Object, template: &str) -> Result<Option<Requirements>> {
    let Some(spec) = pod_spec(object, template)? else {
        return Ok(None);
    };
    let node_claim = node_claim(spec)?;
    let resource_request = resource_request(spec)?;
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
    let Some(spec) = pod_spec(object, template)? else {
        return Ok(Vec::new());
    };
    let mut found = Found::new();
    for list in ["/containers", "/initContainers", "/ephemeralContainers"] {
        for container in items(spec, list)? {
            container_dependencies(container, &mut found)?;
        }
    }
    for secret in items(spec, "/imagePullSecrets")? {
        add(secret, "Secret", "/name", &mut found)?;
    }
    for volume in items(spec, "/volumes")? {
        volume_dependencies(volume, &mut found)?;
    }
    let account = spec.text("/serviceAccountName")?;
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

/// The pods' spec in the template; `None` where there is none. Its parts are read relative to it, and errors still name
/// the place from the object's root.
fn pod_spec<'a>(object: &'a Object, template: &str) -> Result<Option<&'a Json>> {
    let pointer = format!("{template}/spec");
    Ok(object.fields(&pointer)?.and_then(|_| object.get(&pointer)))
}

fn node_claim(spec: &Json) -> Result<Option<NodeClaim>> {
    let affinity = spec.get("/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution");
    let hard_node_affinity = affinity.filter(|affinity| !affinity.is_null()).cloned();
    let mut node_selector = BTreeMap::new();
    for (key, value) in spec.fields("/nodeSelector")?.into_iter().flatten() {
        if let Some(value) = value.text("")? {
            node_selector.insert(key.to_owned(), value.to_owned());
        }
    }
    let tolerations = items(spec, "/tolerations")?.to_vec();
    let claims = hard_node_affinity.is_some() || !node_selector.is_empty() || !tolerations.is_empty();
    Ok(claims.then_some(NodeClaim {
        hard_node_affinity,
        node_selector,
        tolerations,
    }))
}

type Amounts = BTreeMap<String, Quantity>;

fn resource_request(spec: &Json) -> Result<Amounts> {
    let mut total = container_requests(spec)?;
    replace_by_pod(spec, &mut total)?;
    add_all(&mut total, amounts(spec, "/overhead")?);
    total.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
    Ok(total)
}

/// What the containers need together at the most.
fn container_requests(spec: &Json) -> Result<Amounts> {
    let mut running = Amounts::new();
    for container in items(spec, "/containers")? {
        add_all(&mut running, container_request(container)?);
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in items(spec, "/initContainers")? {
        let request = container_request(container)?;
        if container.text("/restartPolicy")? == Some("Always") {
            add_all(&mut running, request.clone());
            add_all(&mut sidecars, request);
            raise(&mut starting, sidecars.clone());
        } else {
            let mut beside = sidecars.clone();
            add_all(&mut beside, request);
            raise(&mut starting, beside);
        }
    }
    raise(&mut running, starting);
    Ok(running)
}

/// Resources that a pod may ask for as a whole.
fn is_of_pods(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// Requests of the pod as a whole stand in the place of those of its containers; its limits only where nothing else asks.
fn replace_by_pod(spec: &Json, total: &mut Amounts) -> Result<()> {
    for (resource, amount) in amounts(spec, "/resources/requests")? {
        if is_of_pods(&resource) {
            total.insert(resource, amount);
        }
    }
    for (resource, amount) in amounts(spec, "/resources/limits")? {
        if is_of_pods(&resource) {
            total.entry(resource).or_insert(amount);
        }
    }
    Ok(())
}

fn container_request(container: &Json) -> Result<Amounts> {
    let mut request = amounts(container, "/resources/limits")?;
    request.append(&mut amounts(container, "/resources/requests")?);
    Ok(request)
}

fn amounts(value: &Json, pointer: &str) -> Result<Amounts> {
    let mut amounts = Amounts::new();
    for (name, amount) in value.fields(pointer)?.into_iter().flatten() {
        if let Some(amount) = amount.quantity("")? {
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

/// Each amount at least as large as in `other`.
fn raise(amounts: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        let known = amounts.entry(name).or_default();
        if amount > *known {
            *known = amount;
        }
    }
}

type Found = BTreeSet<(&'static str, String)>;

fn container_dependencies(container: &Json, found: &mut Found) -> Result<()> {
    for source in items(container, "/envFrom")? {
        add(source, "ConfigMap", "/configMapRef/name", found)?;
        add(source, "Secret", "/secretRef/name", found)?;
    }
    for variable in items(container, "/env")? {
        add(variable, "ConfigMap", "/valueFrom/configMapKeyRef/name", found)?;
        add(variable, "Secret", "/valueFrom/secretKeyRef/name", found)?;
    }
    Ok(())
}

fn volume_dependencies(volume: &Json, found: &mut Found) -> Result<()> {
    for secret in VOLUME_SECRETS {
        add(volume, "Secret", secret, found)?;
    }
    add(volume, "ConfigMap", "/configMap/name", found)?;
    add(
        volume,
        "PersistentVolumeClaim",
        "/persistentVolumeClaim/claimName",
        found,
    )?;
    for source in items(volume, "/projected/sources")? {
        add(source, "ConfigMap", "/configMap/name", found)?;
        add(source, "Secret", "/secret/name", found)?;
    }
    Ok(())
}

fn add(value: &Json, kind: &'static str, pointer: &str, found: &mut Found) -> Result<()> {
    if let Some(name) = value.text(pointer)?.filter(|name| !name.is_empty()) {
        found.insert((kind, name.to_owned()));
    }
    Ok(())
}

fn items<'a>(value: &'a Json, list: &str) -> Result<&'a [Json]> {
    Ok(value.items(list)?.unwrap_or_default())
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

    /// The CPU that a pod of these containers needs; a name that begins with `s` is a sidecar.
    fn cpu(containers: &[u32], init: &[(&str, u32)]) -> String {
        let container = |cpu: &u32| format!(r#"{{"resources":{{"requests":{{"cpu":{cpu}}}}}}}"#);
        let init = init.iter().map(|(name, cpu)| {
            let policy = if name.starts_with('s') { "Always" } else { "" };
            format!(r#"{{"restartPolicy":"{policy}","resources":{{"requests":{{"cpu":{cpu}}}}}}}"#)
        });
        let spec = format!(
            r#"{{"containers":[{}],"initContainers":[{}]}}"#,
            containers.iter().map(container).collect::<Vec<_>>().join(","),
            init.collect::<Vec<_>>().join(",")
        );
        request(&spec)
            .first()
            .map_or_else(|| "0".to_owned(), |(_, amount)| amount.clone())
    }

    #[test]
    fn sidecars_add_to_the_sum_and_run_beside_the_init_containers_after_them() {
        /// CPU of the containers, names and CPU of the init containers, and what the pod needs.
        type Case = (&'static [u32], &'static [(&'static str, u32)], &'static str);
        let cases: [Case; 8] = [
            (&[1], &[("s", 2)], "3"),
            (&[1, 1], &[("s1", 2), ("s2", 3)], "7"),
            // An init container before a sidecar runs without it, one after it beside it.
            (&[1], &[("i", 5), ("s", 2)], "5"),
            (&[1], &[("s", 2), ("i", 5)], "7"),
            (&[4], &[("s", 2), ("i", 3)], "6"),
            (&[1], &[("s1", 2), ("i", 4), ("s2", 3)], "6"),
            (&[1], &[("s1", 2), ("s2", 3), ("i", 4)], "9"),
            (&[], &[("s", 2)], "2"),
        ];
        for (containers, init, expected) in cases {
            assert_eq!(cpu(containers, init), expected, "{containers:?} {init:?}");
        }
    }

    #[test]
    fn requests_of_the_pod_replace_those_of_its_containers() {
        let spec = r#"{"resources":{"requests":{"cpu":"3","hugepages-2Mi":"4Mi","example.io/x":"9"},"limits":{"cpu":"5","memory":"2Gi"}},
            "containers":[{"resources":{"requests":{"cpu":"1","example.io/x":"2"}}}],
            "initContainers":[{"resources":{"requests":{"cpu":"8"}}}],"overhead":{"cpu":"250m"}}"#;
        assert_eq!(
            request(spec),
            [
                pair("cpu", "3250m"),
                pair("example.io/x", "2"),
                pair("hugepages-2Mi", "4Mi"),
                pair("memory", "2Gi")
            ]
        );
        // A limit of the pod asks for nothing where a container does.
        let spec = r#"{"resources":{"limits":{"cpu":"5"}},"containers":[{"resources":{"requests":{"cpu":"1"}}}]}"#;
        assert_eq!(request(spec), [pair("cpu", "1")]);
        let error = requirements(
            &object(r#"{"resources":{"requests":{"cpu":"much"}}}"#),
            "/spec/template",
        );
        assert!(
            error
                .unwrap_err()
                .to_string()
                .starts_with("/spec/template/spec/resources/requests/cpu: ")
        );
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
    fn an_odd_template_is_an_error_with_its_place() {
        let error = |spec: &str| requirements(&object(spec), "/spec/template").unwrap_err().to_string();
        assert!(
            error(r#"{"containers":[{"resources":{"requests":{"cpu":"much"}}}]}"#)
                .starts_with("/spec/template/spec/containers/0/resources/requests/cpu: ")
        );
        assert!(error(r#"{"containers":{}}"#).starts_with("/spec/template/spec/containers: "));
        assert_eq!(dependencies(&object("null"), "/spec/template"), Ok(vec![]));
    }
}
