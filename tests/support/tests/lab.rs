//! A lab with a Push and a Pull member serves what it says.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_test_support::{Lab, LabSpec, Member, eventually, kind, objects};
use serde_json::json;
use tokio::sync::Mutex;

const SOON: Duration = Duration::from_mins(1);
/// Held by the test that runs: the labs of both at once are more than a small machine starts in time.
static TURN: Mutex<()> = Mutex::const_new(());

/// One lab for all checks: starting it is what takes time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lab_serves_karmada_members_and_our_crds() -> Result<()> {
    let _turn = TURN.lock().await;
    let spec = LabSpec::karmada()
        .member(Member::push("dfw").city("DFW"))
        .member(Member::pull("ord").city("ORD"));
    let lab = Lab::start(&spec).await?;
    assert_eq!(lab.members().collect::<Vec<_>>(), ["dfw", "ord"]);
    every_member_is_ready(&lab).await?;
    the_crd_is_served_everywhere(&lab).await?;
    what_identifies_a_deployment_cannot_change(&lab).await?;
    a_deployment_reaches_its_city_only(&lab).await?;
    processes_can_be_ended_and_started(&lab).await?;
    users_have_no_rights_by_default(&lab).await?;
    lab.expect_alive().await?;
    lab.end().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_labs_run_side_by_side() -> Result<()> {
    let _turn = TURN.lock().await;
    let spec = LabSpec::planes(&["project"]);
    let (first, second) = tokio::try_join!(Lab::start(&spec), Lab::start(&spec))?;
    assert_ne!(first.address(), second.address());
    assert_ne!(first.dir(), second.dir());
    let planes = [first.plane("project").await?, second.plane("project").await?];
    for (plane, name) in planes.iter().zip(["one", "two"]) {
        plane.apply(&objects::namespace(name)).await?;
    }
    for (plane, there, elsewhere) in [(&planes[0], "one", "two"), (&planes[1], "two", "one")] {
        plane.expect(kind::NAMESPACE, None, there).await?;
        let unexpected = plane.get(kind::NAMESPACE, None, elsewhere).await?;
        ensure!(unexpected.is_none(), "{elsewhere} is in the lab of {there} too");
    }
    for lab in [&first, &second] {
        lab.expect_alive().await?;
    }
    // The end of one is not the end of the other.
    let dir = first.dir().to_owned();
    first.end().await?;
    assert!(!dir.exists(), "{} is left", dir.display());
    planes[1].expect(kind::NAMESPACE, None, "two").await?;
    second.expect_alive().await?;
    second.end().await
}

async fn every_member_is_ready(lab: &Lab) -> Result<()> {
    let hub = lab.hub().await?;
    for (member, mode, city) in [("dfw", "Push", "DFW"), ("ord", "Pull", "ORD")] {
        let cluster = hub.expect(kind::CLUSTER, None, member).await?;
        let labels = cluster.metadata.labels.context("no labels")?;
        assert_eq!(labels[popcell_api::labels::CITY_CODE], city);
        assert_eq!(cluster.data["spec"]["syncMode"], mode);
        let conditions = cluster.data["status"]["conditions"]
            .as_array()
            .context("no conditions")?
            .clone();
        let ready = conditions
            .iter()
            .find(|condition| condition["type"] == "Ready")
            .context("no condition Ready")?;
        assert_eq!(ready["status"], "True", "{ready}");
    }
    Ok(())
}

/// A real API server takes the CRD as it is shipped, and keeps what the schema describes.
async fn the_crd_is_served_everywhere(lab: &Lab) -> Result<()> {
    for name in ["hub", "dfw", "ord"] {
        let plane = lab.plane(name).await?;
        let crd = plane
            .expect(kind::CRD, None, "workloaddeployments.compute.datumapis.com")
            .await?;
        let conditions = crd.data["status"]["conditions"]
            .as_array()
            .context("no conditions")?
            .clone();
        for (type_, status) in [("NamesAccepted", "True"), ("Established", "True")] {
            let found = conditions.iter().find(|condition| condition["type"] == type_);
            assert_eq!(found.context(type_)?["status"], status, "{name}: {conditions:?}");
        }
        let schema_problem = conditions
            .iter()
            .find(|condition| condition["type"] == "NonStructuralSchema");
        assert!(schema_problem.is_none(), "{name}: {schema_problem:?}");

        plane.apply(&objects::namespace("crd")).await?;
        let mut object = objects::workload_deployment("crd", "kept", "DFW", 2);
        object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0] = json!({
            "name": "web",
            "image": "registry.example.com/web:1",
            "env": [{ "name": "KEY", "valueFrom": { "secretKeyRef": { "name": "web", "key": "key" } } }],
            "resources": { "limits": { "cpu": 1, "memory": "512Mi" } },
            "ports": [{ "name": "http", "port": 8080 }],
        });
        let kept = plane.dry_run(&object).await?;
        let container = &kept.data["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0];
        assert_eq!(container["resources"]["limits"], json!({ "cpu": 1, "memory": "512Mi" }));
        assert_eq!(container["ports"][0]["protocol"], "TCP");
        object["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["resources"]["limits"]["cpu"] =
            json!("lots");
        let refused = plane.dry_run(&object).await.unwrap_err();
        assert!(format!("{refused:#}").contains("limits.cpu"), "{refused:#}");
    }
    Ok(())
}

async fn what_identifies_a_deployment_cannot_change(lab: &Lab) -> Result<()> {
    let plane = lab.plane("dfw").await?;
    plane
        .apply(&objects::workload_deployment("crd", "fixed", "DFW", 1))
        .await?;
    for (field, patch) in [
        ("cityCode", json!({ "spec": { "cityCode": "ORD" } })),
        ("placementName", json!({ "spec": { "placementName": "other" } })),
        ("workloadRef", json!({ "spec": { "workloadRef": { "name": "other" } } })),
    ] {
        let refused = plane
            .merge(kind::WORKLOAD_DEPLOYMENT, Some("crd"), "fixed", &patch)
            .await
            .unwrap_err();
        assert!(
            format!("{refused:#}").contains(&format!("{field} is immutable")),
            "{refused:#}"
        );
    }
    let scaled = json!({ "spec": { "scaleSettings": { "minReplicas": 3 } } });
    plane
        .merge(kind::WORKLOAD_DEPLOYMENT, Some("crd"), "fixed", &scaled)
        .await?;
    let status = objects::cell_status(2, 3, 1);
    let written = plane
        .set_status(kind::WORKLOAD_DEPLOYMENT, Some("crd"), "fixed", &status)
        .await?;
    assert_eq!(written.data["status"], status);
    plane.delete(kind::WORKLOAD_DEPLOYMENT, Some("crd"), "fixed").await
}

async fn a_deployment_reaches_its_city_only(lab: &Lab) -> Result<()> {
    let hub = lab.hub().await?;
    hub.apply(&objects::namespace("smoke")).await?;
    for (city, member, other) in [("DFW", "dfw", "ord"), ("ORD", "ord", "dfw")] {
        let name = format!("web-{member}");
        hub.apply(&objects::city_policy("smoke", city)).await?;
        hub.apply(&objects::workload_deployment("smoke", &name, city, 1))
            .await?;
        let cell = lab.plane(member).await?;
        eventually(&format!("{name} is in {member}"), SOON, async || {
            cell.expect(kind::WORKLOAD_DEPLOYMENT, Some("smoke"), &name).await
        })
        .await?;
        let elsewhere = lab
            .plane(other)
            .await?
            .get(kind::WORKLOAD_DEPLOYMENT, Some("smoke"), &name)
            .await?;
        ensure!(elsewhere.is_none(), "{name} is in {other} too");
    }
    Ok(())
}

async fn processes_can_be_ended_and_started(lab: &Lab) -> Result<()> {
    let first = lab.pid("karmada-agent-ord").await?;
    lab.kill("karmada-agent-ord").await?;
    assert!(lab.pid("karmada-agent-ord").await.is_err());
    lab.start_process("karmada-agent-ord").await?;
    assert_ne!(lab.pid("karmada-agent-ord").await?, first);
    let unknown = lab.stop("weather").await.unwrap_err();
    assert!(format!("{unknown:#}").contains("weather"), "{unknown:#}");
    Ok(())
}

async fn users_have_no_rights_by_default(lab: &Lab) -> Result<()> {
    let kubeconfigs = lab.user("popcell:cell:dfw", &["popcell:cells"]).await?;
    let plane = popcell_test_support::Plane::connect("hub", &kubeconfigs["hub"]).await?;
    let refused = plane.list(kind::NAMESPACE, None, "").await.unwrap_err();
    assert!(format!("{refused:#}").contains("popcell:cell:dfw"), "{refused:#}");
    Ok(())
}
