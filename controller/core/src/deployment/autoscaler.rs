//! The HorizontalPodAutoscaler of a WorkloadDeployment in its cell: there while `maxReplicas` leaves room above `minReplicas`
//! and metrics are given. It writes `spec.replicas` by way of the subresource `scale`; how many Instances run is decided by
//! the rollout.
//!
//! - The subresource cannot be read without `spec.replicas`, so the number is there while there is room. It ends with what
//!   asked for an autoscaler; one that a client set where there never was room is kept, and reported.
//! - Of the autoscaler only target, bounds and metrics are ours: an operator may add a `behavior`.
//! - One of another owner is neither changed nor deleted.

use popcell_api::conditions::{self as types, messages, reasons};
use popcell_api::kind::{self, HORIZONTAL_POD_AUTOSCALER};
use popcell_api::labels;
use popcell_contract::quantity;
use serde_json::{Map, Value, json};

use crate::conditions::{self, Condition};
use crate::edit::Edit;
use crate::object::{Fields, Object};
use crate::observed::Observed;
use crate::plan::{Action, DeletionGuard, Note, Plan, Plane, Target};
use crate::rejection::{self, Rejection};
use crate::slots;
use crate::workload::owner;

/// What an autoscaler writes.
const REPLICAS: &str = "/spec/replicas";

/// What is reported of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Report {
    /// Nothing asks for an autoscaler: no condition.
    #[default]
    Nothing,
    /// What was reported stays: more is not known now.
    Unchanged,
    /// This.
    Says(Condition),
}

/// What the WorkloadDeployment asks for.
enum Wish {
    /// No autoscaler.
    Nothing,
    /// `spec.replicas` asks for this, and there is no room for it.
    Ignored(i64),
    /// The metric at this place has no target that an autoscaler takes.
    Unsupported(usize),
    /// One with these fields.
    Autoscaler(Map<String, Value>),
}

/// The number to begin with, which changes nothing: it is missing, and there is room for another.
pub(super) fn beginning(deployment: &Object) -> Option<i64> {
    let (least, most) = (slots::least(deployment), slots::most(deployment));
    (most > least && deployment.at(REPLICAS).is_none()).then_some(least)
}

/// Whether `spec.replicas` is left from an autoscaler that had room, and there is none now.
pub(super) fn is_left(deployment: &Object) -> bool {
    let had_room = conditions::of(deployment, types::AUTOSCALING)
        .is_some_and(|reported| conditions::text(reported, "reason") != reasons::REPLICAS_IGNORED);
    had_room && deployment.at(REPLICAS).is_some() && slots::most(deployment) <= slots::least(deployment)
}

/// Plans what makes the autoscaler what is asked for. `found` is the one at the WorkloadDeployment's name, `rejected` what the
/// server refused before.
pub(super) fn settle(
    deployment: &Object,
    found: Observed<Option<&Object>>,
    rejected: &[Rejection],
    plan: &mut Plan,
) -> Report {
    let wish = Wish::of(deployment);
    let ours = |one: &&Object| one.marked() && one.controller().is_some_and(|owner| owner.uid == deployment.uid());
    let existing = found.known().flatten();
    if !matches!(wish, Wish::Autoscaler(_))
        && let Some(old) = existing.filter(ours).filter(|one| !one.deleting())
    {
        plan.actions.push(Action::delete(
            &Plane::Cell,
            HORIZONTAL_POD_AUTOSCALER,
            old,
            Vec::new(),
            DeletionGuard::Exempt,
        ));
    }
    let says = |holds, reason, message| Report::Says(Condition::new(types::AUTOSCALING, holds, reason, message));
    let least = slots::least(deployment);
    let fields = match wish {
        Wish::Nothing => return Report::Nothing,
        Wish::Ignored(asked) => {
            return says(
                false,
                reasons::REPLICAS_IGNORED,
                messages::replicas_ignored(asked, least),
            );
        }
        Wish::Unsupported(index) => {
            return says(false, reasons::UNSUPPORTED_METRIC, messages::unsupported_metric(index));
        }
        Wish::Autoscaler(fields) => fields,
    };
    let name = deployment.name();
    let wanted = match found {
        Observed::Unknown if conditions::of(deployment, types::AUTOSCALING).is_some() => return Report::Unchanged,
        Observed::Unknown => {
            let reason = reasons::AUTOSCALERS_UNKNOWN;
            let condition = Condition::new(types::AUTOSCALING, false, reason, messages::AUTOSCALERS_UNKNOWN);
            return Report::Says(Condition {
                status: "Unknown",
                ..condition
            });
        }
        Observed::Known(None) => Some(create(deployment, &fields)),
        Observed::Known(Some(one)) if !ours(&one) => {
            plan.notes
                .push(Note::Foreign(Target::of(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, one)));
            let message = messages::held_by_another(HORIZONTAL_POD_AUTOSCALER.kind, name);
            return says(false, reasons::NAME_CONFLICT, message);
        }
        Observed::Known(Some(one)) if one.deleting() => {
            plan.notes
                .push(Note::WaitsFor(Target::of(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, one)));
            return Report::Unchanged;
        }
        Observed::Known(Some(one)) => update(one, fields),
    };
    let refused = wanted
        .as_ref()
        .and_then(|action| rejection::of_action(action, rejected));
    plan.best_effort.extend(wanted);
    match refused {
        Some(refused) => says(false, reasons::REJECTED, refused.message()),
        // Nothing is said before it is there.
        None if existing.is_none() => Report::Unchanged,
        None => {
            let message = messages::scales_between(name, least, slots::most(deployment));
            says(true, reasons::AUTOSCALER_CREATED, message)
        }
    }
}

fn create(deployment: &Object, fields: &Map<String, Value>) -> Action {
    let mut object = Object::new(deployment.name(), &HORIZONTAL_POD_AUTOSCALER.resource())
        .within(deployment.namespace())
        .data(json!({ "spec": fields }));
    let mark = (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_POPCELL.to_owned());
    object.metadata.labels = Some([mark].into());
    object.metadata.owner_references = Some(vec![owner(kind::WORKLOAD_DEPLOYMENT, deployment, true)]);
    Action::create(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, object)
}

fn update(existing: &Object, fields: Map<String, Value>) -> Option<Action> {
    let mut edit = Edit::of(&Plane::Cell, HORIZONTAL_POD_AUTOSCALER, existing);
    for (field, value) in fields {
        let stored = existing.at("/spec").and_then(|spec| spec.get(&field));
        if !stored.is_some_and(|stored| alike(stored, &value)) {
            edit = edit.set(&["spec", &field], value);
        }
    }
    edit.action()
}

/// Whether two values are one, where two spellings of a quantity are: servers write `1` for `1000m`.
fn alike(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            stored.len() == wanted.len()
                && wanted
                    .iter()
                    .all(|(key, value)| stored.get(key).is_some_and(|stored| alike(stored, value)))
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len() && stored.iter().zip(wanted).all(|(stored, wanted)| alike(stored, wanted))
        }
        (Value::String(stored), Value::String(wanted)) => {
            let same = quantity::nano(stored).zip(quantity::nano(wanted));
            stored == wanted || same.is_some_and(|(stored, wanted)| stored == wanted)
        }
        _ => stored == wanted,
    }
}

impl Wish {
    fn of(deployment: &Object) -> Self {
        let (least, most) = (slots::least(deployment), slots::most(deployment));
        if most <= least {
            let asked = deployment.int(REPLICAS).filter(|asked| *asked > least);
            let asked = asked.filter(|_| !is_left(deployment));
            return asked.map_or(Self::Nothing, Self::Ignored);
        }
        let metrics = deployment.items("/spec/scaleSettings/metrics");
        // Whoever scales it without metrics of ours needs no autoscaler of ours.
        if metrics.is_empty() {
            return Self::Nothing;
        }
        let mut resources = Vec::new();
        for (index, metric) in metrics.iter().enumerate() {
            match resource(metric) {
                Some(resource) => resources.push(json!({ "type": "Resource", "resource": resource })),
                None => return Self::Unsupported(index),
            }
        }
        let target = json!({
            "apiVersion": kind::WORKLOAD_DEPLOYMENT.api_version(),
            "kind": kind::WORKLOAD_DEPLOYMENT.kind,
            "name": deployment.name(),
        });
        let fields = [
            ("scaleTargetRef", target),
            // Kubernetes takes 0 behind a feature gate only, and then needs another metric.
            ("minReplicas", json!(least.max(1))),
            ("maxReplicas", json!(most)),
            ("metrics", json!(resources)),
        ];
        Self::Autoscaler(
            fields
                .into_iter()
                .map(|(field, value)| (field.to_owned(), value))
                .collect(),
        )
    }
}

/// A resource metric as autoscaling/v2 writes it. It takes an average, by amount or in percent, and no sum.
fn resource(metric: &Value) -> Option<Value> {
    let name = metric.pointer("/resource/name")?.as_str()?;
    let target = metric.pointer("/resource/target")?;
    let target = match (target.get("averageUtilization"), target.get("averageValue")) {
        (Some(percent), None) => json!({ "type": "Utilization", "averageUtilization": percent.as_i64()? }),
        (None, Some(amount)) => json!({ "type": "AverageValue", "averageValue": amount }),
        _ => return None,
    };
    Some(json!({ "name": name, "target": target }))
}
