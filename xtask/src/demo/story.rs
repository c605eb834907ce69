//! What the demo does, and what must be seen before it goes on.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_api::labels;
use popcell_test_support::probe::get;
use popcell_test_support::{Plane, artifacts, eventually, kind};
use serde_json::{Value, json};
use tokio::process::Command;

use super::scene::{Containers, Scene};
use super::{CITIES, City, NAMESPACE, PROJECT, REPLICAS, UNSERVED, WORKLOAD, example};

/// Everything below takes seconds; this is for a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Runs the story. Fails when something is not seen in time.
pub(super) async fn tell(scene: &Scene) -> Result<()> {
    chapter("docs/examples/workload.yaml in the project: two instances in each of two cities, and one in AMS");
    for named in ["configmap.yaml", "secret.yaml"] {
        scene.project.apply(&example(named)?).await?;
    }
    let mut workload = example("workload.yaml")?;
    scene.project.apply(&workload).await?;
    arrived(scene, REPLICAS).await?;
    for city in &CITIES {
        only_in_its_cell(scene, city).await?;
        has_its_data(scene, city).await?;
        if matches!(scene.containers, Containers::Real) {
            answers(scene, city).await?;
        }
    }
    unserved(&scene.project).await?;

    chapter("One instance more in each of them, asked for in the project");
    let more = REPLICAS + 1;
    let replicas = format!("--replicas={more}");
    popcell(scene, &["scale", "workload/web", "--placement=us", &replicas], "scaled").await?;
    arrived(scene, more).await?;

    chapter("A restart without AMS, asked for in the project: one instance after the other, the highest first");
    let placements = workload["spec"]["placements"].as_array_mut();
    let placements = placements.context("the example has no placements")?;
    placements.truncate(1);
    placements[0]["scaleSettings"]["minReplicas"] = json!(more);
    scene.project.apply(&workload).await?;
    let before = running(scene).await?;
    popcell(scene, &["restart", "workload/web"], "restarted").await?;
    let wait = ["rollout", "status", "workload/web", "--timeout=5m"];
    popcell(scene, &wait, "successfully rolled out").await?;
    let now = running(scene).await?;
    ensure!(now.len() == before.len(), "rolled out, and {} run", now.len());
    for (uid, hash) in &now {
        ensure!(!before.contains_key(uid), "rolled out, and {uid} is there as before");
        ensure!(
            !before.values().any(|one| one == hash),
            "{uid} is of the template from before"
        );
    }
    arrived(scene, more).await?;
    claimed(scene).await?;

    chapter(
        "docs/examples/workload-virtual-machine.yaml: the provider of these cities has no machines, and says so in the project",
    );
    scene.project.apply(&example("workload-virtual-machine.yaml")?).await?;
    has_no_machine(&scene.project).await?;

    let calls = scene.webhook.metric("popcell_calls_total", &["outcome=\"ok\""]).await?;
    ensure!(calls > 0.0, "everything arrived, but Karmada never called the webhook");
    Ok(())
}

/// What the Workload names is in the cell, as the project has it, and the Pods name it.
async fn has_its_data(scene: &Scene, city: &City) -> Result<()> {
    let (cell, within) = (scene.lab.plane(city.member).await?, Some(scene.hub_namespace.as_str()));
    for kind in [kind::CONFIG_MAP, kind::SECRET] {
        let of_project = scene.project.expect(kind, Some(NAMESPACE), WORKLOAD).await?;
        let carried = cell.expect(kind, within, WORKLOAD).await?;
        ensure!(carried.data["data"] == of_project.data["data"], "{} differs", kind.kind);
    }
    for pod in cell.list(kind::POD, within, "").await? {
        let text = pod.data["spec"].to_string();
        let names_both = text.contains("configMapKeyRef") && text.contains("secretKeyRef");
        ensure!(names_both, "a Pod of {} has not its environment", city.code);
    }
    println!(
        "{}: has the ConfigMap and the Secret, and Pods that name them",
        city.code
    );
    Ok(())
}

/// Each container of a city serves the page of the ConfigMap, and has the Secret in its environment.
async fn answers(scene: &Scene, city: &City) -> Result<()> {
    let (cell, within) = (scene.lab.plane(city.member).await?, Some(scene.hub_namespace.as_str()));
    let of_config_map = example("configmap.yaml")?["data"]["index.html"].clone();
    let of_secret = example("secret.yaml")?["stringData"]["password"].clone();
    for instance in cell.list(kind::INSTANCE, within, "").await? {
        let address = instance
            .data
            .pointer("/status/networkInterfaces/0/assignments/networkIP");
        let address = address.and_then(Value::as_str).context("an Instance without address")?;
        let (code, page) = get((address.parse()?, 80), "/").await?;
        ensure!(
            code == 200 && of_config_map == page,
            "http://{address}/ answers {code}: {page:?}"
        );
        let (code, password) = get((address.parse()?, 80), "/env/PASSWORD").await?;
        ensure!(
            code == 200 && of_secret == password,
            "a container has not the password of the Secret"
        );
        println!("{}: http://{address}/ answers {}", city.code, page.trim());
    }
    Ok(())
}

/// A headline of the story.
fn chapter(title: &str) {
    println!("\n=== {title}");
}

/// Runs `popcell` against the project, as its user does, and shows what it prints, which has to have these words.
async fn popcell(scene: &Scene, arguments: &[&str], expected: &str) -> Result<()> {
    println!("$ popcell {}", arguments.join(" "));
    let mut command = Command::from(artifacts::popcell()?);
    command.args(arguments).args(["--namespace", NAMESPACE, "--kubeconfig"]);
    let ran = command
        .arg(scene.lab.kubeconfig(PROJECT)?)
        .kill_on_drop(true)
        .output()
        .await;
    let ran = ran.context("failed to start popcell")?;
    let [out, err] = [&ran.stdout, &ran.stderr].map(|text| String::from_utf8_lossy(text));
    print!("{out}{err}");
    ensure!(
        ran.status.success() && out.contains(expected),
        "popcell ended with {} and did not print {expected:?}",
        ran.status
    );
    Ok(())
}

/// Uids of the instances in all cells, each with the hash of its template.
async fn running(scene: &Scene) -> Result<BTreeMap<String, Value>> {
    let mut running = BTreeMap::new();
    for city in &CITIES {
        let cell = scene.lab.plane(city.member).await?;
        let instances = cell.list(kind::INSTANCE, Some(&scene.hub_namespace), "").await?;
        running.extend(instances.into_iter().filter_map(|one| {
            let hash = one.data.pointer("/spec/controller/templateHash").cloned()?;
            Some((one.metadata.uid?, hash))
        }));
    }
    Ok(running)
}

/// The project shows every instance as ready, and each holds a claim.
async fn claimed(scene: &Scene) -> Result<()> {
    eventually("every instance is shown with its claim", PATIENCE, async || {
        let shown = scene.project.list(kind::INSTANCE, Some(NAMESPACE), "").await?;
        let claims = scene.project.list(RESOURCE_CLAIM, Some(NAMESPACE), "").await?;
        let all = running(scene).await?.len();
        let ready = shown
            .iter()
            .filter(|one| super::describe::instance(one).contains("Ready=True"))
            .count();
        ensure!(
            (ready, claims.len()) == (all, all),
            "of {all} instances {ready} are shown as ready, with {} claims",
            claims.len()
        );
        Ok(())
    })
    .await
}

/// Every plane says of its own object that all instances are ready, up to the Workload.
async fn arrived(scene: &Scene, replicas: i32) -> Result<()> {
    for city in &CITIES {
        let what = format!("the status of {} is back in the project", city.deployment);
        eventually(&what, PATIENCE, async || {
            bound(scene, city, replicas).await?;
            for (plane, namespace) in [(&scene.hub, scene.hub_namespace.as_str()), (&scene.project, NAMESPACE)] {
                let object = plane
                    .expect(kind::WORKLOAD_DEPLOYMENT, Some(namespace), city.deployment)
                    .await?;
                all_ready(plane, &object, replicas)?;
            }
            Ok(())
        })
        .await?;
    }
    eventually("the Workload is Available", PATIENCE, async || {
        let workload = scene.project.expect(kind::WORKLOAD, Some(NAMESPACE), WORKLOAD).await?;
        let all = replicas * i32::try_from(CITIES.len())?;
        all_ready(&scene.project, &workload, all)?;
        let available = super::describe::available(&workload);
        ensure!(available.starts_with("Available=True"), "the Workload is {available}");
        Ok(())
    })
    .await
}

fn all_ready(plane: &Plane, object: &DynamicObject, replicas: i32) -> Result<()> {
    let status = object.data.get("status").context("no status")?;
    let counts = [&status["readyReplicas"], &status["desiredReplicas"]];
    ensure!(
        counts == [&json!(replicas); 2],
        "{}: ready and desired are {counts:?}",
        plane.name()
    );
    ensure!(
        status["observedGeneration"].as_i64() == object.metadata.generation,
        "{}: the status is about generation {} of {:?}",
        plane.name(),
        status["observedGeneration"],
        object.metadata.generation
    );
    Ok(())
}

/// Karmada has placed all replicas, and knows from the webhook that they are healthy.
async fn bound(scene: &Scene, city: &City, replicas: i32) -> Result<()> {
    let bindings = scene
        .hub
        .list(kind::RESOURCE_BINDING, Some(&scene.hub_namespace), "")
        .await?;
    let ours = bindings
        .iter()
        .find(|binding| binding.data["spec"]["resource"]["name"] == city.deployment);
    let binding = &ours.context("no ResourceBinding")?.data;
    ensure!(
        binding["spec"]["replicas"] == replicas,
        "the binding has {} replicas",
        binding["spec"]["replicas"]
    );
    let health = binding
        .pointer("/status/aggregatedStatus/0/health")
        .and_then(Value::as_str);
    ensure!(health == Some("Healthy"), "the binding's health is {health:?}");
    Ok(())
}

/// The object is in the cell of its city, carries its label, and is in no other cell.
async fn only_in_its_cell(scene: &Scene, city: &City) -> Result<()> {
    for member in scene.lab.members() {
        let cell = scene.lab.plane(member).await?;
        let found = cell
            .get(kind::WORKLOAD_DEPLOYMENT, Some(&scene.hub_namespace), city.deployment)
            .await?;
        if member != city.member {
            ensure!(
                found.is_none(),
                "{} is in {member}, which is not {}",
                city.deployment,
                city.code
            );
            continue;
        }
        let object = found.with_context(|| format!("{} is not in {member}", city.deployment))?;
        let label = object.metadata.labels.unwrap_or_default().remove(labels::CITY_CODE);
        ensure!(
            label.as_deref() == Some(city.code),
            "{} in {member} carries city {label:?}",
            city.deployment
        );
    }
    Ok(())
}

/// The Instance that is to be a virtual machine is shown with the reason why it is none.
async fn has_no_machine(project: &Plane) -> Result<()> {
    const NAME: &str = "machine-us-dfw-0";
    eventually("the reason is in the project", PATIENCE, async || {
        let instance = project.expect(kind::INSTANCE, Some(NAMESPACE), NAME).await?;
        let said = super::describe::instance(&instance);
        let conditions = instance.data["status"]["conditions"].to_string();
        ensure!(
            said.contains("ConfigurationError") && conditions.contains("a Pod cannot be a virtual machine"),
            "{conditions}"
        );
        println!("{said}");
        Ok(())
    })
    .await
}

/// The city that the project may not use is said to be so, and got nothing.
async fn unserved(project: &Plane) -> Result<()> {
    let workload = project.expect(kind::WORKLOAD, Some(NAMESPACE), WORKLOAD).await?;
    let reported = workload.data["status"]["placements"].to_string();
    ensure!(
        reported.contains(UNSERVED),
        "no placement speaks of {UNSERVED}: {reported}"
    );
    let deployments = project.list(kind::WORKLOAD_DEPLOYMENT, Some(NAMESPACE), "").await?;
    ensure!(
        deployments.len() == CITIES.len(),
        "there are {} WorkloadDeployments",
        deployments.len()
    );
    Ok(())
}
