//! Projects that are gone, or another installation's.

use super::*;

const GONE_SINCE: &str = "compute.datumapis.com/project-gone-since";

fn namespace(version: &str, gone_since: Option<&str>) -> Value {
    let mut one = hub_namespace("ns-n1", "p");
    one["metadata"]["resourceVersion"] = json!(version);
    one["metadata"]["annotations"] = json!({ "compute.datumapis.com/upstream-project-uid": "u1" });
    if let Some(since) = gone_since {
        one["metadata"]["annotations"][GONE_SINCE] = json!(since);
    }
    one
}

async fn looked(script: &Arc<Script>, fixture: &Fixture) -> Vec<String> {
    fixture
        .reconcile("orphans", &Key::new(&Plane::Hub, "ns-n1", "ns-n1"))
        .await;
    script.writes()
}

#[tokio::test]
async fn a_project_gone_annotation_that_another_client_removed_is_not_written_again() {
    let script = Arc::<Script>::default();
    let noting = "hub PATCH /api/v1/namespaces/ns-n1";
    let noted = namespace("2", Some("2026-01-01T00:00:00Z"));
    script.say(noting, 200, noted.clone());
    let fixture = Fixture::milo(management(true), script.answer()).await;
    list_all(&fixture, &[]);
    fixture.put(&Plane::Hub, NAMESPACE, namespace("1", None));
    // The guard holds where more than half of the projects are missing.
    fixture.put(&Plane::Hub, NAMESPACE, hub_namespace("ns-other", "other"));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
    assert_eq!(looked(&script, &fixture).await, [noting]);
    // Another installation has the project engaged: it says so at once.
    fixture.put(&Plane::Hub, NAMESPACE, noted);
    fixture.put(&Plane::Hub, NAMESPACE, namespace("3", None));
    for _ in 0..2 {
        assert!(looked(&script, &fixture).await.is_empty());
    }
    let orphans = fixture.orphans();
    assert_eq!(orphans.iter().map(|one| one.kind).collect::<Vec<_>>(), [NAMESPACE]);
    // A note that stands is the time of the grace, whoever made it.
    fixture.put(&Plane::Hub, NAMESPACE, namespace("4", Some("2026-01-01T00:00:00Z")));
    let deleted = format!("hub DELETE {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    assert_eq!(looked(&script, &fixture).await, [deleted]);
}

const SYSTEM: &str = "project single GET /api/v1/namespaces/kube-system";
const SERVER: &str = "compute.datumapis.com/upstream-server-uid";

/// Mode `single` with `--reclaim-orphans`: the hub has many WorkloadDeployments in a namespace that is stamped so, and the
/// project's server, which has this uid, has none of them.
async fn reclaiming(script: &Arc<Script>, stamped: Option<&str>, server: &str, many: usize) -> Fixture {
    let fixture = Fixture::reclaiming(management(true), &["single"], script.answer()).await;
    list_all(&fixture, &["single"]);
    let system = json!({ "metadata": { "name": "kube-system", "uid": server, "resourceVersion": "1" } });
    script.say(SYSTEM, 200, system);
    let mut namespace = hub_namespace("ns-n1", "single");
    if let Some(uid) = stamped {
        namespace["metadata"]["annotations"] = json!({ SERVER: uid });
    }
    fixture.put(&Plane::Hub, NAMESPACE, namespace);
    for number in 0..many {
        let name = format!("web-{number}");
        fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", &name, &name));
    }
    script.asked();
    fixture
}

#[tokio::test]
async fn reclaiming_at_a_wrong_server_deletes_nothing_and_says_why() {
    for (stamped, many, held) in [(Some("s1"), 3, false), (Some("s1"), 25, true), (None, 25, false)] {
        let script = Arc::<Script>::default();
        let fixture = reclaiming(&script, stamped, "s2", many).await;
        let log = crate::context::testing::Log::default();
        {
            use tracing::instrument::WithSubscriber;
            let key = Key::new(&Plane::Hub, "ns-n1", "ns-n1");
            fixture
                .reconcile("orphans", &key)
                .with_subscriber(log.subscriber())
                .await;
        }
        assert_eq!(script.writes(), Vec::<String>::new(), "{stamped:?} {many}");
        let is_held = fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&Plane::Hub, WORKLOAD_DEPLOYMENT);
        assert_eq!(is_held, held, "{stamped:?} {many}");
        if stamped.is_some() {
            let said = log.text();
            assert!(
                said.contains("stamped=\"s1\"") && said.contains("server=\"s2\""),
                "{said}"
            );
        }
    }
}

#[tokio::test]
async fn reclaiming_is_no_command_so_the_guard_counts_it() {
    for (many, deletes) in [(3, 3), (25, 0)] {
        let script = Arc::<Script>::default();
        let fixture = reclaiming(&script, Some("s1"), "s1", many).await;
        assert_eq!(looked(&script, &fixture).await.len(), deletes, "{many}");
    }
}

#[tokio::test]
async fn a_project_that_is_listed_and_not_ready_loses_its_note() {
    let script = Arc::<Script>::default();
    let fixture = Fixture::milo(management(true), script.answer()).await;
    list_all(&fixture, &[]);
    fixture.put(&Plane::Hub, NAMESPACE, namespace("2", Some("2026-01-01T00:00:00Z")));
    fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
    // The list lags: the Project is there by a live answer.
    let project = json!({ "metadata": { "name": "p", "uid": "u1", "resourceVersion": "1" } });
    script.say(
        "cell GET /apis/resourcemanager.miloapis.com/v1alpha1/projects/p",
        200,
        project,
    );
    assert_eq!(looked(&script, &fixture).await, ["hub PATCH /api/v1/namespaces/ns-n1"]);
}

#[tokio::test]
async fn many_projects_that_are_gone_at_once_keep_what_they_have() {
    let script = Arc::<Script>::default();
    let fixture = Fixture::milo(management(true), script.answer()).await;
    list_all(&fixture, &[]);
    for number in 0..5 {
        let (name, id) = (format!("ns-n{number}"), format!("p{number}"));
        let mut one = hub_namespace(&name, &id);
        one["metadata"]["annotations"] =
            json!({ "compute.datumapis.com/upstream-project-uid": id, GONE_SINCE: "2026-01-01T00:00:00Z" });
        fixture.put(&Plane::Hub, NAMESPACE, one);
        fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment(&name, "web", "wd"));
    }
    let key = Key::new(&Plane::Hub, "ns-n1", "ns-n1");
    fixture.reconcile("orphans", &key).await;
    assert_eq!(script.writes(), Vec::<String>::new());
    assert!(
        fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&Plane::Hub, popcell_api::kind::PROJECT)
    );
    assert!(fixture.context.applier.release_deletion_guards("allow"));
    fixture.reconcile("orphans", &key).await;
    let deleted = format!("hub DELETE {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
    assert_eq!(script.writes(), [deleted]);
}

/// A project that nothing said the end of may be one that another discovery server does not know. One that a user deleted is
/// not held, however few there are.
#[tokio::test]
async fn the_only_project_is_held_where_it_is_missing_and_let_go_where_a_user_deleted_it() {
    for deleted in [false, true] {
        let script = Arc::<Script>::default();
        let fixture = Fixture::milo(management(true), script.answer()).await;
        list_all(&fixture, &[]);
        let mut one = namespace("2", Some("2026-01-01T00:00:00Z"));
        if deleted {
            one["metadata"]["annotations"]["compute.datumapis.com/project-deleted"] = json!("true");
        }
        fixture.put(&Plane::Hub, NAMESPACE, one);
        fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment("ns-n1", "web", "wd"));
        let written = looked(&script, &fixture).await;
        let delete = format!("hub DELETE {DEPLOYMENTS}/ns-n1/workloaddeployments/web");
        let expected = if deleted { vec![delete] } else { vec![] };
        assert_eq!(written, expected, "{deleted}");
        let deletion_guards = fixture
            .context
            .applier
            .deletion_guards()
            .is_held(&Plane::Hub, popcell_api::kind::PROJECT);
        assert_eq!(deletion_guards, !deleted);
    }
}

/// What discovery saw of its end is noted beside it.
#[tokio::test]
async fn the_note_of_a_projects_end_says_whether_it_was_deleted() {
    for deleted in [false, true] {
        let script = Arc::<Script>::default();
        let fixture = Fixture::milo(management(true), script.answer()).await;
        list_all(&fixture, &[]);
        if deleted {
            let project =
                json!({ "metadata": { "name": "p", "uid": "u1", "deletionTimestamp": "2026-01-01T00:00:00Z" } });
            let now: popcell_core::object::Object = serde_json::from_value(project).unwrap();
            fixture.context.project_removals.note(&Change::Applied {
                before: None,
                now: Arc::new(now),
            });
        }
        fixture.put(&Plane::Hub, NAMESPACE, namespace("1", None));
        fixture
            .reconcile("orphans", &Key::new(&Plane::Hub, "ns-n1", "ns-n1"))
            .await;
        let sent = script.sent().into_iter().find(|(line, _)| line.contains(" PATCH "));
        let (_, body) = sent.unwrap();
        assert!(body.to_string().contains("project-gone-since"), "{body}");
        assert_eq!(body.to_string().contains("project-deleted"), deleted, "{body}");
    }
}

/// Lists of Projects, one after the other; each but the last is followed by a watch that breaks.
fn discovery_server(script: &Arc<Script>, lists: Vec<Value>) -> Arc<Answer> {
    let (rest, left) = (script.answer(), Mutex::new(lists.into_iter()));
    Arc::new(move |asked: Asked| {
        if !asked
            .line
            .starts_with("GET /apis/resourcemanager.miloapis.com/v1alpha1/projects?")
        {
            return rest(asked);
        }
        let mut left = left.lock().unwrap();
        match asked.line.contains("watch=") {
            false => left.next().map(|list| (200, list)),
            true if left.len() > 0 => Some((0, Value::Null)),
            true => None,
        }
    })
}

fn projects(version: u32, count: usize) -> Value {
    let project = |number: usize| {
        json!({ "metadata": { "name": format!("p{number}"), "uid": format!("u{number}"), "resourceVersion": "1" },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } })
    };
    json!({ "metadata": { "resourceVersion": version.to_string() }, "items": (0..count).map(project).collect::<Vec<_>>() })
}

/// Four of ten projects are newer than the backup that discovery was restored from: no more than half, so their number holds
/// nothing.
#[tokio::test(start_paused = true)]
async fn a_discovery_server_that_was_restored_ends_no_project_that_it_lacks_until_that_is_released() {
    for (version, went_back) in [(60, true), (160, false)] {
        let script = Arc::<Script>::default();
        let answer = discovery_server(&script, vec![projects(100, 10), projects(version, 6)]);
        let fixture = Fixture::milo(management(true), Arc::clone(&answer)).await;
        list_all(&fixture, &[]);
        let discovery = crate::planes::Discovery::new(
            crate::planes::testing::client(&answer, &Plane::Cell),
            popcell_api::kind::PROJECT,
            "Ready",
        );
        let again = discovery.again();
        let discovery = discovery
            .guarded(fixture.context.clone())
            .with_project_removals(&fixture.context.project_removals);
        let running = tokio::spawn(discovery.run(fixture.context.planes.clone()));
        let settled = || tokio::time::sleep(std::time::Duration::from_secs(5));
        settled().await;
        let engaged = || {
            fixture
                .context
                .planes
                .planes()
                .into_iter()
                .filter(|one| *one != Plane::Hub)
                .count()
        };
        assert_eq!(engaged(), if went_back { 10 } else { 6 });
        let held = |fixture: &Fixture| -> Vec<String> {
            let deletion_guards = fixture.context.applier.deletion_guards();
            let held = deletion_guards.held().map(|(plane, kind)| format!("{kind} in {plane}"));
            held.collect()
        };
        let expected = if went_back {
            vec!["* in discovery".to_owned()]
        } else {
            vec![]
        };
        assert_eq!(held(&fixture), expected);

        // One that is not Ready is not engaged: what it was noted for is held all the same.
        for number in [0, 9, 10] {
            let (name, id) = (format!("ns-n{number}"), format!("p{number}"));
            let mut one = hub_namespace(&name, &id);
            one["metadata"]["annotations"] =
                json!({ "compute.datumapis.com/upstream-project-uid": format!("u{number}") });
            if number == 10 {
                one["metadata"]["annotations"][GONE_SINCE] = json!("2026-01-01T00:00:00Z");
            }
            fixture.put(&Plane::Hub, NAMESPACE, one);
            fixture.put(&Plane::Hub, WORKLOAD_DEPLOYMENT, hub_deployment(&name, "web", "wd"));
        }
        script.asked();
        let reconcile = async |name: &str| {
            fixture.reconcile("orphans", &Key::new(&Plane::Hub, name, name)).await;
            script.writes()
        };
        let delete = format!("hub DELETE {DEPLOYMENTS}/ns-n10/workloaddeployments/web");
        let note = "hub PATCH /api/v1/namespaces/ns-n9".to_owned();
        assert_eq!(
            reconcile("ns-n10").await,
            if went_back { vec![] } else { vec![delete.clone()] }
        );
        assert_eq!(
            reconcile("ns-n9").await,
            if went_back { vec![] } else { vec![note.clone()] }
        );
        if went_back {
            assert!(fixture.context.applier.release_deletion_guards("discovery"));
            again.notify_one();
            settled().await;
            assert_eq!((engaged(), held(&fixture)), (6, vec![]));
            assert_eq!(reconcile("ns-n10").await, [delete]);
            // The time of grace begins now.
            assert_eq!(reconcile("ns-n9").await, [note]);
        }
        running.abort();
    }
}
