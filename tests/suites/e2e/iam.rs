//! What is shipped for milo's IAM: permissions on our kinds, and roles.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::Environment;
use popcell_suites::steps::refused;
use popcell_test_support::kind::{IAM_ROLE, PROTECTED_RESOURCE};
use popcell_test_support::objects;
use serde_json::{Value, json};

use crate::catalog::{built, serving, taken};

const READS: [&str; 3] = ["get", "list", "watch"];
const WRITES: [&str; 4] = ["create", "update", "patch", "delete"];

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Permissions of each kind on each verb, as IAM names them.
fn permissions(kinds: &[&str], verbs: &[&str]) -> BTreeSet<String> {
    let of_kind = |kind: &&str| {
        let kind = (*kind).to_owned();
        verbs
            .iter()
            .map(move |verb| format!("compute.datumapis.com/{kind}.{verb}"))
    };
    kinds.iter().flat_map(of_kind).collect()
}

/// What a role has, with what it inherits.
fn effective(roles: &BTreeMap<&str, &Value>, name: &str) -> Result<BTreeSet<String>> {
    let role = roles.get(name).with_context(|| format!("no role {name}"))?;
    let mut all: BTreeSet<String> = texts(&role["spec"]["includedPermissions"]).map(str::to_owned).collect();
    for inherited in role["spec"]["inheritedRoles"].as_array().into_iter().flatten() {
        let inherited = inherited["name"].as_str().context("no name")?;
        all.extend(effective(roles, inherited)?);
    }
    Ok(all)
}

/// Every kind of ours is protected, and each role has what its name says and nothing that is not protected.
pub(crate) async fn roles(environment: &Environment, _: &str) -> Result<()> {
    let plane = serving(environment, &[PROTECTED_RESOURCE, IAM_ROLE]).await?;
    plane.apply(&objects::namespace("milo-system")).await?;
    let shipped = built("iam")?;
    for object in &shipped {
        taken(&plane, object).await?;
    }

    let of_kind = |kind: &str| {
        shipped
            .iter()
            .filter(|object| object["kind"] == kind)
            .collect::<Vec<_>>()
    };
    let protected = of_kind("ProtectedResource");
    let crds = popcell_api::crds();
    ensure!(protected.len() == crds.len(), "{protected:?}");
    let mut known = BTreeSet::new();
    for crd in &crds {
        let names = &crd.spec.names;
        let mut same = protected
            .iter()
            .filter(|one| one["metadata"]["name"].as_str() == crd.metadata.name.as_deref());
        let spec = &same
            .next()
            .with_context(|| format!("{} is not protected", names.kind))?["spec"];
        ensure!(
            spec["kind"] == names.kind.as_str()
                && spec["plural"] == names.plural.as_str()
                && spec["singular"].as_str() == names.singular.as_deref()
                && spec["serviceRef"]["name"] == crd.spec.group.as_str(),
            "{spec}"
        );
        let permission = |verb| format!("{}/{}.{verb}", crd.spec.group, names.plural);
        known.extend(texts(&spec["permissions"]).map(permission));
    }

    let name_of = |role: &&Value| role["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let roles = of_kind("Role");
    let names: Vec<String> = roles.iter().map(name_of).collect();
    let roles = names.iter().map(String::as_str).zip(roles).collect::<BTreeMap<_, _>>();
    let kinds = ["workloads", "workloaddeployments", "instances"];
    let viewer = permissions(&kinds, &READS);
    let editor: BTreeSet<String> = viewer.union(&permissions(&["workloads"], &WRITES)).cloned().collect();
    for (name, expected) in [("viewer", viewer), ("editor", editor), ("admin", known.clone())] {
        let found = effective(&roles, &format!("compute.datumapis.com-{name}"))?;
        ensure!(found == expected, "{name}: {found:?}");
        ensure!(found.is_subset(&known), "{name}: {found:?}");
    }
    ensure!(roles.len() == 3, "{names:?}");

    let mut staged = (*roles.get("compute.datumapis.com-viewer").context("no viewer")?).clone();
    staged["spec"]["launchStage"] = json!("Final");
    refused(plane.create(&staged, true).await, &["launchStage"], "another stage")?;
    let mut bare = (*protected.first().context("no resource")?).clone();
    bare["spec"]["permissions"] = json!([]);
    refused(plane.create(&bare, true).await, &["permissions"], "without permissions")
}
