use super::*;
use crate::testing::{FakeServers, object};
use serde_json::{Value, json};

fn servers() -> FakeServers {
    let mut servers = FakeServers::default();
    let marker = json!({ "compute.datumapis.com/managed-by": "popcell" });
    servers.put(
        &Plane::Hub,
        NAMESPACE,
        object(
            json!({ "metadata": { "name": "ns-n1", "uid": "h", "resourceVersion": "1",
            "annotations": { "compute.datumapis.com/upstream-project-uid": "u1" }, "labels": {
            "compute.datumapis.com/managed-by": "popcell", "meta.datumapis.com/upstream-cluster-name": "cluster-p",
            "meta.datumapis.com/upstream-namespace": "default" } } }),
        ),
    );
    let hub = |name: &str, labels: &Value| {
        object(
            json!({ "metadata": { "name": name, "namespace": "ns-n1", "uid": format!("hub-{name}"),
            "resourceVersion": "1", "labels": labels, "annotations": {
            "compute.datumapis.com/upstream-uid": format!("uid-{name}") } } }),
        )
    };
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, hub("web", &marker));
    servers.put(&Plane::Hub, kind::INSTANCE, hub("web-0", &marker));
    servers.put(&Plane::Hub, kind::PROPAGATION_POLICY, hub("city-dfw", &marker));
    servers
}

fn reconcile(servers: &FakeServers, project: ProjectState<'_>, reclaim: bool, now: &str) -> Plan {
    pass_after(servers, project, reclaim, now, false)
}

fn pass_after(servers: &FakeServers, project: ProjectState<'_>, reclaim: bool, now: &str, deleted: bool) -> Plan {
    let Some(namespace) = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1") else {
        return Plan::default();
    };
    decide(&Observation {
        namespace,
        deployments: &servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
        copies: &servers.list(&Plane::Hub, kind::INSTANCE),
        policies: &servers.list(&Plane::Hub, kind::PROPAGATION_POLICY),
        project,
        deleted,
        reclaim,
        grace: PROJECT_GRACE,
        now: now.parse().unwrap(),
    })
}

const NOON: &str = "2026-01-01T12:00:00Z";
const LATER: &str = "2026-01-01T13:00:00Z";

fn engaged<'a>(namespace: Option<&'a Object>, deployments: &'a [&'a Object]) -> ProjectState<'a> {
    ProjectState::Engaged {
        uid: Some("u1"),
        server: None,
        namespace: Observed::Known(namespace),
        deployments: Observed::Known(deployments),
    }
}

#[test]
fn hub_objects_of_a_deleted_project_are_deleted_after_the_grace() {
    let mut servers = servers();
    servers.gone_projects.push("p".to_owned());
    let plan = reconcile(&servers, ProjectState::Gone, false, NOON);
    assert_eq!(plan.requeue, Some(PROJECT_GRACE));
    servers.apply(&plan);
    let early = reconcile(&servers, ProjectState::Gone, false, "2026-01-01T12:59:00Z");
    assert!(early.is_unchanged());
    assert_eq!(early.requeue, Some(Duration::from_mins(1)));
    let due = reconcile(&servers, ProjectState::Gone, false, LATER);
    // Copies and policies wait until no WorkloadDeployment is left that could bring them back.
    assert_eq!(due.actions.len(), 1);
    assert_eq!(due.actions[0].target().kind, kind::WORKLOAD_DEPLOYMENT);
    assert!(due.actions.iter().all(|action| matches!(action, Action::Delete(one)
        if one.deletion_guard == DeletionGuard::With(kind::PROJECT) && matches!(one.proofs[0], Proof::ProjectGone { .. }))));
    servers.settle(|servers| reconcile(servers, ProjectState::Gone, false, LATER));
    assert!(servers.list(&Plane::Hub, NAMESPACE).is_empty());
    assert!(servers.list(&Plane::Hub, kind::INSTANCE).is_empty());
}

#[test]
fn a_project_that_is_unreachable_or_back_loses_nothing() {
    let mut servers = servers();
    assert_eq!(
        reconcile(&servers, ProjectState::Away, true, LATER),
        Plan::independent()
    );
    servers.apply(&reconcile(&servers.clone(), ProjectState::Gone, false, NOON));
    // The live answer decides, not what was noted.
    let before = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len();
    servers.apply(&reconcile(&servers.clone(), ProjectState::Gone, false, LATER));
    assert_eq!(servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len(), before);
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let web = object(json!({ "metadata": { "name": "web", "namespace": "default", "uid": "uid-web" } }));
    servers.settle(|servers| reconcile(servers, engaged(Some(&namespace), &[&web]), true, LATER));
    let back = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(back.annotation(annotations::PROJECT_GONE_SINCE), None);
    assert_eq!(servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len(), before);
}

#[test]
fn a_project_recreated_under_its_name_counts_as_another() {
    let servers = servers();
    let state = ProjectState::Engaged {
        uid: Some("u2"),
        server: None,
        namespace: Observed::Unknown,
        deployments: Observed::Unknown,
    };
    let plan = reconcile(&servers, state, false, NOON);
    assert!(matches!(plan.actions[..], [Action::Patch(_)]));
    // Without a uid nothing can be proven, so nothing is touched.
    let mut single = servers;
    single.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        one.metadata.annotations = None
    });
    let plan = reconcile(&single, ProjectState::Gone, true, LATER);
    assert!(plan.is_unchanged() && matches!(plan.notes[..], [Note::Orphan(_)]));
}

#[test]
fn an_orphan_is_listed_and_deleted_only_on_request() {
    let mut servers = servers();
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let plan = reconcile(&servers, engaged(Some(&namespace), &[]), false, NOON);
    assert!(plan.is_unchanged());
    assert_eq!(plan.notes.len(), 1);
    servers.settle(
        |servers| match reconcile(servers, engaged(Some(&namespace), &[]), true, NOON) {
            plan if servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).is_empty() => {
                assert!(plan.notes.is_empty());
                Plan::independent()
            }
            plan => plan,
        },
    );
    // An unmarked one is nobody's orphan.
    let mut foreign = self::servers();
    foreign.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.metadata.labels = None
    });
    assert!(reconcile(&foreign, engaged(Some(&namespace), &[]), true, NOON).is_unchanged());
}

#[test]
fn a_deployment_that_is_no_orphan_after_all_does_not_hold_up_others() {
    let mut servers = servers();
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let mut api = servers
        .get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web")
        .unwrap()
        .clone();
    api.metadata.name = Some("api".to_owned());
    servers.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, api);
    // As a store that lags shows it: neither is in the project.
    let plan = reconcile(&servers, engaged(Some(&namespace), &[]), true, NOON);
    let lives = object(json!({ "metadata": { "name": "api", "namespace": "default", "uid": "uid-web" } }));
    servers.put(&Plane::Project("p".to_owned()), kind::WORKLOAD_DEPLOYMENT, lives);
    servers.apply(&plan);
    let left = servers.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    assert_eq!(left.iter().map(|one| one.name()).collect::<Vec<_>>(), ["api"]);
}

#[test]
fn an_empty_hub_namespace_that_is_not_current_is_deleted() {
    let mut servers = servers();
    let next = object(json!({ "metadata": { "name": "default", "uid": "n2" } }));
    assert!(reconcile(&servers, engaged(Some(&next), &[]), false, NOON).is_unchanged());
    servers.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    servers.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    servers.remove(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw");
    // The current one stays, empty or not.
    let current = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    assert!(reconcile(&servers, engaged(Some(&current), &[]), false, NOON).is_unchanged());
    servers.settle(|servers| reconcile(servers, engaged(Some(&next), &[]), false, NOON));
    assert!(servers.list(&Plane::Hub, NAMESPACE).is_empty());
}

const SERVER: &str = "compute.datumapis.com/upstream-server-uid";

/// The same on a hub of mode `single`, whose hub namespace says that it is of this server.
fn of_server(stamped: Option<&str>) -> FakeServers {
    let mut servers = servers();
    servers.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        one.metadata.annotations = stamped.map(|uid| [(SERVER.to_owned(), uid.to_owned())].into());
    });
    servers
}

fn single<'a>(server: Option<&'a str>, namespace: Option<&'a Object>) -> ProjectState<'a> {
    ProjectState::Engaged {
        uid: None,
        server,
        namespace: Observed::Known(namespace),
        deployments: Observed::Known(&[]),
    }
}

/// As `kubectl get namespace kube-system` on the project's server.
fn answers(servers: &mut FakeServers, uid: &str) {
    let system = object(json!({ "metadata": { "name": "kube-system", "uid": uid } }));
    servers.put(&Plane::Project("p".to_owned()), NAMESPACE, system);
}

fn left(servers: &FakeServers) -> usize {
    let kinds = [kind::WORKLOAD_DEPLOYMENT, kind::INSTANCE, NAMESPACE];
    kinds.iter().map(|kind| servers.list(&Plane::Hub, *kind).len()).sum()
}

#[test]
fn a_wrong_kubeconfig_in_mode_single_deletes_nothing_and_says_why() {
    let mut servers = of_server(Some("s1"));
    answers(&mut servers, "s2");
    // As another cluster answers: neither the Namespace nor the WorkloadDeployment is there.
    let plan = reconcile(&servers, single(Some("s2"), None), true, LATER);
    assert!(
        matches!(&plan.notes[..], [Note::AnotherServer { stamped, server, .. }] if stamped == "s1" && server == "s2")
    );
    // Those that it was told to delete are counted by the guard, and have no proof.
    assert!(plan.actions.iter().all(|action| matches!(action, Action::Delete(one)
        if one.deletion_guard == DeletionGuard::Applies && matches!(&one.proofs[..], [Proof::Server { uid, .. }] if uid == "s1"))));
    assert_eq!(plan.actions.len(), 1);
    servers.apply(&plan);
    assert_eq!(left(&servers), 3);
    assert!(reconcile(&servers, single(Some("s2"), None), false, LATER).is_unchanged());
    // An empty one is no better.
    for (kind, name) in [
        (kind::WORKLOAD_DEPLOYMENT, "web"),
        (kind::INSTANCE, "web-0"),
        (kind::PROPAGATION_POLICY, "city-dfw"),
    ] {
        servers.remove(&Plane::Hub, kind, "ns-n1", name);
    }
    assert!(reconcile(&servers, single(Some("s2"), None), true, LATER).is_unchanged());
}

#[test]
fn in_mode_single_only_the_named_server_proves_that_something_is_gone() {
    for (stamped, server, goes) in [
        (Some("s1"), Some("s1"), true),
        // No version has said yet whose it is, or the server has not said who it is.
        (None, Some("s1"), false),
        (Some("s1"), None, false),
        (None, None, false),
    ] {
        let mut servers = of_server(stamped);
        answers(&mut servers, "s1");
        let plan = reconcile(&servers, single(server, None), true, NOON);
        assert!(
            plan.notes.iter().all(|note| matches!(note, Note::Orphan(_))),
            "{:?}",
            plan.notes
        );
        servers.apply(&plan);
        assert_eq!(left(&servers) < 3, goes, "{stamped:?} {server:?}");
        // Another server behind the same address, from one moment to the next.
        let mut moved = of_server(stamped);
        answers(&mut moved, "s2");
        moved.apply(&plan);
        assert_eq!(left(&moved), 3);
    }
}

#[test]
fn a_hub_namespace_is_stamped_once_where_its_namespace_lives() {
    let lives = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let next = object(json!({ "metadata": { "name": "default", "uid": "n2" } }));
    let mut servers = of_server(None);
    assert!(reconcile(&servers, single(Some("s1"), Some(&next)), false, NOON).is_unchanged());
    assert!(reconcile(&servers, single(None, Some(&lives)), false, NOON).is_unchanged());
    let plan = reconcile(&servers, single(Some("s1"), Some(&lives)), false, NOON);
    assert!(matches!(plan.actions[..], [Action::Patch(_)]));
    servers.settle(|servers| reconcile(servers, single(Some("s1"), Some(&lives)), false, NOON));
    let stamped = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(stamped.annotation(SERVER), Some("s1"));
    // What lives there proves whose it is, so what is lost in it may go in the same reconcile.
    let plan = reconcile(&of_server(None), single(Some("s1"), Some(&lives)), true, NOON);
    assert!(plan.actions.iter().any(|action| matches!(action, Action::Delete(_))));
}

#[test]
fn a_project_that_is_back_in_whatever_state_has_its_whole_grace_again() {
    let mut servers = servers();
    servers.settle(|servers| reconcile(servers, ProjectState::Gone, false, NOON));
    let noted = |servers: &FakeServers| {
        let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
        namespace.annotation(annotations::PROJECT_GONE_SINCE).is_some()
    };
    assert!(noted(&servers));
    // It is in the list, and not Ready yet.
    servers.settle(|servers| reconcile(servers, ProjectState::Listed { uid: "u1" }, false, LATER));
    assert!(!noted(&servers));
    // Another of its name is not it.
    servers.settle(|servers| reconcile(servers, ProjectState::Listed { uid: "u2" }, false, NOON));
    assert!(noted(&servers));
    assert_eq!(left(&servers), 3);
}

#[test]
fn a_project_that_a_user_deleted_is_noted_so_and_no_guard_counts_it() {
    for deleted in [false, true] {
        let mut servers = servers();
        let reconcile = |servers: &FakeServers, now| pass_after(servers, ProjectState::Gone, false, now, deleted);
        servers.settle(|servers| reconcile(servers, NOON));
        let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
        let is_noted = namespace.annotation(annotations::PROJECT_DELETED).is_some();
        assert_eq!(is_noted, deleted);
        assert_eq!(
            count_projects([namespace].into_iter()),
            if deleted { (0, 0) } else { (1, 1) }
        );
        let deletion_guards: Vec<DeletionGuard> = reconcile(&servers, LATER)
            .actions
            .into_iter()
            .filter_map(|action| match action {
                Action::Delete(delete) => Some(delete.deletion_guard),
                _ => None,
            })
            .collect();
        let expected = if deleted {
            DeletionGuard::Exempt
        } else {
            DeletionGuard::With(kind::PROJECT)
        };
        assert_eq!(deletion_guards, [expected]);
        // The note goes as a whole.
        servers.settle(|servers| pass_after(servers, ProjectState::Listed { uid: "u1" }, false, LATER, deleted));
        let namespace = servers.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
        for key in [annotations::PROJECT_GONE_SINCE, annotations::PROJECT_DELETED] {
            assert_eq!(namespace.annotation(key), None);
        }
    }
}

#[test]
fn projects_are_counted_once_and_gone_by_their_notes() {
    let namespace = |name: &str, project: &str, gone: bool| {
        let mut one = servers().get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap().clone();
        one.metadata.name = Some(name.to_owned());
        let labels = one.metadata.labels.as_mut().unwrap();
        labels.insert(
            popcell_api::labels::UPSTREAM_CLUSTER_NAME.to_owned(),
            format!("cluster-{project}"),
        );
        if gone {
            let annotations = one.metadata.annotations.as_mut().unwrap();
            annotations.insert(annotations::PROJECT_GONE_SINCE.to_owned(), NOON.to_owned());
        }
        one
    };
    let mut foreign = namespace("e", "s", true);
    foreign
        .metadata
        .labels
        .as_mut()
        .unwrap()
        .remove(popcell_api::labels::MANAGED_BY);
    let all = [
        namespace("a", "p", false),
        namespace("b", "p", false),
        namespace("c", "q", true),
        namespace("d", "r", false),
        foreign,
    ];
    assert_eq!(count_projects(all.iter()), (3, 1));
}
