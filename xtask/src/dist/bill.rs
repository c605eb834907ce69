//! A bill of materials of the programs: CycloneDX 1.6, from what cargo resolved.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{PROGRAMS, Release};
use crate::test::cargo;

/// All crates that are in the programs, with their licences and what each needs.
///
/// # Errors
/// cargo cannot say.
pub(super) fn of_materials(release: &Release, target: &str) -> Result<Value> {
    let mut command = cargo(&[
        "metadata",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        target,
    ]);
    let output = command.output().context("failed to start cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).context("failed to understand cargo metadata")?;
    bill(&metadata, release)
}

fn bill(metadata: &Value, release: &Release) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> = list(&metadata["packages"])
        .into_iter()
        .map(|one| (text(&one["id"]), one))
        .collect();
    let is_normal = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let needs: BTreeMap<String, Vec<String>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let needed = list(&node["deps"]).into_iter().filter(is_normal);
            (text(&node["id"]), needed.map(|one| text(&one["pkg"])).collect())
        })
        .collect();
    let of_programs = packages.iter().filter(|(_, package)| {
        let targets = list(&package["targets"]);
        targets
            .iter()
            .any(|target| target["kind"] == json!(["bin"]) && PROGRAMS.iter().any(|name| target["name"] == **name))
    });
    let mut left: Vec<&String> = of_programs.map(|(id, _)| id).collect();
    ensure!(!left.is_empty(), "cargo metadata names none of our programs");
    let mut found = BTreeSet::new();
    while let Some(id) = left.pop() {
        if found.insert(id) {
            left.extend(needs.get(id).into_iter().flatten());
        }
    }
    let url = |id: &String| {
        let package = packages
            .get(id)
            .with_context(|| format!("cargo metadata has no package {id}"))?;
        Ok(format!(
            "pkg:cargo/{}@{}",
            text(&package["name"]),
            text(&package["version"])
        ))
    };
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    for id in &found {
        let (package, reference) = (&packages[*id], url(id)?);
        let mut component = json!({
            "type": "library",
            "bom-ref": reference,
            "name": package["name"],
            "version": package["version"],
            "purl": reference,
        });
        if let Some(license) = package["license"].as_str() {
            // The old separator of crates.
            component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        components.push(component);
        let needed: Result<BTreeSet<String>> = needs.get(*id).into_iter().flatten().map(url).collect();
        dependencies.push(json!({ "ref": reference, "dependsOn": needed? }));
    }
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": release.created(),
            "component": {
                "type": "application",
                "bom-ref": "popcell",
                "name": "popcell",
                "version": release.version,
                "licenses": [{ "expression": release.license }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_programs_is_named_with_its_licence_and_what_only_builds_or_tests_is_not() {
        let package = |name: &str, license: &str, program: bool| {
            let kind = if program { "bin" } else { "lib" };
            json!({ "id": name, "name": name, "version": "1.0.0", "license": license, "targets": [{ "kind": [kind], "name": name }] })
        };
        let needs = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("popcell", "Apache-2.0", true), package("used", "MIT/Apache-2.0", false), package("below", "MIT", false),
                package("builds", "MIT", false), package("xtask", "Apache-2.0", true),
            ],
            "resolve": { "nodes": [
                { "id": "popcell", "deps": [needs("used", Value::Null), needs("builds", json!("build"))] },
                { "id": "used", "deps": [needs("below", Value::Null)] },
                { "id": "xtask", "deps": [needs("builds", Value::Null)] },
            ] },
        });
        let bill = bill(&metadata, &Release::example()).unwrap();
        let names: Vec<&str> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, ["below", "popcell", "used"]);
        assert_eq!(bill["components"][2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["dependencies"][1]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
    }
}
