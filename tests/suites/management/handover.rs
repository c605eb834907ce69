//! Terms of a leader, of which there is one: it is cut off with a write on its way, the lead changes again and again, and it
//! is killed.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{
    Asked, Controller, ControllerSpec, Fault, FaultProxy, Injected, Plane, eventually, probe, users,
};
use serde_json::json;
use tempfile::TempDir;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CHANGES: i32 = 10;
const FLAPS: u32 = 5;
/// A holder that ends gracefully gives the Lease back; the other looks every second.
const HANDOVER: Duration = Duration::from_secs(5);
/// 15 s until the Lease of a dead holder is over, and a look.
const TAKEOVER: Duration = Duration::from_secs(20);

/// All that one replica asks, each server behind a proxy of its own.
struct Ways {
    hub: FaultProxy,
    milo: FaultProxy,
    infra: FaultProxy,
    files: TempDir,
}

impl Ways {
    async fn new(environment: &Environment) -> Result<Self> {
        let files = tempfile::tempdir().context("failed to make a directory")?;
        Ok(Self {
            hub: FaultProxy::start(environment.hub_user()).await?,
            milo: FaultProxy::start(&environment.gateway.kubeconfig(files.path(), Some(users::USER))?).await?,
            infra: FaultProxy::start(environment.home()).await?,
            files,
        })
    }

    fn spec(&self) -> Result<ControllerSpec> {
        let file = |proxy: &FaultProxy, name| proxy.kubeconfig(self.files.path(), name);
        let (infra, hub) = (file(&self.infra, "infra")?, file(&self.hub, "hub")?);
        Ok(ControllerSpec::management(&infra, &hub).milo(&file(&self.milo, "milo")?))
    }

    fn cut(&self) -> Vec<Injected> {
        let silent = [&self.milo, &self.infra].map(|proxy| proxy.inject(Fault::Silent, |_| true));
        // What is held already stays on its way.
        let hub = self.hub.inject(Fault::Silent, |_| true);
        silent.into_iter().chain([hub]).collect()
    }
}

fn with_lease(spec: ControllerSpec) -> ControllerSpec {
    spec.flag("--leader-elect=true")
        .flag(format!("--leader-elect-namespace={}", users::NAMESPACE))
}

pub(crate) async fn bad_terms(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["LHR"], 1)]).await?;
    tenant.in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", replicas(1)).await?;
    let ways = Ways::new(environment).await?;
    environment
        .without_controller(async || {
            environment.without_lease().await?;
            let old = Controller::start(with_lease(ways.spec()?)).await?;
            leader(std::slice::from_ref(&old), SOON).await?;
            let new = Controller::start(with_lease(environment.spec())).await?;
            let mut both = vec![old, new];
            let outcome = cut_off(&tenant, &ways, &mut both).await;
            let outcome = match outcome {
                Ok(()) => flapping(&tenant, &mut both).await,
                failed => failed,
            };
            outcome.with_context(|| {
                let words: Vec<String> = both.iter().map(Controller::last_words).collect();
                words.join("\n\nthe other:\n")
            })
        })
        .await
}

/// The leader is cut off while a write of its is on its way and ten changes come; the other does them all, and what
/// arrives late changes nothing.
async fn cut_off(tenant: &Tenant, ways: &Ways, both: &mut [Controller]) -> Result<()> {
    let is_write = |asked: &Asked| asked.verb == "patch" && asked.name.as_deref() == Some("web-us-lhr");
    let held = ways.hub.inject(Fault::Held, is_write);
    tenant.place("web", &[("us", &["LHR"], 5)]).await?;
    eventually("a write is held", SOON, async || {
        ensure!(held.hits() > 0);
        Ok(())
    })
    .await?;
    let cut = ways.cut();
    for number in 0..CHANGES {
        tenant
            .workload(&format!("late{number}"), &[("us", &["LHR"], 1)])
            .await?;
    }
    tenant.place("web", &[("us", &["LHR"], 7)]).await?;
    for number in 0..CHANGES {
        tenant
            .in_hub(WORKLOAD_DEPLOYMENT, &format!("late{number}-us-lhr"), replicas(1))
            .await?;
    }
    let now = tenant.in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", replicas(7)).await?;
    // It has no permission any more, and a process without it ends.
    let [old, new] = both else { anyhow::bail!("not two") };
    let status = eventually("the old leader ends", SOON, async || old.ended()?.context("it lives")).await?;
    ensure!(!status.success(), "it ended as if it had been told to");
    ensure!(new.health("/readyz").await?.0 == 200, "the new leader is not ready");

    drop(cut);
    let late = held.hits();
    held.lift();
    eventually("what was held has arrived", SOON, async || {
        let codes = [200, 409, 422].map(|code| ways.hub.answered(code, is_write));
        ensure!(codes.iter().sum::<u64>() >= late, "answers: {codes:?}");
        Ok(())
    })
    .await?;
    ensure!(
        ways.hub.answered(200, is_write) == 0,
        "a write of the old leader was taken"
    );
    let after = tenant.now_in_hub("web-us-lhr").await?;
    ensure!(
        after.metadata.resource_version == now.metadata.resource_version,
        "it was written"
    );
    read::expect_at(&after, "/spec/scaleSettings/minReplicas", &json!(7))
}

/// Which of them may write: exactly one, at the end.
async fn leader(replicas: &[Controller], within: Duration) -> Result<usize> {
    eventually("one of them leads", within, async || {
        let mut leaders = Vec::new();
        for (index, replica) in replicas.iter().enumerate() {
            if replica.metric("popcell_leader", &[]).await? > 0.5 {
                leaders.push(index);
            }
        }
        ensure!(leaders.len() == 1, "{leaders:?} lead");
        leaders.first().copied().context("nobody leads")
    })
    .await
}

/// Requests to create a WorkloadDeployment, whatever the server answered.
async fn created(hub: &Plane) -> Result<f64> {
    let with = ["verb=\"POST\"", "resource=\"workloaddeployments\"", "subresource=\"\""];
    Ok(probe::sum_of(&hub.metrics().await?, "apiserver_request_total", &with))
}

/// Each leads in turn, and who has led before leads again; the last is killed. Each Workload is carried once.
async fn flapping(tenant: &Tenant, both: &mut [Controller]) -> Result<()> {
    both[0].start_again().await?;
    let before = created(&tenant.hub).await?;
    for flap in 0..FLAPS {
        let leads = leader(both, SOON).await?;
        let standby = &both[1 - leads];
        ensure!(
            standby.health("/readyz").await?.0 == 200,
            "readiness depends on leading"
        );
        let within = if flap + 1 < FLAPS {
            both[leads].end()?;
            HANDOVER
        } else {
            both[leads].kill()?;
            TAKEOVER
        };
        let since = Instant::now();
        leader(std::slice::from_ref(&both[1 - leads]), within).await?;
        eprintln!("handover: taken over in {:.1} s", since.elapsed().as_secs_f64());
        let name = format!("flap{flap}");
        tenant.workload(&name, &[("us", &["LHR"], 1)]).await?;
        tenant
            .in_hub(WORKLOAD_DEPLOYMENT, &format!("{name}-us-lhr"), |_| Ok(()))
            .await?;
        if flap + 1 < FLAPS {
            both[leads].start_again().await?;
        }
    }
    let creates = created(&tenant.hub).await? - before;
    ensure!(
        creates < f64::from(FLAPS) + 0.5,
        "{creates} creates for {FLAPS} objects"
    );
    Ok(())
}

fn replicas(count: i32) -> impl FnMut(&DynamicObject) -> Result<()> {
    move |one| read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(count))
}
