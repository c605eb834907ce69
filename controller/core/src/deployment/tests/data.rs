//! ConfigMaps and Secrets of a template, and the gate that waits for them.

use popcell_api::kind::{self, Kind};
use popcell_api::{annotations, labels};
use serde_json::{Value, json};

use super::super::{MOST_DATA, data_to_read};
use super::{Cell, NAMESPACE, Presence, ReferencedData, awaits_data, deployment, judge_data, run, template};
use crate::conditions;
use crate::object::{Fields, Object};
use crate::plan::{Action, CONFIG_MAP, Plan, Plane, SECRET};
use crate::references::{self, Reference};
use crate::testing::object;

const PENDING: &str = annotations::DATA_PENDING;

/// A template that names a ConfigMap in `envFrom` and a Secret in a volume.
fn naming(image: &str) -> Value {
    let mut template = template(image);
    template["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] =
        json!([{ "configMapRef": { "name": "settings" } }]);
    template["spec"]["volumes"] = json!([{ "name": "key", "secret": { "secretName": "key" } }]);
    template
}

fn cell() -> Cell {
    let mut cell = Cell::new(1);
    cell.edit(|one| one.data["spec"]["template"] = naming("one"));
    cell
}

fn put(cell: &mut Cell, kind: Kind, name: &str, version: &str) {
    let held = json!({ "metadata": { "name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": version } });
    cell.servers.put(&Plane::Cell, kind, object(held));
}

fn gates(instance: &Object) -> Vec<&str> {
    let gates = instance.items("/spec/controller/schedulingGates").iter();
    gates.map(|gate| gate["name"].as_str().unwrap()).collect()
}

fn hash_of(cell: &Cell) -> Option<String> {
    let text = cell.instance(0)?.text("/status/referencedDataHash");
    text.map(str::to_owned)
}

fn expect(one: &mut Object, expected: &str, error: Option<&str>) {
    let all = one.metadata.annotations.get_or_insert_default();
    all.insert(annotations::EXPECTED_REFERENCED_DATA.to_owned(), expected.to_owned());
    all.extend(error.map(|error| (annotations::REFERENCED_DATA_ERROR.to_owned(), error.to_owned())));
}

/// What is written of Instances, in order.
fn writes(plan: &Plan) -> Vec<String> {
    let patches = plan.actions.iter().filter_map(|action| match action {
        Action::Patch(patch) if patch.target.kind == kind::INSTANCE => Some(patch),
        _ => None,
    });
    let of = |status| if status { "status" } else { "spec" };
    patches
        .map(|patch| format!("{} {}", patch.target.name, of(patch.status)))
        .collect()
}

#[test]
fn the_gate_opens_when_all_are_there_and_the_status_says_before_what_is() {
    let mut cell = cell();
    assert_eq!(cell.settle(), ["create web-0"]);
    assert_eq!(gates(cell.instance(0).unwrap()), ["Quota", "ReferencedData"]);
    assert_eq!(cell.plan().requeue.unwrap().as_secs(), 1, "it is young");
    put(&mut cell, CONFIG_MAP, "settings", "1");
    cell.settle();
    assert_eq!(gates(cell.instance(0).unwrap()), ["Quota", "ReferencedData"]);
    put(&mut cell, SECRET, "key", "1");
    let plan = cell.plan();
    assert_eq!(writes(&plan), ["web-0 status", "web-0 spec"]);
    cell.servers.apply(&plan);
    assert_eq!(gates(cell.instance(0).unwrap()), ["Quota"]);
    assert_eq!(hash_of(&cell).unwrap().len(), 16);
    cell.settle();
    assert_eq!(cell.plan().requeue, None);
}

#[test]
fn both_gates_that_are_opened_here_go_in_one_write_wherever_they_are() {
    for named in [
        ["Network", "Quota", "ReferencedData"],
        ["ReferencedData", "Network", "Quota"],
    ] {
        let mut cell = cell();
        cell.settle();
        let all: Vec<Value> = named.iter().map(|name| json!({ "name": name })).collect();
        cell.edit_instance(0, |one| one.data["spec"]["controller"]["schedulingGates"] = json!(all));
        put(&mut cell, CONFIG_MAP, "settings", "1");
        put(&mut cell, SECRET, "key", "1");
        assert_eq!(cell.reconcile(), ["patch web-0", "patch web-0"]);
        assert_eq!(gates(cell.instance(0).unwrap()), ["Quota"]);
    }
}

#[test]
fn a_later_change_of_the_data_changes_nothing_and_the_next_instance_has_the_new_hash() {
    let mut cell = cell();
    put(&mut cell, CONFIG_MAP, "settings", "1");
    put(&mut cell, SECRET, "key", "1");
    cell.settle();
    let first = hash_of(&cell).unwrap();
    let running = |cell: &mut Cell| {
        cell.edit_instance(0, |one| {
            let hash = one.at("/status/referencedDataHash").cloned();
            run(one, true);
            one.data["status"]["referencedDataHash"] = hash.unwrap();
        });
        cell.settle();
    };
    running(&mut cell);
    put(&mut cell, SECRET, "key", "2");
    cell.edit(|one| expect(one, PENDING, None));
    assert_eq!(cell.settle(), [""; 0]);
    cell.servers.remove(&Plane::Cell, CONFIG_MAP, NAMESPACE, "settings");
    assert_eq!(cell.settle(), [""; 0]);
    assert_eq!(hash_of(&cell), Some(first.clone()));

    put(&mut cell, CONFIG_MAP, "settings", "1");
    cell.edit(|one| {
        one.metadata.annotations = None;
        one.data["spec"]["template"]["metadata"]["annotations"] = json!({ "restartedAt": "now" });
    });
    assert_eq!(
        cell.settle(),
        ["delete web-0", "create web-0", "patch web-0", "patch web-0"]
    );
    assert_ne!(hash_of(&cell).unwrap(), first);
}

#[test]
fn only_an_instance_that_has_the_gate_and_is_of_the_template_asks_for_data() {
    let mut cell = cell();
    cell.settle();
    let gated = cell.instance(0).unwrap().clone();
    let asks = |deployment: &Object, change: &dyn Fn(&mut Object)| {
        let mut one = gated.clone();
        change(&mut one);
        awaits_data(deployment, &[&one])
    };
    let here = cell.get().unwrap().clone();
    assert!(asks(&here, &|_| {}));
    assert!(!awaits_data(&here, &[]));
    let going = |one: &mut Object| {
        one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            crate::testing::now(),
        ));
    };
    let open = |one: &mut Object| one.data["spec"]["controller"]["schedulingGates"] = json!([{ "name": "Quota" }]);
    let drifted = |one: &mut Object| one.data["spec"]["controller"]["templateHash"] = json!("other");
    let foreign = |one: &mut Object| one.metadata.owner_references.as_mut().unwrap()[0].uid = "other".to_owned();
    for change in [&going as &dyn Fn(&mut Object), &open, &drifted, &foreign] {
        assert!(!asks(&here, change));
    }
    let paused = |one: &mut Object| {
        one.metadata.annotations = Some([("compute.datumapis.com/paused".to_owned(), "true".to_owned())].into());
    };
    for change in [&going as &dyn Fn(&mut Object), &paused] {
        let mut deployment = here.clone();
        change(&mut deployment);
        assert!(!asks(&deployment, &|_| {}));
    }
}

#[test]
fn an_instance_of_another_template_is_not_let_go_with_the_data_of_this_one() {
    let mut cell = cell();
    cell.settle();
    // It cannot be replaced, and its own Secret was never there.
    cell.served = crate::observed::Observed::Known(false);
    cell.edit(|one| {
        one.data["spec"]["template"] = template("two");
        one.data["spec"]["template"]["spec"]["runtime"]["resources"]["requests"] =
            json!({ "cpu": "64", "memory": "1Gi" });
    });
    cell.settle();
    assert_eq!(gates(cell.instance(0).unwrap()), ["Quota", "ReferencedData"]);
    assert_eq!(hash_of(&cell), None);
}

#[test]
fn an_instance_never_gets_the_gate_later() {
    let mut cell = Cell::running(1);
    cell.edit(|one| one.data["spec"]["template"] = naming("one"));
    cell.edit_instance(0, |one| {
        // As one that was made before there were gates for data.
        one.data["spec"]["controller"]["templateHash"] = json!(super::super::hash(&naming("one")));
    });
    assert_eq!(cell.settle(), [""; 0]);
    assert_eq!(gates(cell.instance(0).unwrap()), ["Quota"]);
}

/// A copy of ours, or an object of another client.
fn held(name: &str, version: Option<&str>) -> Object {
    let mut one = json!({ "metadata": { "name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1" } });
    if let Some(version) = version {
        one["metadata"]["labels"] = json!({ labels::MANAGED_BY: labels::MANAGED_BY_POPCELL });
        one["metadata"]["annotations"] = json!({ annotations::DATA_VERSION: version });
    }
    object(one)
}

#[test]
fn what_is_expected_and_what_is_there_decide() {
    let (settings, key) = (held("settings", Some("s1")), held("key", Some("k1")));
    let (own, going) = (held("key", None), {
        let mut one = held("key", Some("k1"));
        one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            crate::testing::now(),
        ));
        one
    });
    let references = ["configmaps/settings", "secrets/key"].map(|one| Reference::of_key(one).unwrap());
    let hash = crate::referenced_data::hash(references.iter().zip(["s1", "k1"]));
    let other = crate::referenced_data::hash(
        references
            .iter()
            .zip(["s1", crate::referenced_data::version(&own).as_str()]),
    );
    let on_its_way = "ConfigMaps and Secrets are on their way to city DFW";
    let held = "Secret key is held by another owner in city DFW: have an operator delete it there";
    let absent = "Secret key is not in city DFW";
    let forbidden = "Secret key cannot be read in city DFW: the city's controller has no right to";
    let [there, mine, leaving] = [&key, &own, &going].map(|one| Presence::of(Some(one)));
    let (no, denied, unread) = (Presence::of(None), Presence::Forbidden, Presence::Unknown);
    let waiting = |message: &str| ReferencedData::Waiting(message.to_owned());
    let ready = |hash: &str| ReferencedData::Ready(hash.to_owned());
    for (expected, error, secret, found) in [
        (None, None, &there, ready(&hash)),
        (None, None, &mine, ready(&other)),
        (None, None, &leaving, waiting(absent)),
        (None, None, &no, waiting(absent)),
        (None, None, &denied, waiting(forbidden)),
        (None, None, &unread, ReferencedData::Unknown),
        (Some(hash.as_str()), None, &there, ready(&hash)),
        // An error of a later version holds nothing that is there.
        (Some(&hash), Some("why"), &there, ready(&hash)),
        (Some(&hash), None, &mine, waiting(held)),
        (Some("0123456789abcdef"), None, &there, waiting(on_its_way)),
        (Some(""), None, &there, waiting(on_its_way)),
        (Some(&hash), None, &leaving, waiting(absent)),
        (Some(&hash), None, &no, waiting(absent)),
        (Some(&hash), None, &denied, waiting(forbidden)),
        (Some(&hash), None, &unread, ReferencedData::Unknown),
        (Some(PENDING), None, &there, waiting(on_its_way)),
        (Some(PENDING), Some("why"), &there, waiting("why")),
        (Some(PENDING), Some("why"), &unread, waiting("why")),
    ] {
        let mut deployment = deployment(1);
        deployment.data["spec"]["template"] = naming("one");
        if let Some(expected) = expected {
            expect(&mut deployment, expected, error);
        }
        let presence = |one: &Reference| {
            if one.kind == SECRET {
                secret.clone()
            } else {
                Presence::of(Some(&settings))
            }
        };
        assert_eq!(judge_data(&deployment, presence), found, "{expected:?} {secret:?}");
        let read = if expected == Some(PENDING) { 0 } else { 2 };
        assert_eq!(data_to_read(&deployment).len(), read);
    }
}

#[test]
fn what_is_optional_is_not_waited_for_and_counts_where_it_is_there() {
    let mut deployment = deployment(1);
    deployment.data["spec"]["template"] = naming("one");
    deployment.data["spec"]["template"]["spec"]["volumes"][0]["secret"]["optional"] = json!(true);
    let references = ["configmaps/settings", "secrets/key"].map(|one| Reference::of_key(one).unwrap());
    let hash = |versions: &[&str]| crate::referenced_data::hash(references.iter().zip(versions.iter().copied()));
    let judged = |deployment: &Object, secret: &Presence| {
        let settings = Presence::Found("s1".to_owned());
        judge_data(deployment, |one| {
            if one.kind == SECRET {
                secret.clone()
            } else {
                settings.clone()
            }
        })
    };
    let (there, without) = (Presence::Found("k1".to_owned()), hash(&["s1"]));
    let on_its_way = ReferencedData::Waiting("ConfigMaps and Secrets are on their way to city DFW".to_owned());
    assert_eq!(
        judged(&deployment, &Presence::Absent),
        ReferencedData::Ready(without.clone())
    );
    assert_eq!(judged(&deployment, &there), ReferencedData::Ready(hash(&["s1", "k1"])));
    // The project has it, or has it no more.
    expect(&mut deployment, &hash(&["s1", "k1"]), None);
    assert_eq!(judged(&deployment, &Presence::Absent), on_its_way);
    expect(&mut deployment, &without, None);
    assert_eq!(judged(&deployment, &there), on_its_way);
    assert_eq!(judged(&deployment, &Presence::Absent), ReferencedData::Ready(without));
}

#[test]
fn the_first_that_is_missing_is_named_and_those_after_it_are_not_asked_for() {
    let mut deployment = deployment(1);
    deployment.data["spec"]["template"] = naming("one");
    let presence = |one: &Reference| {
        assert_eq!(one.kind, CONFIG_MAP);
        Presence::Absent
    };
    let message = "ConfigMap settings is not in city DFW".to_owned();
    assert_eq!(judge_data(&deployment, presence), ReferencedData::Waiting(message));
}

#[test]
fn names_that_no_object_has_and_too_many_names_are_never_asked_for() {
    let naming = |names: Vec<String>| {
        let mut deployment = deployment(1);
        let all: Vec<Value> = names
            .iter()
            .map(|name| json!({ "secretRef": { "name": name } }))
            .collect();
        deployment.data["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"] = json!(all);
        deployment
    };
    let never = |_: &Reference| -> Presence { panic!("asked for") };
    for name in ["../../ns-2/secrets/key", "a/b", "a?b", "A", "a b", "."] {
        let deployment = naming(vec![name.to_owned()]);
        assert_eq!(references::data(&deployment).len(), 1);
        let message = format!("Secret {name} is not in city DFW");
        assert_eq!(judge_data(&deployment, never), ReferencedData::Waiting(message));
        assert_eq!(data_to_read(&deployment), []);
    }
    let many = |count: usize| naming((0..count).map(|number| format!("s{number}")).collect());
    assert_eq!(data_to_read(&many(MOST_DATA)).len(), MOST_DATA);
    let more = many(MOST_DATA + 1);
    assert_eq!(data_to_read(&more), []);
    let message = "the template names 257 ConfigMaps and Secrets, the limit is 256: name fewer".to_owned();
    assert_eq!(judge_data(&more, never), ReferencedData::Waiting(message));
}

#[test]
fn what_is_not_known_or_forbidden_holds_the_gate_and_nothing_else() {
    for (presence, looks_again) in [(Presence::Unknown, false), (Presence::Forbidden, true)] {
        let mut cell = cell();
        cell.unread = Some(("key", presence));
        put(&mut cell, CONFIG_MAP, "settings", "1");
        put(&mut cell, SECRET, "key", "1");
        cell.settle();
        assert_eq!(gates(cell.instance(0).unwrap()), ["Quota", "ReferencedData"]);
        // What is not known is looked at again as its reader says.
        assert_eq!(cell.plan().requeue.is_some(), looks_again);
        cell.edit(|one| one.data["spec"]["scaleSettings"]["minReplicas"] = json!(0));
        assert_eq!(cell.settle(), ["delete web-0"]);
    }
}

#[test]
fn what_does_not_count_yet_is_looked_at_with_the_next_change_only() {
    let mut cell = cell();
    cell.edit(|one| {
        expect(
            one,
            PENDING,
            Some("Secret key does not exist in the namespace of the Workload"),
        )
    });
    cell.settle();
    let plan = cell.plan();
    assert_eq!((plan.requeue, plan.is_unchanged()), (None, true));
}

#[test]
fn an_instance_that_waits_for_data_is_the_reason_of_its_deployment() {
    let mut cell = cell();
    cell.settle();
    cell.edit_instance(0, |one| {
        one.data["status"] = json!({ "conditions": [{ "type": "Ready", "status": "False",
            "reason": "ReferencedDataNotReady", "message": "Secret key is not in city DFW" }] });
    });
    cell.settle();
    let status = cell.get().unwrap().at("/status").unwrap();
    for (type_, message) in [
        ("Available", "Secret key is not in city DFW"),
        (
            "ReplicasReady",
            "0/1 replicas available; web-0: Secret key is not in city DFW",
        ),
    ] {
        let found = conditions::find(status, type_).unwrap();
        let text = |field| conditions::text(found, field);
        assert_eq!(
            (text("status"), text("reason"), text("message")),
            ("False", "ReferencedDataNotReady", message)
        );
    }
}
