//! A leader that is cut off with a write on its way.

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::{Asked, Controller, ControllerSpec, Fault, FaultProxy, Injected, eventually, users};
use tempfile::TempDir;

use crate::environment::{Environment, P1};
use popcell_suites::tenant::Tenant;

const CHANGES: i32 = 10;

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

pub(crate) async fn cut_off_from_all(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["LHR"], 1)]).await?;
    tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", read::replicas(1))
        .await?;
    let ways = Ways::new(environment).await?;
    environment
        .without_controller(async || {
            let mut old = Controller::start(with_lease(ways.spec()?)).await?;
            eventually("it leads", SOON, async || {
                ensure!(old.metric("popcell_leader", &[]).await? > 0.5);
                Ok(())
            })
            .await?;
            let new = Controller::start(with_lease(environment.spec())).await?;
            let outcome = cut_off(&tenant, &ways, &mut old, &new).await;
            outcome.with_context(|| format!("{}\n\nthe other:\n{}", old.last_words(), new.last_words()))
        })
        .await
}

/// The leader is cut off while a write of its is on its way and ten changes come; the other does them all, and what
/// arrives late changes nothing.
async fn cut_off(tenant: &Tenant, ways: &Ways, old: &mut Controller, new: &Controller) -> Result<()> {
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
            .in_hub(WORKLOAD_DEPLOYMENT, &format!("late{number}-us-lhr"), read::replicas(1))
            .await?;
    }
    let now = tenant
        .in_hub(WORKLOAD_DEPLOYMENT, "web-us-lhr", read::replicas(7))
        .await?;
    // It has no permission any more, and a process without it ends.
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
    read::replicas(7)(&after)
}
