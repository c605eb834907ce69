//! Projects whose servers do not answer, beside others.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_suites::definitions::ready_project;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_suites::steps::gone;
use popcell_test_support::kind::{NAMESPACE, PROJECT, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Fault, Injected, always, eventually};
use serde_json::json;

use crate::environment::{Environment, INFRA, P1, P2, P3, WATCHED};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-lhr";
/// One that the hub loses meanwhile.
const LOST: &str = "lost-us-lhr";
/// After so long a server that does not answer is asked rarely.
const SETTLED: Duration = Duration::from_secs(20);
/// How long requests are counted, and how many one project may cost in that time: fewer than one a second.
const COUNTED: Duration = Duration::from_secs(10);
const FEW: u64 = 10;
/// Lines of the log about one project in all that time.
const LINES: usize = 60;

/// A project with trouble: what its hub side was before.
struct Troubled {
    id: &'static str,
    tenant: Tenant,
    carried: DynamicObject,
}

impl Troubled {
    async fn new(environment: &Environment, id: &'static str, namespace: &str) -> Result<Self> {
        let tenant = Tenant::new(&environment.lab, id, namespace).await?;
        for name in ["web", "old", "lost"] {
            tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
        }
        tenant.in_hub(WORKLOAD_DEPLOYMENT, "old-us-lhr", |_| Ok(())).await?;
        tenant.in_hub(WORKLOAD_DEPLOYMENT, LOST, |_| Ok(())).await?;
        let carried = tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, |_| Ok(())).await?;
        Ok(Self { id, tenant, carried })
    }

    /// Everything that is asked of this project meets the fault, and what runs ends.
    fn breaks(&self, environment: &Environment, fault: Fault) -> Injected {
        let id = self.id;
        let injected = environment.to_milo.inject(fault, move |asked| asked.is_of(id));
        environment.to_milo.cut();
        injected
    }

    async fn disturb(&self) -> Result<()> {
        self.tenant.place("web", &[("us", &["LHR"], 2)]).await?;
        self.tenant.delete(WORKLOAD, "old").await?;
        let (hub, here) = (&self.tenant.hub, Some(self.tenant.below.as_str()));
        hub.delete(WORKLOAD_DEPLOYMENT, here, LOST).await
    }

    async fn stands(&self) -> Result<()> {
        let now = self.tenant.now_in_hub(NAME).await?;
        ensure!(read::uid(&now) == read::uid(&self.carried) && now.metadata.deletion_timestamp.is_none());
        let old = self.tenant.now_in_hub("old-us-lhr").await?;
        ensure!(old.metadata.deletion_timestamp.is_none());
        self.tenant.hub_namespace_object().await.map(|_| ())
    }

    fn asked(&self, environment: &Environment) -> u64 {
        environment.to_milo.count(|asked| asked.is_of(self.id))
    }

    async fn lines(&self, environment: &Environment) -> usize {
        let about = format!("project {}", self.id);
        let log = environment.controller.lock().await.log();
        log.lines().filter(|line| line.contains(&about)).count()
    }
}

/// One answers 404 for all that is below its path, and its Project goes meanwhile; the other hangs up.
pub(crate) async fn beside_others(environment: &Environment, namespace: &str) -> Result<()> {
    let infra = environment.lab.plane(INFRA).await?;
    ready_project(&infra, P3).await?;
    let healthy = Tenant::new(&environment.lab, P1, namespace).await?;
    let hung_up = Troubled::new(environment, P2, namespace).await?;
    let lost = Troubled::new(environment, P3, namespace).await?;
    let before = [hung_up.lines(environment).await, lost.lines(environment).await];
    let broken = hung_up.breaks(environment, Fault::HungUp);
    let missing = lost.breaks(environment, Fault::not_served());
    for troubled in [&hung_up, &lost] {
        troubled.disturb().await?;
    }
    let first = carried_and_healed(&healthy, "first");
    let rests = async {
        tokio::time::sleep(SETTLED).await;
        let asked = [hung_up.asked(environment), lost.asked(environment)];
        tokio::time::sleep(COUNTED).await;
        Ok([
            hung_up.asked(environment) - asked[0],
            lost.asked(environment) - asked[1],
        ])
    };
    let (asked, ()) = tokio::try_join!(rests, first)?;
    eprintln!("broken: {asked:?} requests in {COUNTED:?}");
    ensure!(
        asked.iter().all(|count| *count <= FEW),
        "{asked:?} requests in {COUNTED:?}"
    );
    carried_and_healed(&healthy, "second").await?;
    for (troubled, before) in [&hung_up, &lost].into_iter().zip(before) {
        troubled.stands().await.with_context(|| troubled.id)?;
        let lines = troubled.lines(environment).await - before;
        ensure!(lines <= LINES, "{lines} lines about {}", troubled.id);
    }

    broken.lift();
    let two = |one: &DynamicObject| read::expect_at(one, "/spec/scaleSettings/minReplicas", &json!(2));
    let now = hung_up.tenant.in_hub(WORKLOAD_DEPLOYMENT, NAME, two).await?;
    ensure!(read::uid(&now) == read::uid(&hung_up.carried), "it was recreated");
    hung_up.tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "old-us-lhr").await?;
    let again = hung_up.tenant.in_hub(WORKLOAD_DEPLOYMENT, LOST, |_| Ok(())).await?;
    ensure!(
        again.metadata.deletion_timestamp.is_none(),
        "what the hub lost is not made again"
    );

    always("a path without a server proves nothing", WATCHED, async || {
        lost.stands().await
    })
    .await?;
    infra.delete(PROJECT, None, P3).await?;
    gone(&lost.tenant.hub, NAMESPACE, "", &lost.tenant.below).await?;
    missing.lift();
    ready_project(&infra, P3).await
}

/// A Workload reaches the hub, and a WorkloadDeployment that is deleted by hand is made again.
async fn carried_and_healed(tenant: &Tenant, name: &str) -> Result<()> {
    tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
    let deployment = format!("{name}-us-lhr");
    tenant.in_hub(WORKLOAD_DEPLOYMENT, &deployment, |_| Ok(())).await?;
    let deleted = tenant.in_project(WORKLOAD_DEPLOYMENT, &deployment, |_| Ok(())).await?;
    tenant.delete(WORKLOAD_DEPLOYMENT, &deployment).await?;
    eventually("it is made again", SOON, async || {
        let now = tenant
            .project
            .expect(WORKLOAD_DEPLOYMENT, Some(&tenant.namespace), &deployment)
            .await?;
        ensure!(read::uid(&now) != read::uid(&deleted), "it is the old one");
        Ok(())
    })
    .await
}
