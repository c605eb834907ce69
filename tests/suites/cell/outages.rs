//! Cells that do not reach the hub, projects, or either, and a restart of Karmada: running workloads are unaffected, and what was
//! missed is made up for.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::{DFW, ORD, SOON};
use popcell_suites::read;
use popcell_suites::steps::{gone, names_in, uids_in};
use popcell_test_support::kind::{CLUSTER, INSTANCE, SECRET, WORKLOAD_DEPLOYMENT};
use popcell_test_support::stand_ins::START_SECONDS;
use popcell_test_support::{Fault, Plane, always, eventually, users};
use serde_json::{Value, json};

use crate::data::{FIRST, pull_secret, secret, settings};
use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
const NAMES: [&str; 2] = ["web-us-dfw-0", "web-us-dfw-1"];

/// All of Karmada that carries anything between hub and cells.
const KARMADA: [&str; 4] = [
    "karmada-controller-manager",
    "karmada-scheduler",
    "karmada-webhook",
    "karmada-agent-ord",
];

/// What serves the hub, last its store.
const HUB: [&str; 4] = [
    "kube-controller-manager",
    "karmada-aggregated-apiserver",
    "kube-apiserver",
    "etcd-hub",
];

/// What may not change on the planes that the cell does not reach.
#[derive(Debug, PartialEq)]
struct Afar {
    copies: BTreeMap<String, String>,
    claims: BTreeMap<String, String>,
}

impl Afar {
    async fn of(tenant: &Tenant) -> Result<Self> {
        Ok(Self {
            copies: uids_in(&tenant.hub, INSTANCE, &tenant.below).await?,
            claims: uids_in(&tenant.project, RESOURCE_CLAIM, &tenant.namespace).await?,
        })
    }
}

/// An Instance that is deleted by hand comes back as another and runs.
async fn healed(tenant: &Tenant, cell: &Plane, name: &str) -> Result<()> {
    let old = cell.expect(INSTANCE, Some(&tenant.below), name).await?;
    cell.delete(INSTANCE, Some(&tenant.below), name).await?;
    tenant
        .instance(cell, name, |one| {
            ensure!(read::uid(one) != read::uid(&old), "it is the old one");
            read::is_ready(one)
        })
        .await
        .map(|_| ())
}

/// Waits until each copy says what its Instance in the cell says, and so does what the project shows.
async fn reported(tenant: &Tenant, cell: &Plane, names: &[&str]) -> Result<()> {
    eventually("hub and project tell of what runs in the cell", SOON, async || {
        for name in names {
            let one = cell.expect(INSTANCE, Some(&tenant.below), name).await?;
            let copy = tenant.hub.expect(INSTANCE, Some(&tenant.below), name).await?;
            let shown = tenant.project.expect(INSTANCE, Some(&tenant.namespace), name).await?;
            for other in [&copy, &shown] {
                read::expect_at(other, "/spec/runtime", read::at(&one, "/spec/runtime"))?;
                let since = |object: &DynamicObject| -> Result<Value> {
                    Ok(read::condition(object, "Ready")?["lastTransitionTime"].clone())
                };
                ensure!(since(other)? == since(&one)?, "{name} is told of otherwise");
                read::is_ready(other)?;
            }
        }
        Ok(())
    })
    .await
}

async fn runs_on(tenant: &Tenant, cell: &Plane) -> Result<()> {
    let before = tenant.instances(cell).await?;
    always("everything runs on", WATCHED, async || {
        ensure!(tenant.instances(cell).await? == before);
        tenant.all_ready(cell, &NAMES).await
    })
    .await
}

pub(crate) async fn hub_away(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", CITY, 2).await?;
    reported(&tenant, &cell, &NAMES).await?;
    let (before, afar) = (tenant.instances(&cell).await?, Afar::of(&tenant).await?);
    let away = environment.to_hub[0].inject(Fault::HungUp, |_| true);
    environment.to_hub[0].cut();
    always("everything runs on", WATCHED, async || {
        ensure!(tenant.instances(&cell).await? == before);
        ensure!(Afar::of(&tenant).await? == afar);
        tenant.all_ready(&cell, &NAMES).await
    })
    .await?;
    healed(&tenant, &cell, NAMES[0]).await?;
    // Karmada goes on: what users change comes into the cell, which rolls and grows without the hub.
    let mut template = json!({ "metadata": { "annotations": { annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" } } });
    template["spec"]["runtime"]["sandbox"]["containers"] =
        json!([{ "name": "web", "image": "registry.example.com/web:2" }]);
    tenant.edit("web", &json!({ "template": template })).await?;
    tenant.scale("web", CITY, 3).await?;
    let names = [NAMES[0], NAMES[1], "web-us-dfw-2"];
    for name in names {
        tenant
            .instance(&cell, name, |one| {
                let image = read::at(one, "/spec/runtime/sandbox/containers/0/image");
                ensure!(image == "registry.example.com/web:2", "{image}");
                read::is_ready(one)
            })
            .await?;
    }
    ensure!(away.hits() > 0, "nobody asked the hub");
    let now = Afar::of(&tenant).await?;
    ensure!(now.copies == afar.copies, "{now:?}, not {afar:?}");
    for (name, uid) in &afar.claims {
        ensure!(now.claims.get(name) == Some(uid), "{now:?}, not {afar:?}");
    }
    away.lift();
    reported(&tenant, &cell, &names).await?;
    tenant.ready("web", 3).await?;
    let copies = Afar::of(&tenant).await?.copies;
    for (name, uid) in &afar.copies {
        ensure!(copies.get(name) == Some(uid), "the copy {name} was recreated");
    }
    tenant.claims_are(&names).await
}

pub(crate) async fn both_away(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    for one in [settings(namespace), secret(namespace, FIRST), pull_secret(namespace)] {
        tenant.project.create(&one, false).await?;
    }
    // A new Instance finds them in the cell.
    let sources = json!([{ "configMapRef": { "name": "settings" } }, { "secretRef": { "name": "db" } }]);
    let with_data = |workload: &mut Value| {
        let sandbox = &mut workload["spec"]["template"]["spec"]["runtime"]["sandbox"];
        sandbox["containers"][0]["envFrom"] = sources;
        sandbox["imagePullSecrets"] = json!([{ "name": "pull" }]);
    };
    tenant.deploy("web", CITY, 2, with_data).await?;
    tenant.ready("web", 2).await?;
    reported(&tenant, &cell, &NAMES).await?;
    let afar = Afar::of(&tenant).await?;
    environment.gateway.close();
    let mut away = None;
    let alone = async {
        runs_on(&tenant, &cell).await?;
        // On the grant that is remembered.
        healed(&tenant, &cell, NAMES[0]).await?;
        let hub_away = away.insert(environment.to_hub[0].inject(Fault::HungUp, |_| true));
        environment.to_hub[0].cut();
        runs_on(&tenant, &cell).await?;
        healed(&tenant, &cell, NAMES[1]).await?;
        // A restart finds both away, and what it does not see it does not take for gone.
        let mut controller = environment.cells[0].lock().await;
        controller.kill()?;
        controller.start_again().await?;
        drop(controller);
        healed(&tenant, &cell, NAMES[0]).await?;
        always("nothing is torn down", WATCHED, async || {
            ensure!(Afar::of(&tenant).await? == afar);
            let secrets = names_in(&cell, SECRET, &tenant.below).await?;
            ensure!(secrets == ["db", "pull"], "{secrets:?}");
            tenant.all_ready(&cell, &NAMES).await
        })
        .await?;
        ensure!(hub_away.hits() > 0, "nobody asked the hub");
        Ok(())
    };
    let alone = alone.await;
    environment.gateway.reopen();
    drop(away);
    alone?;
    reported(&tenant, &cell, &NAMES).await?;
    tenant.ready("web", 2).await?;
    tenant.claims_are(&NAMES).await?;
    let now = Afar::of(&tenant).await?;
    ensure!(now == afar, "{now:?}, not {afar:?}");
    Ok(())
}

/// The uids that each Instance had.
struct Replacements(BTreeMap<String, BTreeSet<String>>);

impl Replacements {
    /// How many are another than at the first look, in each of two cities. None is a third one.
    async fn look(&mut self, tenant: &Tenant, cells: &[Plane; 2]) -> Result<[usize; 2]> {
        for cell in cells {
            for (name, uid) in tenant.instances(cell).await? {
                self.0.entry(name).or_default().insert(uid);
            }
        }
        let twice = self.0.iter().find(|(_, uids)| uids.len() > 2);
        ensure!(twice.is_none(), "one was replaced twice: {twice:?}");
        let replaced = |city: &str| {
            let of_city = self.0.iter().filter(|(name, _)| name.contains(city));
            of_city.filter(|(_, uids)| uids.len() == 2).count()
        };
        Ok([replaced("dfw"), replaced("ord")])
    }
}

/// Its API server and etcd are gone too: what has reached the cells is rolled out and healed without them.
pub(crate) async fn restarted(environment: &Environment, namespace: &str) -> Result<()> {
    let (lab, tenant) = (&environment.lab, Tenant::new(&environment.lab, P1, namespace).await?);
    let cells = [lab.plane(DFW).await?, lab.plane(ORD).await?];
    let on_hub = Plane::connect("dfw on the hub", &users::of_cell(lab, DFW).await?).await?;
    tenant.runs("web", &["DFW", "ORD"], 3).await?;
    let mut seen = Replacements(BTreeMap::new());
    seen.look(&tenant, &cells).await?;
    // Its Instances start slowly: the hub goes in the middle of it.
    let slow = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z", START_SECONDS: "3" });
    let template = json!({ "template": { "metadata": { "annotations": slow } } });
    tenant.edit("web", &template).await?;
    eventually("the roll has begun in both cities", SOON, async || {
        let replaced = seen.look(&tenant, &cells).await?;
        ensure!(!replaced.contains(&0), "{replaced:?} are replaced");
        Ok(())
    })
    .await?;
    for program in KARMADA.iter().chain(&HUB) {
        lab.kill(program).await?;
    }
    let replaced = seen.look(&tenant, &cells).await?;
    let meanwhile = async {
        ensure!(replaced != [3, 3], "the roll was over before the hub went");
        eventually("every instance is another", SOON, async || {
            let replaced = seen.look(&tenant, &cells).await?;
            ensure!(replaced == [3, 3], "{replaced:?} are replaced");
            Ok(())
        })
        .await?;
        healed(&tenant, &cells[0], NAMES[0]).await?;
        // It is a third one, as it should be.
        seen.0.remove(NAMES[0]);
        anyhow::Ok(())
    };
    let meanwhile = meanwhile.await;
    // One that starts knows no rights for a moment and refuses everything. Until it serves Clusters, and its policies know
    // them, it refuses the cells' writes, and an agent ends.
    let [dfw, ord] = &environment.to_hub;
    let ways = [&environment.management_to_hub, dfw, ord];
    let away = ways.map(|way| way.inject(Fault::HungUp, |_| true));
    for program in HUB.iter().rev() {
        lab.start_process(program).await?;
    }
    let copy = json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Instance", "metadata": {
        "name": NAMES[0], "namespace": tenant.below, "annotations": { "test": "written" } } });
    eventually("the policy knows Clusters", SOON, async || {
        on_hub.dry_run(&copy).await.map(|_| ())
    })
    .await?;
    drop(away);
    for program in &KARMADA {
        lab.start_process(program).await?;
    }
    meanwhile?;
    tenant.ready("web", 6).await?;
    always("none is replaced twice", WATCHED, async || {
        seen.look(&tenant, &cells).await.map(|_| ())
    })
    .await?;
    tenant.clean("web").await
}

/// The hub, for Karmada and for the cell.
pub(crate) async fn deleted_meanwhile(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let ord = environment.lab.plane(ORD).await?;
    tenant.runs("web", &["ORD"], 2).await?;
    let before = tenant.instances(&ord).await?;
    let agent = format!("karmada-agent-{ORD}");
    let away = environment.to_hub[1].inject(Fault::HungUp, |_| true);
    environment.to_hub[1].cut();
    environment.lab.stop(&agent).await?;
    let meanwhile = async {
        tenant.clean("web").await?;
        tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "web-us-ord").await?;
        always("it runs on, and holds what it uses", WATCHED, async || {
            ensure!(tenant.instances(&ord).await? == before);
            for (name, _) in &before {
                let one = ord.expect(INSTANCE, Some(&tenant.below), name).await?;
                read::is_ready(&one)?;
            }
            let claims = names_in(&tenant.project, RESOURCE_CLAIM, &tenant.namespace).await?;
            ensure!(claims.len() == 2, "{claims:?}");
            Ok(())
        })
        .await?;
        // Karmada finds out by itself, after a while.
        let cluster = tenant.hub.expect(CLUSTER, None, ORD).await?;
        tenant.hub.set_status(CLUSTER, None, ORD, &not_ready(&cluster)).await?;
        eventually("the cell's silence has an age", SOON, async || {
            let age = silent(environment).await?;
            ensure!(age.is_some_and(|age| age > 1.0), "{age:?}");
            Ok(())
        })
        .await
    };
    let meanwhile = meanwhile.await;
    environment.lab.start_process(&agent).await?;
    away.lift();
    meanwhile?;
    gone(&ord, WORKLOAD_DEPLOYMENT, &tenant.below, "web-us-ord").await?;
    for name in ["web-us-ord-0", "web-us-ord-1"] {
        gone(&ord, INSTANCE, &tenant.below, name).await?;
        tenant.gone_from_hub(INSTANCE, name).await?;
        tenant.gone_from_project(INSTANCE, name).await?;
    }
    tenant.claims_are(&[]).await?;
    eventually("the cell is not silent any more", SOON, async || {
        let age = silent(environment).await?;
        ensure!(age.is_none(), "{age:?}");
        Ok(())
    })
    .await
}

/// The age of what the cell last said, while it is silent.
async fn silent(environment: &Environment) -> Result<Option<f64>> {
    let page = environment.management.lock().await.metrics().await?;
    let series = format!("popcell_status_age_seconds{{source_cluster=\"{ORD}\"}} ");
    let age = page.lines().find_map(|line| line.strip_prefix(&series));
    Ok(age.map(str::parse).transpose()?)
}

fn not_ready(cluster: &DynamicObject) -> Value {
    let now = cluster.data["status"]["conditions"][0]["lastTransitionTime"].clone();
    let mut status = cluster.data["status"].clone();
    status["conditions"] = json!([{
        "type": "Ready", "status": "False", "reason": "Test", "message": "", "lastTransitionTime": now,
    }]);
    status
}
