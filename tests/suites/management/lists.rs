//! A list that is wrong deletes nothing in any plane, and what happened meanwhile is made up for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use popcell_suites::environment::{DFW, SOON};
use popcell_suites::read;
use popcell_test_support::kind::{
    CLUSTER, INSTANCE, Kind, NAMESPACE, PROJECT, PROPAGATION_POLICY, RESOURCE_BINDING, WORKLOAD, WORKLOAD_DEPLOYMENT,
};
use popcell_test_support::{Asked, Fault, FaultProxy, Injected, Plane, always, eventually, objects};
use serde_json::json;

use crate::environment::{Environment, P2};
use popcell_suites::tenant::Tenant;

const NAME: &str = "web-us-dfw";
/// Many passes.
const LOOK: Duration = Duration::from_secs(1);

/// Which lists are wrong.
#[derive(Clone, Copy, Debug)]
struct Lists {
    of: Of,
    kinds: &'static [Kind],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Hub,
    Project,
    Milo,
}

const COPIES: Lists = Lists::of(Of::Hub, &[INSTANCE, PROPAGATION_POLICY, RESOURCE_BINDING]);
const CARRIED: Lists = Lists::of(Of::Hub, &[WORKLOAD_DEPLOYMENT]);
const HUB: Lists = Lists::of(
    Of::Hub,
    &[
        NAMESPACE,
        WORKLOAD_DEPLOYMENT,
        INSTANCE,
        PROPAGATION_POLICY,
        RESOURCE_BINDING,
        CLUSTER,
    ],
);
const WORKLOADS: Lists = Lists::of(Of::Project, &[WORKLOAD]);
const DEPLOYMENTS: Lists = Lists::of(Of::Project, &[WORKLOAD_DEPLOYMENT]);
const PROJECTS: Lists = Lists::of(Of::Milo, &[PROJECT]);

impl fmt::Display for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.plural).collect();
        write!(f, "{} of {:?}", kinds.join(" and "), self.of)
    }
}

impl Lists {
    const fn of(of: Of, kinds: &'static [Kind]) -> Self {
        Self { of, kinds }
    }

    fn proxy(self, environment: &Environment) -> &FaultProxy {
        match self.of {
            Of::Hub => &environment.to_hub,
            Of::Project | Of::Milo => &environment.to_milo,
        }
    }

    fn are_asked(self, asked: &Asked) -> bool {
        let there = match self.of {
            Of::Hub => true,
            Of::Project => asked.is_of(P2),
            Of::Milo => asked.project.is_none(),
        };
        there && self.kinds.iter().any(|kind| kind.plural == asked.plural)
    }

    fn meet(self, environment: &Environment, fault: Fault) -> Injected {
        let matching = move |asked: &Asked| asked.verb == "list" && self.are_asked(asked);
        self.proxy(environment).inject(fault, matching)
    }

    /// Breaks the watches and has everything relisted; answers when all kinds have been asked for.
    async fn come_anew(self, environment: &Environment) -> Result<()> {
        let proxy = self.proxy(environment);
        let is_list = move |asked: &Asked| asked.verb == "list" && self.are_asked(asked);
        let is_watch = move |asked: &Asked| asked.verb == "watch" && self.are_asked(asked);
        let (lists, watches) = (proxy.seen(is_list), proxy.seen(is_watch));
        let broken = proxy.inject(Fault::refused(410, "Expired"), is_watch);
        proxy.cut();
        eventually(&format!("watches break for {self}"), SOON, async || {
            // What is about to be listed has no watch to break.
            let met = grown(&watches, &proxy.seen(is_watch)).max(grown(&lists, &proxy.seen(is_list)));
            ensure!(met >= self.kinds.len(), "{met} have");
            Ok(())
        })
        .await?;
        broken.lift();
        eventually(&format!("{self} come anew"), SOON, async || {
            let listed = grown(&lists, &proxy.seen(is_list));
            ensure!(listed >= self.kinds.len(), "{listed} kinds");
            Ok(())
        })
        .await
    }
}

/// How many requests were sent again, or for the first time.
fn grown(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> usize {
    now.iter()
        .filter(|(asked, count)| before.get(*asked) != Some(count))
        .count()
}

/// All that could be lost, by where it is, with its uid.
async fn inventory(tenant: &Tenant) -> Result<BTreeMap<String, String>> {
    let (project, hub) = (&tenant.project, &tenant.hub);
    let places = [
        (
            project,
            &tenant.namespace,
            &[WORKLOAD, WORKLOAD_DEPLOYMENT, INSTANCE][..],
        ),
        (
            hub,
            &tenant.below,
            &[WORKLOAD_DEPLOYMENT, INSTANCE, PROPAGATION_POLICY][..],
        ),
    ];
    let mut found = BTreeMap::new();
    for (plane, namespace, kinds) in places {
        for kind in kinds {
            for object in plane.list(*kind, Some(namespace), "").await? {
                let name = object.metadata.name.clone().unwrap_or_default();
                let going = object.metadata.deletion_timestamp.is_some();
                let what = format!("{} {} {name}, going: {going}", plane.name(), kind.kind);
                found.insert(what, read::uid(&object));
            }
        }
    }
    let namespace = hub.expect(NAMESPACE, None, &tenant.below).await?;
    found.insert(
        "hub namespace".to_owned(),
        format!("{:?}", namespace.metadata.annotations),
    );
    Ok(found)
}

struct Witness<'a> {
    environment: &'a Environment,
    tenant: Tenant,
    before: BTreeMap<String, String>,
}

impl Witness<'_> {
    async fn nothing_goes_while_empty(&self, empty: &[Lists]) -> Result<()> {
        let names: Vec<String> = empty.iter().map(ToString::to_string).collect();
        let what = format!("nothing goes while these are empty: {}", names.join(", "));
        let mut faults = Vec::new();
        for lists in empty {
            faults.push(lists.meet(self.environment, Fault::Emptied));
            lists.come_anew(self.environment).await?;
        }
        self.nothing_goes(&what).await?;
        ensure!(faults.iter().all(|fault| fault.hits() > 0), "some met nobody");
        drop(faults);
        for lists in empty {
            lists.come_anew(self.environment).await?;
        }
        Ok(())
    }

    /// Nothing goes, nothing is sent to delete anything, and what the city said is not taken back.
    async fn nothing_goes(&self, what: &str) -> Result<()> {
        let deletes = self.deletes();
        always(what, LOOK, async || {
            let now = inventory(&self.tenant).await?;
            ensure!(now == self.before, "there is {now:?}, there was {:?}", self.before);
            ensure!(
                self.deletes() == deletes,
                "{} deletes were sent",
                self.deletes() - deletes
            );
            let shown = self
                .tenant
                .project
                .expect(WORKLOAD_DEPLOYMENT, Some(&self.tenant.namespace), NAME)
                .await?;
            read::expect_at(&shown, "/status/readyReplicas", &json!(2))
        })
        .await
    }

    fn deletes(&self) -> u64 {
        let is_delete = |asked: &Asked| asked.verb.starts_with("delete");
        self.environment.to_hub.count(is_delete) + self.environment.to_milo.count(is_delete)
    }
}

pub(crate) async fn wrong(environment: &Environment, namespace: &str) -> Result<()> {
    let tenant = Tenant::new(&environment.lab, P2, namespace).await?;
    tenant.workload("web", &[("us", &["DFW"], 2)]).await?;
    let dfw = environment.lab.plane(DFW).await?;
    tenant.report(&dfw, NAME, 2, 2).await?;
    tenant.shown(NAME, 2).await?;
    for ordinal in 0..2 {
        let copy = objects::instance_copy(&tenant.below, NAME, ordinal, DFW);
        tenant.hub.create(&copy, false).await?;
        tenant
            .in_project(INSTANCE, &format!("{NAME}-{ordinal}"), |_| Ok(()))
            .await?;
    }
    let before = inventory(&tenant).await?;
    let witness = Witness {
        environment,
        tenant,
        before,
    };
    for empty in [&[COPIES, WORKLOADS][..], &[CARRIED], &[DEPLOYMENTS], &[PROJECTS]] {
        witness.nothing_goes_while_empty(empty).await?;
    }
    unreadable(&witness, &dfw).await
}

/// All lists are wrong at once, while a copy goes, the user asks for more and the city says something new.
async fn unreadable(witness: &Witness<'_>, dfw: &Plane) -> Result<()> {
    let (environment, tenant) = (witness.environment, &witness.tenant);
    let all = [HUB, WORKLOADS, DEPLOYMENTS, PROJECTS];
    let everywhere = |fault: &Fault| all.map(|lists| lists.meet(environment, fault.clone()));
    let html = everywhere(&Fault::html(200));
    for lists in all {
        lists.come_anew(environment).await?;
    }
    witness.nothing_goes("nothing goes while every list is HTML").await?;
    let failing = everywhere(&Fault::refused(500, "InternalError"));
    drop(html);
    tenant.hub.delete(INSTANCE, Some(&tenant.below), "web-us-dfw-1").await?;
    tenant.place("web", &[("us", &["DFW"], 3)]).await?;
    tenant.report(dfw, NAME, 2, 1).await?;
    always("the projection stays while nobody knows", LOOK, async || {
        let shown = tenant.names_in_project(INSTANCE).await?;
        ensure!(shown.len() == 2, "{shown:?}");
        Ok(())
    })
    .await?;
    drop(failing);
    tenant.gone_from_project(INSTANCE, "web-us-dfw-1").await?;
    let three = read::replicas(3);
    tenant.in_cell(dfw, NAME, three).await?;
    tenant.report(dfw, NAME, 3, 3).await?;
    tenant.shown(NAME, 3).await?;
    ensure!(tenant.names_in_project(INSTANCE).await? == ["web-us-dfw-0"]);
    Ok(())
}
