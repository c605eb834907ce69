//! Deletes that the deletion guard holds.

use popcell_api::annotations::MASS_DELETE_ALLOW;

use super::*;

#[tokio::test]
async fn the_deletion_guard_holds_a_mass_deletion_and_lets_the_rest_pass() {
    let tried = Tried::new(&[(201, stored("b", "u")), (200, json!({}))]).await;
    let plan = plan(vec![delete("a", Vec::new(), DeletionGuard::Applies), create("b")]);
    let many = |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete: 25,
        partial: false,
    };
    assert_eq!(tried.differing(&plan, &many).await, Ok(Done::Held));
    assert_eq!(tried.server.asked(), [format!("POST {ALL}")]);
    assert!(tried.applier.release_deletion_guards(MASS_DELETE_ALLOW));
    let again = Plan {
        actions: plan.actions[..1].to_vec(),
        ..Plan::default()
    };
    assert_eq!(tried.differing(&again, &many).await, Ok(Done::Written));
    assert_eq!(tried.server.asked(), [format!("DELETE {ALL}/a")]);
}

#[tokio::test]
async fn a_partial_difference_does_not_open_the_deletion_guard_for_what_follows() {
    let tried = Tried::new(&[(200, json!({}))]).await;
    let plan = plan(vec![delete("a", Vec::new(), DeletionGuard::Applies)]);
    let part = |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete: 1,
        partial: true,
    };
    assert_eq!(tried.differing(&plan, &part).await, Ok(Done::Written));
    let whole = |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete: 25,
        partial: false,
    };
    assert_eq!(tried.differing(&plan, &whole).await, Ok(Done::Held));
}

#[tokio::test]
async fn a_deletion_guard_that_holds_is_not_opened_by_a_partial_difference() {
    let tried = Tried::new(&[]).await;
    let plan = plan(vec![delete("a", Vec::new(), DeletionGuard::Applies)]);
    for (to_delete, partial) in [(25, false), (1, true)] {
        let difference = move |_: &Plane, _: Kind| Difference {
            ours: 30,
            to_delete,
            partial,
        };
        assert_eq!(tried.differing(&plan, &difference).await, Ok(Done::Held));
    }
    assert!(tried.server.asked().is_empty());
}

/// What a difference of so many of 30 does to two deletes, and what is told of the deletion guard.
async fn ask(tried: &Tried, to_delete: usize) -> (Result<Done, ApplyError>, Vec<String>) {
    for _ in 0..2 {
        let deleted = (200, json!({}));
        tried.server.answers.lock().unwrap().push_back(deleted);
    }
    let doom = |name| delete(name, Vec::new(), DeletionGuard::Applies);
    let difference = move |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete,
        partial: false,
    };
    let done = tried.differing(&plan(vec![doom("a"), doom("b")]), &difference).await;
    (done, guard_changed(tried))
}

fn guard_changed(tried: &Tried) -> Vec<String> {
    let mut reported = std::mem::take(&mut *tried.meter.0.lock().unwrap());
    reported.retain(|one| one.contains(" in hub: "));
    reported
}

#[tokio::test]
async fn the_deletion_guard_reports_once_that_it_holds_and_once_that_it_opens() {
    let tried = Tried::new(&[]).await;
    let held = "WorkloadDeployment in hub: Held(Difference { ours: 30, to_delete: 25, partial: false })";
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Held), vec![held.to_owned()]));
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Held), Vec::new()));
    let recovered = "WorkloadDeployment in hub: Recovered".to_owned();
    assert_eq!(ask(&tried, 2).await, (Ok(Done::Written), vec![recovered]));
    assert_eq!(ask(&tried, 2).await, (Ok(Done::Written), Vec::new()));

    tried
        .applier
        .deletion_guards()
        .relisted(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT);
    ask(&tried, 25).await.0.unwrap();
    assert!(tried.applier.release_deletion_guards(MASS_DELETE_ALLOW));
    assert_eq!(guard_changed(&tried), ["WorkloadDeployment in hub: Released"]);
    assert!(!tried.applier.release_deletion_guards(MASS_DELETE_ALLOW));
    assert_eq!(guard_changed(&tried), ["allow in hub: none of nothing"]);
    assert_eq!(ask(&tried, 25).await, (Ok(Done::Written), Vec::new()));
}

fn held_by_all() -> impl Fn(&Plane, Kind) -> Difference + Send + Sync {
    |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete: 25,
        partial: false,
    }
}

/// Whether the WorkloadDeployment in the project of which a hub object is made is gone.
fn by_user() -> DeletionGuard {
    DeletionGuard::Unless(vec![Proof::Gone {
        source: Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-1", "source"),
        uid: Some("s".to_owned()),
    }])
}

#[tokio::test]
async fn what_a_user_did_is_never_held_and_is_asked_for_once() {
    let gone = json!({ "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound",
        "details": { "kind": "workloaddeployments", "name": "source" } });
    let tried = Tried::new(&[(404, gone), (200, json!({})), (200, json!({}))]).await;
    let to_delete = vec![delete("a", Vec::new(), by_user()), delete("b", Vec::new(), by_user())];
    assert_eq!(
        tried.differing(&plan(to_delete), &held_by_all()).await,
        Ok(Done::Written)
    );
    let expected = [
        format!("GET {ALL}/source"),
        format!("DELETE {ALL}/a"),
        format!("DELETE {ALL}/b"),
    ];
    assert_eq!(tried.server.asked(), expected);
    assert!(
        !tried
            .applier
            .deletion_guards()
            .is_held(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT)
    );
}

#[tokio::test]
async fn what_is_not_proven_to_be_a_users_deed_is_counted() {
    // It lives; the server refuses; the server is unreachable.
    for answer in [(200, stored("source", "s")), (403, json!({})), (503, json!({}))] {
        let tried = Tried::new(&[answer]).await;
        let to_delete = plan(vec![delete("a", Vec::new(), by_user())]);
        assert_eq!(tried.differing(&to_delete, &held_by_all()).await, Ok(Done::Held));
        assert_eq!(tried.server.asked(), [format!("GET {ALL}/source")]);
    }
}

#[tokio::test]
async fn what_is_deleted_for_the_end_of_a_project_is_counted_by_projects() {
    let tried = Tried::new(&[(200, json!({}))]).await;
    let to_delete = plan(vec![delete("a", Vec::new(), DeletionGuard::With(kind::PROJECT))]);
    let of_projects = |gone: usize| {
        move |_: &Plane, kind: Kind| {
            assert_eq!(kind, kind::PROJECT);
            Difference {
                ours: 9,
                to_delete: gone,
                partial: false,
            }
        }
    };
    assert_eq!(tried.differing(&to_delete, &of_projects(5)).await, Ok(Done::Held));
    assert!(tried.applier.deletion_guards().is_held(&Plane::Hub, kind::PROJECT));
    assert_eq!(tried.differing(&to_delete, &of_projects(1)).await, Ok(Done::Written));
}

#[tokio::test]
async fn nothing_that_rests_on_a_server_that_went_back_is_deleted_until_it_is_released() {
    let tried = Tried::new(&[(200, json!({})), (200, json!({}))]).await;
    let few = |_: &Plane, _: Kind| Difference {
        ours: 30,
        to_delete: 1,
        partial: false,
    };
    let to_delete = plan(vec![delete("a", Vec::new(), DeletionGuard::Applies)]);
    tried.applier.rewound(&Plane::Hub);
    tried.applier.rewound(&Plane::Hub);
    assert_eq!(guard_changed(&tried), ["* in hub: Rewound"]);
    assert_eq!(tried.differing(&to_delete, &few).await, Ok(Done::Held));
    // What an owner's own deletion says is said by the server as it is now.
    let own = plan(vec![delete("b", Vec::new(), DeletionGuard::Exempt)]);
    assert_eq!(tried.differing(&own, &few).await, Ok(Done::Written));
    assert!(tried.applier.release_deletion_guards(MASS_DELETE_ALLOW));
    assert_eq!(tried.differing(&to_delete, &few).await, Ok(Done::Written));
    assert_eq!(
        tried.server.asked(),
        [format!("DELETE {ALL}/b"), format!("DELETE {ALL}/a")]
    );
}

/// A project that its own administrator has restored, while the hub's list is wrong.
#[tokio::test]
async fn a_release_of_one_plane_opens_the_guard_of_no_other() {
    let tried = Tried::new(&[(200, json!({}))]).await;
    let to_delete = plan(vec![delete("a", Vec::new(), DeletionGuard::Applies)]);
    assert_eq!(tried.differing(&to_delete, &held_by_all()).await, Ok(Done::Held));
    let restored = Plane::Project("a".to_owned());
    tried.applier.rewound(&restored);
    let log = crate::context::testing::Log::default();
    {
        let _listens = tracing::subscriber::set_default(log.subscriber());
        assert!(!tried.applier.release_deletion_guards("project b"));
    }
    assert!(log.text().contains(r#"held="'project a', 'hub'""#), "{}", log.text());
    assert!(tried.applier.release_deletion_guards(" project a "));
    assert!(!tried.applier.deletion_guards().has_gone_back(&restored));
    assert_eq!(tried.differing(&to_delete, &held_by_all()).await, Ok(Done::Held));
    assert!(tried.applier.release_deletion_guards("hub"));
    assert_eq!(tried.differing(&to_delete, &held_by_all()).await, Ok(Done::Written));
}

/// What is to be copied is told, and is the value that releases.
#[tokio::test]
async fn the_message_of_a_hold_says_what_releases_it_alone() {
    for plane in [Plane::Hub, Plane::Discovery, Plane::Project("a".to_owned())] {
        let tried = Tried::new(&[]).await;
        let log = crate::context::testing::Log::default();
        {
            let _listens = tracing::subscriber::set_default(log.subscriber());
            tried.applier.rewound(&plane);
            let many = Difference {
                ours: 30,
                to_delete: 25,
                partial: false,
            };
            tried.applier.judge(&plane, kind::INSTANCE, many);
        }
        let (said, key) = (log.text(), "compute.datumapis.com/mass-delete='");
        let values: Vec<&str> = said
            .split(key)
            .skip(1)
            .filter_map(|rest| rest.split('\'').next())
            .collect();
        assert_eq!(values, [plane.to_string(), plane.to_string()], "{said}");
        assert!(tried.applier.release_deletion_guards(values[0]));
        assert_eq!(tried.applier.deletion_guards().held().count(), 0);
    }
}

#[tokio::test]
async fn what_karmada_takes_out_of_a_cell_that_lost_its_city_is_an_operators_deed() {
    let source = Target::namespaced(&Plane::Hub, kind::WORKLOAD_DEPLOYMENT, "ns-1", "source");
    let by_operator = DeletionGuard::Unless(vec![
        Proof::Gone {
            source: source.clone(),
            uid: None,
        },
        Proof::NotServed {
            cluster: "dfw-01".to_owned(),
            deployment: source,
        },
    ]);
    let mut lives = stored("source", "s");
    lives["spec"]["cityCode"] = json!("DFW");
    for (city, done) in [("ORD", Done::Written), ("DFW", Done::Held)] {
        let cluster = json!({ "metadata": { "name": "dfw-01", "labels": { "topology.datum.net/city-code": city } } });
        let tried = Tried::new(&[
            (200, lives.clone()),
            (200, cluster),
            (200, lives.clone()),
            (200, json!({})),
        ])
        .await;
        let to_delete = plan(vec![delete("a", Vec::new(), by_operator.clone())]);
        assert_eq!(tried.differing(&to_delete, &held_by_all()).await, Ok(done), "{city}");
    }
}
