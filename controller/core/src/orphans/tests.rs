use super::*;
use crate::testing::{World, object};
use serde_json::{Value, json};

fn world() -> World {
    let mut world = World::default();
    let marker = json!({ "compute.datumapis.com/managed-by": "popcell" });
    world.put(
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
    world.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, hub("web", &marker));
    world.put(&Plane::Hub, kind::INSTANCE, hub("web-0", &marker));
    world.put(&Plane::Hub, kind::PROPAGATION_POLICY, hub("city-dfw", &marker));
    world
}

fn pass(world: &World, project: ProjectState<'_>, reclaim: bool, now: &str) -> Plan {
    let Some(namespace) = world.get(&Plane::Hub, NAMESPACE, "", "ns-n1") else {
        return Plan::default();
    };
    decide(&Observation {
        namespace,
        deployments: &world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT),
        copies: &world.list(&Plane::Hub, kind::INSTANCE),
        policies: &world.list(&Plane::Hub, kind::PROPAGATION_POLICY),
        project,
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
        namespace: Observed::Known(namespace),
        deployments: Observed::Known(deployments),
    }
}

#[test]
fn c22_a_project_that_is_gone_is_cleaned_after_the_grace() {
    let mut world = world();
    world.gone_projects.push("p".to_owned());
    let plan = pass(&world, ProjectState::Gone, false, NOON);
    assert_eq!(plan.requeue, Some(PROJECT_GRACE));
    world.apply(&plan);
    let early = pass(&world, ProjectState::Gone, false, "2026-01-01T12:59:00Z");
    assert!(early.is_quiet());
    assert_eq!(early.requeue, Some(Duration::from_mins(1)));
    let due = pass(&world, ProjectState::Gone, false, LATER);
    // Copies and policies wait until no WorkloadDeployment is left that could bring them back.
    assert_eq!(due.actions.len(), 1);
    assert_eq!(due.actions[0].target().kind, kind::WORKLOAD_DEPLOYMENT);
    assert!(due.actions.iter().all(|action| matches!(action, Action::Delete(one)
        if one.brake == Brake::Exempt && matches!(one.proofs[0], Proof::ProjectGone { .. }))));
    world.settle(|world| pass(world, ProjectState::Gone, false, LATER));
    assert!(world.list(&Plane::Hub, NAMESPACE).is_empty());
    assert!(world.list(&Plane::Hub, kind::INSTANCE).is_empty());
}

#[test]
fn c22_a_project_that_is_away_or_back_loses_nothing() {
    let mut world = world();
    assert_eq!(pass(&world, ProjectState::Away, true, LATER), Plan::independent());
    world.apply(&pass(&world.clone(), ProjectState::Gone, false, NOON));
    // The live answer decides, not what was noted.
    let before = world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len();
    world.apply(&pass(&world.clone(), ProjectState::Gone, false, LATER));
    assert_eq!(world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len(), before);
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let web = object(json!({ "metadata": { "name": "web", "namespace": "default", "uid": "uid-web" } }));
    world.settle(|world| pass(world, engaged(Some(&namespace), &[&web]), true, LATER));
    let back = world.get(&Plane::Hub, NAMESPACE, "", "ns-n1").unwrap();
    assert_eq!(back.annotation(annotations::PROJECT_GONE_SINCE), None);
    assert_eq!(world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).len(), before);
}

#[test]
fn c22_another_project_of_the_same_name_is_not_the_one() {
    let world = world();
    let state = ProjectState::Engaged {
        uid: Some("u2"),
        namespace: Observed::Unknown,
        deployments: Observed::Unknown,
    };
    let plan = pass(&world, state, false, NOON);
    assert!(matches!(plan.actions[..], [Action::Patch(_)]));
    // Without a uid nothing can be proven, so nothing is touched.
    let mut single = world;
    single.change(&Plane::Hub, NAMESPACE, "", "ns-n1", |one| {
        one.metadata.annotations = None
    });
    let plan = pass(&single, ProjectState::Gone, true, LATER);
    assert!(plan.is_quiet() && matches!(plan.notes[..], [Note::Orphan(_)]));
}

#[test]
fn d14_an_orphan_is_listed_and_deleted_only_when_told_to() {
    let mut world = world();
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let plan = pass(&world, engaged(Some(&namespace), &[]), false, NOON);
    assert!(plan.is_quiet());
    assert_eq!(plan.notes.len(), 1);
    world.settle(|world| match pass(world, engaged(Some(&namespace), &[]), true, NOON) {
        plan if world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT).is_empty() => {
            assert!(plan.notes.is_empty());
            Plan::independent()
        }
        plan => plan,
    });
    // An unmarked one is nobody's orphan.
    let mut foreign = self::world();
    foreign.change(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web", |one| {
        one.metadata.labels = None
    });
    assert!(pass(&foreign, engaged(Some(&namespace), &[]), true, NOON).is_quiet());
}

#[test]
fn d14_one_that_is_no_orphan_after_all_holds_up_no_other() {
    let mut world = world();
    let namespace = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    let mut api = world
        .get(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web")
        .unwrap()
        .clone();
    api.metadata.name = Some("api".to_owned());
    world.put(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, api);
    // As a store that lags shows it: neither is in the project.
    let plan = pass(&world, engaged(Some(&namespace), &[]), true, NOON);
    let lives = object(json!({ "metadata": { "name": "api", "namespace": "default", "uid": "uid-web" } }));
    world.put(&Plane::Project("p".to_owned()), kind::WORKLOAD_DEPLOYMENT, lives);
    world.apply(&plan);
    let left = world.list(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    assert_eq!(left.iter().map(|one| one.name()).collect::<Vec<_>>(), ["api"]);
}

#[test]
fn d4_an_empty_namespace_that_is_not_current_is_deleted() {
    let mut world = world();
    let next = object(json!({ "metadata": { "name": "default", "uid": "n2" } }));
    assert!(pass(&world, engaged(Some(&next), &[]), false, NOON).is_quiet());
    world.remove(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-n1", "web");
    world.remove(&Plane::Hub, kind::INSTANCE, "ns-n1", "web-0");
    world.remove(&Plane::Hub, kind::PROPAGATION_POLICY, "ns-n1", "city-dfw");
    // The current one stays, empty or not.
    let current = object(json!({ "metadata": { "name": "default", "uid": "n1" } }));
    assert!(pass(&world, engaged(Some(&current), &[]), false, NOON).is_quiet());
    world.settle(|world| pass(world, engaged(Some(&next), &[]), false, NOON));
    assert!(world.list(&Plane::Hub, NAMESPACE).is_empty());
}
