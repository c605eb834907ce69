//! Status of a Workload: sums over its WorkloadDeployments, by placement and in all.

use std::collections::BTreeMap;

use jiff::Timestamp;
use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::kind;
use serde_json::{Map, Value, json};

use super::desired::{Slot, Trouble};
use crate::conditions::{self, COUNTS, Condition, priority};
use crate::object::{Fields, Object};
use crate::{fields, paused};

/// What is looked at of a WorkloadDeployment.
pub(super) const LOOKS_AT: [&str; 3] = ["/spec/cityCode", "/spec/placementName", "/status"];

/// What the reconcile found beside the WorkloadDeployments.
#[derive(Debug)]
pub(super) struct Report {
    /// Every WorkloadDeployment is, or is being, written as this generation asks for.
    pub(super) settled: bool,
    /// WorkloadDeployments that this plan creates.
    pub(super) created: u32,
    pub(super) troubles: Vec<Trouble>,
    /// Nothing goes on before this is solved.
    pub(super) blocked: Option<(&'static str, String)>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            settled: true,
            created: 0,
            troubles: Vec::new(),
            blocked: None,
        }
    }
}

impl Report {
    pub(super) fn blocked(reason: &'static str, message: String) -> Self {
        Self {
            settled: false,
            blocked: Some((reason, message)),
            ..Self::default()
        }
    }
}

/// The whole status; fields and conditions of others stay as they are.
pub(super) fn render(
    workload: &Object,
    slots: &[Slot<'_>],
    deployments: &[&Object],
    report: &Report,
    now: Timestamp,
) -> Value {
    let old = workload.at("/status");
    let mut status = old.and_then(Value::as_object).cloned().unwrap_or_default();
    let observed = if report.settled {
        workload.generation()
    } else {
        workload.int("/status/observedGeneration")
    };
    put_counts(&mut status, deployments);
    let count = deployments.len().saturating_add(report.created as usize);
    status.insert(
        "deployments".to_owned(),
        json!(i32::try_from(count).unwrap_or(i32::MAX)),
    );
    if let Some(observed) = observed {
        status.insert("observedGeneration".to_owned(), json!(observed));
    }

    let rejected: Vec<Trouble> = deployments.iter().filter_map(|one| said_rejected(one)).collect();
    let mut by_placement: BTreeMap<&str, Vec<&Object>> = BTreeMap::new();
    for slot in slots {
        by_placement.entry(slot.placement).or_default();
    }
    for one in deployments {
        if let Some(placement) = one.text("/spec/placementName") {
            by_placement.entry(placement).or_default().push(one);
        }
    }
    let mut available = false;
    let placements: Vec<Value> = by_placement
        .into_iter()
        .map(|(name, members)| {
            let serves = members.iter().any(|one| is_available(one));
            available |= serves;
            let troubles: Vec<_> = report
                .troubles
                .iter()
                .chain(&rejected)
                .filter(|one| one.placement == name)
                .collect();
            let old = old_placement(workload, name);
            let condition = placement_condition(serves, &troubles).render(old, observed, now);
            let mut placement = old.and_then(Value::as_object).cloned().unwrap_or_default();
            placement.insert("name".to_owned(), json!(name));
            put_counts(&mut placement, &members);
            put_condition(&mut placement, condition);
            Value::Object(placement)
        })
        .collect();
    status.insert("placements".to_owned(), json!(placements));

    let condition = workload_condition(available, deployments, report, &rejected).render(old, observed, now);
    put_condition(&mut status, condition);
    fields::show(&mut status, kind::WORKLOAD, workload, observed, now);
    Value::Object(status)
}

fn placement_condition(serves: bool, troubles: &[&Trouble]) -> Condition {
    let mut reported: Vec<&str> = troubles.iter().map(|one| one.message.as_str()).collect();
    if serves {
        reported.insert(0, messages::AVAILABLE_DEPLOYMENT_FOUND);
        return Condition::new(
            types::AVAILABLE,
            true,
            reasons::AVAILABLE_DEPLOYMENT_FOUND,
            reported.join(". "),
        );
    }
    match troubles.iter().max_by_key(|one| priority(one.reason)) {
        Some(worst) => Condition::new(types::AVAILABLE, false, worst.reason, reported.join(". ")),
        None => Condition::new(
            types::AVAILABLE,
            false,
            reasons::NO_AVAILABLE_DEPLOYMENTS,
            messages::NO_AVAILABLE_DEPLOYMENTS,
        ),
    }
}

fn workload_condition(available: bool, deployments: &[&Object], report: &Report, rejected: &[Trouble]) -> Condition {
    if let Some((reason, message)) = &report.blocked {
        return Condition::new(types::AVAILABLE, false, reason, message.clone());
    }
    if available {
        // What runs is not all that was asked for: that is reported on the Workload, too.
        let refused = report.troubles.iter().filter(|one| one.reason == reasons::REJECTED);
        let mut reported: Vec<String> = refused
            .chain(rejected)
            .map(|one| format!("city {}: {}", one.city, one.message))
            .collect();
        reported.sort();
        reported.insert(0, messages::AVAILABLE_PLACEMENT_FOUND.to_owned());
        let message = reported.join("; ");
        return Condition::new(types::AVAILABLE, true, reasons::AVAILABLE_PLACEMENT_FOUND, message);
    }
    let mut worst: Vec<(u8, &str, &str, &str)> = report
        .troubles
        .iter()
        .map(|one| {
            (
                priority(one.reason),
                one.city.as_str(),
                one.reason,
                one.message.as_str(),
            )
        })
        .chain(deployments.iter().copied().filter_map(why_not))
        .collect();
    // The highest priority; among equals the first city by name, so that the message stands still.
    worst.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.cmp(right)));
    match worst.first() {
        Some((_, city, reason, message)) if conditions::needs_an_edit(reason) || *reason == reasons::REJECTED => {
            Condition::new(types::AVAILABLE, false, reason, format!("City {city}: {message}"))
        }
        Some((_, city, _, message)) => Condition::new(
            types::AVAILABLE,
            false,
            reasons::NO_AVAILABLE_PLACEMENTS,
            format!("{}: city {city}: {message}", messages::NO_AVAILABLE_PLACEMENTS),
        ),
        None => Condition::new(
            types::AVAILABLE,
            false,
            reasons::NO_AVAILABLE_PLACEMENTS,
            messages::NO_AVAILABLE_PLACEMENTS,
        ),
    }
}

/// What a server refuses of a WorkloadDeployment, below the project, whatever runs of it.
fn said_rejected(deployment: &Object) -> Option<Trouble> {
    let condition = conditions::of(deployment, types::REPLICAS_READY)?;
    let text = |pointer| deployment.text(pointer).unwrap_or_default().to_owned();
    (conditions::text(condition, "reason") == reasons::REJECTED).then(|| Trouble {
        placement: text("/spec/placementName"),
        city: text("/spec/cityCode"),
        reason: reasons::REJECTED,
        message: conditions::text(condition, "message").to_owned(),
    })
}

fn why_not(deployment: &Object) -> Option<(u8, &str, &str, &str)> {
    let condition = conditions::of(deployment, types::AVAILABLE)?;
    let reason = conditions::text(condition, "reason");
    let city = deployment.text("/spec/cityCode")?;
    Some((priority(reason), city, reason, conditions::text(condition, "message")))
}

fn is_available(deployment: &Object) -> bool {
    conditions::says(deployment, types::AVAILABLE, "True")
}

fn put_counts(fields: &mut Map<String, Value>, deployments: &[&Object]) {
    for count in COUNTS {
        let pointer = format!("/status/{count}");
        let sum = deployments
            .iter()
            .filter_map(|one| one.int(&pointer))
            .fold(0_i64, i64::saturating_add)
            .clamp(0, i64::from(i32::MAX));
        fields.insert(count.to_owned(), json!(sum));
    }
}

fn put_condition(fields: &mut Map<String, Value>, condition: Value) {
    paused::lift(fields);
    conditions::put_in(fields, condition);
}

fn old_placement<'a>(workload: &'a Object, name: &str) -> Option<&'a Value> {
    workload
        .items("/status/placements")
        .iter()
        .find(|placement| placement.get("name").and_then(Value::as_str) == Some(name))
}
