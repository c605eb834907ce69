//! The token of a cell for projects is garbage for a while.

use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::kind::RESOURCE_CLAIM;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read::says;
use popcell_test_support::kind::INSTANCE;
use popcell_test_support::{Plane, always, eventually, users};
use tokio::time::sleep;

use crate::environment::{Environment, P1, WATCHED, put_token};
use popcell_suites::tenant::Tenant;

const CITY: &[&str] = &["DFW"];
/// What was refused must be taken so soon after the token is good again.
const GOOD_AGAIN: Duration = Duration::from_secs(30);
/// What is nobody's.
const GARBAGE: &str = "garbage";
/// Requests that are no storm while [`WATCHED`]: those of a few Instances that rest longer and longer, and of the watch.
const BOUNDED: u64 = 50;

/// What was granted runs on, what is new waits and says why, and nothing needs a restart when the token is good again.
pub(crate) async fn garbage_for_a_while(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    let cell = environment.lab.plane(DFW).await?;
    tenant.runs("web", CITY, 2).await?;
    let pid = environment.cells[0].lock().await.pid();
    environment.gateway.revoke(GARBAGE);
    put_token(&environment.tokens[0], GARBAGE)?;
    let meanwhile = meanwhile(environment, &tenant, &cell).await;
    put_token(&environment.tokens[0], &users::cell(DFW))?;
    let made = meanwhile?;

    let mut claimed: Vec<String> = (0..made)
        .map(|number| format!("instance-late-{number}-us-dfw-0"))
        .collect();
    claimed.extend(["instance-web-us-dfw-0", "instance-web-us-dfw-1"].map(str::to_owned));
    claimed.sort();
    eventually("what was refused is claimed", GOOD_AGAIN, async || {
        let claims = tenant.names_in_project(RESOURCE_CLAIM).await?;
        ensure!(claims == claimed, "{claims:?}, not {claimed:?}");
        Ok(())
    })
    .await?;
    for number in 0..made {
        tenant.ready(&format!("late-{number}"), 1).await?;
    }
    tenant.ready("web", 2).await?;
    let mut controller = environment.cells[0].lock().await;
    controller.expect_alive()?;
    ensure!(controller.pid() == pid, "it was restarted");
    drop(controller);
    for number in 0..made {
        tenant.clean(&format!("late-{number}")).await?;
    }
    tenant.claims_are(&["web-us-dfw-0", "web-us-dfw-1"]).await
}

/// While the token is garbage; answers how many Workloads were made.
async fn meanwhile(environment: &Environment, tenant: &Tenant, cell: &Plane) -> Result<usize> {
    let proxy = &environment.to_projects[0];
    let before = tenant.instances(cell).await?;
    let mut made = 0;
    // A claim, or the watch of claims if its time is over just then, which holds up all claims.
    eventually("the project refuses the token", SOON, async || {
        tenant.deploy(&format!("late-{made}"), CITY, 1, |_| {}).await?;
        made += 1;
        sleep(Duration::from_secs(3)).await;
        let refused = proxy.answered(401, |asked| asked.plural == RESOURCE_CLAIM.plural);
        ensure!(refused > 0, "of {made} claims none was refused");
        Ok(())
    })
    .await?;
    // The last of them may have its claim since before that.
    tenant.deploy(&format!("late-{made}"), CITY, 1, |_| {}).await?;
    made += 1;
    let late = format!("late-{}-us-dfw-0", made - 1);
    let waits = |one: &kube::api::DynamicObject| {
        says(one, "QuotaGranted", "False", "QuotaBackendUnavailable")?;
        says(one, "Ready", "False", "PendingQuota")
    };
    tenant.instance(cell, &late, waits).await?;
    tenant.in_project(INSTANCE, &late, waits).await?;
    // The watch is refused too when it has to restart.
    let taken = claimed(environment, &tenant.namespace, 201);
    proxy.cut();
    eventually("the watch is refused", SOON, async || {
        let refused = proxy.answered(401, |asked| asked.plural == RESOURCE_CLAIM.plural && !asked.writes());
        ensure!(refused > 0, "it is not");
        Ok(())
    })
    .await?;
    let asked = || proxy.count(|asked| asked.is_of(P1));
    let so_far = asked();
    always("what was granted runs on", WATCHED, async || {
        let now = tenant.instances(cell).await?;
        ensure!(before.iter().all(|one| now.contains(one)), "{now:?}");
        tenant.all_ready(cell, &["web-us-dfw-0", "web-us-dfw-1"]).await?;
        waits(&cell.expect(INSTANCE, Some(&tenant.below), &late).await?)
    })
    .await?;
    let asked = asked() - so_far;
    ensure!(asked < BOUNDED, "{asked} requests in {WATCHED:?}");
    ensure!(
        claimed(environment, &tenant.namespace, 201) == taken,
        "the old token is used again"
    );
    Ok(made)
}

/// Claims of the namespace whose creation was answered so.
fn claimed(environment: &Environment, namespace: &str, code: u16) -> u64 {
    environment.to_projects[0].answered(code, |asked| {
        asked.verb == "create" && asked.plural == RESOURCE_CLAIM.plural && asked.is_within(namespace)
    })
}
