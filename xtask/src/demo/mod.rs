//! `demo`: a Workload of a project runs in two cities and comes back, on a real Karmada.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use popcell_test_support::artifacts::{self, Profile};
use popcell_test_support::{
    Controller, ControllerSpec, Lab, LabSpec, Member, Webhook, WebhookSpec, missing_for_containers, workspace,
};
use serde_json::{Value, json};

mod describe;
mod journal;
mod scene;
mod screen;
mod story;

use journal::Journal;
use scene::{Containers, Scene, Surroundings};

/// A city and the member that serves it.
pub(crate) struct City {
    code: &'static str,
    member: &'static str,
    /// Name of its WorkloadDeployment.
    deployment: &'static str,
}

/// DFW is a Push member and ORD a Pull member, so that both ways of Karmada are seen.
const CITIES: [City; 2] = [
    City {
        code: "DFW",
        member: "dfw",
        deployment: "web-us-dfw",
    },
    City {
        code: "ORD",
        member: "ord",
        deployment: "web-us-ord",
    },
];

/// The Workload of docs/examples, and what it asks for.
const WORKLOAD: &str = "web";
const REPLICAS: i32 = 2;
/// A city that it names and that the project may not use.
const UNSERVED: &str = "AMS";

/// The plane that stands for milo, which says which projects there are.
const MILO: &str = "milo";
/// The plane that stands for a project's control plane, and the project's id.
const PROJECT: &str = "project";
/// Namespace of the Workload in the project.
const NAMESPACE: &str = "demo";

/// Arguments of `demo`.
#[derive(Args)]
pub(crate) struct Demo {
    /// Time that a Pod takes to start in the cells
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds, conflicts_with = "real")]
    pace: f64,
    /// Run the containers, in a kubelet with containerd, as root
    #[arg(long)]
    real: bool,
    /// End after the last screen, also in a terminal
    #[arg(long)]
    once: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..=60.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("0 to 60 seconds".to_owned())
    }
}

impl Demo {
    /// Builds, shows, and ends everything that it started, also when it is interrupted.
    pub(crate) fn run(&self) -> Result<()> {
        if let Some(missing) = missing_for_containers().filter(|_| self.real) {
            bail!("--real: {missing}");
        }
        build(self.real)?;
        let runtime = tokio::runtime::Runtime::new().context("failed to start a runtime")?;
        runtime.block_on(async {
            tokio::select! {
                outcome = self.show() => outcome,
                interrupted = tokio::signal::ctrl_c() => {
                    println!("\ninterrupted: ending everything");
                    interrupted.context("failed to wait for an interrupt")
                }
            }
        })
    }

    async fn show(&self) -> Result<()> {
        println!("\n=== Start: a project's control plane, one Karmada, two cells, the webhook, the controllers");
        let planes = LabSpec::karmada().plane(MILO).plane(PROJECT);
        let spec = CITIES.iter().fold(planes, |spec, city| {
            let member = if city.code == "ORD" {
                Member::pull(city.member)
            } else {
                Member::push(city.member)
            };
            spec.member(member.city(city.code))
        });
        let lab = Lab::start(&spec).await?;
        let webhook = Webhook::start(WebhookSpec::with_modules(&["compute"])?).await?;
        println!("webhook: ready on {}", webhook.url());
        webhook.register(lab.kubeconfig("hub")?, &[])?;
        println!("webhook: registered in Karmada by `popcell register`");
        let containers = if self.real {
            Containers::Real
        } else {
            Containers::Played(Duration::from_secs_f64(self.pace))
        };
        let scene = Scene::prepare(lab, webhook, containers).await?;
        let surroundings = Surroundings::start(&scene.lab, containers).await?;
        let mut controllers = start(&scene, &surroundings).await?;

        let journal = Journal::start(&scene).await?;
        story::tell(&scene).await?;
        journal.end();
        screen::show(&scene).await?;
        if !self.once && std::io::stdout().is_terminal() {
            println!("\nEverything runs until you press Ctrl-C.");
            std::future::pending::<()>().await;
        }
        println!("\nWithout --once in a terminal, everything stays until you press Ctrl-C.");
        for controller in &mut controllers {
            controller.expect_alive()?;
        }
        scene.lab.expect_alive().await?;
        println!("ending everything");
        Ok(())
    }
}

/// The controllers of the management plane, and those of each cell.
async fn start(scene: &Scene, surroundings: &Surroundings) -> Result<Vec<Controller>> {
    let (lab, milo) = (&scene.lab, surroundings.milo());
    let hub = lab.kubeconfig("hub")?;
    let management = ControllerSpec::management(lab.kubeconfig(MILO)?, hub).milo(milo);
    let mut controllers = vec![Controller::start(management).await?];
    println!("controller: ready, with the management controllers");
    for city in &CITIES {
        let cell = ControllerSpec::cell(lab.kubeconfig(city.member)?, city.member, hub, milo);
        controllers.push(Controller::start(cell).await?);
        println!("controller: ready, with the cell controllers of {}", city.member);
    }
    Ok(controllers)
}

fn build(with_kubelet: bool) -> Result<()> {
    println!("=== Build: the first time takes minutes");
    println!("{}: the lab's programs", artifacts::go::version()?);
    if with_kubelet {
        artifacts::lab_programs_and_kubelet()?;
    } else {
        artifacts::lab_programs()?;
    }
    crate::module::build_all()?;
    println!("cargo: popcell-webhook, popcell-controller, popcell-provider-pod and popcell");
    artifacts::programs(Profile::Dev)?;
    Ok(())
}

/// An object of docs/examples, such as its Workload.
fn example(name: &str) -> Result<Value> {
    let file = workspace::root().join("docs/examples").join(name);
    let text = std::fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let mut object: Value = serde_saphyr::from_str(&text).with_context(|| format!("{} is no YAML", file.display()))?;
    object["metadata"]["namespace"] = json!(NAMESPACE);
    Ok(object)
}

#[cfg(test)]
mod tests {
    use popcell_api::Workload;

    use super::*;

    #[test]
    fn the_example_is_what_the_story_tells() {
        let object: Workload = serde_json::from_value(example("workload.yaml").unwrap()).unwrap();
        assert_eq!(object.metadata.name.as_deref(), Some(WORKLOAD));
        let [us, eu] = object.spec.placements.as_slice() else {
            panic!("two placements");
        };
        assert_eq!(us.city_codes, CITIES.map(|city| city.code));
        assert_eq!(us.scale_settings.min_replicas, REPLICAS);
        assert_eq!(eu.city_codes, [UNSERVED]);
        for city in &CITIES {
            let derived = format!("{WORKLOAD}-{}-{}", us.name, city.code.to_lowercase());
            assert_eq!(city.deployment, derived);
        }
    }
}
