//! A cell that never comes back is removed by command, and another serves its city.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::names::REMOVED_CELLS;
use popcell_api::{annotations, labels};
use popcell_suites::environment::SOON;
use popcell_suites::read::{self, says};
use popcell_suites::steps::{gone, ran, with_city};
use popcell_test_support::kind::{CLUSTER, CONFIG_MAP, INSTANCE, Kind};
use popcell_test_support::{Plane, always, artifacts, eventually, objects, users};
use serde_json::json;

use crate::environment::{Environment, P1, WATCHED};
use crate::spare_cell::{CITY, Spare};
use popcell_suites::tenant::Tenant;

const NAMES: [&str; 2] = ["web-us-lhr-0", "web-us-lhr-1"];
/// Keeps what a test holds back from going.
const HELD: &str = "popcell.test/held";
const OUT: &str = "was removed from the hub by `popcell cell remove`";
/// Long enough for Karmada to say that a cluster does not answer.
const NOT_READY: Duration = Duration::from_mins(3);

/// A user with the rights that docs/operations.md names for the command, and no others.
async fn operator(environment: &Environment, hub: &Plane) -> Result<PathBuf> {
    const NAME: &str = "removes-cells";
    let group = "rbac.authorization.k8s.io";
    let rights = [
        (
            "ClusterRole",
            "cluster.karmada.io",
            "clusters",
            json!(["get", "list", "delete"]),
        ),
        ("Role", "", "configmaps", json!(["get", "create", "patch"])),
    ];
    for (kind, of, resource, verbs) in rights {
        let mut metadata = json!({ "name": NAME });
        if kind == "Role" {
            metadata["namespace"] = json!(users::NAMESPACE);
        }
        let role = json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata,
            "rules": [{ "apiGroups": [of], "resources": [resource], "verbs": verbs }],
        });
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": { "apiGroup": group, "kind": kind, "name": NAME },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": NAME }],
        });
        hub.apply(&role).await?;
        hub.apply(&binding).await?;
    }
    let mut files = environment.lab.user(NAME, &[]).await?;
    files.remove("hub").context("no kubeconfig of the hub")
}

/// Exit code and all that the command writes.
fn remove(kubeconfig: &Path, cell: &str) -> Result<(Option<i32>, String)> {
    let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
    let said = ran(artifacts::popcell()?.args(["cell", "remove", cell, &kubeconfig]))?;
    Ok((said.code, said.out + &said.err))
}

/// What a cell has on a plane, by the label of its source.
async fn of_source(plane: &Plane, kind: Kind, cell: &str) -> Result<Vec<DynamicObject>> {
    let selector = format!("{}={cell}", labels::SOURCE_CLUSTER);
    plane.list(kind, None, &selector).await
}

/// Fails unless copies and claims of a cell are those of these Instances, and stamped with its uid.
async fn has(tenant: &Tenant, cell: &Spare, instances: &[&str]) -> Result<()> {
    for (plane, kind, prefix) in [
        (&tenant.hub, INSTANCE, ""),
        (&tenant.project, RESOURCE_CLAIM, "instance-"),
    ] {
        let found = of_source(plane, kind, cell.name).await?;
        let mut names: Vec<String> = found.iter().filter_map(|one| one.metadata.name.clone()).collect();
        names.sort();
        let wanted: Vec<String> = instances.iter().map(|name| format!("{prefix}{name}")).collect();
        ensure!(names == wanted, "{} of {}: {names:?}", kind.kind, cell.name);
        for one in &found {
            let stamp = one
                .metadata
                .annotations
                .as_ref()
                .and_then(|all| all.get(annotations::SOURCE_UID));
            ensure!(stamp == Some(&cell.uid), "{stamp:?} is not {}", cell.uid);
        }
    }
    Ok(())
}

pub(crate) async fn by_another(environment: &Environment, namespace: &str) -> Result<()> {
    let spares = environment.spares.lock().await;
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.project.apply(&objects::location_binding(CITY)).await?;
    let [old, new] = *spares;
    let mut old = Spare::start(environment, old, old).await?;
    let new = Spare::start(environment, new, new).await?;
    let story = story(environment, &tenant, &mut old, &new).await;
    story.with_context(|| format!("{}\n\n{}", old.last_words(), new.last_words()))?;
    new.end()?;
    old.end()
}

async fn story(environment: &Environment, tenant: &Tenant, old: &mut Spare, new: &Spare) -> Result<()> {
    with_city(&tenant.hub, old.name, Some(CITY)).await?;
    tenant.runs("web", &[CITY], 2).await?;
    eventually("copies and claims are those of the cell", SOON, async || {
        has(tenant, old, &NAMES).await
    })
    .await?;
    let before = tenant.instances(&old.plane).await?;
    let operator = operator(environment, &tenant.hub).await?;
    eventually("the command is refused while the cell answers", SOON, async || {
        let (code, said) = remove(&operator, old.name)?;
        ensure!(code == Some(1) && said.contains("is Ready"), "{code:?}: {said}");
        Ok(())
    })
    .await?;

    dies(environment, tenant, old).await?;
    with_city(&tenant.hub, new.name, Some(CITY)).await?;
    always("what does not answer keeps everything", WATCHED, async || {
        has(tenant, old, &NAMES).await?;
        ensure!(tenant.instances(&new.plane).await?.is_empty(), "the work has moved");
        Ok(())
    })
    .await?;
    removed(tenant, &operator, old, new).await?;
    serves(tenant, new).await?;
    comes_back(environment, tenant, old, new, &before).await?;

    tenant.clean("web").await?;
    tenant.claims_are(&[]).await?;
    with_city(&tenant.hub, new.name, None).await
}

/// Its server ends while one of its claims is held.
async fn dies(environment: &Environment, tenant: &Tenant, old: &mut Spare) -> Result<()> {
    let claim = format!("instance-{}", NAMES[0]);
    let held = json!({ "metadata": { "finalizers": [HELD] } });
    let project = &tenant.project;
    project
        .merge(RESOURCE_CLAIM, Some(&tenant.namespace), &claim, &held)
        .await?;
    old.dies(&environment.lab).await?;
    eventually("Karmada says that the cell does not answer", NOT_READY, async || {
        let cluster = tenant.hub.expect(CLUSTER, None, old.name).await?;
        let ready = read::condition(&cluster, "Ready")?;
        ensure!(ready["status"] != "True", "{ready}");
        Ok(())
    })
    .await
}

async fn removed(tenant: &Tenant, operator: &Path, old: &Spare, new: &Spare) -> Result<()> {
    let (code, said) = remove(operator, old.name)?;
    let deleted = format!("Cluster {}: deleted", old.name);
    ensure!(code == Some(0) && said.contains(&deleted), "{code:?}: {said}");
    gone(&tenant.hub, CLUSTER, "", old.name).await?;
    let (code, said) = remove(operator, old.name)?;
    ensure!(code == Some(0) && said.contains("recorded before"), "{code:?}: {said}");
    let below = Some(tenant.below.as_str());
    let [first, second] = NAMES.map(|name| format!("instance-{name}"));
    tenant.gone_from_project(RESOURCE_CLAIM, &second).await?;
    tenant
        .instance(&new.plane, NAMES[0], |one| {
            says(one, "QuotaGranted", "False", "QuotaMisconfigured")
        })
        .await?;
    always(
        "copies stay as long as a claim does, and nothing runs without one",
        WATCHED,
        async || {
            let claim = tenant
                .project
                .expect(RESOURCE_CLAIM, Some(&tenant.namespace), &first)
                .await?;
            ensure!(claim.metadata.deletion_timestamp.is_some(), "it is not being deleted");
            for name in NAMES {
                let copy = tenant.hub.expect(INSTANCE, below, name).await?;
                let labels = copy.metadata.labels.unwrap_or_default();
                ensure!(
                    labels.get(labels::SOURCE_CLUSTER).map(String::as_str) == Some(old.name),
                    "{labels:?}"
                );
            }
            let waits = new.plane.expect(INSTANCE, below, NAMES[0]).await?;
            says(&waits, "QuotaGranted", "False", "QuotaMisconfigured")
        },
    )
    .await?;
    let free = json!({ "metadata": { "finalizers": null } });
    let project = &tenant.project;
    project
        .merge(RESOURCE_CLAIM, Some(&tenant.namespace), &first, &free)
        .await?;
    eventually("nothing of the removed cell is left", SOON, async || {
        has(tenant, old, &[]).await
    })
    .await
}

/// The city serves again, from the other cell.
async fn serves(tenant: &Tenant, new: &Spare) -> Result<()> {
    for name in NAMES {
        tenant.instance(&new.plane, name, read::is_ready).await?;
    }
    tenant.ready("web", 2).await?;
    for name in NAMES {
        tenant
            .in_project(INSTANCE, name, |one| {
                read::is_ready(one)?;
                let source = one
                    .metadata
                    .labels
                    .as_ref()
                    .and_then(|all| all.get(labels::SOURCE_CLUSTER));
                ensure!(source.is_some_and(|source| source == new.name), "{source:?}");
                Ok(())
            })
            .await?;
    }
    eventually("copies and claims are those of the other cell", SOON, async || {
        has(tenant, new, &NAMES).await
    })
    .await?;
    tenant.claims_are(&NAMES).await
}

/// What was removed runs on what it has, and is heard of nowhere else.
async fn comes_back(
    environment: &Environment,
    tenant: &Tenant,
    old: &mut Spare,
    new: &Spare,
    before: &[(String, String)],
) -> Result<()> {
    let written = old.writes();
    old.comes_back(&environment.lab).await?;
    for restarts in 0..2 {
        let reported = old.tells(OUT);
        if restarts > 0 {
            old.controller.kill()?;
            old.controller.start_again().await?;
        }
        eventually("it says that it is out", SOON, async || {
            ensure!(old.tells(OUT) > reported || restarts == 0 && reported > 0, "{reported}");
            Ok(())
        })
        .await?;
        always("it is out", WATCHED, async || {
            ensure!(old.writes() == written, "it has asked for changes elsewhere");
            has(tenant, old, &[]).await?;
            has(tenant, new, &NAMES).await?;
            ensure!(
                tenant.instances(&old.plane).await? == before,
                "what runs there is others'"
            );
            for (name, _) in before {
                let one = old.plane.expect(INSTANCE, Some(&tenant.below), name).await?;
                read::is_ready(&one)?;
            }
            Ok(())
        })
        .await?;
    }
    let record = tenant
        .hub
        .expect(CONFIG_MAP, Some(users::NAMESPACE), REMOVED_CELLS)
        .await?;
    let recorded = record.data["data"].to_string();
    ensure!(
        recorded.contains(&old.uid) && !recorded.contains(&new.uid),
        "{recorded}"
    );
    Ok(())
}
