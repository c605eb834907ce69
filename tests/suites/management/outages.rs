//! What becomes of everything while the hub answers otherwise than it should.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kube::api::DynamicObject;
use popcell_api::conditions::reasons;
use popcell_suites::environment::SOON;
use popcell_suites::read;
use popcell_test_support::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_test_support::{Asked, Fault, always, eventually};

use crate::environment::{Environment, P1, WATCHED};
use popcell_suites::tenant::{Tenant, available};

/// How long the hub is in each trouble.
const LOOK: Duration = Duration::from_secs(2);
/// Requests for one namespace in [`WATCHED`] that are no storm: a few keys, each with its back-off.
const BOUNDED: u64 = 150;

/// A namespace with a Workload that stays, one that changes and one that goes.
struct Trio {
    tenant: Tenant,
    kept: DynamicObject,
}

impl Trio {
    async fn new(environment: &Environment, namespace: &str) -> Result<Self> {
        let tenant = Tenant::new(&environment.lab, P1, namespace).await?;
        for name in ["kept", "changed", "gone"] {
            tenant.workload(name, &[("us", &["LHR"], 1)]).await?;
        }
        for name in ["changed-us-lhr", "gone-us-lhr"] {
            tenant.in_hub(WORKLOAD_DEPLOYMENT, name, |_| Ok(())).await?;
        }
        let kept = tenant.in_hub(WORKLOAD_DEPLOYMENT, "kept-us-lhr", |_| Ok(())).await?;
        tenant.policy("LHR").await?;
        Ok(Self { tenant, kept })
    }

    /// Everything that a user may want while the hub is in trouble.
    async fn disturb(&self) -> Result<()> {
        self.tenant.workload("new", &[("us", &["LHR"], 1)]).await?;
        self.tenant.place("changed", &[("us", &["LHR"], 2)]).await?;
        self.tenant.delete(WORKLOAD, "gone").await
    }

    /// Nothing is lost: what is in the hub is as it was, and what the user deletes waits for the hub.
    async fn stands(&self) -> Result<()> {
        let now = self.tenant.now_in_hub("kept-us-lhr").await?;
        ensure!(read::uid(&now) == read::uid(&self.kept) && now.metadata.deletion_timestamp.is_none());
        let now = self.tenant.now_in_hub("changed-us-lhr").await?;
        read::replicas(1)(&now)?;
        let gone = self.tenant.now_in_hub("gone-us-lhr").await?;
        ensure!(gone.metadata.deletion_timestamp.is_none(), "it is deleted in the hub");
        let names = self.tenant.names_in_hub(WORKLOAD_DEPLOYMENT).await?;
        ensure!(names.len() == 3, "{names:?}");
        let waits = self
            .tenant
            .project
            .expect(WORKLOAD_DEPLOYMENT, Some(&self.tenant.namespace), "gone-us-lhr");
        waits.await.context("its deletion does not wait").map(|_| ())
    }

    /// What a user sees of a new one that the hub rejects for good, as far as anybody knows: its words.
    async fn is_rejected_in_sight(&self) -> Result<()> {
        let rejected = |one: &DynamicObject| {
            available(one, "False", reasons::REJECTED)?;
            let message = read::condition(one, popcell_api::conditions::AVAILABLE)?["message"].clone();
            let words = message.as_str().unwrap_or_default();
            let begins = words.starts_with("The platform rejects the creation of WorkloadDeployment new-us-lhr: ");
            ensure!(begins, "{message}");
            Ok(())
        };
        self.tenant
            .in_project(WORKLOAD_DEPLOYMENT, "new-us-lhr", rejected)
            .await
            .map(|_| ())
    }

    /// What a user sees of a new one: it waits for its city, and not a word of the hub.
    async fn waits_in_sight(&self) -> Result<()> {
        let waiting = |one: &DynamicObject| {
            available(one, "False", reasons::PROVISIONING_INSTANCES)?;
            let message = read::condition(one, popcell_api::conditions::AVAILABLE)?["message"].clone();
            ensure!(message == "Waiting for city LHR", "{message}");
            Ok(())
        };
        self.tenant
            .in_project(WORKLOAD_DEPLOYMENT, "new-us-lhr", waiting)
            .await
            .map(|_| ())
    }

    async fn caught_up(&self) -> Result<()> {
        self.tenant
            .in_hub(WORKLOAD_DEPLOYMENT, "new-us-lhr", |_| Ok(()))
            .await?;
        let two = read::replicas(2);
        self.tenant.in_hub(WORKLOAD_DEPLOYMENT, "changed-us-lhr", two).await?;
        self.tenant.gone_from_project(WORKLOAD, "gone").await?;
        self.tenant.gone_from_hub(WORKLOAD_DEPLOYMENT, "gone-us-lhr").await?;
        let now = self.tenant.now_in_hub("kept-us-lhr").await?;
        ensure!(read::uid(&now) == read::uid(&self.kept), "it was recreated");
        Ok(())
    }
}

/// Writes in each of four namespaces are refused in another way at the same time, and only there.
pub(crate) async fn refusing(environment: &Environment, namespace: &str) -> Result<()> {
    let refusals = [
        (Fault::not_served(), true, false),
        (Fault::refused(403, "Forbidden"), true, false),
        // These are answers to writes. Only a conflict passes by itself.
        (Fault::refused(409, "Conflict"), false, true),
        (Fault::refused(422, "Invalid"), false, false),
    ];
    let mut refused = Vec::new();
    for (number, (refusal, reads, passes)) in refusals.into_iter().enumerate() {
        let namespace = format!("{}-{number}", namespace.chars().take(50).collect::<String>());
        let trio = Trio::new(environment, &namespace).await?;
        let within = trio.tenant.below.clone();
        let matching = move |asked: &Asked| asked.is_within(&within) && (reads || asked.writes());
        let fault = environment.to_hub.inject(refusal, matching);
        trio.disturb().await?;
        refused.push((trio, fault, passes));
    }
    for (trio, fault, passes) in &refused {
        let what = format!("the hub refuses something of {}", trio.tenant.namespace);
        eventually(&what, SOON, async || {
            ensure!(fault.hits() > 0);
            Ok(())
        })
        .await?;
        if *passes {
            trio.waits_in_sight().await?;
        } else {
            trio.is_rejected_in_sight().await?;
        }
    }
    always("nothing is lost", WATCHED, async || {
        for (trio, ..) in &refused {
            trio.stands().await.with_context(|| trio.tenant.namespace.clone())?;
        }
        Ok(())
    })
    .await?;
    let mut trios = Vec::new();
    for (trio, fault, _) in refused {
        eprintln!(
            "outages: {} requests refused in {}",
            fault.hits(),
            trio.tenant.namespace
        );
        ensure!(
            fault.hits() < BOUNDED,
            "a storm of {} in {}",
            fault.hits(),
            trio.tenant.namespace
        );
        trios.push(trio);
    }
    for trio in trios {
        trio.caught_up().await.with_context(|| trio.tenant.namespace.clone())?;
    }
    Ok(())
}

/// The whole hub is in trouble, one way after another.
pub(crate) async fn in_trouble(environment: &Environment, namespace: &str) -> Result<()> {
    let trio = Trio::new(environment, namespace).await?;
    let troubles = [
        ("429", Fault::refused(429, "TooManyRequests")),
        ("500", Fault::refused(500, "InternalError")),
        ("HTML", Fault::html(200)),
        ("nothing", Fault::Silent),
        ("no connection", Fault::HungUp),
    ];
    let mut overlapping = None;
    for (index, (name, trouble)) in troubles.into_iter().enumerate() {
        let before = environment.to_hub.count(|_| true);
        let watches = index > 1;
        let next = environment
            .to_hub
            .inject(trouble, move |asked| watches || asked.verb != "watch");
        drop(overlapping.replace(next));
        if index == 0 {
            trio.disturb().await?;
            trio.waits_in_sight().await?;
        }
        if watches {
            environment.to_hub.cut();
        }
        always(
            &format!("nothing is lost while the hub answers {name}"),
            LOOK,
            async || trio.stands().await,
        )
        .await?;
        let asked = environment.to_hub.count(|_| true) - before;
        eprintln!("outages: {asked} requests while the hub answered {name}");
        ensure!(asked < BOUNDED, "a storm of {asked} while the hub answers {name}");
    }
    drop(overlapping);
    trio.caught_up().await
}
