//! One owner of many objects that start one after the other, and are replaced one after the other: by popcell, and by its
//! peers.

use std::time::Instant;

use anyhow::Result;
use kube::api::DynamicObject;
use popcell_api::annotations;
use popcell_benches::{MillisSince, StatusWatch, Times, is};
use popcell_suites::read::{at, is_ready};
use popcell_test_support::Kind;
use popcell_test_support::kind::{INSTANCE, WORKLOAD_DEPLOYMENT};
use serde_json::{Value, json};

use crate::environment::{BELOW, Environment, REFUSALS, StandIns};
use crate::plan::Plan;
use crate::results::{Ordered, Who};

/// The owner that is measured, and one before it: what a namespace costs once is not what is measured.
pub(crate) const NAME: &str = "ordered";
pub(crate) const WARM: &str = "warm";

/// Who keeps objects in order, and which objects.
pub(crate) struct Owners {
    pub(crate) who: Who,
    pub(crate) owner: Kind,
    pub(crate) owned: Kind,
    pub(crate) namespace: &'static str,
    pub(crate) is_ready: fn(&DynamicObject) -> bool,
}

impl Owners {
    /// Starts and rolls one owner in the cell. `make` makes one of a name with so many objects, and answers when it was sent.
    pub(crate) async fn measure(
        &self,
        environment: &Environment,
        slots: i32,
        make: impl AsyncFn(&str, i32) -> Result<Instant>,
    ) -> Result<Ordered> {
        let mut owners = StatusWatch::of(&environment.cell, self.owner).await?;
        make(WARM, 1).await?;
        owners.of_one(|one| self.is_done(one, WARM, 1)).await?;

        let mut owned = StatusWatch::of(&environment.cell, self.owned).await?;
        let sent = make(NAME, slots).await?;
        let done = owners.of_one(|one| self.is_done(one, NAME, slots)).await?;
        let start_seconds = done.millis_since(sent) / 1e3;
        let mut ready = Vec::new();
        for ordinal in 0..slots {
            let name = format!("{NAME}-{ordinal}");
            let runs = |one: &DynamicObject| is(one, self.namespace, &name) && (self.is_ready)(one);
            ready.push(owned.of_one(runs).await?);
        }
        let steps = ready.iter().zip(ready.iter().skip(1));
        let steps = steps.map(|(one, next)| next.millis_since(*one)).collect();

        let restarted = json!({ annotations::RESTARTED_AT: "2026-01-01T00:00:00Z" });
        let patch = json!({ "spec": { "template": { "metadata": { "annotations": restarted } } } });
        let sent = Instant::now();
        let cell = &environment.cell;
        let patched = cell.merge(self.owner, Some(self.namespace), NAME, &patch).await?;
        let generation = patched.metadata.generation;
        let rolled = |one: &DynamicObject| one.metadata.generation == generation && self.is_done(one, NAME, slots);
        let done = owners.of_one(rolled).await?;
        Ok(Ordered {
            who: self.who,
            start_seconds,
            roll_seconds: done.millis_since(sent) / 1e3,
            steps: Times::of(steps),
        })
    }

    /// Whether all objects are ready and of the template that their owner has now.
    fn is_done(&self, owner: &DynamicObject, name: &str, slots: i32) -> bool {
        let all = Value::from(slots);
        let counts = ["replicas", "readyReplicas", "updatedReplicas"];
        is(owner, self.namespace, name)
            && counts
                .iter()
                .all(|count| *at(owner, &format!("/status/{count}")) == all)
            && at(owner, "/status/observedGeneration").as_i64() == owner.metadata.generation
    }
}

/// popcell: a WorkloadDeployment of many Instances, with stand-ins that take no time of their own.
pub(crate) async fn measure(environment: &Environment, plan: &Plan) -> Result<Ordered> {
    let owners = Owners {
        who: Who::Popcell,
        owner: WORKLOAD_DEPLOYMENT,
        owned: INSTANCE,
        namespace: BELOW,
        is_ready: |one| is_ready(one).is_ok(),
    };
    let _stand_ins = StandIns::start(environment);
    let mut controller = environment.controller().await?;
    let make = async |name: &str, slots: i32| environment.deployment(name, slots).await;
    let ordered = owners.measure(environment, plan.slots, make).await?;
    environment.clean().await?;
    controller.expect_log_without(&REFUSALS)?;
    controller.end()?;
    Ok(ordered)
}
