//! What is kept of an Instance while a rollout is followed: there may be thousands. Pure.

use itertools::Itertools as _;
use popcell_api::{
    conditions::{self as types, reasons},
    labels,
};
use popcell_core::{
    conditions::{of, says, text},
    object::{Fields as _, Object},
    slots,
};
use serde_json::Value;

/// Images that are named of one Instance at most.
const IMAGES: usize = 10;

/// An Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Name of its WorkloadDeployment.
    pub(super) deployment: String,
    /// Its number there; `None` where its name has none.
    pub(super) ordinal: Option<i64>,
    /// Hash of the template that it was made from; empty where it says none.
    pub(super) hash: String,
    /// Whether it is ready.
    pub(super) ready: bool,
    /// Reason and message of `Ready` where that is not True.
    pub(super) waits: Option<(String, String)>,
    /// Its images, in order.
    pub(super) images: String,
}

impl Member {
    pub(super) fn of(instance: &Object) -> Self {
        let deployment = instance
            .label(labels::WORKLOAD_DEPLOYMENT_NAME)
            .or_else(|| slots::deployment_of(instance.name()))
            .unwrap_or_default();
        let ready = says(instance, types::READY, "True") && !instance.deleting();
        let said = || {
            let condition = of(instance, types::READY)?;
            let part = |field| text(condition, field).to_owned();
            Some((part("reason"), part("message")))
        };
        let waits = if instance.deleting() {
            Some(("Terminating".to_owned(), "it is being deleted".to_owned()))
        } else {
            said().or_else(|| Some((reasons::PENDING.to_owned(), "it has no status yet".to_owned())))
        };
        Self {
            name: instance.name().to_owned(),
            ordinal: slots::ordinal_of(deployment, instance.name()),
            deployment: deployment.to_owned(),
            hash: instance
                .text("/spec/controller/templateHash")
                .unwrap_or_default()
                .to_owned(),
            ready,
            waits: waits.filter(|_| !ready),
            images: images(instance),
        }
    }

    /// Its name, and what it waits for.
    pub(super) fn waits_for(&self) -> String {
        match &self.waits {
            None => self.name.clone(),
            Some((reason, message)) => format!("{}: {reason}: {message}", self.name),
        }
    }
}

/// Images of its containers.
fn images(instance: &Object) -> String {
    let containers = instance.items("/spec/runtime/sandbox/containers").iter();
    containers
        .filter_map(|one| one.get("image").and_then(Value::as_str))
        .take(IMAGES)
        .join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_instance_says_what_it_was_made_from_and_what_it_waits_for() {
        let mut instance = json!({ "metadata": { "name": "web-us-dfw-1",
                "labels": { "compute.datumapis.com/workload-deployment-name": "web-us-dfw" } },
            "spec": { "controller": { "templateHash": "h1" },
                "runtime": { "sandbox": { "containers": [{ "image": "a" }, { "image": "b" }, {}] } } },
            "status": { "conditions": [{ "type": "Ready", "status": "False", "reason": "SchedulingGatesPresent",
                "message": "Scheduling gates present: Quota" }] } });
        let read = |value: &Value| Member::of(&serde_json::from_value(value.clone()).unwrap());
        let member = read(&instance);
        assert_eq!((member.deployment.as_str(), member.ordinal), ("web-us-dfw", Some(1)));
        assert_eq!((member.hash.as_str(), member.images.as_str()), ("h1", "a, b"));
        let waits = Some((
            "SchedulingGatesPresent".to_owned(),
            "Scheduling gates present: Quota".to_owned(),
        ));
        assert_eq!((member.ready, member.waits), (false, waits));

        instance["status"]["conditions"][0]["status"] = json!("True");
        let member = read(&instance);
        assert_eq!((member.ready, member.waits), (true, None));

        instance["metadata"]["deletionTimestamp"] = json!("2026-01-01T12:00:00Z");
        assert!(!read(&instance).ready);

        let bare = read(&json!({ "metadata": { "name": "web-us-dfw-3" } }));
        assert_eq!(
            (bare.deployment.as_str(), bare.ordinal, bare.ready),
            ("web-us-dfw", Some(3), false)
        );
    }
}
