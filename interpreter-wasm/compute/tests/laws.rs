//! The interpreter's laws on generated WorkloadDeployments.

#![expect(
    clippy::expect_used,
    reason = "clippy exempts test functions only, not what they share"
)]

mod generated;

use compute_interpreter::WorkloadDeployment;
use generated::{any_json, broken_deployment, deployment, items, object};
use popcell_sdk::prelude::*;
use proptest::prelude::*;

fn revised(mut object: Object, replicas: i32) -> Result<Object> {
    WorkloadDeployment::revise(&mut object, replicas)?;
    Ok(object)
}

fn retained(mut desired: Object, observed: &Object) -> Result<Object> {
    WorkloadDeployment::retain(&mut desired, observed)?;
    Ok(desired)
}

fn aggregated(mut object: Object, items: &[StatusItem]) -> Result<Object> {
    WorkloadDeployment::aggregate(&mut object, items)?;
    Ok(object)
}

fn without(mut object: Object, pointers: &[&str]) -> Object {
    for pointer in pointers {
        object.remove(pointer).expect("parents are objects");
    }
    object
}

fn item(cluster: &str, status: &Json) -> StatusItem {
    StatusItem {
        cluster_name: cluster.to_owned(),
        status: Some(status.clone()),
        applied: true,
        applied_message: String::new(),
        health: None,
    }
}

proptest! {
    #[test]
    fn revise_then_replicas_is_the_number(value in deployment(), replicas in 0..=i32::MAX) {
        let object = object(&value);
        let answer = revised(object.clone(), replicas)?;
        prop_assert_eq!(WorkloadDeployment::replicas(&answer)?.replicas, i64::from(replicas));
        if let Some(maximum) = answer.int("/spec/scaleSettings/maxReplicas")? {
            prop_assert!((i64::from(replicas)..=i64::from(i32::MAX)).contains(&maximum));
        }
        let revised_fields = ["/spec/scaleSettings/minReplicas", "/spec/scaleSettings/maxReplicas"];
        prop_assert_eq!(without(answer, &revised_fields), without(object, &revised_fields));
    }

    #[test]
    fn requirements_only_above_zero(value in deployment()) {
        let answer = WorkloadDeployment::replicas(&object(&value))?;
        prop_assert_eq!(answer.requirements.is_some(), answer.replicas > 0);
    }

    #[test]
    fn retain_is_idempotent(desired in deployment(), observed in deployment()) {
        let observed = object(&observed);
        let once = retained(object(&desired), &observed)?;
        prop_assert_eq!(retained(once.clone(), &observed)?, once.clone());
        prop_assert_eq!(without(once, &["/spec/replicas"]), without(object(&desired), &["/spec/replicas"]));
    }

    #[test]
    fn retain_of_equal_objects_changes_nothing(value in deployment()) {
        let object = object(&value);
        prop_assert_eq!(retained(object.clone(), &object)?, object);
    }

    #[test]
    fn status_is_total_and_loses_nothing(value in deployment()) {
        let object = object(&value);
        let answer = WorkloadDeployment::status(&object)?;
        prop_assert!(answer.is_object());
        for (key, field) in object.fields("/status")?.into_iter().flatten() {
            prop_assert_eq!(answer.member(key), Some(field));
        }
    }

    #[test]
    fn aggregate_does_not_depend_on_the_order_of_items(
        value in deployment(),
        (items, shuffled) in items().prop_flat_map(|items| (Just(items.clone()), Just(items).prop_shuffle())),
    ) {
        let object = object(&value);
        let answer = aggregated(object.clone(), &items)?;
        let other = aggregated(object, &shuffled)?;
        prop_assert_eq!(answer.to_text(), other.to_text());
    }

    #[test]
    fn aggregate_fed_with_its_answer_changes_nothing(value in deployment(), items in items()) {
        let answer = aggregated(object(&value), &items)?;
        let again = aggregated(answer.clone(), &items)?;
        prop_assert_eq!(again.to_text(), answer.to_text());
    }

    #[test]
    fn aggregate_touches_the_status_only(value in deployment(), items in items()) {
        let object = object(&value);
        let answer = aggregated(object.clone(), &items)?;
        prop_assert_eq!(without(answer, &["/status"]), without(object, &["/status"]));
    }

    #[test]
    fn aggregated_conditions_keep_the_schema(items in items(), value in deployment()) {
        prop_assume!(items.iter().any(|item| item.status.is_some()));
        let object = object(&value);
        let answer = aggregated(object.clone(), &items)?;
        prop_assume!(answer != object);
        let observed = answer.int("/status/observedGeneration")?;
        let mut seen = Vec::new();
        for condition in answer.items("/status/conditions")?.unwrap_or_default() {
            let kind = condition.text("/type")?.map(str::to_owned);
            prop_assert!(kind.is_some() && !seen.contains(&kind), "{:?} twice", kind);
            seen.push(kind);
            prop_assert!(condition.text("/message")?.is_some_and(|message| message.len() <= 1024));
            prop_assert_eq!(condition.int("/observedGeneration")?, observed);
        }
    }

    /// Karmada aggregates what InterpretStatus answered: one cell's own status arrives whole.
    #[test]
    fn the_status_of_one_member_arrives_whole(member in deployment(), hub in deployment()) {
        let (member, hub) = (object(&member), object(&hub));
        let reflected = WorkloadDeployment::status(&member)?;
        let answer = aggregated(hub.clone(), &[item("dfw-1", &reflected)])?;
        let fields: Vec<_> = member.fields("/status")?.into_iter().flatten().filter(|(_, value)| !value.is_null()).collect();
        if fields.is_empty() {
            prop_assert_eq!(answer, hub);
            return Ok(());
        }
        for (key, value) in fields {
            if !["conditions", "observedGeneration"].contains(&key) {
                prop_assert_eq!(answer.get("/status").and_then(|status| status.member(key)), Some(value));
            }
        }
    }

    #[test]
    fn dependencies_come_once_in_order_and_from_the_own_namespace(value in deployment()) {
        let answer = WorkloadDeployment::dependencies(&object(&value))?;
        let names: Vec<_> = answer.iter().map(|one| (&one.kind, &one.name)).collect();
        prop_assert!(answer.iter().all(|one| one.namespace.as_deref() == Some("ns-1") && one.name.is_some()));
        prop_assert!(answer.iter().any(|one| one.kind == "Network"));
        prop_assert!(names.iter().enumerate().all(|(index, one)| !names[..index].contains(one)), "{:?}", names);
        let again = WorkloadDeployment::dependencies(&object(&value))?;
        prop_assert_eq!(again, answer);
    }

    #[test]
    fn no_operation_traps_on_broken_objects(value in broken_deployment(), other in broken_deployment(), n in any::<i32>()) {
        let (object, other) = (object(&value), object(&other));
        let _ = WorkloadDeployment::replicas(&object);
        let _ = WorkloadDeployment::health(&object);
        if let Ok(found) = WorkloadDeployment::dependencies(&object) {
            prop_assert!(found.iter().all(|one| one.name.as_ref().is_some_and(|name| !name.is_empty())));
        }
        if let Ok(status) = WorkloadDeployment::status(&object) {
            prop_assert!(status.is_object());
        }
        if let Ok(answer) = revised(object.clone(), n) {
            prop_assert_eq!(WorkloadDeployment::replicas(&answer).map_or(i64::from(n), |answer| answer.replicas), i64::from(n));
        }
        if let Ok(once) = retained(object.clone(), &other) {
            prop_assert_eq!(retained(once.clone(), &other)?, once);
        }
    }

    #[test]
    fn aggregate_is_lawful_on_any_status(value in broken_deployment(), a in any_json(), b in any_json()) {
        let object = object(&value);
        let parse = |value: &serde_json::Value| Json::parse(value.to_string()).expect("generated JSON");
        let (first, second) = (item("dfw-1", &parse(&a)), item("dfw-2", &parse(&b)));
        let answer = aggregated(object.clone(), &[first.clone(), second.clone()]);
        let other = aggregated(object, &[second.clone(), first.clone()]);
        prop_assert_eq!(answer.is_ok(), other.is_ok());
        if let (Ok(answer), Ok(other)) = (answer, other) {
            prop_assert_eq!(answer.to_text(), other.to_text());
            prop_assert_eq!(aggregated(answer.clone(), &[first, second])?.to_text(), answer.to_text());
        }
    }
}
