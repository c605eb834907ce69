use serde_json::{Value, json};

use super::*;
use crate::testing::{instance, is_neutral};

fn made(change: impl FnOnce(&mut Value)) -> Result<Value, Refusal> {
    let manifest = manifest(&instance(change), &Settings::default(), 0)?;
    Ok(serde_json::to_value(manifest.pod).unwrap())
}

/// What is refused of a spec, after this change at a pointer.
fn refused(pointer: &str, value: &Value) -> Refusal {
    made(|object| *object.pointer_mut(pointer).unwrap() = value.clone()).unwrap_err()
}

#[test]
fn an_instance_is_one_pod_that_takes_nothing_else_of_a_tenant() {
    let pod = made(|object| {
        object["spec"]["runtime"]["sandbox"] = json!({
            "hostNetwork": true,
            "containers": [{
                "name": "web", "image": "registry.example.com/web:1", "securityContext": { "privileged": true },
                "env": [
                    { "name": "A", "value": "a" },
                    { "name": "B", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "b" } } },
                ],
                "envFrom": [
                    { "configMapRef": { "name": "settings", "optional": true }, "prefix": "A_" },
                    { "secretRef": { "name": "keys" } },
                ],
                "ports": [{ "name": "dns", "port": 53, "protocol": "UDP", "hostPort": 53 }],
                "volumeAttachments": [{ "name": "content", "mountPath": "/srv" }, { "name": "data", "mountPath": "/data" }],
            }],
            "imagePullSecrets": [{ "name": "registry" }],
        });
        object["spec"]["volumes"] = json!([
            { "name": "content", "configMap": { "name": "web", "defaultMode": 0o444, "optional": true } },
            { "name": "data", "disk": { "template": { "spec": {
                "resources": { "requests": { "storage": "10Gi" } }, "populator": { "filesystem": { "type": "ext4" } },
            } } } },
            { "name": "keys", "secret": { "secretName": "keys" } },
        ]);
    })
    .unwrap();
    let size = json!({ "cpu": "1000m", "memory": "2048Mi" });
    let expected = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "ns-1",
            "name": "web-0",
            "labels": { "compute.datumapis.com/instance-index": "0", "compute.datumapis.com/instance-uid": "u1" },
            "annotations": {
                "compute.datumapis.com/pod-replacements": "0", "compute.datumapis.com/template-hash": "h1",
            },
            "ownerReferences": [{
                "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "name": "web-0", "uid": "u1",
                "controller": true,
            }],
        },
        "spec": {
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "imagePullSecrets": [{ "name": "registry" }],
            "restartPolicy": "Always",
            "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "web",
                "image": "registry.example.com/web:1",
                "imagePullPolicy": "Always",
                "env": [
                    { "name": "A", "value": "a" },
                    { "name": "B", "valueFrom": { "secretKeyRef": { "name": "keys", "key": "b" } } },
                ],
                "envFrom": [
                    { "configMapRef": { "name": "settings", "optional": true }, "prefix": "A_" },
                    { "secretRef": { "name": "keys" } },
                ],
                "ports": [{ "name": "dns", "containerPort": 53, "protocol": "UDP" }],
                "resources": { "limits": size, "requests": size },
                "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["NET_RAW"] } },
                "volumeMounts": [
                    { "name": "content", "mountPath": "/srv" }, { "name": "data", "mountPath": "/data" },
                ],
            }],
            "volumes": [
                { "name": "content", "configMap": { "name": "web", "defaultMode": 0o444, "optional": true } },
                { "name": "data", "emptyDir": { "sizeLimit": "10Gi" } },
                { "name": "keys", "secret": { "secretName": "keys" } },
            ],
        },
    });
    assert_eq!(pod, expected);
}

#[test]
fn what_names_no_data_as_a_pod_does_is_refused() {
    for (sources, is_read) in [(json!([]), true), (json!("all"), false), (json!([7]), false)] {
        let made = made(|object| object["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = sources.clone());
        assert_eq!(made.is_ok(), is_read, "{sources}");
    }
}

#[test]
fn the_operator_chooses_the_runtime_class_and_when_images_are_pulled() {
    let settings = Settings {
        runtime_class: Some("gvisor".to_owned()),
        image_pull_policy: PullPolicy::IfNotPresent,
    };
    let pod = manifest(&instance(|_| {}), &settings, 3).unwrap().pod;
    assert_eq!(replacements(&pod), 3);
    let spec = pod.spec.unwrap();
    assert_eq!(spec.runtime_class_name.as_deref(), Some("gvisor"));
    assert_eq!(spec.containers[0].image_pull_policy.as_deref(), Some("IfNotPresent"));
}

/// Admission refuses them too, but not of what was there before it did.
#[test]
fn no_variable_shows_the_node() {
    let made = |from: Value| {
        made(|one| {
            let env = json!([{ "name": "A", "valueFrom": from }]);
            one["spec"]["runtime"]["sandbox"]["containers"][0]["env"] = env;
        })
    };
    for from in [
        json!({ "fieldRef": { "fieldPath": "status.hostIP" } }),
        json!({ "fieldRef": { "fieldPath": "spec.nodeName" } }),
        json!({ "resourceFieldRef": { "resource": "limits.ephemeral-storage" } }),
    ] {
        let refusal = made(from).unwrap_err().to_string();
        assert!(refusal.contains("variable A takes"), "{refusal}");
    }
    for from in [
        json!({ "fieldRef": { "fieldPath": "status.podIP" } }),
        json!({ "resourceFieldRef": { "resource": "limits.memory" } }),
    ] {
        assert!(made(from).is_ok());
    }
}

/// The Workloads of docs/migrating.md.
#[test]
fn each_public_deployment_that_is_accepted_as_a_workload_can_be_a_pod() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../controller/core/tests/manifests");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let examples: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    assert_eq!(examples.len(), 10);
    for path in examples {
        let example: Value = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let template = &example["accepted"]["spec"]["template"]["spec"];
        let pod = made(|one| {
            let controller = one["spec"]["controller"].take();
            one["spec"] = template.clone();
            one["spec"]["controller"] = controller;
        });
        let pod = pod.unwrap_or_else(|refusal| panic!("{}: {refusal}", path.display()));
        let containers = template["runtime"]["sandbox"]["containers"].as_array().unwrap();
        assert_eq!(pod["spec"]["containers"].as_array().unwrap().len(), containers.len());
    }
}

#[test]
fn no_refusal_names_what_a_tenant_does_not_know() {
    let named = |text: &str| text.to_owned();
    for refusal in [
        Refusal::Unreadable(named("x")),
        Refusal::VirtualMachine,
        Refusal::NoSandbox,
        Refusal::Interfaces(2),
        Refusal::NoSize,
        Refusal::UnknownSize,
        Refusal::UnknownType(named("x")),
        Refusal::NoShare {
            container: named("x"),
            resource: "cpu",
        },
        Refusal::Resource {
            place: named("x"),
            resource: named("x"),
        },
        Refusal::Disk(named("x")),
        Refusal::NoSource(named("x")),
        Refusal::Variable {
            container: named("x"),
            variable: named("x"),
            what: named("x"),
        },
        Refusal::Device {
            container: named("x"),
            volume: named("x"),
        },
    ] {
        assert!(is_neutral(&refusal.to_string()), "{refusal}");
    }
}

/// Limits and requests of containers with these resources, of an Instance of 1000m and 2048Mi.
fn sizes_of(resources: &[Value]) -> Result<Vec<[String; 4]>, Refusal> {
    let containers: Vec<Value> = resources
        .iter()
        .enumerate()
        .map(|(index, one)| json!({ "name": format!("c{index}"), "image": "i", "resources": one }))
        .collect();
    let pod = made(|object| object["spec"]["runtime"]["sandbox"]["containers"] = json!(containers))?;
    let containers = pod["spec"]["containers"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Ok(containers
        .map(|one| {
            let [limits, requests] = ["limits", "requests"].map(|field| &one["resources"][field]);
            [&limits["cpu"], &limits["memory"], &requests["cpu"], &requests["memory"]].map(text)
        })
        .collect())
}

#[test]
fn containers_share_what_the_instance_is_counted_for_and_no_more() {
    let none = json!({});
    let named = json!({ "limits": { "cpu": "250m", "memory": "1Gi" }, "requests": { "cpu": "100m" } });
    for (resources, expected) in [
        (
            vec![none.clone(), none.clone(), none.clone()],
            vec![["333m", "682Mi", "333m", "682Mi"]; 3],
        ),
        (
            vec![named.clone(), none.clone()],
            vec![["250m", "1Gi", "100m", "1Gi"], ["750m", "1024Mi", "750m", "1024Mi"]],
        ),
        // All say both: together they are the size.
        (
            vec![json!({ "limits": { "cpu": "4", "memory": "8Gi" } }); 2],
            vec![["4", "8Gi", "4", "8Gi"]; 2],
        ),
        // A request is a limit too where there is none, and zero says nothing.
        (
            vec![
                json!({ "requests": { "cpu": "300m" }, "limits": { "memory": "0" } }),
                none.clone(),
            ],
            vec![
                ["300m", "1024Mi", "300m", "1024Mi"],
                ["700m", "1024Mi", "700m", "1024Mi"],
            ],
        ),
    ] {
        let expected: Vec<[String; 4]> = expected.iter().map(|one| one.map(str::to_owned)).collect();
        assert_eq!(sizes_of(&resources), Ok(expected));
    }
    let all = json!({ "limits": { "cpu": "1", "memory": "1Gi" } });
    let refusal = sizes_of(&[all, none]).unwrap_err().to_string();
    assert!(
        refusal.starts_with("container c1: the other containers take all cpu"),
        "{refusal}"
    );
}

#[test]
fn an_instance_has_the_size_that_its_annotation_says_of_its_type() {
    let limits = |type_: &str| {
        let pod = made(|object| {
            object["metadata"]["annotations"] =
                json!({ "compute.datumapis.com/instance-type-size": "acme/large cpu=4 memory=8Gi" });
            object["spec"]["runtime"]["resources"]["instanceType"] = json!(type_);
        });
        pod.map(|pod| pod["spec"]["containers"][0]["resources"]["limits"].clone())
    };
    assert_eq!(limits("acme/large"), Ok(json!({ "cpu": "4000m", "memory": "8192Mi" })));
    assert_eq!(
        limits("datumcloud/d1-standard-2"),
        Ok(json!({ "cpu": "1000m", "memory": "2048Mi" }))
    );
    assert!(matches!(limits("acme/other"), Err(Refusal::UnknownType(_))));
}

#[test]
fn what_no_pod_can_be_is_refused_with_place_and_fix() {
    const CONTAINER: &str = "/spec/runtime/sandbox/containers/0";
    let disk = |spec: Value| json!([{ "name": "data", "disk": { "template": { "spec": spec } } }]);
    let image = json!({ "populator": { "image": { "name": "datumcloud/ubuntu-2204-lts" } },
        "resources": { "requests": { "storage": "25Gi" } } });
    let resources = "/spec/runtime/resources";
    for (pointer, value, expected) in [
        ("/spec/runtime/sandbox", json!(null), "spec.runtime.sandbox is missing"),
        (
            "/spec/runtime",
            json!({ "resources": { "instanceType": "t" }, "virtualMachine": { "volumeAttachments": [] } }),
            "a Pod cannot be a virtual machine",
        ),
        ("/spec/runtime", json!([]), "spec cannot be read"),
        (
            "/spec/networkInterfaces",
            json!([{ "network": { "name": "a" } }, { "network": { "name": "b" } }]),
            "spec.networkInterfaces has 2 interfaces",
        ),
        (resources, json!({ "instanceType": "" }), "instanceType is missing"),
        (
            resources,
            json!({ "instanceType": "huge" }),
            "instanceType: the size of instance type huge is not known; use an instance type of the catalogue",
        ),
        (
            "/metadata/annotations",
            json!({ "compute.datumapis.com/instance-type-size": "acme/large cpu=4" }),
            "instanceType: annotation compute.datumapis.com/instance-type-size cannot be read",
        ),
        (
            CONTAINER,
            json!({ "name": "web", "image": "i", "resources": { "limits": { "cpu": "1Zi" } } }),
            "size of the Instance is unknown",
        ),
        (
            resources,
            json!({ "instanceType": "datumcloud/d1-standard-2", "requests": { "nvidia.com/gpu": "1" } }),
            "spec.runtime.resources.requests: the resource nvidia.com/gpu",
        ),
        (
            CONTAINER,
            json!({ "name": "web", "image": "i", "resources": { "limits": { "ephemeral-storage": "1Gi" } } }),
            "container web: the resource ephemeral-storage",
        ),
        (
            CONTAINER,
            json!({ "name": "web", "image": "i", "volumeAttachments": [{ "name": "data" }] }),
            "container web: volume data has no mountPath",
        ),
    ] {
        let refusal = refused(pointer, &value).to_string();
        assert!(refusal.contains(expected), "{pointer}: {refusal}");
    }
    for volumes in [
        disk(image),
        disk(json!({ "populator": { "filesystem": { "type": "ext4" } } })),
        disk(json!({ "resources": { "requests": { "storage": "10Gi" } } })),
    ] {
        let refusal = made(|object| object["spec"]["volumes"] = volumes).unwrap_err();
        assert_eq!(refusal, Refusal::Disk("data".to_owned()));
    }
    let refusal = made(|object| object["spec"]["volumes"] = json!([{ "name": "x" }])).unwrap_err();
    assert_eq!(refusal, Refusal::NoSource("x".to_owned()));
}

#[test]
fn rules_of_the_interface_guard_the_pod_under_a_name_of_its_own() {
    assert_eq!(
        manifest(&instance(|_| {}), &Settings::default(), 0).unwrap().policy,
        None
    );
    let rule = json!({ "ports": [{ "protocol": "TCP", "port": 80, "endPort": 90 }],
        "from": [{ "ipBlock": { "cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"] } }] });
    for (ingress, expected) in [
        (json!([rule.clone()]), json!([rule])),
        // No rule lets nothing in; a rule without parts lets all in.
        (json!([]), json!([])),
        (json!([{}]), json!([{ "from": [], "ports": [] }])),
    ] {
        let object =
            instance(|one| one["spec"]["networkInterfaces"][0]["networkPolicy"] = json!({ "ingress": ingress }));
        let policy = manifest(&object, &Settings::default(), 0).unwrap().policy.unwrap();
        assert_eq!(policy.metadata.name.as_deref(), Some("instance-u1"));
        assert_eq!(policy.metadata.owner_references.as_ref().unwrap()[0].uid, "u1");
        let spec = serde_json::to_value(policy.spec).unwrap();
        assert_eq!(
            spec,
            json!({ "podSelector": { "matchLabels": { "compute.datumapis.com/instance-uid": "u1" } },
                "policyTypes": ["Ingress"], "ingress": expected })
        );
    }
}
