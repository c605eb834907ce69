//! Slots of a WorkloadDeployment in its cell: one Instance each, named `<deployment>-<ordinal>`.

use std::collections::BTreeSet;

use popcell_api::annotations;

use crate::object::{Fields, Object};
use crate::sizing::{self, Described};

/// Most slots that a WorkloadDeployment may ask for, as many as admission accepts for a Workload. What asks for more is
/// read as this many, so that no number in a spec can exhaust the process.
pub const MOST: i64 = 1000;

/// Name of the Instance of a slot.
pub fn instance_name(deployment: &str, ordinal: i64) -> String {
    format!("{}{ordinal}", prefix(deployment))
}

/// The slot that a name stands for in a WorkloadDeployment; `None` where it is no name of ours, such as `web-01` or
/// `other-1`.
pub fn ordinal_of(deployment: &str, instance: &str) -> Option<i64> {
    let digits = instance.strip_prefix(deployment)?.strip_prefix('-')?;
    let ordinal: i64 = digits.parse().ok().filter(|ordinal| *ordinal >= 0)?;
    (digits == ordinal.to_string()).then_some(ordinal)
}

/// The name of the WorkloadDeployment in which a name stands for a slot ([`ordinal_of`]); there is one at most.
pub fn deployment_of(instance: &str) -> Option<&str> {
    let (deployment, _) = instance.rsplit_once('-')?;
    ordinal_of(deployment, instance).map(|_| deployment)
}

/// What the names of all slots of a WorkloadDeployment begin with, and few others.
pub fn prefix(deployment: &str) -> String {
    format!("{deployment}-")
}

/// How many slots are asked for in the cell: `spec.replicas`, which an autoscaler of the cell writes, within
/// `minReplicas` and [`most`]; `minReplicas` where there is none. 0 while the WorkloadDeployment is being deleted.
pub fn desired(deployment: &Object) -> i64 {
    let (least, most) = (least(deployment), most(deployment));
    deployment
        .int("/spec/replicas")
        .map_or(least, |asked| asked.clamp(least, most))
}

/// How many slots always run: `minReplicas` within 0..=[`MOST`]; 0 while the WorkloadDeployment is being deleted.
pub fn least(deployment: &Object) -> i64 {
    bounds_of(deployment).0
}

/// How many slots there may be, whatever an autoscaler asks for: `maxReplicas`, and no fewer than [`least`].
pub fn most(deployment: &Object) -> i64 {
    bounds_of(deployment).1
}

fn bounds_of(deployment: &Object) -> (i64, i64) {
    if deployment.deleting() {
        return (0, 0);
    }
    let number = |field: &str| deployment.int(&format!("/spec/scaleSettings/{field}"));
    bounds(number("minReplicas"), number("maxReplicas"))
}

/// `minReplicas` and `maxReplicas` as they count: within 0..=[`MOST`], and without a most it is the least.
pub(crate) fn bounds(least: Option<i64>, most: Option<i64>) -> (i64, i64) {
    let least = least.unwrap_or_default().clamp(0, MOST);
    (least, most.unwrap_or_default().clamp(least, MOST))
}

/// How many slots are asked for as far as a plane knows that is not the cell: `spec.replicas` is in the cell only, so what
/// the cell reported counts, within [`least`] and [`most`].
pub fn reported(deployment: &Object) -> i64 {
    let (least, most) = (least(deployment), most(deployment));
    deployment
        .int("/status/desiredReplicas")
        .map_or(least, |reported| reported.clamp(least, most))
}

/// Slots whose claim was granted to an Instance of this size, as the WorkloadDeployment remembers them. What is
/// no ordinal in the list is skipped.
pub fn granted(deployment: &Object, described: Option<Described<'_>>) -> BTreeSet<i64> {
    let of_size = deployment.annotation(annotations::GRANTED_SIZE);
    if of_size.is_some_and(|of_size| described.map(sizing::size).as_deref() != Some(of_size)) {
        return BTreeSet::new();
    }
    let list = deployment.annotation(annotations::GRANTED_SLOTS).unwrap_or_default();
    list.split(',')
        .filter_map(|one| one.trim().parse().ok())
        .filter(|ordinal| (0..MOST).contains(ordinal))
        .collect()
}

/// The list as it is written; `None` for the empty one, which has no annotation.
pub fn granted_list(slots: &BTreeSet<i64>) -> Option<String> {
    let list: Vec<String> = slots.iter().map(ToString::to_string).collect();
    (!list.is_empty()).then(|| list.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::object;
    use serde_json::json;

    #[test]
    fn only_names_that_end_in_a_canonical_ordinal_are_slots() {
        for (name, ordinal) in [
            ("web-0", Some(0)),
            ("web-12", Some(12)),
            ("web-012", None),
            ("web-+1", None),
            ("web--1", None),
            ("web-", None),
            ("web", None),
            ("web-a", None),
            ("webs-1", None),
            ("other-1", None),
            ("web-99999999999999999999", None),
        ] {
            assert_eq!(ordinal_of("web", name), ordinal, "{name}");
        }
        assert_eq!(ordinal_of("web", &instance_name("web", 7)), Some(7));
        for (name, deployment) in [
            ("web-0", Some("web")),
            ("web-1-12", Some("web-1")),
            ("web-01", None),
            ("web-", None),
            ("web", None),
        ] {
            assert_eq!(deployment_of(name), deployment, "{name}");
        }
    }

    #[test]
    fn what_is_asked_for_is_bounded() {
        let asks = |spec: serde_json::Value| desired(&object(json!({ "metadata": { "name": "a" }, "spec": spec })));
        assert_eq!(asks(json!({ "scaleSettings": { "minReplicas": 3 } })), 3);
        assert_eq!(asks(json!({ "scaleSettings": { "minReplicas": -3 } })), 0);
        assert_eq!(asks(json!({ "scaleSettings": { "minReplicas": 2_000_000_000 } })), MOST);
        assert_eq!(asks(json!({ "scaleSettings": { "minReplicas": "3" } })), 0);
        assert_eq!(asks(json!(null)), 0);
        let going = json!({ "metadata": { "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "scaleSettings": { "minReplicas": 3 } } });
        assert_eq!(desired(&object(going)), 0);
    }

    #[test]
    fn what_an_autoscaler_asks_for_counts_between_least_and_most() {
        let look = |replicas: i64, settings: serde_json::Value, reported: i64| {
            let one = object(
                json!({ "metadata": { "name": "a" }, "status": { "desiredReplicas": reported },
                "spec": { "replicas": replicas, "scaleSettings": settings } }),
            );
            [desired(&one), least(&one), most(&one), super::reported(&one)]
        };
        let bounds = |least: i64, most: i64| json!({ "minReplicas": least, "maxReplicas": most });
        assert_eq!(look(3, bounds(2, 5), 4), [3, 2, 5, 4]);
        assert_eq!(look(0, bounds(2, 5), 0), [2, 2, 5, 2]);
        assert_eq!(look(9, bounds(2, 5), 9), [5, 2, 5, 5]);
        // Without room it does not count.
        assert_eq!(look(9, json!({ "minReplicas": 2 }), 9), [2, 2, 2, 2]);
        assert_eq!(look(9, bounds(2, 1), 9), [2, 2, 2, 2]);
        assert_eq!(look(i64::MAX, bounds(2, i64::MAX), 9), [MOST, 2, MOST, 9]);
        assert_eq!(look(9, bounds(-1, -5), 9), [0, 0, 0, 0]);
    }

    #[test]
    fn granted_slots_are_read_as_they_are_written() {
        let with = |list: &str| {
            let annotations = json!({ "compute.datumapis.com/granted-slots": list });
            let deployment = object(json!({ "metadata": { "name": "a", "annotations": annotations } }));
            granted(&deployment, None)
        };
        let slots = BTreeSet::from([0, 2, 10]);
        assert_eq!(granted_list(&slots).as_deref(), Some("0,2,10"));
        assert_eq!(with("0,2,10"), slots);
        assert_eq!(with("10, x,2,-1,,0,1000"), slots);
        assert_eq!(granted_list(&with("")), None);
    }
}
