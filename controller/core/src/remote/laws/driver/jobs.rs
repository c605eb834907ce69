//! Every key of every reconcile, and what it looks at.

use std::collections::BTreeSet;

use popcell_api::kind;

use super::{Driver, NS, PROGRAM, SLOTS, US, project, slot};
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{CONFIG_MAP, NAMESPACE, Plan, Plane};
use crate::remote::cell::Identity;
use crate::remote::projects::Answer;
use crate::remote::{claim, copy, projects};
use crate::removed_cells;
use crate::spec_echoes::SpecEchoes;
use crate::testing::now;

/// One key of one kind of reconcile.
#[derive(Clone, Copy, Debug)]
pub(super) enum Job {
    Copy(usize),
    Claim(usize),
    Projects,
}

impl Driver {
    pub(super) fn decide(&self, job: Job) -> Plan {
        match job {
            Job::Copy(index) => self.decide_copy(&slot(index)),
            Job::Claim(index) => self.see_claim(&slot(index), claim::decide),
            Job::Projects => self.decide_projects(),
        }
    }

    fn decide_copy(&self, name: &str) -> Plan {
        let servers = &self.servers;
        let deployments = servers.list(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT);
        let instance = servers.get(&Plane::Cell, kind::INSTANCE, NS, name);
        let owner = copy::hub_deployment(name, instance, &deployments);
        let on_hub = servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, NS, "web");
        let lives = owner.is_some_and(|(_, uid)| on_hub.is_some_and(|one| one.uid() == uid));
        copy::decide(&copy::Observation {
            identity: &Identity::Matches,
            source: US,
            namespace: NS,
            name,
            instance,
            deployments: &deployments,
            hub_namespace: self.of_hub(servers.get(&Plane::Hub, NAMESPACE, "", NS)),
            copy: self.of_hub(servers.get(&Plane::Hub, kind::INSTANCE, NS, name)),
            hub_deployment_lives: self.of_hub(lives),
            spec_echoes: &SpecEchoes::default(),
            now: now(),
        })
    }

    fn of_hub<T>(&self, state: T) -> Observed<T> {
        if self.hub {
            Observed::Known(state)
        } else {
            Observed::Unknown
        }
    }

    pub(super) fn see_claim<T>(&self, name: &str, look: impl FnOnce(&claim::Observation<'_>) -> T) -> T {
        let servers = &self.servers;
        let named = claim::name(name);
        let mut claims = servers.list(&project(), kind::RESOURCE_CLAIM);
        claims.retain(|one| one.name() == named);
        look(&claim::Observation {
            identity: &Identity::Matches,
            source: US,
            project: "p",
            namespace: NS,
            name,
            cell_namespace: servers.get(&Plane::Cell, NAMESPACE, "", NS),
            single: None,
            instance: servers.get(&Plane::Cell, kind::INSTANCE, NS, name),
            deployments: &servers.list(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT),
            claims: if self.project {
                Observed::Known(&claims)
            } else {
                Observed::Unknown
            },
            record: self.record(),
            program_namespace: PROGRAM,
        })
    }

    pub(super) fn record(&self) -> Option<&Object> {
        self.servers
            .get(&Plane::Cell, CONFIG_MAP, PROGRAM, "popcell-claim-projects")
    }

    fn decide_projects(&self) -> Plan {
        let claims = self.servers.list(&project(), kind::RESOURCE_CLAIM);
        let ours = claims.iter().any(|one| removed_cells::of(one) == Some(US));
        let used = !self.instances().is_empty() || ours;
        let needed: BTreeSet<&str> = used.then_some("p").into_iter().collect();
        let doubtful = projects::doubtful(self.record(), &needed);
        let answers = doubtful
            .into_iter()
            .filter(|_| self.project)
            .map(|one| (one, Answer::Claims(ours)));
        projects::decide(&projects::Observation {
            record: self.record(),
            namespace: PROGRAM,
            needed: &needed,
            mapped: &["p"].into(),
            answers: &answers.collect(),
            now: now(),
        })
    }
}

/// All keys.
pub(super) fn all() -> Vec<Job> {
    (0..SLOTS)
        .flat_map(|index| [Job::Copy(index), Job::Claim(index)])
        .chain([Job::Projects])
        .collect()
}
