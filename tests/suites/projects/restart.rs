//! The program is restarted over many projects, one of which has many objects.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_api::conditions::AVAILABLE;
use popcell_api::conditions::reasons::NO_MATCHING_LOCATION;
use popcell_api::kind;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_test_support::probe::requests_by_kind;
use popcell_test_support::{Controller, Gateway, Plane, eventually, objects, users};

use crate::environment::{Environment, PROJECTS, each, id};
use crate::program::{arrived, known};

/// The project that has many Workloads, and how many.
const LOUD: usize = 41;
const MANY: usize = 300;
/// Projects that have one.
const SINGLE: Range<usize> = 100..160;
/// Those that gain one while nobody looks.
const NEW: Range<usize> = 160..180;
const USER: &str = "popcell-restart";
const QUIET: Duration = Duration::from_secs(3);
/// Lists of what an idle project is watched for, and one of claims that a removed cell may have left; and lists of what a
/// project with a Workload is watched for besides.
const LISTS: usize = 2 + 1;
const MORE_LISTS: usize = 3;
/// Live reads of a Namespace that has work, however many objects are in it: one by each reconciler that needs it, where none waits
/// for the answer to another.
const OF_ONE_NAMESPACE: usize = 5;
/// Writes that one new Workload of one city leads to on its project's server: finalizers, the WorkloadDeployment, statuses;
/// and room for conflicts.
const OF_ONE_NEW: usize = 8;

/// What changed meanwhile is carried; what did not change is neither written nor read one by one.
pub(crate) async fn frugal(environment: &Environment, _: &str) -> Result<()> {
    let verbs = ["get", "list", "create", "update", "patch", "delete"];
    let server = users::administrator(&environment.lab, &environment.server, USER, USER, &verbs).await?;
    let gateway = Gateway::start(&server).await?;
    let files = tempfile::tempdir()?;
    let milo = gateway.kubeconfig(files.path(), None)?;
    environment.server.apply(&objects::location_binding("DFW")).await?;
    let all = || [LOUD].into_iter().chain(SINGLE).chain(NEW);
    each(all(), async |number| {
        environment
            .server
            .apply(&objects::network(&id(number), "default"))
            .await
            .map(|_| ())
    })
    .await?;
    each(0..MANY, async |number| {
        environment.create(&id(LOUD), &format!("web-{number}")).await
    })
    .await?;
    each(SINGLE, async |number| environment.create(&id(number), "web").await).await?;

    let hub = environment.lab.hub().await?;
    let spec = environment.spec(&milo, environment.lab.kubeconfig("hub")?);
    let mut controller = Controller::start(spec).await?;
    arrived(environment, &hub, &id(LOUD), MANY).await?;
    each(SINGLE, async |number| arrived(environment, &hub, &id(number), 1).await).await?;
    told_unserved(environment, MANY + SINGLE.len()).await?;
    quiet(&environment.server).await?;
    controller.end()?;

    let versions = versions(environment, &hub).await?;
    each(NEW, async |number| environment.create(&id(number), "web").await).await?;
    let before = requests(&environment.server).await?;
    let all_before = requests_by_kind(&environment.server.metrics().await?);
    controller.start_again().await?;
    known(&controller).await?;
    each(NEW, async |number| arrived(environment, &hub, &id(number), 1).await).await?;
    quiet(&environment.server).await?;
    let cost = requests(&environment.server).await? - before;
    let mut of_all = requests_by_kind(&environment.server.metrics().await?);
    for (request, count) in &mut of_all {
        *count -= all_before.get(request).copied().unwrap_or_default();
    }
    of_all.retain(|_, count| *count > 0.5);
    eprintln!("restart: {cost} requests over {PROJECTS} projects; with those of others {of_all:?}");
    let now = self::versions(environment, &hub).await?;
    let written = versions.iter().filter(|(key, version)| now.get(*key) != Some(*version));
    let written: Vec<&String> = written.map(|(key, _)| key).collect();
    ensure!(written.is_empty(), "written, and not changed: {written:?}");
    let busy = 1 + SINGLE.len() + NEW.len();
    let most = 1 + LISTS * PROJECTS + (MORE_LISTS + OF_ONE_NAMESPACE) * busy + OF_ONE_NEW * NEW.len();
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    let most = most as f64;
    ensure!(cost <= most, "{cost} requests, of at most {most}");

    each(0..MANY, async |number| {
        environment.delete(&id(LOUD), &format!("web-{number}")).await
    })
    .await?;
    each(SINGLE.chain(NEW), async |number| {
        environment.delete(&id(number), "web").await
    })
    .await?;
    each(all(), async |number| arrived(environment, &hub, &id(number), 0).await).await?;
    controller.end()
}

async fn requests(server: &Plane) -> Result<f64> {
    users::requests(server, USER).await
}

/// Waits until nothing is requested any more.
async fn quiet(server: &Plane) -> Result<()> {
    let mut before = requests(server).await?;
    eventually("nothing is requested", SOON, async || {
        tokio::time::sleep(QUIET).await;
        let now = requests(server).await?;
        let more = now - std::mem::replace(&mut before, now);
        ensure!(more < 0.5, "{more} more");
        Ok(())
    })
    .await
}

/// The city has no cell, which is told a minute after an object was made; then nobody is owed a write any more.
async fn told_unserved(environment: &Environment, count: usize) -> Result<()> {
    eventually("all say that nobody serves their city", SOON * 2, async || {
        let all = environment.server.list(kind::WORKLOAD_DEPLOYMENT, None, "").await?;
        let reported = all.iter().filter(|one| {
            let condition = read::condition(one, AVAILABLE);
            condition.is_ok_and(|condition| condition["reason"] == NO_MATCHING_LOCATION)
        });
        let reported = reported.count();
        ensure!(reported == count, "{reported} of {count}");
        Ok(())
    })
    .await
}

/// Versions of all that we write, on both servers.
async fn versions(environment: &Environment, hub: &Plane) -> Result<BTreeMap<String, Option<String>>> {
    let mut found = BTreeMap::new();
    for (plane, kind) in [
        (&environment.server, kind::WORKLOAD),
        (&environment.server, kind::WORKLOAD_DEPLOYMENT),
        (hub, kind::WORKLOAD_DEPLOYMENT),
        (hub, kind::PROPAGATION_POLICY),
    ] {
        for one in plane.list(kind, None, "").await? {
            let uid = one.metadata.uid.unwrap_or_default();
            found.insert(
                format!("{} {uid} on {}", kind.kind, plane.name()),
                one.metadata.resource_version,
            );
        }
    }
    Ok(found)
}
