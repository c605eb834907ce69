//! Networks of a project in the cells that need them, where the stand-in of the network services demands them as the real
//! services do.

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::{NETWORK, NETWORK_BINDING};
use popcell_api::labels;
use popcell_suites::definitions::define;
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_suites::read::{self, says};
use popcell_suites::steps::{awaited, gone, names_in, taken_away};
use popcell_suites::tenant::{Tenant, expect_label};
use popcell_test_support::kind::{INSTANCE, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::{IN_CELLS, Networks};
use popcell_test_support::{Controller, ControllerSpec, Lab, LabSpec, Plane, eventually, manifests, objects, users};
use serde_json::json;

use crate::environment::{Environment, P1, P2, refused_nothing};

/// A Network is in exactly the cells whose WorkloadDeployments name it, as its project has it, and goes with the last.
pub(crate) async fn carried(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let (dfw, ord) = (environment.lab.plane(DFW).await?, environment.lab.plane(ORD).await?);
    tenant.project.apply(&objects::network(namespace, "unused")).await?;
    // Running means that the gate `Network` is open.
    tenant.runs("web", &["DFW"], 1).await?;
    tenant.runs("other", &["DFW", "ORD"], 1).await?;
    for cell in [&dfw, &ord] {
        let carried = awaited(cell, NETWORK, &tenant.below, "default", |_| Ok(())).await?;
        expect_label(&carried, labels::MANAGED_BY, labels::MANAGED_BY_POPCELL)?;
        read::expect_at(&carried, "/spec/ipam/mode", &json!("Auto"))?;
        ensure!(names_in(cell, NETWORK, &tenant.below).await? == ["default"]);
    }
    let mtu = json!({ "spec": { "mtu": 1400 } });
    tenant.project.merge(NETWORK, Some(namespace), "default", &mtu).await?;
    for cell in [&dfw, &ord] {
        awaited(cell, NETWORK, &tenant.below, "default", |one| {
            read::expect_at(one, "/spec/mtu", &json!(1400))
        })
        .await?;
    }
    // It leaves the city that needs it no more, and stays where another needs it.
    tenant.scale("other", &["DFW"], 1).await?;
    gone(&ord, NETWORK, &tenant.below, "default").await?;
    tenant.clean("other").await?;
    gone(&dfw, WORKLOAD_DEPLOYMENT, &tenant.below, "other-us-dfw").await?;
    tenant.all_ready(&dfw, &["web-us-dfw-0"]).await?;
    ensure!(names_in(&dfw, NETWORK, &tenant.below).await? == ["default"]);
    ensure!(tenant.names_in_hub(NETWORK).await? == ["default"]);
    tenant.clean("web").await?;
    tenant.gone_from_hub(NETWORK, "default").await?;
    gone(&dfw, NETWORK, &tenant.below, "default").await?;
    ensure!(tenant.names_in_project(NETWORK).await? == ["default", "unused"]);
    Ok(())
}

/// With `--networking=auto`, on a server that is only a cell. One without network services starts its Instances at once. One that
/// gets them has its controller begin again, and one that loses them has Instances wait, which say so, until they are back.
pub(crate) async fn served_or_not(_: &Environment, namespace: &str) -> Result<()> {
    const CELL: &str = "cell";
    let lab = Lab::start(&LabSpec::planes(&[CELL])).await?;
    let files = tempfile::tempdir().context("failed to make a directory")?;
    let cell = lab.plane(CELL).await?;
    define(&cell, &[]).await?;
    let home = users::at_home(&lab, CELL, manifests::CELL, files.path()).await?;
    let spec = ControllerSpec::cell_alone(&home).flag("--networking=auto");
    let mut controller = Controller::start(spec).await?;
    let story = appear_and_go(&cell, namespace, &mut controller).await;
    story.with_context(|| format!("the controller wrote:\n{}", controller.last_words()))?;
    refused_nothing(&controller)?;
    controller.end()?;
    lab.end().await
}

async fn appear_and_go(cell: &Plane, namespace: &str, controller: &mut Controller) -> Result<()> {
    cell.apply(&objects::namespace(namespace)).await?;
    let made = async |name: &str| {
        cell.create(&objects::workload_deployment(namespace, name, "DFW", 1), false)
            .await
    };
    let gates = |one: &DynamicObject| read::at(one, "/spec/controller/schedulingGates").clone();
    let is_open = |one: &DynamicObject| {
        let held = gates(one).to_string();
        ensure!(!held.contains("Network"), "{held}");
        Ok(())
    };
    made("before").await?;
    awaited(cell, INSTANCE, namespace, "before-0", is_open).await?;

    define(cell, &IN_CELLS).await?;
    let ended = eventually("the controller ends", SOON, async || {
        controller.ended()?.context("it runs")
    });
    let status = ended.await?;
    controller.start_again().await?;
    let pid = controller.pid();
    made("after").await?;
    awaited(cell, INSTANCE, namespace, "after-0", |one| {
        ensure!(gates(one).to_string().contains("Network"), "{}", gates(one));
        Ok(())
    })
    .await?;
    cell.apply(&objects::location("DFW")).await?;
    cell.apply(&objects::network(namespace, "default")).await?;
    let services = Networks::start(cell.client());
    awaited(cell, INSTANCE, namespace, "after-0", is_open).await?;

    drop(services);
    let definition = taken_away(cell, NETWORK_BINDING).await?;
    made("without").await?;
    let says_so = |type_: &'static str| {
        move |one: &DynamicObject| {
            says(one, type_, "False", "NetworkNotFound")?;
            let text = one.data["status"]["conditions"].to_string();
            ensure!(text.contains("Network default is not served in city DFW"), "{text}");
            Ok(())
        }
    };
    awaited(cell, INSTANCE, namespace, "without-0", says_so("Ready")).await?;
    awaited(cell, WORKLOAD_DEPLOYMENT, namespace, "without", says_so("Available")).await?;
    cell.apply(&definition).await?;
    eventually("NetworkBinding is served", SOON, async || {
        cell.list(NETWORK_BINDING, None, "").await
    })
    .await?;
    let _services = Networks::start(cell.client());
    awaited(cell, INSTANCE, namespace, "without-0", is_open).await?;
    ensure!(status.success(), "the first ended with {status}");
    ensure!(controller.pid() == pid, "it was restarted");
    controller.expect_alive()
}

/// Who names a Network that is not there waits for it alone, and says so everywhere; whose it is counts: one of another
/// tenant's namespace in the cell is never bound.
pub(crate) async fn missing(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    // Others refuse all claims of this project for a while, or count what is granted there.
    let _quota = environment.quota.lock().await;
    let victim = Tenant::new(&environment.lab, P2, namespace).await?;
    let dfw = environment.lab.plane(DFW).await?;
    victim.runs("web", &["DFW"], 1).await?;
    let named = |name: &str, network| {
        let mut one = tenant.direct(name, "DFW", 1);
        one["spec"]["template"]["spec"]["networkInterfaces"] = json!([{ "network": network }]);
        one
    };
    let late = named("late", json!({ "name": "late", "namespace": namespace }));
    let thief = named("thief", json!({ "name": "default", "namespace": victim.below }));
    for one in [&late, &thief] {
        tenant.project.create(one, false).await?;
    }
    for (name, words) in [
        ("late", "Network late is not in city DFW"),
        ("thief", "is not carried to city DFW"),
    ] {
        let waits = |kind, type_: &'static str| {
            move |one: &kube::api::DynamicObject| {
                says(one, type_, "False", "NetworkNotFound")?;
                let text = one.data["status"]["conditions"].to_string();
                ensure!(text.contains(words), "{kind}: {text}");
                Ok(())
            }
        };
        let instance = format!("{name}-0");
        tenant.instance(&dfw, &instance, waits("Instance", "Ready")).await?;
        tenant
            .in_project(INSTANCE, &instance, waits("projection", "Ready"))
            .await?;
        tenant
            .in_project(WORKLOAD_DEPLOYMENT, name, waits("WorkloadDeployment", "Available"))
            .await?;
    }
    // What waits blocks nothing beside it.
    tenant.runs("web", &["DFW"], 1).await?;
    tenant.project.apply(&objects::network(namespace, "late")).await?;
    tenant.shown("late", 1).await?;
    let bindings = names_in(&dfw, NETWORK_BINDING, &tenant.below).await?;
    ensure!(bindings == ["late-net-0", "web-us-dfw-net-0"], "{bindings:?}");
    for name in ["late", "thief"] {
        tenant.delete(WORKLOAD_DEPLOYMENT, name).await?;
        gone(&dfw, WORKLOAD_DEPLOYMENT, &tenant.below, name).await?;
    }
    tenant.gone_from_hub(NETWORK, "late").await?;
    for one in [&tenant, &victim] {
        one.delete(WORKLOAD, "web").await?;
    }
    Ok(())
}
