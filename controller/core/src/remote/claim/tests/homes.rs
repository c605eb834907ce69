//! Which project the claims of a cell namespace are in, and what is known of quota there.

use super::*;

#[test]
fn the_labels_of_the_cell_namespace_name_the_project() {
    let cluster = "meta.datumapis.com/upstream-cluster-name";
    let upstream_namespace = "meta.datumapis.com/upstream-namespace";
    let default = |project| ProjectNamespace::In {
        project,
        namespace: "default",
    };
    let long = format!("cluster-{}", "p".repeat(56));
    for (labels, expected) in [
        (of_project("p"), default("p")),
        // Of a label with an organisation, only the project is its id.
        (of_project("org_p"), default("p")),
        (json!(null), ProjectNamespace::None),
        (json!({ cluster: "cluster-p" }), ProjectNamespace::None),
        (
            json!({ cluster: "cluster-p", upstream_namespace: "" }),
            ProjectNamespace::None,
        ),
        (
            json!({ cluster: "", upstream_namespace: "default" }),
            ProjectNamespace::None,
        ),
        (json!({ upstream_namespace: "default" }), ProjectNamespace::None),
        (of_project(""), ProjectNamespace::Bad("cluster-")),
        (json!({ cluster: "cluster-" }), ProjectNamespace::Bad("cluster-")),
        (
            of_project("Not_A_Name.."),
            ProjectNamespace::Bad("cluster-Not_A_Name.."),
        ),
        (
            json!({ cluster: long, upstream_namespace: "default" }),
            ProjectNamespace::Bad(&long),
        ),
    ] {
        let namespace = cell_namespace(labels.clone());
        assert_eq!(project_namespace("ns-n1", Some(&namespace), None), expected, "{labels}");
        // One cluster is project and cell.
        let single = ProjectNamespace::In {
            project: "only",
            namespace: "ns-n1",
        };
        assert_eq!(project_namespace("ns-n1", Some(&namespace), Some("only")), single);
    }
    assert_eq!(project_namespace("ns-n1", None, None), ProjectNamespace::None);
}

#[test]
fn a_single_cluster_claims_in_the_namespace_of_the_instance() {
    let mut servers = servers();
    let alone = |servers: &FakeServers| {
        see(servers, |seen| {
            decide(&Observation {
                single: Some("p"),
                ..*seen
            })
        })
    };
    servers.settle(alone);
    let claims = servers.list(&project(), kind::RESOURCE_CLAIM);
    assert_eq!((claims.len(), claims[0].namespace()), (1, "ns-n1"));
}

#[test]
fn a_cell_namespace_that_no_longer_names_its_project_keeps_the_claims_of_what_runs() {
    let mut servers = servers();
    let mut fresh = servers.clone();
    settle(&mut servers);
    for labels in [json!(null), of_project("another")] {
        fresh.put(&Plane::Cell, NAMESPACE, cell_namespace(labels.clone()));
        assert_eq!(reconcile(&fresh), Plan::default(), "{labels}");

        let mut servers = servers.clone();
        servers.put(&Plane::Cell, NAMESPACE, cell_namespace(labels));
        let plan = reconcile(&servers);
        assert!(
            plan.is_unchanged() && matches!(plan.notes[..], [Note::Orphan(_)]),
            "{plan:?}"
        );
        end_instance(&mut servers);
        assert!(reconcile(&servers).is_unchanged());
        // With the Instance and its slot it goes, and the cell says so.
        servers.put(&Plane::Cell, kind::WORKLOAD_DEPLOYMENT, deployment(0));
        let plan = reconcile(&servers);
        assert_eq!((plan.actions.len(), plan.events.len()), (1, 1));
        assert_eq!(plan.notes, [Note::ClaimOrphaned]);
        assert_eq!(
            (plan.events[0].reason.as_str(), plan.events[0].uid.as_str()),
            ("QuotaClaimOrphaned", "cell-ns")
        );
        settle(&mut servers);
        assert!(held(&servers).is_none());
    }
}

#[test]
fn quota_is_known_from_project_claim_and_last_refusal() {
    let mut held_back = servers();
    let (reason, message) = ("QuotaMisconfigured", "forbidden");
    let refused = Some((reason, message));
    let mismatch = Identity::Mismatch("join it again".to_owned());
    see(&held_back, |seen| {
        assert_eq!(quota(seen, None, None), Quota::Absent);
        assert_eq!(quota(seen, None, refused), Quota::Refused { reason, message });
        let away = Observation {
            claims: Observed::Unknown,
            ..*seen
        };
        assert_eq!(quota(&away, None, refused), Quota::Unknown(None));
        assert_eq!(quota(&away, Some("timeout"), refused), Quota::Unknown(Some("timeout")));
    });
    see(&held_back, |seen| {
        let (reason, message) = ("QuotaMisconfigured", "join it again");
        let seen = Observation {
            identity: &mismatch,
            ..*seen
        };
        assert_eq!(quota(&seen, None, None), Quota::Refused { reason, message });
    });
    settle(&mut held_back);
    see(&held_back, |seen| {
        let seen = Observation {
            identity: &mismatch,
            ..*seen
        };
        assert_eq!(quota(&seen, None, refused), Quota::Claim(held(&held_back).unwrap()));
    });
    for (labels, expected) in [(json!(null), Quota::NoProject), (of_project(""), Quota::BadProject)] {
        held_back.put(&Plane::Cell, NAMESPACE, cell_namespace(labels));
        see(&held_back, |seen| assert_eq!(quota(seen, None, None), expected));
    }
}
