//! The environment of this suite: one API server with our CRDs and those of others, 300 Projects, the project
//! gateway, and a Karmada without members.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use popcell_api::kind::{self, Kind};
use popcell_suites::definitions::{define, ready_project};
use popcell_suites::suite::Shared;
use popcell_test_support::probe::{label, samples};
use popcell_test_support::{ControllerSpec, Gateway, Lab, LabSpec, Plane, objects};

/// How many projects there are.
pub(crate) const PROJECTS: usize = 300;
/// The server.
pub(crate) const SERVER: &str = "projects";
const OTHERS: [Kind; 4] = [
    kind::PROJECT,
    kind::NETWORK,
    kind::LOCATION_BINDING,
    kind::RESOURCE_CLAIM,
];

pub(crate) struct Environment {
    pub(crate) lab: Lab,
    pub(crate) server: Plane,
    pub(crate) gateway: Gateway,
}

impl Shared for Environment {
    async fn start() -> Result<Self> {
        let lab = Lab::start(&LabSpec::karmada().plane(SERVER)).await?;
        let server = lab.plane(SERVER).await?;
        define(&server, &OTHERS).await?;
        each(0..PROJECTS, async |number| project(&server, number).await).await?;
        let gateway = Gateway::start(&server).await?;
        Ok(Self { lab, server, gateway })
    }

    async fn end(self) -> Result<()> {
        drop(self.gateway);
        self.lab.expect_alive().await?;
        self.lab.end().await
    }
}

impl Environment {
    /// The controller of all projects, which reaches them through a gateway and the hub as a user.
    pub(crate) fn spec(&self, milo: &Path, hub: &Path) -> ControllerSpec {
        ControllerSpec::management(self.server.kubeconfig(), hub).milo(milo)
    }

    /// Makes a Workload of one replica in a project.
    pub(crate) async fn create(&self, project: &str, name: &str) -> Result<()> {
        let workload = objects::workload(project, name, &[("us", &["DFW"], 1)]);
        self.server.create(&workload, false).await.map(|_| ())
    }

    /// Deletes a Workload of a project.
    pub(crate) async fn delete(&self, project: &str, name: &str) -> Result<()> {
        self.server.delete(kind::WORKLOAD, Some(project), name).await
    }
}

/// Acts on many, some at once.
pub(crate) async fn each(numbers: impl Iterator<Item = usize>, act: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
    let act = &act;
    stream::iter(numbers)
        .map(|number| async move { act(number).await })
        .buffer_unordered(8)
        .try_collect()
        .await
}

/// The id of a project, which is the name of its only namespace as well.
pub(crate) fn id(number: usize) -> String {
    format!("p{number:03}")
}

async fn project(server: &Plane, number: usize) -> Result<()> {
    server.apply(&objects::namespace(&id(number))).await?;
    ready_project(server, &id(number)).await
}

/// Watches that the server has established, by resource and scope.
pub(crate) async fn watches(server: &Plane) -> Result<BTreeMap<String, usize>> {
    let page = server.metrics().await?;
    let mut found = BTreeMap::new();
    for (labels, count) in samples(&page, "apiserver_longrunning_requests") {
        if label(labels, "verb") == Some("WATCH") {
            let [resource, scope] = ["resource", "scope"].map(|name| label(labels, name).unwrap_or_default());
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "there are few")]
            let count = count as usize;
            *found.entry(format!("{resource}/{scope}")).or_insert(0) += count;
        }
    }
    ensure!(!found.is_empty(), "the server tells of no watch");
    Ok(found)
}

/// Those over one namespace: through the gateway all watches of namespaced kinds are, and no other program's.
pub(crate) fn of_projects(watches: &BTreeMap<String, usize>, plural: &str) -> usize {
    watches.get(&format!("{plural}/namespace")).copied().unwrap_or_default()
}
