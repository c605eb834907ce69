//! A real Karmada with a Push and a Pull member, and many objects in both.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use popcell_benches::for_each;
use popcell_suites::read;
use popcell_test_support::artifacts::{self, Profile};
use popcell_test_support::kind::{RESOURCE_BINDING, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Lab, LabSpec, Member, Plane, Webhook, WebhookSpec, eventually, objects};
use serde_json::json;

use crate::storm::{self, Storm};

const NAMESPACE: &str = "storm";
/// Where the one object lives whose spec changes during the storm.
const BESIDE: &str = "beside-the-storm";
const ONE_MORE: &str = "one-more";
const CITIES: [(&str, &str); 2] = [("DFW", "dfw"), ("ORD", "ord")];
/// The processes that call the webhook, and the scheduler.
const RESTARTED: [&str; 3] = ["karmada-controller-manager", "karmada-scheduler", "karmada-agent-ord"];
const PATIENCE: Duration = Duration::from_mins(20);
/// Limits of Karmada's clients that leave the webhook as the narrowest place.
const UNLIMITED: [&str; 4] = [
    "--kube-api-qps=2000",
    "--kube-api-burst=4000",
    "--cluster-api-qps=2000",
    "--cluster-api-burst=4000",
];

/// The planes and what runs in them.
pub(crate) struct Environment {
    lab: Lab,
    hub: Plane,
    each: usize,
}

impl Environment {
    /// Starts the lab and brings `each` objects into each cell.
    pub(crate) async fn start(each: usize) -> Result<Self> {
        let mut spec = LabSpec::karmada().member(Member::push("dfw").city("DFW"));
        let mut ord = Member::pull("ord").city("ORD");
        for flag in UNLIMITED {
            spec = spec.hub_flag("karmada-controller-manager", flag);
            ord = ord.flag("karmada-agent", flag);
        }
        for flag in UNLIMITED.into_iter().filter(|flag| flag.contains("kube-api")) {
            spec = spec.hub_flag("karmada-scheduler", flag);
        }
        let lab = Lab::start(&spec.member(ord)).await?;
        let hub = lab.hub().await?;
        let environment = Self { lab, hub, each };
        let mut webhook = environment.webhook(&[]).await?;
        environment.hub.apply(&objects::namespace(NAMESPACE)).await?;
        let began = Instant::now();
        for (city, member) in CITIES {
            environment.hub.apply(&objects::city_policy(NAMESPACE, city)).await?;
            environment
                .for_each(member, async |name| {
                    let object = objects::workload_deployment(NAMESPACE, name, city, 1);
                    environment.hub.apply(&object).await.map(|_| ())
                })
                .await?;
        }
        for (_, member) in CITIES {
            let cell = environment.lab.plane(member).await?;
            eventually("every object is in its cell", PATIENCE, async || {
                let there = cell.list(WORKLOAD_DEPLOYMENT, Some(NAMESPACE), "").await?.len();
                ensure!(there == each, "{there} of {each} in {member}");
                Ok(())
            })
            .await?;
        }
        println!("{} objects are in their cells after {:.0?}", 2 * each, began.elapsed());
        environment.one_more().await?;
        webhook.stop()?;
        Ok(environment)
    }

    /// A fresh webhook in its optimised build, registered in the place of the one before.
    async fn webhook(&self, flags: &[&str]) -> Result<Webhook> {
        let mut spec = WebhookSpec::with_modules(&["compute"])?.program(artifacts::programs(Profile::Release)?.webhook);
        for flag in flags {
            spec = spec.flag(flag);
        }
        let webhook = Webhook::start(spec).await?;
        webhook
            .register(self.lab.kubeconfig("hub")?, &[])
            .context("failed to register the webhook")?;
        Ok(webhook)
    }

    /// Changes every status while Karmada stands still, starts Karmada and waits for the hub to show all of it.
    pub(crate) async fn storm(&self, flags: &[&str], ready: i32) -> Result<Storm> {
        let mut webhook = self.webhook(flags).await?;
        for process in RESTARTED {
            self.lab.stop(process).await?;
        }
        for (_, member) in CITIES {
            let cell = self.lab.plane(member).await?;
            self.for_each(member, async |name| {
                let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(NAMESPACE), name).await?;
                let status = objects::cell_status(object.metadata.generation.unwrap_or(1), ready, ready);
                cell.set_status(WORKLOAD_DEPLOYMENT, Some(NAMESPACE), name, &status)
                    .await
                    .map(|_| ())
            })
            .await?;
        }
        // What the webhook has seen so far is not the storm's.
        webhook.stop()?;
        webhook.start_again().await?;
        for process in RESTARTED {
            self.lab.start_process(process).await?;
        }
        let began = Instant::now();
        let all = eventually("every status and health is interpreted", PATIENCE, async || {
            // Looking costs the hub something too.
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.interpreted(ready).await
        });
        let all = async { all.await.map(|()| began.elapsed()) };
        let (took, one_more) = tokio::try_join!(all, self.change_one_more(ready))?;
        let storm = storm::measure(&webhook, took, one_more).await?;
        webhook.stop()?;
        Ok(storm)
    }

    /// Brings one more object into the Push cell.
    async fn one_more(&self) -> Result<()> {
        let (city, member) = CITIES[0];
        self.hub.apply(&objects::namespace(BESIDE)).await?;
        self.hub.apply(&objects::city_policy(BESIDE, city)).await?;
        let object = objects::workload_deployment(BESIDE, ONE_MORE, city, 1);
        self.hub.apply(&object).await?;
        let cell = self.lab.plane(member).await?;
        eventually("one more object is in its cell", PATIENCE, async || {
            cell.expect(WORKLOAD_DEPLOYMENT, Some(BESIDE), ONE_MORE).await
        })
        .await
        .map(drop)
    }

    /// Changes its spec on the hub; answers after how long the cell has it. `turn` is another in every storm.
    async fn change_one_more(&self, turn: i32) -> Result<Duration> {
        let cell = self.lab.plane(CITIES[0].1).await?;
        let wanted = json!(100 + turn);
        let patch = json!({ "spec": { "scaleSettings": { "minReplicas": wanted } } });
        let began = Instant::now();
        self.hub
            .merge(WORKLOAD_DEPLOYMENT, Some(BESIDE), ONE_MORE, &patch)
            .await?;
        eventually("the change of one more object is in its cell", PATIENCE, async || {
            let object = cell.expect(WORKLOAD_DEPLOYMENT, Some(BESIDE), ONE_MORE).await?;
            let there = read::at(&object, "/spec/scaleSettings/minReplicas");
            ensure!(*there == wanted, "minReplicas is {there}");
            Ok(())
        })
        .await?;
        Ok(began.elapsed())
    }

    async fn interpreted(&self, ready: i32) -> Result<()> {
        let count = 2 * self.each;
        let deployments = self.hub.list(WORKLOAD_DEPLOYMENT, Some(NAMESPACE), "").await?;
        let shown = deployments
            .iter()
            .filter(|each| *read::at(each, "/status/readyReplicas") == json!(ready))
            .count();
        ensure!(shown == count, "{shown} of {count} show their status");
        let bindings = self.hub.list(RESOURCE_BINDING, Some(NAMESPACE), "").await?;
        let healthy = bindings
            .iter()
            .filter(|binding| {
                *read::at(binding, "/status/aggregatedStatus/0/health") == json!("Healthy")
                    && *read::at(binding, "/status/aggregatedStatus/0/status/readyReplicas") == json!(ready)
            })
            .count();
        ensure!(healthy == count, "{healthy} of {count} are healthy");
        Ok(())
    }

    async fn for_each(&self, member: &str, act: impl AsyncFn(&str) -> Result<()>) -> Result<()> {
        for_each(0..self.each, async |number| act(&format!("{member}-{number:04}")).await).await
    }

    /// Ends all processes.
    pub(crate) async fn end(self) -> Result<()> {
        self.lab.end().await
    }
}
