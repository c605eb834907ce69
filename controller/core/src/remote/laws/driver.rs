//! One cell, its hub and its project, driven by all reconciles over a few names in any order.
//!
//! The cell itself is played: Instances come and go, and gates open as the cell's other reconcilers would open them.

mod around;
mod jobs;

use std::collections::BTreeMap;

use popcell_api::{annotations, kind, labels};
use serde_json::{Value, json};

use crate::object::{Fields, Object};
use crate::plan::{Action, CONFIG_MAP, NAMESPACE, Plan, Plane};
use crate::remote::claim::Quota;
use crate::remote::{claim, projects};
use crate::removed_cells::{self, Source};
use crate::testing::{FakeServers, Key, object};

pub(super) const SLOTS: usize = 3;
const NS: &str = "ns-n1";
const PROGRAM: &str = "popcell-system";
const US: Source<'static> = Source {
    name: "dfw-01",
    id: "uid-dfw",
};

/// What happens around the reconciles.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The WorkloadDeployment asks for so many.
    Scale(usize),
    /// An Instance is made in a slot, where there is none.
    Make(usize),
    /// The Instance of a slot goes.
    End(usize),
    /// Its gate opens, if it is granted.
    Open(usize),
    /// Its provider reports.
    Report(usize, bool),
    /// New Instances are large, or small.
    Resize(bool),
    /// The hub is there.
    Hub(bool),
    /// The project is there.
    Project(bool),
    /// Another WorkloadDeployment takes the place of this one, with all it had.
    Replace,
    /// Somebody takes the label of the source off copy and claim.
    TakeOff(usize),
}

pub(super) struct Driver {
    pub(super) servers: FakeServers,
    hub: bool,
    project: bool,
    large: bool,
    lives: u32,
}

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

fn slot(index: usize) -> String {
    format!("web-{index}")
}

impl Driver {
    pub(super) fn new() -> Self {
        let mut servers = FakeServers::default();
        let labels = json!({ "meta.datumapis.com/upstream-cluster-name": "cluster-p",
            "meta.datumapis.com/upstream-namespace": "default" });
        let namespace = object(json!({ "metadata": { "name": NS, "uid": "ns", "labels": labels } }));
        servers.put(&Plane::Hub, NAMESPACE, namespace.clone());
        servers.put(&Plane::Cell, NAMESPACE, namespace);
        let mut driver = Self {
            servers,
            hub: true,
            project: true,
            large: false,
            lives: 0,
        };
        driver.bring_deployment(SLOTS);
        driver
    }

    /// Steps, with reconciles of the schedule spread between them: (which job, how many writes before the process dies).
    pub(super) fn run(&mut self, steps: &[Step], schedule: &[(usize, usize)]) {
        let share = schedule.len().div_ceil(steps.len().max(1));
        for (index, step) in steps.iter().enumerate() {
            self.step(step);
            for (which, writes) in schedule.iter().skip(index * share).take(share) {
                let jobs = jobs::all();
                let plan = self.decide(jobs[which % jobs.len()]);
                self.apply(&plan, *writes);
            }
        }
    }

    /// All planes are there, the cell has done its part, and no reconciler has anything to do.
    pub(super) fn converge(&mut self) {
        (self.hub, self.project) = (true, true);
        let deployment = self
            .servers
            .get(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NS, "web")
            .unwrap();
        let wanted = usize::try_from(crate::slots::desired(deployment)).unwrap();
        for index in 0..SLOTS {
            self.step(&if index < wanted {
                Step::Make(index)
            } else {
                Step::End(index)
            });
        }
        self.settle();
        for index in 0..SLOTS {
            self.step(&Step::Open(index));
        }
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        for _ in 0..10 {
            let before = self.servers.writes;
            for job in jobs::all() {
                let plan = self.decide(job);
                self.apply(&plan, usize::MAX);
            }
            if self.servers.writes == before {
                return;
            }
        }
        panic!("not settled: {:#?}", self.plans());
    }

    pub(super) fn plans(&self) -> Vec<Plan> {
        jobs::all().into_iter().map(|job| self.decide(job)).collect()
    }

    /// Names of Instances with the size of each.
    pub(super) fn instances(&self) -> BTreeMap<String, bool> {
        let all = self.servers.list(&Plane::Cell, kind::INSTANCE);
        all.iter().map(|one| (one.name().to_owned(), is_large(one))).collect()
    }

    pub(super) fn copies(&self) -> BTreeMap<String, bool> {
        let all = self.servers.list(&Plane::Hub, kind::INSTANCE);
        all.iter().map(|one| (one.name().to_owned(), is_large(one))).collect()
    }

    pub(super) fn claims(&self) -> BTreeMap<String, bool> {
        let all = self.servers.list(&project(), kind::RESOURCE_CLAIM);
        let named = |one: &&Object| {
            let (_, name) = claim::instance_of(one).unwrap();
            (name.to_owned(), one.int("/spec/requests/1/amount") == Some(2000))
        };
        all.iter().map(named).collect()
    }

    /// What is remote, without what is chance: uids, versions, generations.
    pub(super) fn picture(&self) -> BTreeMap<Key, Value> {
        let remote = |key: &Key| key.1 == CONFIG_MAP.kind || key.0 != Plane::Cell;
        let drawn = |object: &Object| {
            let meta = &object.metadata;
            let mut data = object.data.clone();
            for condition in data["status"]["conditions"].as_array_mut().into_iter().flatten() {
                condition["observedGeneration"] = json!(null);
            }
            json!([meta.labels, meta.annotations, meta.owner_references, data])
        };
        // Whether an empty record is there is history.
        let said = |object: &Object| object.data != json!({ "data": {} });
        let all = self.servers.all().filter(|(key, object)| remote(key) && said(object));
        all.map(|(key, object)| (key.clone(), drawn(object))).collect()
    }

    fn bring_deployment(&mut self, replicas: usize) {
        self.lives += 1;
        let (cell, hub) = (format!("cell-{}", self.lives), format!("hub-{}", self.lives));
        let deployment = json!({ "metadata": { "name": "web", "namespace": NS, "uid": cell, "resourceVersion": "1",
            "annotations": { annotations::RESOURCE_TEMPLATE_UID: hub } },
            "spec": { "scaleSettings": { "minReplicas": replicas }, "template": { "spec": spec(self.large) } } });
        self.servers
            .put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, object(deployment));
        let on_hub = json!({ "metadata": { "name": "web", "namespace": NS, "uid": hub, "resourceVersion": "1" } });
        self.servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, object(on_hub));
    }

    fn step(&mut self, step: &Step) {
        let at = |index: &usize| slot(*index);
        match step {
            Step::Scale(replicas) => self.of_deployment(|spec| spec["scaleSettings"]["minReplicas"] = json!(replicas)),
            Step::Make(index) => self.make(&at(index)),
            Step::End(index) => self.servers.delete(&Plane::Cell, kind::INSTANCE, NS, &at(index)),
            Step::Open(index) => {
                let granted = self.see_claim(&at(index), |seen| {
                    matches!(claim::quota(seen, None, None), Quota::Claim(_))
                });
                if granted {
                    self.of_instance(&at(index), |one| one.data["spec"]["controller"] = json!({}));
                }
            }
            Step::Report(index, ready) => self.of_instance(&at(index), |one| {
                let status = if *ready { "True" } else { "False" };
                let ready = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
                one.data["status"] = json!({ "conditions": [ready] });
            }),
            Step::Resize(large) => {
                self.large = *large;
                let template = spec(*large);
                self.of_deployment(|spec| spec["template"]["spec"] = template);
            }
            Step::Hub(there) => self.hub = *there,
            Step::Project(there) => self.project = *there,
            Step::Replace => {
                for index in 0..SLOTS {
                    self.step(&Step::End(index));
                }
                self.bring_deployment(SLOTS);
                // The garbage collector of the hub.
                let owned: Vec<String> = self.copies().into_keys().collect();
                for name in owned {
                    let copy = self.servers.get(&Plane::Hub, kind::INSTANCE, NS, &name).unwrap();
                    if copy.metadata.owner_references.is_some() {
                        self.servers.delete(&Plane::Hub, kind::INSTANCE, NS, &name);
                    }
                }
            }
            Step::TakeOff(index) => {
                for (plane, kind, namespace, name) in [
                    (Plane::Hub, kind::INSTANCE, NS, at(index)),
                    (project(), kind::RESOURCE_CLAIM, "default", claim::name(&at(index))),
                ] {
                    let found = self.servers.get(&plane, kind, namespace, &name);
                    if found.and_then(removed_cells::of) == Some(US) {
                        self.servers.change(&plane, kind, namespace, &name, |one| {
                            one.metadata.labels.as_mut().unwrap().remove(labels::SOURCE_CLUSTER);
                        });
                    }
                }
            }
        }
    }

    fn make(&mut self, name: &str) {
        if self.servers.get(&Plane::Cell, kind::INSTANCE, NS, name).is_some() {
            return;
        }
        let mut spec = spec(self.large);
        spec["controller"] = json!({ "schedulingGates": [{ "name": "Quota" }] });
        let labels = json!({ labels::WORKLOAD_DEPLOYMENT_UID: format!("cell-{}", self.lives) });
        // As the API server fills it in.
        let status = json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] });
        let instance = json!({ "metadata": { "name": name, "namespace": NS, "uid": format!("{name}-{}", self.servers.writes),
            "resourceVersion": "1", "generation": 1, "labels": labels }, "spec": spec, "status": status });
        self.servers.put(&Plane::Cell, kind::INSTANCE, object(instance));
    }

    fn of_deployment(&mut self, change: impl FnOnce(&mut Value)) {
        self.servers
            .change(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, NS, "web", |one| {
                change(&mut one.data["spec"])
            });
    }

    fn of_instance(&mut self, name: &str, change: impl FnOnce(&mut Object)) {
        if self.servers.get(&Plane::Cell, kind::INSTANCE, NS, name).is_some() {
            self.servers.change(&Plane::Cell, kind::INSTANCE, NS, name, change);
        }
    }

    fn apply(&mut self, plan: &Plan, writes: usize) {
        self.check(plan);
        self.servers.apply_start(plan, writes);
        // No claim of ours without its project written down.
        let claims = self.servers.list(&project(), kind::RESOURCE_CLAIM);
        let ours = claims.iter().any(|one| removed_cells::of(one) == Some(US));
        assert!(!ours || projects::recorded(self.record()).any(|(one, _)| one == "p") || plan.actions.is_empty());
    }

    /// Law: nothing is written to a plane that is unreachable, nothing is deleted without stamp and proof, and no claim
    /// is taken from an Instance that runs.
    fn check(&self, plan: &Plan) {
        for action in &plan.actions {
            let target = action.target();
            assert!(self.hub || target.plane != Plane::Hub, "{action}");
            assert!(self.project || target.plane != project(), "{action}");
            let Action::Delete(delete) = action else { continue };
            let namespace = target.namespace.as_deref().unwrap();
            let to_delete = self
                .servers
                .get(&target.plane, target.kind, namespace, &target.name)
                .unwrap();
            assert_eq!(removed_cells::of(to_delete), Some(US), "{action}");
            assert!(!delete.proofs.is_empty(), "{action}");
            let name = target.name.strip_prefix("instance-").unwrap_or(&target.name);
            let instance = self.servers.get(&Plane::Cell, kind::INSTANCE, NS, name);
            let runs = instance.is_some_and(|one| one.at("/spec/controller/schedulingGates").is_none());
            assert!(!runs, "taken from what runs: {action}");
        }
    }
}

fn spec(large: bool) -> Value {
    let requests = if large {
        json!({ "cpu": "2", "memory": "4Gi" })
    } else {
        json!({ "cpu": "1", "memory": "2Gi" })
    };
    json!({ "runtime": { "resources": { "requests": requests } } })
}

fn is_large(instance: &Object) -> bool {
    instance.text("/spec/runtime/resources/requests/cpu") == Some("2")
}
