//! One WorkloadDeployment in one cell.

mod autoscaling;
mod data;
mod gates;
mod networking;
mod properties;
mod rejections;
mod rollout;
mod sizes;
mod statuses;
mod templates;

use popcell_api::kind;
use serde_json::{Value, json};

use super::{Networks, Observation, Presence, ReferencedData, awaits_data, decide, judge_data};
use crate::instance_types::Catalogue;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, Plan, Plane};
use crate::references::Reference;
use crate::rejection::Rejection;
use crate::testing::{FakeServers, now, object};

const NAMESPACE: &str = "ns-1";

/// A WorkloadDeployment `web` that asks for so many replicas.
fn deployment(replicas: i64) -> Object {
    object(json!({
        "apiVersion": "compute.datumapis.com/v1alpha", "kind": "WorkloadDeployment",
        "metadata": { "name": "web", "namespace": NAMESPACE, "uid": "wd", "resourceVersion": "1", "generation": 3,
            "finalizers": ["compute.datumapis.com/workload-controller"] },
        "spec": {
            "workloadRef": { "name": "web", "uid": "w" }, "placementName": "us", "cityCode": "DFW",
            "template": template("one"),
            "scaleSettings": { "minReplicas": replicas },
        },
    }))
}

fn template(image: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" }, "annotations": { "note": "n" } },
        "spec": {
            "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" },
                "sandbox": { "containers": [{ "name": "main", "image": image }] } },
            "networkInterfaces": [{ "network": { "name": "default" } }],
        },
    })
}

/// A cell with one WorkloadDeployment, without networking unless a test adds it.
struct Cell {
    servers: FakeServers,
    networking: bool,
    own_namespace_only: bool,
    /// A ConfigMap or Secret of which something else is said than whether it is there.
    unread: Option<(&'static str, Presence)>,
    /// Known where the cell serves autoscalers.
    autoscalers: Observed<()>,
    rejected: Vec<Rejection>,
    elsewhere: Option<Rejection>,
    served: Observed<bool>,
    derived: bool,
    /// In a single cluster the instance types.
    types: Option<Observed<Catalogue>>,
}

impl Cell {
    fn new(replicas: i64) -> Self {
        let mut servers = FakeServers::default();
        servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(replicas));
        Self {
            servers,
            networking: false,
            own_namespace_only: true,
            unread: None,
            autoscalers: Observed::Known(()),
            rejected: Vec::new(),
            elsewhere: None,
            served: Observed::Known(true),
            derived: false,
            types: None,
        }
    }

    fn plan(&self) -> Plan {
        let list = |kind| self.servers.list(&Plane::Cell, kind);
        let (locations, bindings) = (list(kind::LOCATION), list(kind::NETWORK_BINDING));
        let (contexts, claims, subnets) = (
            list(kind::NETWORK_CONTEXT),
            list(kind::SUBNET_CLAIM),
            list(kind::SUBNET),
        );
        let networks = Networks {
            locations: Observed::Known(&locations),
            bindings: Observed::Known(&bindings),
            contexts: Observed::Known(&contexts),
            claims: Observed::Known(&claims),
            subnets: Observed::Known(&subnets),
            own_namespace_only: self.own_namespace_only,
        };
        let Some(deployment) = self.get() else {
            return Plan::default();
        };
        let instances = list(kind::INSTANCE);
        let data = if awaits_data(deployment, &instances) {
            judge_data(deployment, |one| self.presence(one))
        } else {
            ReferencedData::Unknown
        };
        decide(&Observation {
            deployment,
            instances: &instances,
            data: &data,
            served: self.served,
            derived: self.derived,
            types: self.types.as_ref().map(Observed::as_ref),
            networks: self.networking.then_some(networks),
            autoscaler: self.autoscaler(),
            rejected: &self.rejected,
            elsewhere: self.elsewhere.as_ref(),
            now: now(),
        })
    }

    fn presence(&self, one: &Reference) -> Presence {
        match &self.unread {
            Some((name, presence)) if *name == one.name => presence.clone(),
            _ => Presence::of(self.servers.get(&Plane::Cell, one.kind, NAMESPACE, &one.name)),
        }
    }

    fn autoscaler(&self) -> Observed<Option<&Object>> {
        let found = self
            .servers
            .get(&Plane::Cell, kind::HORIZONTAL_POD_AUTOSCALER, NAMESPACE, "web");
        match self.autoscalers {
            Observed::Known(()) => Observed::Known(found),
            Observed::Unknown => Observed::Unknown,
        }
    }

    fn get(&self) -> Option<&Object> {
        self.servers
            .get(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, "web")
    }

    fn edit(&mut self, change: impl FnOnce(&mut Object)) {
        self.servers
            .change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NAMESPACE, "web", change);
    }

    fn instance(&self, ordinal: i64) -> Option<&Object> {
        let name = format!("web-{ordinal}");
        self.servers.get(&Plane::Cell, kind::INSTANCE, NAMESPACE, &name)
    }

    fn edit_instance(&mut self, ordinal: i64, change: impl FnOnce(&mut Object)) {
        let name = format!("web-{ordinal}");
        self.servers
            .change(&Plane::Cell, kind::INSTANCE, NAMESPACE, &name, change);
    }

    /// The provider runs an Instance, or finds that it cannot.
    fn report(&mut self, ordinal: i64, ready: bool) {
        self.edit_instance(ordinal, |one| run(one, ready));
    }

    /// One reconcile; what it did to Instances, such as `create web-0`.
    fn reconcile(&mut self) -> Vec<String> {
        let plan = self.plan();
        self.servers.apply(&plan);
        done(&plan)
    }

    /// Reconciles until nothing is left to do but to wait. Returns what they did to Instances.
    fn settle(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        for _ in 0..20 {
            let plan = self.plan();
            if plan.is_unchanged() {
                return all;
            }
            self.servers.apply(&plan);
            all.extend(done(&plan));
        }
        panic!("not settled: {:#?}", self.plan());
    }

    /// So many replicas that run the template of today.
    fn running(replicas: i64) -> Self {
        let mut cell = Self::new(replicas);
        for ordinal in 0..replicas {
            cell.settle();
            cell.report(ordinal, true);
        }
        cell.settle();
        cell
    }
}

/// A provider's status: it echoes the hash.
fn run(instance: &mut Object, ready: bool) {
    let hash = instance
        .text("/spec/controller/templateHash")
        .unwrap_or_default()
        .to_owned();
    let truth = if ready { "True" } else { "False" };
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({ "type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    instance.data["status"] = json!({
        "controller": { "observedTemplateHash": hash },
        "conditions": [
            condition("Programmed", "True", "Programmed"),
            condition("QuotaGranted", "True", "QuotaAvailable"),
            condition("Ready", truth, if ready { "Available" } else { "InstanceCrashing" }),
        ],
    });
}

fn done(plan: &Plan) -> Vec<String> {
    let of_instances = |action: &&Action| action.target().kind == kind::INSTANCE;
    plan.actions
        .iter()
        .filter(of_instances)
        .map(|action| {
            let verb = match action {
                Action::Create { .. } => "create",
                Action::Patch(_) => "patch",
                Action::Delete(_) => "delete",
            };
            format!("{verb} {}", action.target().name)
        })
        .collect()
}
