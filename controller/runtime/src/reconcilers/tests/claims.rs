//! Which keys a claim enqueues.

use super::*;
use crate::cell::testing::cell;
use crate::reconcilers::cell as reconcilers;

fn cell_namespace(name: &str, project: &str, namespace: &str) -> Value {
    json!({ "metadata": { "name": name, "uid": name, "resourceVersion": "1", "labels": {
        "meta.datumapis.com/upstream-cluster-name": format!("cluster-{project}"),
        "meta.datumapis.com/upstream-namespace": namespace } } })
}

/// A claim in `default`, with the label that names a cell namespace or without.
fn claim(name: &str, version: u32, of: Option<&str>) -> Value {
    let mut labels = json!({ "compute.datumapis.com/source-cluster": "dfw-01" });
    if let Some(of) = of {
        labels["compute.datumapis.com/instance-namespace"] = json!(of);
    }
    json!({ "metadata": { "namespace": "default", "name": name, "uid": name, "resourceVersion": version.to_string(),
        "labels": labels } })
}

fn names(keys: &[Key]) -> Vec<String> {
    let mut names: Vec<String> = keys
        .iter()
        .map(|key| format!("{}/{}/{}", key.plane, key.namespace, key.name))
        .collect();
    names.sort();
    names.dedup();
    names
}

#[tokio::test]
async fn a_claim_enqueues_its_instance_also_without_the_label_that_names_it() {
    // What is of a single cluster is in the namespace of its name.
    for (single, within) in [(None, "ns-1"), (Some("p"), "default")] {
        let all = reconcilers(&Arc::new(cell(single)));
        let script = Arc::<Script>::default();
        let fixture = Fixture::in_cell(all.clone(), &["p"], script.answer()).await;
        let namespaces = [
            ("ns-1", "p", "default"),
            ("ns-2", "p", "other"),
            ("ns-3", "q", "default"),
        ];
        let namespaces = namespaces.map(|(name, project, namespace)| cell_namespace(name, project, namespace));
        fixture.list(&Plane::Cell, NAMESPACE, namespaces.into());
        fixture.list(&project("p"), RESOURCE_CLAIM, Vec::new());
        for (claim, enqueued) in [
            (claim("instance-web-0", 1, Some("ns-2")), vec!["ns-2/web-0".to_owned()]),
            (claim("instance-web-0", 1, None), vec![format!("{within}/web-0")]),
            (claim("instance-web-0", 1, Some("")), vec![format!("{within}/web-0")]),
            (claim("instance-", 1, None), Vec::new()),
            (claim("web-0", 1, None), Vec::new()),
        ] {
            let change = Change::Applied {
                before: None,
                now: Arc::new(serde_json::from_value(claim.clone()).unwrap()),
            };
            for reconciler in &all {
                let keys = reconciler.keys_for_event(&fixture.context, &project("p"), RESOURCE_CLAIM, &change);
                let plane = match reconciler.name() {
                    "remote" => "project p",
                    "instance" => "cell",
                    _ => {
                        assert!(keys.is_empty());
                        continue;
                    }
                };
                let enqueued: Vec<String> = enqueued.iter().map(|name| format!("{plane}/{name}")).collect();
                assert_eq!(names(&keys), enqueued, "{} by {claim}", reconciler.name());
            }
        }
        // The deletion guard counts its plan too, and a first list that brings it enqueues it.
        fixture.put(&project("p"), RESOURCE_CLAIM, claim("instance-web-0", 2, None));
        let remote = all.iter().find(|one| one.name() == "remote").unwrap();
        let expected = [format!("project p/{within}/web-0")];
        assert_eq!(names(&remote.keys(&fixture.context, &project("p"))), expected);
    }
}

#[tokio::test]
async fn network_bindings_that_are_served_again_enqueue_what_waits_for_them() {
    let all = reconcilers(&Arc::new(cell(None)));
    let fixture = Fixture::in_cell(all, &[], Arc::<Script>::default().answer()).await;
    fixture.list(&Plane::Cell, WORKLOAD_DEPLOYMENT, vec![deployment("ns-1", "web", "wd")]);
    let one = json!({ "metadata": { "namespace": "ns-1", "name": "web-0", "uid": "i", "resourceVersion": "1" } });
    fixture.list(&Plane::Cell, INSTANCE, vec![one]);
    for (reconciler, name) in [("deployment", "web"), ("instance", "web-0")] {
        let queued_reconcilers = fixture.event_router.queued_reconcilers();
        let queued = queued_reconcilers
            .iter()
            .find(|queued| queued.reconciler.name() == reconciler)
            .unwrap();
        let listed = crate::planes::Change::Listed;
        let enqueued = queued.reconciler.keys_for_event(
            &fixture.context,
            &Plane::Cell,
            popcell_api::kind::NETWORK_BINDING,
            &listed,
        );
        assert_eq!(enqueued, [Key::new(&Plane::Cell, "ns-1", name)], "{reconciler}");
    }
}
