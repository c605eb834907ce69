use popcell_api::kind;
use popcell_api::labels::{MANAGED_BY, REFERENCED_DATA, UPSTREAM_CLUSTER_NAME, UPSTREAM_NAMESPACE};
use serde_json::Value;

use super::*;
use crate::plan::{CONFIG_MAP, SECRET};
use crate::referenced_data::hash;
use crate::testing::{FakeServers, object};

const PROJECT: Project<'_> = Project {
    id: "p",
    uid: Some("p-1"),
    server: None,
};
const LIMIT: usize = 4096;

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

/// The hub namespace, and in it a WorkloadDeployment for each of these lists of names.
fn servers(named: &[&[&str]]) -> FakeServers {
    let mut servers = FakeServers::default();
    let namespace = object(
        json!({ "metadata": { "name": "ns-n1", "uid": "hub-n1", "resourceVersion": "1",
        "labels": { MANAGED_BY: "popcell", UPSTREAM_CLUSTER_NAME: "cluster-p", UPSTREAM_NAMESPACE: "default" },
        "annotations": { annotations::UPSTREAM_PROJECT_UID: "p-1" } } }),
    );
    servers.put(&Plane::Hub, NAMESPACE, namespace);
    for (index, keys) in named.iter().enumerate() {
        servers.put(
            &Plane::Hub,
            kind::WORKLOAD_DEPLOYMENT,
            deployment(&format!("web-{index}"), keys),
        );
    }
    servers
}

fn deployment(name: &str, keys: &[&str]) -> Object {
    let sources: Vec<Value> = keys
        .iter()
        .map(|key| match key.split_once('/').unwrap() {
            ("configmaps", name) => json!({ "configMapRef": { "name": name } }),
            (_, name) => json!({ "secretRef": { "name": name } }),
        })
        .collect();
    object(
        json!({ "metadata": { "name": name, "namespace": "ns-n1", "uid": name, "resourceVersion": "1",
        "labels": { MANAGED_BY: "popcell" }, "annotations": { annotations::EXPECTED_REFERENCED_DATA: "pending" } },
        "spec": { "template": { "spec": { "runtime": { "sandbox": { "containers": [{ "envFrom": sources }] } } } } } }),
    )
}

fn secret(namespace: &str, name: &str, value: &str) -> Object {
    object(
        json!({ "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": { "key": value },
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}"), "resourceVersion": "1",
            "labels": { "app": "mine" }, "annotations": { "more": "1" } } }),
    )
}

fn config_map(name: &str) -> Object {
    object(
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "1" }, "binaryData": { "b": "AA==" },
        "immutable": true, "metadata": { "name": name, "namespace": "default", "uid": name, "resourceVersion": "1" } }),
    )
}

fn with(mut servers: FakeServers, sources: &[Object]) -> FakeServers {
    for source in sources {
        servers.put(&project(), kind_of(source), source.clone());
    }
    servers
}

fn kind_of(object: &Object) -> Kind {
    let of = &object.types.as_ref().unwrap().kind;
    references::DATA.into_iter().find(|kind| kind.kind == of).unwrap()
}

fn reconcile(servers: &FakeServers) -> Plan {
    reconciled(servers, Some(PROJECT), &|_| false)
}

fn reconciled(servers: &FakeServers, of: Option<Project<'_>>, is_forbidden: &dyn Fn(&Reference) -> bool) -> Plan {
    carried(servers, of, is_forbidden, true)
}

/// As the controller reads it: sources by name, copies without what they hold unless they differ.
fn carried(
    servers: &FakeServers,
    of: Option<Project<'_>>,
    is_forbidden: &dyn Fn(&Reference) -> bool,
    is_carried: bool,
) -> Plan {
    within(servers, of, is_forbidden, is_carried, usize::MAX)
}

/// Where the project may have so many bytes.
fn within(
    servers: &FakeServers,
    of: Option<Project<'_>>,
    is_forbidden: &dyn Fn(&Reference) -> bool,
    is_carried: bool,
    most: usize,
) -> Plan {
    let deployments = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    let mut sources = Vec::new();
    let mut whole = Vec::new();
    let copies = references::DATA
        .into_iter()
        .flat_map(|kind| servers.list(&Plane::Hub, kind));
    let mut taken: usize = copies.map(|copy| bytes_taken(copy, LIMIT)).sum();
    let listed = |one: &Reference| servers.get(&Plane::Hub, one.kind, "ns-n1", &one.name);
    for one in needed(deployments.iter().copied()) {
        let mut copy = servers.get(&Plane::Hub, one.kind, "ns-n1", &one.name).cloned();
        let mut source = servers.get(&project(), one.kind, "default", &one.name).cloned();
        if let Some(source) = &mut source {
            // Read as a server sends it, which says how large it is.
            *source = Object::read(&serde_json::to_string(source).unwrap()).unwrap();
            let version = referenced_data::version_of_source(source);
            if let Some(copy) = copy.as_mut().filter(|copy| is_at(copy, &version)) {
                weigh(copy, source);
            }
            let refuses = |bytes: usize| {
                let more = bytes.saturating_sub(listed(&one).map_or(0, |copy| bytes_taken(copy, LIMIT)));
                let fits = more == 0 || taken + more <= most;
                taken += if fits { more } else { 0 };
                (!fits).then_some(Excess::DataBytes { limit: most })
            };
            if noted(one.kind, source, version, copy.as_ref(), LIMIT, refuses) > 0 {
                whole.extend(copy);
            }
        }
        sources.push((one, source));
    }
    let copies: Vec<(Kind, Object)> = references::DATA
        .into_iter()
        .flat_map(|kind| {
            servers
                .list(&Plane::Hub, kind)
                .into_iter()
                .map(move |one| (kind, one.clone()))
        })
        .map(|(kind, mut copy)| {
            copy.data = json!({}).into();
            let read = whole.iter().find(|one| one.uid() == copy.uid());
            (kind, read.cloned().unwrap_or(copy))
        })
        .collect();
    let copies: Vec<(Kind, &Object)> = copies.iter().map(|(kind, copy)| (*kind, copy)).collect();
    decide(&Observation {
        project: of,
        namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
        deployments: &deployments,
        is_read_for: &|one| one.annotation("test/newer").is_none(),
        access: Access::Open(&copies),
        source: &|reference| match sources.iter().find(|(one, _)| one == reference) {
            _ if is_forbidden(reference) => Source::Forbidden,
            Some((_, Some(source))) => Source::Found(source),
            _ => Source::Absent,
        },
        has_more: false,
        is_carried,
        now: crate::testing::now(),
    })
}

fn copy<'a>(servers: &'a FakeServers, key: &str) -> Option<&'a Object> {
    let reference = Reference::of_key(key).unwrap();
    servers.get(&Plane::Hub, reference.kind, "ns-n1", &reference.name)
}

fn expected<'a>(servers: &'a FakeServers, name: &str) -> (Expected<'a>, Option<&'a str>) {
    let deployment = servers
        .get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", name)
        .unwrap();
    (
        Expected::of(deployment),
        deployment.annotation(annotations::REFERENCED_DATA_ERROR),
    )
}

#[test]
fn what_is_named_is_copied_with_its_contents_alone_and_then_expected() {
    let sources = [
        config_map("settings"),
        secret("default", "db", "eA=="),
        secret("default", "other", "eA=="),
    ];
    let mut servers = with(
        servers(&[&["configmaps/settings", "secrets/db"], &["secrets/db"], &[]]),
        &sources,
    );
    let plan = reconcile(&servers);
    assert_eq!(plan.requeue, Some(REFRESH));
    servers.settle(reconcile);
    let settings = copy(&servers, "configmaps/settings").unwrap();
    assert_eq!(settings.data.get("data"), Some(&json!({ "a": "1" })));
    assert_eq!(settings.data.get("binaryData"), Some(&json!({ "b": "AA==" })));
    assert_eq!(settings.data.get("immutable"), None);
    let db = copy(&servers, "secrets/db").unwrap();
    assert_eq!((db.text("/type"), db.text("/data/key")), (Some("Opaque"), Some("eA==")));
    assert!(db.marked() && db.label(REFERENCED_DATA) == Some("true") && db.label("app").is_none());
    assert_eq!(db.metadata.annotations.as_ref().unwrap().len(), 1);
    assert_eq!(copy(&servers, "secrets/other"), None);
    // Two copies, two WorkloadDeployments, the label of the namespace.
    assert_eq!(servers.writes, 5);
    let versions: Vec<(Reference, &str)> = ["configmaps/settings", "secrets/db"]
        .map(|key| {
            (
                Reference::of_key(key).unwrap(),
                copy(&servers, key)
                    .unwrap()
                    .annotation(annotations::DATA_VERSION)
                    .unwrap(),
            )
        })
        .into();
    let both = hash(versions.iter().map(|(one, version)| (one, *version)));
    let db = hash(versions.iter().skip(1).map(|(one, version)| (one, *version)));
    assert_eq!(expected(&servers, "web-0"), (Expected::Hash(&both), None));
    assert_eq!(expected(&servers, "web-1"), (Expected::Hash(&db), None));
    // Who names none says nothing of it.
    assert_eq!(expected(&servers, "web-2"), (Expected::Pending(None), None));
}

#[test]
fn a_changed_source_is_carried_and_expected_and_its_end_changes_nothing() {
    let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
    servers.settle(reconcile);
    let (Expected::Hash(before), None) = expected(&servers, "web-0") else {
        panic!()
    };
    let before = before.to_owned();
    servers.change(&project(), SECRET, "default", "db", |one| {
        one.data["data"] = json!({ "new": "eQ==" })
    });
    servers.settle(reconcile);
    let db = copy(&servers, "secrets/db").unwrap();
    assert_eq!(db.data.get("data"), Some(&json!({ "new": "eQ==" })));
    let (Expected::Hash(after), None) = expected(&servers, "web-0") else {
        panic!()
    };
    assert_ne!(before, after);
    let after = after.to_owned();
    servers.remove(&project(), SECRET, "default", "db");
    servers.settle(reconcile);
    assert!(copy(&servers, "secrets/db").is_some());
    let missing = "Secret db does not exist in the namespace of the Workload";
    assert_eq!(expected(&servers, "web-0"), (Expected::Hash(&after), Some(missing)));
    // Of a project that is away, or another one, nothing is believed.
    for project in [
        None,
        Some(Project {
            uid: Some("p-2"),
            ..PROJECT
        }),
    ] {
        assert!(reconciled(&servers, project, &|_| false).is_unchanged());
    }
}

#[test]
fn what_a_template_can_do_without_is_waited_for_only_while_it_is_there() {
    let mut servers = servers(&[&["secrets/db"]]);
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0", |one| {
        let from = &mut one.data["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"][0];
        from["secretRef"]["optional"] = json!(true);
    });
    servers.settle(reconcile);
    assert_eq!(expected(&servers, "web-0"), (Expected::Hash(&hash([])), None));
    servers.put(&project(), SECRET, secret("default", "db", "eA=="));
    servers.settle(reconcile);
    assert!(copy(&servers, "secrets/db").is_some());
    let (Expected::Hash(there), None) = expected(&servers, "web-0") else {
        panic!()
    };
    assert_ne!(there, hash([]));
    // The copy outlives its source, and the city has it.
    let there = there.to_owned();
    servers.remove(&project(), SECRET, "default", "db");
    servers.settle(reconcile);
    assert_eq!(expected(&servers, "web-0"), (Expected::Hash(&there), None));
}

#[test]
fn a_copy_goes_with_the_last_that_names_it() {
    let sources = [secret("default", "a", "eA=="), secret("default", "b", "eA==")];
    let mut servers = with(servers(&[&["secrets/a", "secrets/b"], &["secrets/b"]]), &sources);
    servers.settle(reconcile);
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0");
    servers.settle(reconcile);
    assert_eq!(
        (copy(&servers, "secrets/a"), copy(&servers, "secrets/b").is_some()),
        (None, true)
    );
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-1");
    let plan = reconcile(&servers);
    assert_eq!(plan.requeue, Some(AWAITED));
    servers.apply(&plan);
    assert_eq!((copy(&servers, "secrets/b"), reconcile(&servers).requeue), (None, None));
    // Others of the namespace, ours among them, are none of its copies.
    for labels in [
        json!({}),
        json!({ MANAGED_BY: "popcell" }),
        json!({ REFERENCED_DATA: "true" }),
    ] {
        let mut other = secret("ns-n1", "other", "eA==");
        other.metadata.labels = serde_json::from_value(labels).unwrap();
        servers.put(&Plane::Hub, SECRET, other);
        assert!(reconcile(&servers).is_unchanged());
    }
}

#[test]
fn another_clients_object_is_never_touched_and_the_user_is_told() {
    let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
    servers.put(&Plane::Hub, SECRET, secret("ns-n1", "db", "theirs"));
    servers.settle(reconcile);
    assert_eq!(copy(&servers, "secrets/db").unwrap().text("/data/key"), Some("theirs"));
    let held = "Secret db is held by another owner on the platform: have an operator delete it there";
    assert_eq!(expected(&servers, "web-0"), (Expected::Pending(Some(held)), Some(held)));
    servers.remove(&Plane::Hub, SECRET, "ns-n1", "db");
    servers.settle(reconcile);
    let (Expected::Hash(_), None) = expected(&servers, "web-0") else {
        panic!()
    };
}

#[test]
fn what_another_client_changed_of_a_copy_is_written_again() {
    let sources = [
        config_map("settings"),
        config_map("empty"),
        secret("default", "db", "eA=="),
    ];
    let keys = ["configmaps/settings", "configmaps/empty", "secrets/db"];
    let mut servers = with(servers(&[&keys]), &sources);
    servers.change(&project(), CONFIG_MAP, "default", "empty", |one| {
        one.data = json!({}).into()
    });
    servers.settle(reconcile);
    let before: Vec<Object> = keys.map(|key| copy(&servers, key).unwrap().clone()).into();
    let expected_before = format!("{:?}", expected(&servers, "web-0"));
    // Its version stays where it was.
    for change in [
        (|data: &mut Value| data["data"] = json!({ "key": "other" })) as fn(&mut Value),
        |data| data["binaryData"] = json!({ "more": "AA==" }),
        |data| drop(data.as_object_mut().unwrap().remove("data")),
        |data| data["data"] = json!({ "a": "1", "key": "eA==", "more": "1" }),
    ] {
        for one in &before {
            let kind = references::DATA.into_iter().find(|kind| {
                let held = servers.get(&Plane::Hub, *kind, "ns-n1", one.name());
                held.is_some_and(|held| held.uid() == one.uid())
            });
            let change = |one: &mut Object| change(&mut one.data);
            servers.change(&Plane::Hub, kind.unwrap(), "ns-n1", one.name(), change);
        }
        servers.settle(reconcile);
        for (key, before) in keys.iter().zip(&before) {
            let now = copy(&servers, key).unwrap();
            assert_eq!((&now.data, now.uid()), (&before.data, before.uid()), "{key}");
            assert_eq!(now.metadata.annotations, before.metadata.annotations);
        }
    }
    assert_eq!(format!("{:?}", expected(&servers, "web-0")), expected_before);
}

#[test]
fn a_copy_that_lost_one_of_its_marks_is_still_a_copy_and_with_two_it_may_be_another_clients() {
    let lost: [(&[&str], bool); 5] = [
        (&[MANAGED_BY], true),
        (&[REFERENCED_DATA], true),
        (&[annotations::DATA_VERSION], true),
        (&[MANAGED_BY, REFERENCED_DATA], false),
        (&[MANAGED_BY, annotations::DATA_VERSION], false),
    ];
    for (marks, is_ours) in lost {
        let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
        servers.settle(reconcile);
        let before = copy(&servers, "secrets/db").unwrap().clone();
        servers.change(&Plane::Hub, SECRET, "ns-n1", "db", |one| {
            for mark in marks {
                one.metadata.labels.as_mut().unwrap().remove(*mark);
                one.metadata.annotations.as_mut().unwrap().remove(*mark);
            }
        });
        let mut without_source = servers.clone();
        servers.settle(reconcile);
        let now = copy(&servers, "secrets/db").unwrap();
        let is_whole = now.metadata.labels == before.metadata.labels
            && now.metadata.annotations == before.metadata.annotations
            && now.data == before.data;
        assert_eq!(is_whole, is_ours, "{marks:?} {now:?}");
        // Labels need no source; the version does.
        without_source.remove(&project(), SECRET, "default", "db");
        without_source.settle(reconcile);
        let now = copy(&without_source, "secrets/db").unwrap();
        assert_eq!(now.metadata.labels == before.metadata.labels, is_ours, "{marks:?}");
        for mut servers in [servers, without_source] {
            servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0");
            servers.settle(reconcile);
            assert_eq!(copy(&servers, "secrets/db").is_none(), is_ours, "{marks:?}");
        }
    }
}

#[test]
fn copies_that_are_not_carried_any_more_stay_as_they_are_until_nothing_names_them() {
    let sources = [secret("default", "a", "eA=="), secret("default", "b", "eA==")];
    let mut servers = with(servers(&[&["secrets/a"], &["secrets/b"]]), &sources);
    let off = |servers: &FakeServers| carried(servers, Some(PROJECT), &|_| false, false);
    // Where there have been none, nothing is begun.
    assert!(off(&servers).is_unchanged());
    servers.settle(reconcile);
    let before = servers.clone();
    servers.change(&project(), SECRET, "default", "a", |one| {
        one.data["data"] = json!({ "key": "eQ==" })
    });
    servers.put(
        &Plane::Hub,
        kind::WORKLOAD_DEPLOYMENT,
        deployment("web-2", &["secrets/c"]),
    );
    assert!(off(&servers).is_unchanged() && off(&servers).requeue.is_none());
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-1");
    servers.settle(off);
    assert_eq!(copy(&servers, "secrets/a"), copy(&before, "secrets/a"));
    assert_eq!(copy(&servers, "secrets/b"), None);
    let namespace = |servers: &FakeServers| servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap().clone();
    let (has_had, other) = (namespace(&before), namespace(&self::servers(&[])));
    let named = [&deployment("web", &["secrets/a"])];
    for (namespace, is_carried, expected) in [(&has_had, false, true), (&other, true, true), (&other, false, false)] {
        assert_eq!(is_concerned(namespace, named, is_carried), expected);
    }
}

#[test]
fn a_secret_of_another_type_takes_the_place_of_the_copy_in_one_reconcile() {
    let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
    servers.settle(reconcile);
    servers.change(&project(), SECRET, "default", "db", |one| {
        one.data["type"] = json!("kubernetes.io/tls")
    });
    // Between two the project may fall silent, and what runs would be without it.
    let plan = reconcile(&servers);
    assert!(
        matches!(plan.actions[..], [Action::Delete(_), Action::Create { .. }, ..]),
        "{plan:?}"
    );
    servers.settle(reconcile);
    assert_eq!(
        copy(&servers, "secrets/db").unwrap().text("/type"),
        Some("kubernetes.io/tls")
    );
    // Nor does one change what another client has made immutable.
    servers.change(&Plane::Hub, SECRET, "ns-n1", "db", |one| {
        one.data["immutable"] = json!(true)
    });
    servers.change(&project(), SECRET, "default", "db", |one| {
        one.data["data"]["key"] = json!("eQ==")
    });
    servers.settle(reconcile);
    let made = copy(&servers, "secrets/db").unwrap();
    assert_eq!((made.text("/data/key"), made.at("/immutable")), (Some("eQ=="), None));
}

#[test]
fn what_cannot_be_carried_is_named_and_holds_up_no_other() {
    let large = "x".repeat(2 * LIMIT);
    let sources = [secret("default", "large", &large), secret("default", "small", "eA==")];
    let named: [&[&str]; 4] = [
        &["secrets/large", "secrets/small"],
        &["secrets/small"],
        &["configmaps/hidden", "secrets/small"],
        &["configmaps/missing"],
    ];
    let mut servers = with(servers(&named), &sources);
    servers.put(&project(), CONFIG_MAP, config_map("hidden"));
    let reconcile = |servers: &FakeServers| reconciled(servers, Some(PROJECT), &|one| one.name == "hidden");
    servers.settle(reconcile);
    assert_eq!(reconcile(&servers).requeue, Some(AWAITED));
    assert_eq!(
        (copy(&servers, "secrets/large"), copy(&servers, "configmaps/hidden")),
        (None, None)
    );
    assert!(copy(&servers, "secrets/small").is_some());
    for (name, says) in [
        ("web-0", "Secret large has "),
        (
            "web-2",
            "ConfigMap hidden cannot be read: the project gives the controller no right to",
        ),
        (
            "web-3",
            "ConfigMap missing does not exist in the namespace of the Workload",
        ),
    ] {
        let (Expected::Pending(Some(why)), _) = expected(&servers, name) else {
            panic!("{name}")
        };
        assert!(why.starts_with(says), "{why}");
        assert!(!why.contains("xxx"));
    }
    assert!(matches!(expected(&servers, "web-1"), (Expected::Hash(_), None)));
}

#[test]
fn beyond_the_bound_of_a_project_nothing_is_new_or_grows_and_what_is_there_stays() {
    const EACH: usize = 1024 + OVERHEAD;
    let settle = |servers: &mut FakeServers, most: usize| {
        servers.settle(|servers| within(servers, Some(PROJECT), &|_| false, true, most));
    };
    let secrets = |servers: &FakeServers| -> Vec<String> {
        let all = servers.list(&Plane::Hub, SECRET);
        all.iter().map(|one| one.name().to_owned()).collect()
    };
    let sources = ["a", "b"].map(|name| secret("default", name, "eA=="));
    let mut servers = with(servers(&[&["secrets/a"], &["secrets/b"]]), &sources);
    // What one reconcile writes counts for the next object of it.
    settle(&mut servers, 2 * EACH - 1);
    assert_eq!(secrets(&servers), ["a"]);
    let (Expected::Pending(Some(why)), _) = expected(&servers, "web-1") else {
        panic!()
    };
    let says = format!(
        "Secret b is not carried: the ConfigMaps and Secrets of its project may have {} bytes",
        2 * EACH - 1
    );
    assert!(why.starts_with(&says), "{why}");
    assert!(matches!(expected(&servers, "web-0"), (Expected::Hash(_), None)));
    // One that is there may change, and not grow; of another type it takes the place of the old
    // only where there is room for it.
    let wide = "x".repeat(800);
    for (field, value, most, is_carried) in [
        ("key", "eQ==", EACH, true),
        ("key", &wide, EACH, true),
        ("more", &wide, EACH, false),
        ("more", &wide, EACH + 1024, true),
    ] {
        servers.change(&project(), SECRET, "default", "a", |one| {
            one.data["data"][field] = json!(value)
        });
        settle(&mut servers, most);
        let held = copy(&servers, "secrets/a").unwrap().at(&format!("/data/{field}")) == Some(&json!(value));
        assert_eq!(held, is_carried, "{field} {most}");
    }
    servers.change(&project(), SECRET, "default", "a", |one| {
        one.data["type"] = json!("kubernetes.io/tls");
        one.data["data"]["third"] = json!(wide);
    });
    for (most, of_type) in [(EACH + 1024, "Opaque"), (EACH + 2048, "kubernetes.io/tls")] {
        settle(&mut servers, most);
        assert_eq!(copy(&servers, "secrets/a").unwrap().text("/type"), Some(of_type));
    }
    // Room comes when a copy is gone, which is looked for soon: no event says it.
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0");
    let plan = within(&servers, Some(PROJECT), &|_| false, true, EACH);
    assert_eq!(plan.requeue, Some(AWAITED));
    settle(&mut servers, EACH);
    assert_eq!(secrets(&servers), ["b"]);
}

#[test]
fn where_one_of_two_cannot_grow_what_starts_is_to_have_the_other_as_its_city_has_it() {
    let wide = "x".repeat(2048);
    let sources = ["a", "b"].map(|name| secret("default", name, "eA=="));
    let mut servers = with(servers(&[&["secrets/a", "secrets/b"]]), &sources);
    let settle = |servers: &mut FakeServers| {
        servers.settle(|servers| within(servers, Some(PROJECT), &|_| false, true, 2 * (1024 + OVERHEAD)));
    };
    settle(&mut servers);
    for (name, value) in [("a", &*wide), ("b", "eQ==")] {
        servers.change(&project(), SECRET, "default", name, |one| {
            one.data["data"]["key"] = json!(value);
        });
    }
    let mut changed = servers.clone();
    settle(&mut servers);
    assert_eq!(copy(&servers, "secrets/b").unwrap().text("/data/key"), Some("eQ=="));
    let (Expected::Hash(expected_now), Some(why)) = expected(&servers, "web-0") else {
        panic!()
    };
    assert_eq!(expected_now, hash_of(&servers, &["secrets/a", "secrets/b"]));
    assert!(why.starts_with("Secret a is not carried"), "{why}");
    // What a new template names is not what its city has.
    changed.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0", |one| {
        let all = one.metadata.annotations.get_or_insert_default();
        all.insert(
            annotations::EXPECTED_REFERENCED_DATA.to_owned(),
            annotations::DATA_PENDING.to_owned(),
        );
    });
    settle(&mut changed);
    assert!(matches!(expected(&changed, "web-0"), (Expected::Pending(Some(_)), _)));
}

/// What a city has of these copies, which the hub has.
fn hash_of(servers: &FakeServers, keys: &[&str]) -> String {
    let version = |key: &str| {
        let copy = copy(servers, key).unwrap();
        copy.annotation(annotations::DATA_VERSION).unwrap().to_owned()
    };
    let named: Vec<(Reference, String)> = keys
        .iter()
        .map(|key| (Reference::of_key(key).unwrap(), version(key)))
        .collect();
    hash(named.iter().map(|(one, version)| (one, version.as_str())))
}

#[test]
fn what_can_be_done_without_and_cannot_be_carried_holds_up_nothing_that_started_before() {
    let mut servers = with(
        servers(&[&["secrets/a", "secrets/b"]]),
        &[secret("default", "b", "eA==")],
    );
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0", |one| {
        let from = &mut one.data["spec"]["template"]["spec"]["runtime"]["sandbox"]["containers"][0]["envFrom"][0];
        from["secretRef"]["optional"] = json!(true);
    });
    servers.settle(reconcile);
    servers.put(&project(), SECRET, secret("default", "a", &"x".repeat(2 * LIMIT)));
    servers.change(&project(), SECRET, "default", "b", |one| {
        one.data["data"]["key"] = json!("eQ==");
    });
    servers.settle(reconcile);
    let (Expected::Hash(now), Some(why)) = expected(&servers, "web-0") else {
        panic!()
    };
    assert!(why.starts_with("Secret a has "), "{why}");
    let before = now.to_owned();
    assert_eq!(before, hash_of(&servers, &["secrets/b"]));
    // Another client's object at its name would be in the city, whatever it is.
    servers.put(&Plane::Hub, SECRET, secret("ns-n1", "a", "theirs"));
    servers.change(&project(), SECRET, "default", "b", |one| {
        one.data["data"]["key"] = json!("eg==");
    });
    servers.settle(reconcile);
    assert!(matches!(expected(&servers, "web-0"), (Expected::Hash(now), Some(_)) if now == before));
}

#[test]
fn what_others_push_out_of_those_that_are_carried_counts_as_its_city_has_it() {
    let names: Vec<String> = (0..MOST).map(|index| format!("s{index:04}")).collect();
    let mut sources: Vec<Object> = names.iter().map(|name| secret("default", name, "eA==")).collect();
    sources.extend(["a", "z"].map(|name| secret("default", name, "eA==")));
    let mut servers = with(servers(&[&["secrets/a", "secrets/z"]]), &sources);
    servers.settle(reconcile);
    let keys: Vec<String> = names.iter().map(|name| format!("secrets/{name}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, deployment("web-1", &keys));
    servers.change(&project(), SECRET, "default", "a", |one| {
        one.data["data"]["key"] = json!("eQ==");
    });
    servers.settle(reconcile);
    let (Expected::Hash(now), Some(why)) = expected(&servers, "web-0") else {
        panic!()
    };
    assert!(why.contains("Secret z is not carried"), "{why}");
    assert_eq!(copy(&servers, "secrets/a").unwrap().text("/data/key"), Some("eQ=="));
    assert_eq!(now, hash_of(&servers, &["secrets/a", "secrets/z"]));
}

#[test]
fn what_a_city_is_to_have_rests_on_the_writes_of_all_that_is_named() {
    let sources = [secret("default", "a", "eA=="), secret("default", "b", "eA==")];
    let servers = with(servers(&[&["secrets/a", "secrets/b"], &["secrets/b"]]), &sources);
    let mut rests: Vec<String> = reconcile(&servers)
        .rests
        .iter()
        .map(|(this, on)| format!("{} {}", this.name, on.name))
        .collect();
    rests.sort();
    assert_eq!(rests, ["web-0 a", "web-0 b", "web-1 b"]);
}

#[test]
fn a_copy_that_stays_as_it_is_for_want_of_room_keeps_its_labels() {
    let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
    servers.settle(reconcile);
    servers.change(&Plane::Hub, SECRET, "ns-n1", "db", |one| {
        one.metadata.labels.as_mut().unwrap().remove(MANAGED_BY);
    });
    servers.change(&project(), SECRET, "default", "db", |one| {
        one.data["data"]["key"] = json!("x".repeat(2 * LIMIT));
    });
    servers.settle(reconcile);
    assert!(copy(&servers, "secrets/db").unwrap().marked());
}

#[test]
fn what_a_copy_takes_is_what_its_version_says() {
    let copy = |version: &str, label: &str| {
        object(
            json!({ "metadata": { "name": "a", "annotations": { annotations::DATA_VERSION: version },
            "labels": { MANAGED_BY: "popcell", label: "true" } } }),
        )
    };
    for (version, held) in [("f00-3", 3 << 10), ("f00", LIMIT), ("f00-18446744073709551615", LIMIT)] {
        assert_eq!(bytes_taken(&copy(version, REFERENCED_DATA), LIMIT), held + OVERHEAD);
    }
    let other = object(json!({ "metadata": { "name": "a", "annotations": { annotations::DATA_VERSION: "f00-3" } } }));
    assert_eq!(bytes_taken(&other, LIMIT), 0);
}

#[test]
fn the_right_to_a_namespace_is_asked_for_once_and_for_the_own_user_only() {
    let servers = servers(&[&["secrets/db"]]);
    let deployments = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    let decide = |binding: Option<&Object>, user: &str| {
        decide(&Observation {
            project: Some(PROJECT),
            namespace: servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap(),
            deployments: &deployments,
            is_read_for: &|_| true,
            access: Access::Forbidden(binding, user),
            source: &|_| Source::Unknown,
            has_more: false,
            is_carried: true,
            now: crate::testing::now(),
        })
    };
    let plan = decide(None, "me");
    let [Action::Create { target, object }] = &plan.actions[..] else {
        panic!("{plan:?}")
    };
    assert_eq!(target, &Target::namespaced(&Plane::Hub, ROLE_BINDING, "ns-n1", ROLE));
    assert_eq!(object.text("/roleRef/name"), Some(ROLE));
    assert_eq!(
        object.at("/subjects"),
        Some(&json!([{ "kind": "User", "apiGroup": RBAC, "name": "me" }]))
    );
    assert_eq!(plan.requeue, Some(BOUND));
    let mut there = object.as_ref().clone();
    there.metadata.uid = Some("b".to_owned());
    there.metadata.resource_version = Some("1".to_owned());
    // It is there and gives nothing: who waits is told, and it is asked for less often.
    let told = decide(Some(&there), "me");
    let [Action::Patch(patch)] = &told.actions[..] else {
        panic!("{told:?}")
    };
    assert_eq!(
        (patch.target.kind, told.requeue),
        (kind::WORKLOAD_DEPLOYMENT, Some(NO_ACCESS))
    );
    assert_eq!(decide(Some(&there), "renamed").actions.len(), 1);
    there.metadata.labels = None;
    let foreign = decide(Some(&there), "renamed");
    assert_eq!(foreign.actions.len(), 1);
    assert!(matches!(foreign.notes[..], [Note::Foreign(_)]));
}

#[test]
fn what_was_read_before_a_change_of_the_template_is_not_expected_of_it() {
    let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
    let newer = |one: &mut Object| {
        one.metadata
            .annotations
            .get_or_insert_default()
            .insert("test/newer".to_owned(), String::new());
    };
    servers.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web-0", newer);
    servers.settle(reconcile);
    assert!(copy(&servers, "secrets/db").is_some());
    assert_eq!(expected(&servers, "web-0"), (Expected::Pending(None), None));
    // No event may follow.
    assert_eq!(reconcile(&servers).requeue, Some(NEXT));
}

#[test]
fn what_is_no_name_is_neither_asked_for_nor_repeated() {
    let mut servers = servers(&[&["secrets/../../nodes/n"]]);
    assert_eq!(needed(servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT)), []);
    servers.settle(reconcile);
    let why = "the template names a Secret by what is no name";
    assert_eq!(expected(&servers, "web-0"), (Expected::Pending(Some(why)), Some(why)));
}

#[test]
fn a_namespace_carries_so_many_and_the_others_are_told() {
    let keys: Vec<String> = (0..=MOST).map(|index| format!("secrets/s{index:04}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let sources: Vec<Object> = keys
        .iter()
        .map(|key| secret("default", key.split_once('/').unwrap().1, "eA=="))
        .collect();
    let mut servers = with(servers(&[&keys, &keys[..1]]), &sources);
    servers.settle(reconcile);
    assert_eq!(servers.list(&Plane::Hub, SECRET).len(), MOST);
    let (Expected::Pending(Some(why)), _) = expected(&servers, "web-0") else {
        panic!()
    };
    assert!(why.contains("more than 256") && why.contains("Secret s0256"), "{why}");
    assert!(matches!(expected(&servers, "web-1"), (Expected::Hash(_), None)));
}

#[test]
fn what_earlier_templates_named_takes_no_place_of_what_is_named_now() {
    let earlier: Vec<String> = (0..MOST).map(|index| format!("configmaps/c{index:04}")).collect();
    let mut one = deployment("web-0", &["secrets/db"]);
    let all = one.metadata.annotations.get_or_insert_default();
    all.insert(annotations::PREVIOUS_REFERENCES.to_owned(), earlier.join(","));
    let needed: Vec<String> = needed([&one]).iter().map(ToString::to_string).collect();
    assert_eq!(needed.len(), MOST);
    assert_eq!((&*needed[0], &*needed[MOST - 1]), ("secrets/db", "configmaps/c0254"));
}

#[test]
fn a_namespace_that_is_not_ours_or_going_gets_nothing() {
    for change in [
        (|one: &mut Object| one.metadata.labels = None) as fn(&mut Object),
        |one: &mut Object| {
            one.metadata.finalizers = Some(vec!["kubernetes".to_owned()]);
            one.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                crate::testing::now(),
            ));
        },
    ] {
        let mut servers = with(servers(&[&["secrets/db"]]), &[secret("default", "db", "eA==")]);
        servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", change);
        assert!(reconcile(&servers).is_unchanged());
    }
}
