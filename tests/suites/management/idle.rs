//! A converged state costs no request but for watches that are opened again (there is no Lease in it), and for the look
//! at two records each minute while a cell is absent, as one that earlier tests speak of is.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use popcell_api::conditions::reasons::PROVISIONING_INSTANCES;
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_test_support::kind::WORKLOAD_DEPLOYMENT;
use popcell_test_support::lab::HUB;
use popcell_test_support::probe::requests_by_kind;
use popcell_test_support::{Plane, eventually, users};

use crate::environment::{Environment, INFRA, P1, P2, REQUESTS, SOLO};
use popcell_suites::tenant::{Tenant, available};

const IDLE: Duration = Duration::from_mins(1);
/// What is older waits for something else than that minute.
const YOUNG: Duration = Duration::from_mins(3);
/// Two records, two controllers, and two looks at most in a minute.
const RECORDS: f64 = 8.0;
const WRITES: [&str; 5] = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
/// Written by the servers themselves, and by clients that ask who somebody is.
const NOT_OURS: [&str; 4] = ["leases", "subjectaccessreviews", "tokenreviews", "apiservices"];
/// How Kubernetes' quota controller writes what it has counted, at times of its own. Our writes of quotas are POST, PATCH and DELETE.
const COUNTED: &str = "PUT resourcequotas";
/// What we write in the hub. Others are written there by Karmada, all the time.
const OURS_IN_HUB: [&str; 5] = [
    "namespaces",
    "resourcequotas",
    "workloaddeployments",
    "instances",
    "propagationpolicies",
];

/// Writing requests that a server has had, by resource and verb, whatever it answered.
async fn writes(plane: &Plane, counts: impl Fn(&str) -> bool) -> Result<BTreeMap<String, f64>> {
    let mut found = requests_by_kind(&plane.metrics().await?);
    found.retain(|request, _| {
        let (verb, resource) = request.split_once(' ').unwrap_or_default();
        WRITES.contains(&verb) && counts(resource) && request != COUNTED
    });
    Ok(found)
}

/// Writing requests whoever made them, and all requests but watches of our users.
async fn all_requests(environment: &Environment) -> Result<BTreeMap<String, BTreeMap<String, f64>>> {
    let mut all = BTreeMap::new();
    for name in [INFRA, P1, P2, SOLO] {
        let plane = environment.lab.plane(name).await?;
        let found = writes(&plane, |resource| !NOT_OURS.contains(&resource)).await?;
        all.insert(name.to_owned(), found);
    }
    let hub = environment.lab.hub().await?;
    for plane in [INFRA, P1, P2, SOLO, HUB] {
        let requests = users::requests(&environment.lab.plane(plane).await?, REQUESTS).await?;
        all.entry("requests of ours".to_owned())
            .or_default()
            .insert(plane.to_owned(), requests);
    }
    all.insert(
        "hub".to_owned(),
        writes(&hub, |resource| OURS_IN_HUB.contains(&resource)).await?,
    );
    Ok(all)
}

/// A city without a cell is told a minute after a WorkloadDeployment was made, and earlier tests have made some.
async fn no_object_waits(environment: &Environment) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    for name in [P1, P2, SOLO] {
        for one in environment
            .lab
            .plane(name)
            .await?
            .list(WORKLOAD_DEPLOYMENT, None, "")
            .await?
        {
            let made = one
                .metadata
                .creation_timestamp
                .as_ref()
                .map_or(0, |time| time.0.as_second());
            let is_young = now < u64::try_from(made)? + YOUNG.as_secs();
            let city = read::at(&one, "/spec/cityCode")
                .as_str()
                .unwrap_or_default()
                .to_uppercase();
            let is_served = ["DFW", "ORD"].contains(&city.as_str());
            let waits = available(&one, "False", PROVISIONING_INSTANCES).is_ok();
            ensure!(
                is_served || !is_young || !waits,
                "{:?} in {city} waits",
                one.metadata.name
            );
        }
    }
    Ok(())
}

/// Everything that earlier tests left is watched by both controllers all the while.
pub(crate) async fn quiet(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 1)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.report(&dfw, "web-us-dfw", 1, 1).await?;
    tenant.shown("web-us-dfw", 1).await?;
    eventually("no object waits for a write", YOUNG + SOON, async || {
        no_object_waits(environment).await
    })
    .await?;
    let mut before = all_requests(environment).await?;
    eventually("no plane gets requests any more", SOON, async || {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let now = all_requests(environment).await?;
        let rests = now == before;
        let last = std::mem::replace(&mut before, now);
        ensure!(rests, "{:?}", difference(&last, &before));
        Ok(())
    })
    .await?;
    tokio::time::sleep(IDLE).await;
    let mut requested = difference(&before, &all_requests(environment).await?)
        .into_iter()
        .map(|(plane, request, count)| (plane.to_owned(), request.to_owned(), count))
        .collect::<Vec<_>>();
    requested.retain(|(whose, plane, count)| whose != "requests of ours" || plane != HUB || *count > RECORDS);
    ensure!(requested.is_empty(), "requested while idle: {requested:?}");
    Ok(())
}

fn difference<'a>(
    before: &'a BTreeMap<String, BTreeMap<String, f64>>,
    after: &'a BTreeMap<String, BTreeMap<String, f64>>,
) -> Vec<(&'a str, &'a str, f64)> {
    let mut grown = Vec::new();
    for (plane, requests) in after {
        for (request, count) in requests {
            let old = before
                .get(plane)
                .and_then(|old| old.get(request))
                .copied()
                .unwrap_or_default();
            if (count - old).abs() > 0.5 {
                grown.push((plane.as_str(), request.as_str(), count - old));
            }
        }
    }
    grown
}
