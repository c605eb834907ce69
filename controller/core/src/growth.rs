//! What goes on while a gate says "nothing new here": what takes away and what mends.
//!
//! A gate is a rule for growth: a Network that is missing, a city whose binding is lost. What runs is as it was agreed on
//! before, so the user can make it smaller or correct it all the same.

use popcell_contract::quantity;
use serde_json::Value;

use crate::sizing::{self, Described, TYPE, UNCOUNTED};
use crate::slots;
use crate::workload::lowered;

const LEAST: &str = "/scaleSettings/minReplicas";
const MOST: &str = "/scaleSettings/maxReplicas";
/// Where the spec of an Instance stands.
const INSTANCE: &str = "/template/spec";
/// The size of a disk.
const STORAGE: &str = "storage";
/// Labels and annotations of the template say nothing about what is needed.
const METADATA: &str = "metadata";

/// The spec of a WorkloadDeployment to write in place of `stored` while growth is held. A change that adds nothing is
/// carried whole; of one that adds something, only fewer replicas are: a part of a change was not requested.
pub(crate) fn held(stored: Described<'_>, desired: Described<'_>) -> Value {
    let takes_more = match (instance(stored), instance(desired)) {
        (Some(stored), Some(desired)) => takes_more(stored, desired),
        _ => false,
    };
    let (stored, desired) = (stored.spec, desired.spec);
    if takes_more || grows(stored, desired) {
        return lowered(stored, desired);
    }
    let number = |spec: &Value, path: &str| spec.pointer(path).and_then(Value::as_i64);
    let (Some(least), Some(_)) = (number(stored, LEAST), number(desired, LEAST)) else {
        return lowered(stored, desired);
    };
    let (_, most) = slots::bounds(Some(least), number(stored, MOST));
    let mut spec = desired.clone();
    for (path, agreed) in [(LEAST, least), (MOST, most)] {
        if number(desired, path).is_some_and(|asked| asked > agreed)
            && let Some(place) = spec.pointer_mut(path)
        {
            *place = Value::from(agreed);
        }
    }
    spec
}

/// Of a WorkloadDeployment, what its Instances are.
fn instance(deployment: Described<'_>) -> Option<Described<'_>> {
    let spec = deployment.spec.pointer(INSTANCE)?;
    Some(Described { spec, ..deployment })
}

/// Whether the spec of an Instance has something that the stored one lacks, or more of it.
pub(crate) fn adds(stored: Described<'_>, desired: Described<'_>) -> bool {
    grows(stored.spec, desired.spec) || takes_more(stored, desired)
}

/// Whether an Instance would take more processor time or memory, in whatever way that is said. Of two types whose size is not
/// known it is unknown which is larger.
fn takes_more(stored: Described<'_>, desired: Described<'_>) -> bool {
    let (before, now) = (sizing::requests(stored), sizing::requests(desired));
    let had = |resource: &str| {
        before
            .iter()
            .find(|(one, _)| *one == resource)
            .map(|(_, amount)| *amount)
    };
    let is_other_type = stored.spec.pointer(TYPE) != desired.spec.pointer(TYPE);
    now.iter()
        .any(|(resource, amount)| Some(*amount) > had(resource) || is_other_type && *amount == UNCOUNTED)
}

/// Whether a value has a field or an entry that the stored one lacks, or a larger disk. Any other value in the place of one
/// does not count.
fn grows(stored: &Value, desired: &Value) -> bool {
    match (stored, desired) {
        (Value::Object(stored), Value::Object(desired)) => desired
            .iter()
            .filter(|(key, value)| *key != METADATA && !is_empty(value))
            .any(|(key, value)| {
                let grew = |stored| grows(stored, value) || key == STORAGE && is_larger(stored, value);
                stored.get(key).is_none_or(grew)
            }),
        (Value::Array(stored), Value::Array(desired)) => list_grows(stored, desired),
        (Value::Null, desired) => !is_empty(desired),
        _ => false,
    }
}

/// Entries with a name are compared by it. One without is compared with the first that it may have come from, after those
/// of the entries before it: what is left of a list has its order. A list of words, such as a command, is one value.
fn list_grows(stored: &[Value], desired: &[Value]) -> bool {
    if !desired.iter().all(Value::is_object) {
        return false;
    }
    let mut left = stored.iter();
    desired.iter().any(|entry| match name(entry) {
        Some(wanted) => {
            let same = stored.iter().find(|one| name(one) == Some(wanted));
            same.is_none_or(|same| grows(same, entry))
        }
        None => !left.any(|one| !grows(one, entry)),
    })
}

fn name(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

/// What cannot be read is taken for the largest.
fn is_larger(stored: &Value, desired: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(text) => quantity::nano(text),
        Value::Number(number) => quantity::nano(&number.to_string()),
        _ => None,
    };
    amount(desired).unwrap_or(i128::MAX) > amount(stored).unwrap_or(i128::MAX)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Without annotations.
    fn held(stored: &Value, desired: &Value) -> Value {
        let plain = |spec| Described { spec, type_size: None };
        super::held(plain(stored), plain(desired))
    }

    fn spec(replicas: i64, container: &Value) -> Value {
        json!({ "cityCode": "DFW", "scaleSettings": { "minReplicas": replicas }, "template": {
            "metadata": { "labels": { "a": "1" } },
            "spec": { "runtime": { "sandbox": { "containers": [container] } } } } })
    }

    /// Two entries of everything.
    fn two() -> Value {
        json!({ "name": "main", "image": "old", "command": ["a"], "ports": [{ "name": "web", "port": 80 },
            { "name": "admin", "port": 81 }], "env": [{ "name": "A", "value": "1" }, { "name": "B", "value": "2" }] })
    }

    fn with(change: impl FnOnce(&mut Value)) -> Value {
        let mut container = two();
        change(&mut container);
        container
    }

    #[test]
    fn what_takes_away_or_mends_is_carried_whole_and_what_adds_is_not() {
        for (what, container, carried) in [
            ("nothing", two(), true),
            (
                "an entry goes",
                with(|one| one["env"] = json!([{ "name": "B", "value": "2" }])),
                true,
            ),
            (
                "all go",
                with(|one| drop(one.as_object_mut().unwrap().remove("ports"))),
                true,
            ),
            ("another value", with(|one| one["env"][0]["value"] = json!("9")), true),
            ("another image", with(|one| one["image"] = json!("new")), true),
            ("a longer command", with(|one| one["command"] = json!(["a", "b"])), true),
            ("an empty list", with(|one| one["volumeAttachments"] = json!([])), true),
            (
                "one goes and one comes",
                with(|one| one["env"][0]["name"] = json!("C")),
                false,
            ),
            (
                "another source",
                with(|one| one["env"][0] = json!({ "name": "A", "valueFrom": { "x": 1 } })),
                false,
            ),
            ("a new field", with(|one| one["workingDir"] = json!("/")), false),
        ] {
            let (stored, desired) = (spec(3, &two()), spec(3, &container));
            let expected = if carried { &desired } else { &stored };
            assert_eq!(&held(&stored, &desired), expected, "{what}");
            // Replicas go down with either, and up with none.
            let (fewer, more) = (spec(1, &container), spec(9, &container));
            let count = |spec: &Value| spec.pointer(LEAST).cloned().unwrap();
            assert_eq!(count(&held(&stored, &fewer)), 1, "{what}");
            assert_eq!(count(&held(&stored, &more)), 3, "{what}");
            let carried_template = held(&stored, &more)["template"] == desired["template"];
            assert_eq!(carried_template, carried || desired == stored, "{what}");
        }
    }

    #[test]
    fn no_more_room_is_carried_while_growth_is_held_and_less_is() {
        let of = |bounds: (i64, Option<i64>), container: &Value| {
            let mut spec = spec(bounds.0, container);
            if let Some(most) = bounds.1 {
                spec["scaleSettings"]["maxReplicas"] = json!(most);
            }
            spec
        };
        let larger = with(|one| one["workingDir"] = json!("/"));
        // (stored, asked) and what is carried: with a template that adds nothing, and with one that does.
        for (stored, asked, whole, fewer) in [
            ((2, Some(5)), (2, Some(9)), (2, Some(5)), (2, Some(5))),
            ((2, Some(5)), (1, Some(3)), (1, Some(3)), (1, Some(3))),
            ((2, Some(5)), (4, Some(5)), (2, Some(5)), (2, Some(5))),
            ((2, Some(5)), (4, None), (2, None), (2, Some(4))),
            ((2, Some(5)), (9, Some(9)), (2, Some(5)), (2, Some(5))),
            ((2, None), (2, Some(9)), (2, None), (2, None)),
            ((2, Some(1)), (2, Some(9)), (2, Some(2)), (2, Some(1))),
            ((2, None), (1, Some(9)), (1, None), (1, None)),
        ] {
            let place = format!("{stored:?} to {asked:?}");
            assert_eq!(
                held(&of(stored, &two()), &of(asked, &two())),
                of(whole, &two()),
                "{place}"
            );
            assert_eq!(
                held(&of(stored, &two()), &of(asked, &larger)),
                of(fewer, &two()),
                "{place}"
            );
            assert_eq!(
                lowered(&of(stored, &two()), &of(asked, &two())),
                of(fewer, &two()),
                "{place}"
            );
        }
    }

    #[test]
    fn a_larger_size_adds_and_a_smaller_one_does_not() {
        let limits = |cpu: &str, memory: &str| json!({ "limits": { "cpu": cpu, "memory": memory } });
        let sized = |type_: &str, resources: &[Value], disk: Value| {
            let containers: Vec<Value> = resources
                .iter()
                .enumerate()
                .map(|(index, resources)| json!({ "name": index.to_string(), "resources": resources }))
                .collect();
            json!({ "scaleSettings": { "minReplicas": 1 }, "template": { "spec": {
                "runtime": { "resources": { "instanceType": type_ }, "sandbox": { "containers": containers } },
                "volumes": [{ "name": "data", "disk": { "template": { "spec": {
                    "resources": { "requests": { "storage": disk } } } } } }] } } })
        };
        let (small, two) = ("datumcloud/d1-standard-2", [limits("1", "1Gi"), limits("2", "1Gi")]);
        let stored = sized(small, &two, json!("10Gi"));
        for (what, desired, carried) in [
            (
                "more processors",
                sized(small, &[limits("64", "1Gi"), limits("2", "1Gi")], json!("10Gi")),
                false,
            ),
            (
                "more memory",
                sized(small, &[limits("1", "1Gi"), limits("2", "2Gi")], json!("10Gi")),
                false,
            ),
            (
                "what cannot be read",
                sized(small, &[limits("x", "1Gi"), limits("2", "1Gi")], json!("10Gi")),
                false,
            ),
            (
                "another type",
                sized("datumcloud/d1-standard-64", &two, json!("10Gi")),
                false,
            ),
            ("a larger disk", sized(small, &two, json!("1Ti")), false),
            ("a disk that cannot be read", sized(small, &two, json!("x")), false),
            (
                "the same in other words",
                sized(
                    small,
                    &[limits("1000m", "1024Mi"), limits("2", "1Gi")],
                    json!("10240Mi"),
                ),
                true,
            ),
            (
                "from one to the other",
                sized(small, &[limits("2", "1Gi"), limits("1", "1Gi")], json!("10Gi")),
                true,
            ),
            (
                "less",
                sized(small, &[limits("500m", "1Gi"), limits("2", "1Mi")], json!("1Gi")),
                true,
            ),
            ("a container less", sized(small, &two[..1], json!("10Gi")), true),
        ] {
            assert_eq!(held(&stored, &desired) == desired, carried, "{what}");
        }
        // What is too large already may become less, and no larger.
        let (huge, less) = (sized("unknown", &two, json!("x")), sized(small, &two, json!("x")));
        assert_eq!(held(&huge, &less), less);
        let other = sized("unknown as well", &two, json!("x"));
        assert_eq!(held(&huge, &other), huge);
    }

    #[test]
    fn of_two_types_of_the_catalogue_the_larger_adds() {
        let of = |type_: &str| {
            json!({ "scaleSettings": { "minReplicas": 1 }, "template": { "spec": {
            "runtime": { "resources": { "instanceType": type_ } } } } })
        };
        let sizes = [
            ("a/small", "a/small cpu=1 memory=1Gi"),
            ("a/large", "a/large cpu=2 memory=1Gi"),
        ];
        for (stored, desired, carried) in [(0, 1, false), (1, 0, true), (0, 0, true)] {
            let specs = [stored, desired].map(|index: usize| (of(sizes[index].0), Some(sizes[index].1)));
            let [stored, desired] = specs.each_ref().map(|(spec, type_size)| Described {
                spec,
                type_size: *type_size,
            });
            assert_eq!(super::held(stored, desired) == *desired.spec, carried, "{desired:?}");
        }
    }

    #[test]
    fn labels_and_annotations_of_the_template_hold_nothing_up() {
        let (stored, mut desired) = (spec(1, &two()), spec(1, &two()));
        desired["template"]["metadata"]["annotations"] = json!({ "compute.datumapis.com/restartedAt": "now" });
        assert_eq!(held(&stored, &desired), desired);
    }

    #[test]
    fn entries_without_a_name_are_reported_by_their_place() {
        let of = |names: &[&str]| {
            let interfaces: Vec<Value> = names
                .iter()
                .map(|name| json!({ "network": { "name": name } }))
                .collect();
            json!({ "scaleSettings": { "minReplicas": 1 }, "template": { "spec": { "networkInterfaces": interfaces } } })
        };
        for (desired, carried) in [(&["a"][..], true), (&["c", "b"], true), (&["a", "b", "c"], false)] {
            let (stored, desired) = (of(&["a", "b"]), of(desired));
            assert_eq!(held(&stored, &desired) == desired, carried, "{desired}");
        }
    }

    #[test]
    fn one_of_several_entries_without_a_name_can_go_whichever_it_is() {
        let (plain, with_policy) = (
            json!({ "network": { "name": "a" } }),
            json!({ "network": { "name": "b" }, "networkPolicy": { "ingress": [{}] } }),
        );
        let of = |interfaces: &[&Value]| json!({ "scaleSettings": { "minReplicas": 1 }, "template": { "spec": { "networkInterfaces": interfaces } } });
        let stored = of(&[&plain, &with_policy, &plain]);
        for (desired, carried) in [
            (vec![&with_policy], true),
            (vec![&plain, &plain], true),
            (vec![&with_policy, &plain], true),
            (vec![&plain, &with_policy, &with_policy], false),
            (vec![&plain, &with_policy, &plain, &plain], false),
        ] {
            let desired = of(&desired);
            assert_eq!(held(&stored, &desired) == desired, carried, "{desired}");
        }
    }
}
