//! Every key of every reconciler, and its reconcile.

use std::collections::BTreeSet;

use popcell_api::{kind, labels};

use super::{CITIES, Driver, HUB_NAMESPACE, NETWORK, P, project};
use crate::instance_types::Catalogue;
use crate::object::Fields;
use crate::observed::Observed;
use crate::plan::{NAMESPACE, Plan, Plane, Target};
use crate::references::{self, Reference};
use crate::spec_echoes::SpecEchoes;
use crate::{federation, names, policy, projection, reference_copy, testing, workload};

/// One key of one reconciler.
#[derive(Clone, Debug)]
pub(super) enum Job {
    Workload(String),
    Federation(String),
    Policy(String),
    Copy(Reference),
    Show(String),
    Sweep,
}

impl Driver {
    pub(super) fn jobs(&self) -> Vec<Job> {
        let names = |plane: &Plane, kind| -> Vec<String> {
            self.servers
                .list(plane, kind)
                .iter()
                .map(|one| one.name().to_owned())
                .collect()
        };
        let project = project();
        let mut jobs: Vec<Job> = names(&project, kind::WORKLOAD).into_iter().map(Job::Workload).collect();
        jobs.extend(
            names(&project, kind::WORKLOAD_DEPLOYMENT)
                .into_iter()
                .map(Job::Federation),
        );
        if !self.hub_away {
            let mut policies: BTreeSet<String> = CITIES.iter().map(|city| names::city_policy(city)).collect();
            policies.extend(names(&Plane::Hub, kind::PROPAGATION_POLICY));
            jobs.extend(policies.into_iter().map(Job::Policy));
            jobs.push(Job::Copy(Reference {
                kind: kind::NETWORK,
                name: NETWORK.to_owned(),
            }));
            jobs.extend(names(&Plane::Hub, kind::INSTANCE).into_iter().map(Job::Show));
            jobs.push(Job::Sweep);
        }
        jobs
    }

    pub(super) fn decide(&self, job: &Job) -> Plan {
        let (servers, project) = (&self.servers, project());
        let deployments = servers.list(&project, kind::WORKLOAD_DEPLOYMENT);
        let in_hub = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
        let namespace = servers.get(&project, NAMESPACE, "", "default");
        let spec_echoes = SpecEchoes::default();
        match job {
            Job::Workload(name) => servers.get(&project, kind::WORKLOAD, "default", name).map(|one| {
                workload::decide(&workload::Observation {
                    project: P.id,
                    workload: one,
                    deployments: &deployments,
                    bindings: Observed::Known(&servers.list(&project, kind::LOCATION_BINDING)),
                    networks: Observed::Known(&servers.list(&project, kind::NETWORK)),
                    types: Observed::Known(&Catalogue::default()),
                    spec_echoes: &spec_echoes,
                    rejected: &[],
                    now: testing::now(),
                })
            }),
            Job::Federation(name) => servers
                .get(&project, kind::WORKLOAD_DEPLOYMENT, "default", name)
                .map(|one| {
                    let city = one.text("/spec/cityCode").unwrap_or_default();
                    let policy = names::city_policy(city);
                    let policy = servers.get(&Plane::Hub, kind::PROPAGATION_POLICY, HUB_NAMESPACE, &policy);
                    let namespaces = servers.list(&Plane::Hub, NAMESPACE);
                    let network = servers.get(&Plane::Hub, kind::NETWORK, HUB_NAMESPACE, NETWORK);
                    let holder = network.filter(|one| reference_copy::is_foreign(one));
                    let held = holder.map(|one| Target::of(&Plane::Hub, kind::NETWORK, one));
                    let hub = federation::Hub {
                        namespaces: &namespaces,
                        deployments: &in_hub,
                        policy,
                        binding: None,
                        held: held.as_ref(),
                    };
                    federation::decide(&federation::Observation {
                        project: P,
                        deployment: one,
                        siblings: &deployments,
                        workload: Observed::Known(servers.get(&project, kind::WORKLOAD, "default", "web")),
                        bindings: Observed::Known(&servers.list(&project, kind::LOCATION_BINDING)),
                        namespace: Observed::Known(namespace),
                        hub: if self.hub_away {
                            Observed::Unknown
                        } else {
                            Observed::Known(hub)
                        },
                        types: Observed::Known(&Catalogue::default()),
                        carries_data: false,
                        spec_echoes: &spec_echoes,
                        rejected: &[],
                        elsewhere: None,
                        now: testing::now(),
                    })
                }),
            Job::Policy(name) => Some(policy::decide(&policy::Observation {
                namespace: servers.get(&Plane::Hub, NAMESPACE, "", HUB_NAMESPACE),
                namespace_name: HUB_NAMESPACE,
                name,
                policy: servers.get(&Plane::Hub, kind::PROPAGATION_POLICY, HUB_NAMESPACE, name),
                hub_deployments: &in_hub,
                project_deployments: Observed::Known(&deployments),
            })),
            Job::Copy(reference) => self.copy(reference),
            Job::Show(_) | Job::Sweep => {
                servers
                    .get(&Plane::Hub, NAMESPACE, "", HUB_NAMESPACE)
                    .and_then(|hub_namespace| {
                        let clusters = servers.list(&Plane::Hub, kind::CLUSTER);
                        let seen = projection::Observation {
                            project: P,
                            namespace: Observed::Known(namespace),
                            hub_namespace,
                            deployments: Observed::Known(&deployments),
                            clusters: Observed::Known(&clusters),
                            spec_echoes: &spec_echoes,
                        };
                        let Job::Show(name) = job else {
                            let copies = servers.list(&Plane::Hub, kind::INSTANCE);
                            let shown = servers.list(&project, kind::INSTANCE);
                            return Some(projection::sweep(&seen, Observed::Known(&copies), &shown));
                        };
                        let copy = servers.get(&Plane::Hub, kind::INSTANCE, HUB_NAMESPACE, name)?;
                        Some(projection::show(
                            &seen,
                            copy,
                            Observed::Known(copy.label(labels::WORKLOAD_DEPLOYMENT_NAME).and_then(|name| {
                                servers.get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, HUB_NAMESPACE, name)
                            })),
                            servers.get(&project, kind::INSTANCE, "default", name),
                            None,
                        ))
                    })
            }
        }
        .unwrap_or_default()
    }

    fn copy(&self, reference: &Reference) -> Option<Plan> {
        let servers = &self.servers;
        let in_hub = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
        Some(reference_copy::decide(&reference_copy::Observation {
            project: Some(P),
            namespace: servers.get(&Plane::Hub, NAMESPACE, "", HUB_NAMESPACE)?,
            reference,
            is_named: references::is_named(in_hub, reference),
            source: Observed::Known(servers.get(&project(), reference.kind, "default", &reference.name)),
            copy: servers.get(&Plane::Hub, reference.kind, HUB_NAMESPACE, &reference.name),
            spec_echoes: &SpecEchoes::default(),
        }))
    }
}
