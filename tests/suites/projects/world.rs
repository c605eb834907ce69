//! The world of this suite: one API server with our CRDs and those of others, 300 Projects, and the project gateway.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DynamicObject};
use popcell_api::kind::{self, Kind};
use popcell_suites::suite::Shared;
use popcell_suites::world::SOON;
use popcell_test_support::{Gateway, Lab, LabSpec, Plane, eventually, objects, stand_ins, workspace};
use serde_json::{Value, json};

/// How many projects there are.
pub(crate) const PROJECTS: usize = 300;
/// The server.
const SERVER: &str = "projects";
const OTHERS: [Kind; 3] = [kind::PROJECT, kind::NETWORK, kind::LOCATION_BINDING];

pub(crate) struct World {
    lab: Lab,
    pub(crate) server: Plane,
    pub(crate) gateway: Gateway,
}

impl Shared for World {
    async fn start() -> Result<Self> {
        let lab = Lab::start(&LabSpec::planes(&[SERVER])).await?;
        let server = lab.plane(SERVER).await?;
        definitions(&server).await?;
        stream::iter(0..PROJECTS)
            .map(|number| project(&server, number))
            .buffer_unordered(8)
            .try_collect::<()>()
            .await?;
        let gateway = Gateway::start(&server).await?;
        Ok(Self { lab, server, gateway })
    }

    async fn end(self) -> Result<()> {
        drop(self.gateway);
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

/// The id of a project, which is the name of its only namespace as well.
pub(crate) fn id(number: usize) -> String {
    format!("p{number:03}")
}

async fn definitions(server: &Plane) -> Result<()> {
    let dir = workspace::crds_dir();
    let ours = ["instances", "workloaddeployments", "workloads"];
    for plural in ours {
        let file = dir.join(format!("{}_{plural}.yaml", popcell_api::GROUP));
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        let crd: Value = serde_saphyr::from_str(&text)?;
        server.apply(&crd).await?;
    }
    for kind in OTHERS {
        server.apply(&stand_ins::crd(&kind)?).await?;
    }
    for kind in OTHERS
        .into_iter()
        .chain([kind::WORKLOAD, kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE])
    {
        let api = Api::<DynamicObject>::all_with(server.client().clone(), &kind.resource());
        let look = async || Ok(api.list(&kube::api::ListParams::default()).await?);
        eventually(&format!("{} is served", kind.kind), SOON, look).await?;
    }
    Ok(())
}

async fn project(server: &Plane, number: usize) -> Result<()> {
    server.apply(&objects::namespace(&id(number))).await?;
    create_project(server, &id(number)).await?;
    set_ready(server, &id(number), "True").await
}

/// A Project without status.
pub(crate) async fn create_project(server: &Plane, id: &str) -> Result<()> {
    let api_version = kind::PROJECT.api_version();
    let project = json!({ "apiVersion": api_version, "kind": kind::PROJECT.kind, "metadata": { "name": id } });
    server.apply(&project).await.map(|_| ())
}

/// Sets the condition that discovery reads.
pub(crate) async fn set_ready(server: &Plane, id: &str, status: &str) -> Result<()> {
    let ready = json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Test", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }] });
    let patch = json!({ "status": ready });
    let api = Api::<DynamicObject>::all_with(server.client().clone(), &kind::PROJECT.resource());
    let patched = api
        .patch_status(id, &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&patch))
        .await;
    patched
        .map(|_| ())
        .with_context(|| format!("failed to set the status of project {id}"))
}

/// Watches that the server has established, by group, resource and scope.
pub(crate) async fn watches(server: &Plane) -> Result<BTreeMap<String, usize>> {
    let request = http::Request::get("/metrics").body(Vec::new());
    let request = request.context("failed to make a request")?;
    let metrics = server.client().request_text(request).await?;
    let lines = metrics
        .lines()
        .filter_map(|line| line.strip_prefix("apiserver_longrunning_requests{"));
    let mut found = BTreeMap::new();
    for line in lines.filter(|line| line.contains("verb=\"WATCH\"")) {
        let (labels, count) = line.split_once("} ").context("a metric without value")?;
        let label = |name: &str| {
            let mut values = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
            values
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.trim_end_matches('"'))
        };
        let key = format!(
            "{}/{}",
            label("resource").unwrap_or_default(),
            label("scope").unwrap_or_default()
        );
        let count: f64 = count.parse().context("a metric that is no number")?;
        ensure!((0.0..1e9).contains(&count), "{line}");
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
        let count = count as usize;
        *found.entry(key).or_insert(0) += count;
    }
    ensure!(!found.is_empty(), "the server tells of no watch");
    Ok(found)
}

/// Those over one namespace: through the gateway all watches of namespaced kinds are, and no other program's.
pub(crate) fn of_projects(watches: &BTreeMap<String, usize>, plural: &str) -> usize {
    watches.get(&format!("{plural}/namespace")).copied().unwrap_or_default()
}
