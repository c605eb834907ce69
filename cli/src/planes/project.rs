//! A project as its users reach it: one API server, and the namespace of a context.

use futures::{Stream, StreamExt as _};
use kube::{
    Api,
    api::{DynamicObject, Patch},
    runtime::{WatchStreamExt as _, watcher},
};
use popcell_api::kind::{self, Kind};
use popcell_client::{Addressing, project_url};
use popcell_core::{object::Object, plan::Plane};
use serde_json::Value;

use super::{Answer, Objects, PlaneError, Server, Write, config, no_server};
use crate::{args::workloads as args, exit::Failure};

/// The API server of a project.
pub(crate) struct Project {
    server: Server,
    /// Where Workloads are looked for.
    namespace: String,
}

impl Project {
    /// Reads the kubeconfig. No request is made yet. Without a namespace that of the context counts.
    pub(crate) async fn open(args: &args::Project, namespace: Option<&str>) -> Result<Self, PlaneError> {
        let file = args.kubeconfig.as_deref();
        let mut config = config(file, args.context.clone()).await?;
        if let Some(id) = &args.project {
            let url = project_url(Addressing::Path, &config.cluster_url, id);
            config.cluster_url = url.map_err(|error| no_server(&Plane::Project(id.clone()), &error.to_string()))?;
        }
        let namespace = namespace.unwrap_or(&config.default_namespace).to_owned();
        let server = Server::configured(config, file)?.advising(|code| match code {
            404 => " (is this the project's API server? look at --kubeconfig, --context and --project)",
            _ => "",
        });
        Ok(Self { server, namespace })
    }

    /// Objects in the namespace.
    pub(crate) fn here(&self, kind: Kind) -> Objects<'_> {
        self.server.at(kind, Some(&self.namespace))
    }

    /// Objects in all namespaces.
    pub(crate) fn everywhere(&self, kind: Kind) -> Objects<'_> {
        self.server.at(kind, None)
    }

    /// A Workload as it is now.
    pub(crate) async fn workload(&self, name: &str) -> Result<Object, Failure> {
        let found = self.here(kind::WORKLOAD).get(name).await?;
        found.ok_or_else(|| self.no_workload(name))
    }

    fn no_workload(&self, name: &str) -> Failure {
        let (namespace, server) = (&self.namespace, self.server.name());
        Failure::Usage(format!(
            "workload {name} not found in namespace {namespace} at {server}: give its namespace with -n"
        ))
    }

    /// Changes a Workload. `Ok(Some(failure))`: the server rejects it; where the
    /// patch has tests, one may have failed.
    pub(crate) async fn patch(&self, name: &str, patch: &Patch<Value>) -> Result<Option<Failure>, Failure> {
        let answer = self.here(kind::WORKLOAD).write(name, Write::Patch(patch)).await?;
        let refused = |code, message: &str| {
            let action = format!("patch workload {name}");
            Some(self.server.refusal(&action, code, message).into())
        };
        match answer {
            Answer::Done => Ok(None),
            Answer::Gone => Err(self.no_workload(name)),
            Answer::Changed(message) => Ok(refused(409, &message)),
            Answer::Refused { code, message } => Ok(refused(code, &message)),
        }
    }

    /// All changes of objects in the namespace, after those that are there. Repeats what fails, ever more slowly: who reads
    /// gives up.
    pub(crate) fn changes(
        &self,
        kind: Kind,
        config: watcher::Config,
    ) -> impl Stream<Item = watcher::Result<watcher::Event<DynamicObject>>> + use<> {
        let api =
            Api::<DynamicObject>::namespaced_with(self.server.client().clone(), &self.namespace, &kind.resource());
        watcher::watcher(api, config).default_backoff().boxed()
    }

    /// A request that failed for this reason.
    pub(crate) fn failure(&self, action: &str, reason: &str) -> Failure {
        self.server.failure(action, reason).into()
    }
}
