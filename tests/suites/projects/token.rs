//! The token for the hub is garbage for a while.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use popcell_suites::environment::SOON;
use popcell_test_support::lab::HUB;
use popcell_test_support::{Controller, eventually, kubeconfig, objects, users};
use serde_json::json;

use crate::environment::{Environment, id};
use crate::program::{arrived, known};

/// What was refused must be taken so soon after the token is good again.
const GOOD_AGAIN: Duration = Duration::from_secs(30);
const PROJECT: usize = 42;

fn put(file: &Path, token: &str) -> Result<()> {
    std::fs::write(file, token).with_context(|| format!("failed to write {}", file.display()))
}

/// Refused, it goes on asking at growing intervals, and needs no restart when the token is good again.
pub(crate) async fn garbage_for_a_while(environment: &Environment, _: &str) -> Result<()> {
    let files = tempfile::tempdir()?;
    users::of_hub(&environment.lab, files.path()).await?;
    let hub = environment.lab.hub().await?;
    let token = hub.token(users::NAMESPACE, users::HUB_ACCOUNT).await?;
    let file = files.path().join("token");
    put(&file, &token)?;
    let user = json!({ "tokenFile": file });
    let document = kubeconfig::document(environment.lab.url(HUB)?, Some(environment.lab.ca_file()), &user);
    let hub_user = kubeconfig::write(files.path(), "hub-by-file", &document)?;
    let milo = environment.gateway.kubeconfig(files.path(), None)?;

    let project = id(PROJECT);
    environment.server.apply(&objects::location_binding("DFW")).await?;
    environment.server.apply(&objects::network(&project, "default")).await?;
    let mut controller = Controller::start(environment.spec(&milo, &hub_user)).await?;
    known(&controller).await?;
    environment.create(&project, "web-0").await?;
    arrived(environment, &hub, &project, 1).await?;

    put(&file, "garbage")?;
    let mut made = 1;
    eventually("the hub refuses", SOON, async || {
        environment.create(&project, &format!("web-{made}")).await?;
        made += 1;
        tokio::time::sleep(Duration::from_secs(3)).await;
        ensure!(refused(&controller).await? > 0.5, "{made} were carried");
        Ok(())
    })
    .await?;
    controller.expect_alive()?;
    put(&file, &token)?;
    tokio::time::timeout(GOOD_AGAIN, arrived(environment, &hub, &project, made))
        .await
        .context("the good token is not used")??;
    let before = refused(&controller).await?;
    environment.create(&project, "late").await?;
    arrived(environment, &hub, &project, made + 1).await?;
    let after = refused(&controller).await?;
    ensure!((after - before).abs() < 0.5, "refused {} times more", after - before);

    for name in (0..made)
        .map(|number| format!("web-{number}"))
        .chain(["late".to_owned()])
    {
        environment.delete(&project, &name).await?;
    }
    arrived(environment, &hub, &project, 0).await?;
    controller.end()
}

async fn refused(controller: &Controller) -> Result<f64> {
    controller
        .metric("popcell_writes_total", &["plane_kind=\"hub\"", "code=\"401\""])
        .await
}
