//! What is to be done for an Instance next: a pure function of the Instance, its Pod and the time.
//!
//! - Nothing is made while a gate is left, and nothing without our finalizer.
//! - A Pod that runs is never changed. One that has ended is replaced, later each time in a row; one that is gone is made again.
//! - Only a Pod that the Instance controls, by uid, is deleted; another of its name is reported and kept.
//! - The finalizer is removed only after a live read that finds no Pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use popcell_api::conditions::reasons;
use popcell_api::finalizers;
use serde_json::Value;

use crate::conditions::{self, Report};
use crate::pod::{self, Manifest, Settings};

/// The first Pod that has ended waits so long for its replacement, and each further one twice as long as the one before.
const FIRST_DELAY: Duration = Duration::from_secs(10);
/// The longest that one waits.
const LONGEST_DELAY: Duration = Duration::from_mins(5);
/// A Pod that was there for so long begins the row again.
const STEADY: Duration = Duration::from_mins(10);
/// No event reports that a Pod of another owner is gone, so it is looked for after this time.
const FOREIGN: Duration = Duration::from_secs(30);

/// Where an Instance names its gates.
pub const GATES: &str = "/spec/controller/schedulingGates";

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing but what is reported.
    None,
    /// Our finalizer is set; the event of that brings the next step.
    AddFinalizer,
    /// The Pod is created.
    Create(Box<Manifest>),
    /// The Pod of this uid has ended: it is deleted, and another is created.
    Replace(String, Box<Manifest>),
    /// The Pod of this uid is deleted.
    Delete(String),
    /// If a live read finds no Pod either, our finalizer is removed.
    Release,
}

/// What is to be done, what is to be reported, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// To do, before the report.
    pub step: Step,
    /// What the status says.
    pub report: Option<Report>,
    /// After how long to decide again without an event.
    pub requeue: Option<Duration>,
}

impl Decision {
    fn only(step: Step) -> Self {
        Self {
            step,
            report: None,
            requeue: None,
        }
    }

    fn reporting(step: Step, report: Report) -> Self {
        Self {
            step,
            requeue: report.requeue,
            report: Some(report),
        }
    }
}

/// Whether a Pod may have to be made, which is what the template is read for.
pub fn may_make(instance: &DynamicObject, pod: Option<&Pod>) -> bool {
    let is_needed = pod.is_none_or(conditions::has_ended);
    is_needed && instance.metadata.deletion_timestamp.is_none() && !is_gated(instance)
}

/// What is to be done for an Instance; `pod` is the Pod of its name, as last seen.
pub fn decide(instance: &DynamicObject, pod: Option<&Pod>, settings: &Settings, now: Timestamp) -> Decision {
    let is_held = instance.finalizers().iter().any(|one| one == finalizers::POD_PROVIDER);
    let own = pod.filter(|pod| pod::is_of(pod, instance));
    if instance.metadata.deletion_timestamp.is_some() {
        return match own {
            _ if !is_held => Decision::only(Step::None),
            None => Decision::only(Step::Release),
            Some(pod) => Decision::reporting(delete(pod), Report::stopping()),
        };
    }
    if is_gated(instance) {
        return Decision::only(Step::None);
    }
    let Some(pod) = pod else {
        return match pod::manifest(instance, settings, 0) {
            Ok(_) if !is_held => Decision::only(Step::AddFinalizer),
            Ok(manifest) => Decision::only(Step::Create(Box::new(manifest))),
            Err(refusal) => refused(&refusal.to_string()),
        };
    };
    if own.is_none() {
        return foreign(pod);
    }
    if !is_held {
        return Decision::only(Step::AddFinalizer);
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Decision::reporting(Step::None, Report::stopping());
    }
    let report = Report::of(pod, instance, now);
    if conditions::has_ended(pod) {
        return replace(instance, pod, report, settings, now);
    }
    Decision::reporting(Step::None, report)
}

/// The status of an Instance that no Pod can be, until it is changed.
fn refused(why: &str) -> Decision {
    Decision::reporting(Step::None, Report::waiting(reasons::CONFIGURATION_ERROR, why))
}

fn foreign(pod: &Pod) -> Decision {
    let name = pod.name_any();
    let report = if pod::is_of_an_instance(pod) {
        let message = format!("Pod {name} of an earlier Instance of this name is still there");
        Report::waiting(reasons::PROVISIONING, message)
    } else {
        let message = format!("Pod {name} has another owner: delete it, or rename the Workload");
        Report::waiting(reasons::CONFIGURATION_ERROR, message)
    };
    Decision {
        requeue: Some(FOREIGN),
        ..Decision::reporting(Step::None, report)
    }
}

fn delete(pod: &Pod) -> Step {
    match &pod.metadata.uid {
        Some(uid) if pod.metadata.deletion_timestamp.is_none() => Step::Delete(uid.clone()),
        _ => Step::None,
    }
}

fn replace(instance: &DynamicObject, pod: &Pod, report: Report, settings: &Settings, now: Timestamp) -> Decision {
    let ended = conditions::ended_at(pod).unwrap_or(now);
    let began = pod.metadata.creation_timestamp.as_ref().map_or(ended, |time| time.0);
    let lived = Duration::try_from(ended.duration_since(began)).unwrap_or_default();
    let row = if lived < STEADY { pod::replacements(pod) } else { 0 };
    let delay = FIRST_DELAY
        .saturating_mul(2_u32.saturating_pow(row.min(16)))
        .min(LONGEST_DELAY);
    let waited = Duration::try_from(now.duration_since(ended)).unwrap_or_default();
    let report = report.adding(&format!("it is replaced after {} s", delay.as_secs()));
    if let Some(left) = delay.checked_sub(waited).filter(|left| !left.is_zero()) {
        return Decision {
            requeue: Some(left),
            ..Decision::reporting(Step::None, report)
        };
    }
    let uid = pod.metadata.uid.clone().unwrap_or_default();
    match pod::manifest(instance, settings, row.saturating_add(1)) {
        Ok(manifest) => Decision::only(Step::Replace(uid, Box::new(manifest))),
        Err(refusal) => refused(&refusal.to_string()),
    }
}

/// Whether anything must happen before the Instance may start. What cannot be read is a gate: the schema has none such.
fn is_gated(instance: &DynamicObject) -> bool {
    match instance.data.pointer(GATES) {
        None | Some(Value::Null) => false,
        Some(Value::Array(gates)) => !gates.is_empty(),
        Some(_) => true,
    }
}

#[cfg(test)]
mod tests;
