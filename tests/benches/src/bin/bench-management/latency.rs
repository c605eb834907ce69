//! From a project to the hub, and back.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kube::api::{DynamicObject, PostParams};
use popcell_benches::{MillisSince, StatusWatch, is};
use popcell_test_support::kind::{NAMESPACE, PROPAGATION_POLICY, WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Plane, objects};
use serde_json::json;

use crate::environment::{CITY, Environment, city, id};
use crate::plan::Plan;
use crate::results::Latency;

/// Between one object and the next, for what follows from the first.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Instances that the measured status speaks of.
const DESIRED: i32 = 1000;

/// All times with so many projects engaged. Workloads are left behind in them.
pub(crate) async fn measure(environment: &Environment, plan: &Plan, engaged: usize) -> Result<Vec<Latency>> {
    let mut found = Vec::new();
    let mut hub = Hub::watched(&environment.hub).await?;
    if engaged > 1 {
        let first = first_workloads(environment, &mut hub, plan.samples.min(engaged - 1)).await?;
        found.push(Latency::of(
            "first Workload of a project -> hub WD and policy",
            engaged,
            first,
        ));
    }
    let project = id(0);
    let hub_namespace = hub_namespace(&environment.server, &project).await?;
    create(&environment.server, &project, "warm", CITY).await?;
    hub.deployments
        .of_one(|object| is(object, &hub_namespace, "warm-us-dfw"))
        .await?;
    found.extend(status(environment, plan, engaged, &project, &hub_namespace).await?);

    // At last: these cities have no cluster, which the controller tells of each after a minute.
    let mut to_hub = Vec::new();
    for number in 0..plan.samples {
        let (name, city) = (format!("w{number:04}"), city(number));
        let sent = create(&environment.server, &project, &name, &city).await?;
        to_hub.push(hub.complete(&hub_namespace, &name, &city).await?.millis_since(sent));
        tokio::time::sleep(PAUSE).await;
    }
    found.push(Latency::of("Workload -> hub WD and policy", engaged, to_hub));
    Ok(found)
}

/// In projects that have none yet: the hub namespace is missing, and what projects with Workloads watch is not watched.
async fn first_workloads(environment: &Environment, hub: &mut Hub, count: usize) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for number in 1..=count {
        let project = id(number);
        let hub_namespace = hub_namespace(&environment.server, &project).await?;
        let sent = create(&environment.server, &project, "first", CITY).await?;
        times.push(hub.complete(&hub_namespace, "first", CITY).await?.millis_since(sent));
        tokio::time::sleep(PAUSE).await;
    }
    Ok(times)
}

/// Karmada interprets nothing here, so the hub's status is ours to write.
async fn status(
    environment: &Environment,
    plan: &Plan,
    engaged: usize,
    project: &str,
    hub_namespace: &str,
) -> Result<[Latency; 2]> {
    const NAME: &str = "warm-us-dfw";
    let mut deployments = StatusWatch::of(&environment.server, WORKLOAD_DEPLOYMENT).await?;
    let mut workloads = StatusWatch::of(&environment.server, WORKLOAD).await?;
    let (mut to_deployment, mut to_workload) = (Vec::new(), Vec::new());
    for number in 0..plan.samples {
        let ready = i32::try_from(number)?.saturating_add(1);
        let object = environment
            .hub
            .expect(WORKLOAD_DEPLOYMENT, Some(hub_namespace), NAME)
            .await?;
        let status = objects::cell_status(object.metadata.generation.unwrap_or(1), DESIRED, ready);
        let sent = Instant::now();
        environment
            .hub
            .set_status(WORKLOAD_DEPLOYMENT, Some(hub_namespace), NAME, &status)
            .await?;
        let shows = |object: &DynamicObject, name: &str| {
            is(object, project, name) && object.data.pointer("/status/readyReplicas") == Some(&json!(ready))
        };
        let deployment = deployments.of_one(|object| shows(object, NAME)).await?;
        to_deployment.push(deployment.millis_since(sent));
        let workload = workloads.of_one(|object| shows(object, "warm")).await?;
        to_workload.push(workload.millis_since(sent));
        tokio::time::sleep(PAUSE).await;
    }
    Ok([
        Latency::of("hub status -> WD in the project", engaged, to_deployment),
        Latency::of("hub status -> Workload in the project", engaged, to_workload),
    ])
}

/// What the hub shows.
pub(crate) struct Hub {
    deployments: StatusWatch,
    policies: StatusWatch,
}

impl Hub {
    pub(crate) async fn watched(plane: &Plane) -> Result<Self> {
        Ok(Self {
            deployments: StatusWatch::of(plane, WORKLOAD_DEPLOYMENT).await?,
            policies: StatusWatch::of(plane, PROPAGATION_POLICY).await?,
        })
    }

    /// When both the WorkloadDeployment and the policy of its city were seen.
    pub(crate) async fn complete(&mut self, namespace: &str, workload: &str, city: &str) -> Result<Instant> {
        let policy = objects::city_policy_name(city);
        let one = self.deployment(namespace, workload, city).await?;
        let other = self.policies.of_one(|object| is(object, namespace, &policy)).await;
        let other = other.with_context(|| format!("no policy of {city} in {namespace}"))?;
        Ok(one.max(other))
    }

    /// When the WorkloadDeployment was seen.
    pub(crate) async fn deployment(&mut self, namespace: &str, workload: &str, city: &str) -> Result<Instant> {
        let name = format!("{workload}-us-{}", city.to_lowercase());
        let seen = self.deployments.of_one(|object| is(object, namespace, &name)).await;
        seen.with_context(|| format!("no {name} in {namespace}"))
    }
}

/// Creates a Workload of one placement in one city, and answers when its request was sent.
pub(crate) async fn create(server: &Plane, project: &str, name: &str, city: &str) -> Result<Instant> {
    let workload = objects::workload(project, name, &[("us", &[city], 1)]);
    let workload: DynamicObject = serde_json::from_value(workload).context("failed to make a Workload")?;
    let sent = Instant::now();
    let created = server
        .api(WORKLOAD, Some(project))
        .create(&PostParams::default(), &workload)
        .await;
    created.with_context(|| format!("failed to create Workload {name} in {project}"))?;
    Ok(sent)
}

/// The name of the hub namespace of a project's only one.
pub(crate) async fn hub_namespace(server: &Plane, project: &str) -> Result<String> {
    let namespace = server.expect(NAMESPACE, None, project).await?;
    let uid = namespace.metadata.uid.context("a namespace without uid")?;
    Ok(objects::hub_namespace_name(&uid))
}
