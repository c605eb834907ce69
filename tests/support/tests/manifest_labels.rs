//! Every shipped object has the labels that Kubernetes recommends, and one version.

use std::path::Path;

use anyhow::{Context, Result};
use popcell_test_support::{manifests, workspace};
use serde_json::{Value, json};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Not all of what an overlay is made of is built by itself.
const BASES: [&str; 6] = [
    "base/admission",
    manifests::MANAGER,
    "instance-types/crd",
    "webhook/base",
    manifests::CELL_ON_HUB,
    manifests::CELL_IN_PROJECT,
];

fn complete(what: &str, objects: &[Value]) {
    assert!(!objects.is_empty(), "{what}");
    for object in objects {
        let labels = &object["metadata"]["labels"];
        let of = |key: &str| labels[format!("app.kubernetes.io/{key}")].as_str();
        assert_eq!(of("part-of"), Some("popcell"), "{what}: {object}");
        assert_eq!(of("version"), Some(VERSION), "{what}: {object}");
        assert_eq!(of("managed-by"), Some("kustomize"), "{what}: {object}");
        for key in ["name", "component"] {
            assert!(
                of(key).is_some_and(|value| !value.is_empty()),
                "{what}: {key} of {object}"
            );
        }
    }
}

/// What a Deployment, a Job or a Service selects cannot be changed, or would select no Pod of before.
fn unselective(what: &str, objects: &[Value]) {
    for object in objects {
        let selector = match object["kind"].as_str() {
            Some("Deployment") => &object["spec"]["selector"]["matchLabels"],
            Some("Service") => &object["spec"]["selector"],
            _ => continue,
        };
        let keys: Vec<&String> = selector.as_object().into_iter().flatten().map(|(key, _)| key).collect();
        assert_eq!(keys, ["app.kubernetes.io/name"], "{what}: {object}");
    }
}

/// The containers of a release are of its version.
fn of_this_version(what: &str, objects: &[Value]) {
    for object in objects {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array();
        for container in containers.into_iter().flatten() {
            let image = format!("ghcr.io/popcell/popcell:{VERSION}");
            assert_eq!(container["image"], image, "{what}: {object}");
        }
    }
}

#[test]
fn every_object_of_overlays_and_bases_has_the_recommended_labels() -> Result<()> {
    let mut directories: Vec<String> = manifests::overlays()?
        .iter()
        .map(|overlay| overlay.display().to_string())
        .collect();
    directories.extend(BASES.map(str::to_owned));
    for directory in directories {
        let objects = manifests::build(directory.as_ref())?;
        complete(&directory, &objects);
        unselective(&directory, &objects);
        of_this_version(&directory, &objects);
    }
    Ok(())
}

/// As an operator adds one, with `components/release` after it.
#[test]
fn every_object_of_components_has_the_recommended_labels() -> Result<()> {
    let root = workspace::root().join("manifests");
    for (parent, base) in [
        ("components", manifests::MANAGER),
        ("webhook/components", "webhook/base"),
    ] {
        let listed = std::fs::read_dir(root.join(parent)).with_context(|| format!("failed to list {parent}"))?;
        for entry in listed {
            let name = entry.with_context(|| format!("failed to list {parent}"))?.file_name();
            let component = Path::new(parent).join(name).display().to_string();
            let objects = manifests::build_own(&json!({
                "resources": [format!("../{base}")],
                "components": [format!("../{component}"), "../components/release"],
            }))?;
            complete(&component, &objects);
            unselective(&component, &objects);
            of_this_version(&component, &objects);
        }
    }
    Ok(())
}
