//! One project, a hub and its cells, driven by all reconcilers of the management plane in any order.
//!
//! Cells and the garbage collector are played: a cell reports on each WorkloadDeployment of the hub and copies its
//! Instances there; what has lost its owner goes.

mod around;
mod jobs;

use std::collections::{BTreeMap, BTreeSet};

use popcell_api::{annotations, kind, labels};
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::identity::Project;
use crate::object::{Fields, Object};
use crate::plan::{Action, NAMESPACE, Plan, Plane};
use crate::testing::{FakeServers, Key, object, texts_for_users};

pub(super) const CITIES: [&str; 3] = ["DFW", "ORD", "LHR"];
const HUB_NAMESPACE: &str = "ns-n1";
/// The network that every template names.
const NETWORK: &str = "default";
const P: Project<'static> = Project {
    id: "p",
    uid: Some("project-1"),
    server: None,
};

/// What happens around the reconcilers.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// The user asks for these cities.
    Place(Vec<bool>),
    /// A city becomes usable.
    Bind(usize),
    /// The network appears.
    Network,
    /// Every cell runs so many instances.
    Cells(u8),
    DeleteWorkload,
    CreateWorkload,
}

pub(super) struct Driver {
    pub(super) servers: FakeServers,
    pub(super) hub_away: bool,
    /// What users were told so far.
    pub(super) told: BTreeSet<String>,
    running: u8,
    lives: u32,
    /// What the user wants at last: whether there is a Workload, and where.
    wanted: bool,
    cities: Vec<&'static str>,
}

impl Driver {
    pub(super) fn new() -> Self {
        let mut servers = FakeServers::default();
        let namespace = json!({ "metadata": { "name": "default", "uid": "n1", "resourceVersion": "1" } });
        servers.put(&project(), NAMESPACE, object(namespace));
        for city in CITIES {
            let labels = json!({ "topology.datum.net/city-code": city });
            let cluster = json!({ "metadata": { "name": cluster(city), "labels": labels } });
            servers.put(&Plane::Hub, kind::CLUSTER, object(cluster));
        }
        let mut driver = Self {
            servers,
            hub_away: false,
            told: BTreeSet::new(),
            running: 0,
            lives: 0,
            wanted: true,
            cities: vec!["DFW"],
        };
        driver.step(&Step::CreateWorkload);
        driver
    }

    /// Steps, with reconciles of the schedule spread between them: (which job, how many writes before the process dies).
    pub(super) fn run(&mut self, steps: &[Step], schedule: &[(usize, usize)]) {
        let share = schedule.len().div_ceil(steps.len().max(1));
        for (index, step) in steps.iter().enumerate() {
            self.step(step);
            for (which, writes) in schedule.iter().skip(index * share).take(share) {
                let jobs = self.jobs();
                if let Some(job) = jobs.get(which % jobs.len().max(1)) {
                    let plan = self.decide(job);
                    self.check(&plan);
                    self.servers.apply_start(&plan, *writes);
                    self.collect_garbage();
                }
            }
        }
    }

    /// Until no reconciler has anything to do. What one change causes goes through five reconcilers and back.
    pub(super) fn converge(&mut self) {
        for _ in 0..30 {
            let reported = self.cells_report();
            if self.round() || reported {
                continue;
            }
            // The user made it again while the old one was still going: he tries until he can.
            if !self.create_workload() {
                return;
            }
        }
        panic!("not converged: {:#?}", self.plans());
    }

    pub(super) fn converge_without_cells(&mut self) {
        for _ in 0..30 {
            if !self.round() {
                return;
            }
        }
        panic!("not converged: {:#?}", self.plans());
    }

    pub(super) fn plans(&self) -> Vec<Plan> {
        self.jobs().iter().map(|job| self.decide(job)).collect()
    }

    /// The state without what is chance: uids, versions, generations.
    pub(super) fn picture(&self) -> BTreeMap<Key, Value> {
        // A current hub Namespace stays when its last WorkloadDeployment goes: whether there is one is history.
        let ours = |key: &Key| key.1 != kind::CLUSTER.kind && key.1 != NAMESPACE.kind;
        self.servers
            .all()
            .filter(|(key, _)| ours(key))
            .map(|(key, object)| (key.clone(), drawn(object)))
            .collect()
    }

    pub(super) fn hub(&self) -> BTreeMap<Key, Object> {
        let in_hub = |(key, _): &(&Key, &Object)| key.0 == Plane::Hub;
        self.servers
            .all()
            .filter(in_hub)
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }

    pub(super) fn delete_by_hand(&mut self, victim: Index) {
        let ours: Vec<Key> = self
            .servers
            .all()
            .filter(|(key, object)| object.marked() || (key.0 != Plane::Hub && key.1 == kind::WORKLOAD_DEPLOYMENT.kind))
            .filter(|(key, _)| !(key.0 == Plane::Hub && key.1 == NAMESPACE.kind))
            .map(|(key, _)| key.clone())
            .collect();
        if ours.is_empty() {
            return;
        }
        let (plane, name_of_kind, namespace, name) = victim.get(&ours).clone();
        let kinds = [
            kind::WORKLOAD_DEPLOYMENT,
            kind::PROPAGATION_POLICY,
            kind::INSTANCE,
            kind::NETWORK,
        ];
        let kind = kinds.into_iter().find(|one| one.kind == name_of_kind).unwrap();
        self.servers.delete(&plane, kind, &namespace, &name);
        self.collect_garbage();
    }

    /// Objects of others that hold names of ours; the bits of `which` choose.
    pub(super) fn add_foreign(&mut self, which: u8) -> Vec<(Key, Object)> {
        let meta = |namespace: &str, name: &str| json!({ "name": name, "namespace": namespace, "uid": format!("foreign-{name}"), "resourceVersion": "1" });
        let wd = json!({ "metadata": meta(HUB_NAMESPACE, "web-us-dfw"), "spec": { "workloadRef": { "name": "x", "uid": "x" }, "cityCode": "DFW" } });
        let policy = json!({ "metadata": meta(HUB_NAMESPACE, "city-ord"), "spec": { "resourceSelectors": [] } });
        let instance = json!({ "metadata": meta("default", "web-us-lhr-0"), "spec": {} });
        let local = json!({ "metadata": meta("default", "web-us-ord"), "spec": { "workloadRef": { "name": "other", "uid": "x" }, "cityCode": "nowhere at all" } });
        let network = json!({ "metadata": meta(HUB_NAMESPACE, NETWORK), "spec": { "ipam": { "mode": "Policy" } } });
        let all = [
            (Plane::Hub, kind::NETWORK, network),
            (Plane::Hub, kind::WORKLOAD_DEPLOYMENT, wd),
            (Plane::Hub, kind::PROPAGATION_POLICY, policy),
            (project(), kind::INSTANCE, instance),
            (project(), kind::WORKLOAD_DEPLOYMENT, local),
        ];
        let mut foreign = Vec::new();
        for (bit, (plane, kind, value)) in all.into_iter().enumerate() {
            if which & (1 << bit) == 0 {
                continue;
            }
            let one = object(value);
            let key = (
                plane.clone(),
                kind.kind,
                one.namespace().to_owned(),
                one.name().to_owned(),
            );
            self.servers.put(&plane, kind, one.clone());
            foreign.push((key, one));
        }
        foreign
    }

    fn step(&mut self, step: &Step) {
        let plane = project();
        match step {
            Step::Place(wanted) => {
                self.cities = CITIES
                    .iter()
                    .zip(wanted)
                    .filter(|(_, yes)| **yes)
                    .map(|(city, _)| *city)
                    .collect();
                let cities = self.cities.clone();
                if self.servers.get(&plane, kind::WORKLOAD, "default", "web").is_some() {
                    self.servers.change(&plane, kind::WORKLOAD, "default", "web", |one| {
                        one.metadata.generation = one.metadata.generation.map(|old| old + 1);
                        one.data["spec"]["placements"][0]["cityCodes"] = json!(cities);
                    });
                }
            }
            Step::Bind(city) => {
                let city = CITIES[*city];
                let topology = json!({ "topology.datum.net/city-code": city });
                let binding = json!({ "metadata": { "name": cluster(city) }, "spec": { "topology": topology } });
                self.servers.put(&plane, kind::LOCATION_BINDING, object(binding));
            }
            Step::Network => {
                let network = json!({ "metadata": { "name": NETWORK, "namespace": "default" }, "spec": { "ipam": { "mode": "Auto" } } });
                self.servers.put(&plane, kind::NETWORK, object(network));
            }
            Step::Cells(running) => self.running = *running,
            Step::DeleteWorkload => {
                self.wanted = false;
                self.servers.delete(&plane, kind::WORKLOAD, "default", "web");
            }
            Step::CreateWorkload => {
                self.wanted = true;
                self.create_workload();
            }
        }
        self.collect_garbage();
    }

    fn create_workload(&mut self) -> bool {
        if !self.wanted || self.servers.get(&project(), kind::WORKLOAD, "default", "web").is_some() {
            return false;
        }
        self.lives += 1;
        let workload = json!({
            "apiVersion": "compute.datumapis.com/v1alpha", "kind": "Workload",
            "metadata": { "name": "web", "namespace": "default", "uid": format!("w{}", self.lives),
                "resourceVersion": format!("w{}", self.lives), "generation": 1 },
            "spec": {
                "template": { "spec": { "networkInterfaces": [{ "network": { "name": NETWORK, "namespace": "default" } }] } },
                "placements": [{ "name": "us", "cityCodes": self.cities, "scaleSettings": { "minReplicas": 1 } }],
            },
        });
        self.servers.put(&project(), kind::WORKLOAD, object(workload));
        true
    }

    /// One reconcile of every job; whether anything was written.
    fn round(&mut self) -> bool {
        let before = self.servers.writes;
        for job in self.jobs() {
            let plan = self.decide(&job);
            self.check(&plan);
            self.servers.apply(&plan);
            self.collect_garbage();
        }
        self.servers.writes != before
    }

    /// Law: nothing leaves another plane than its decider's without proof and marker, and every write is addressed.
    fn check(&mut self, plan: &Plan) {
        self.told.extend(texts_for_users(plan));
        for action in plan.writes() {
            let target = action.target();
            assert!(
                !(self.hub_away && target.plane == Plane::Hub),
                "written to an unknown hub: {action}"
            );
            let Action::Delete(delete) = action else { continue };
            let remote = target.plane == Plane::Hub || target.kind == kind::INSTANCE;
            let to_delete = self.servers.get(
                &target.plane,
                target.kind,
                target.namespace.as_deref().unwrap_or_default(),
                &target.name,
            );
            let to_delete = to_delete.unwrap();
            assert!(
                !remote || (!delete.proofs.is_empty() && to_delete.marked()),
                "without proof: {action}"
            );
        }
    }
}

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

fn cluster(city: &str) -> String {
    format!("{}-01", city.to_lowercase())
}

/// A WorkloadDeployment that a tenant makes is federated under its own rules: it may get our finalizer and a status, and
/// nothing else. Any other object of others is to stay as it is.
pub(super) fn as_its_owner_made_it(key: &Key, mut object: Object) -> Object {
    if key.0 != Plane::Hub && key.1 == kind::WORKLOAD_DEPLOYMENT.kind {
        object.metadata.finalizers = None;
        object.metadata.resource_version = Some("1".to_owned());
        if let Some(fields) = object.data.as_object_mut() {
            fields.remove("status");
        }
    }
    object
}

/// An object without uids, versions and generations.
fn drawn(object: &Object) -> Value {
    let mut labels = object.metadata.labels.clone().unwrap_or_default();
    labels.remove(labels::WORKLOAD_UID);
    let mut keys: Vec<String> = object
        .metadata
        .annotations
        .iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    keys.retain(|key| key != annotations::PROJECT_GONE_SINCE);
    let mut data = object.data.clone();
    blind(&mut data);
    json!({ "labels": labels, "annotations": keys, "finalizers": object.metadata.finalizers,
        "deleting": object.deleting(), "data": data })
}

fn blind(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| key != "uid" && key != "observedGeneration" && key != "lastTransitionTime");
            fields.values_mut().for_each(blind);
        }
        Value::Array(list) => list.iter_mut().for_each(blind),
        _ => {}
    }
}
