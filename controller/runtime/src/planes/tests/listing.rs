//! Lists of servers whose objects no client should make, through the client and into the stores.

use std::sync::{Arc, Mutex};

use popcell_api::kind::{WORKLOAD, WORKLOAD_DEPLOYMENT};
use popcell_core::object::{Excess, Fields};
use popcell_core::plan::Plane;
use serde_json::{Value, json};
use tokio::time::{Duration, sleep};

use crate::context::testing::Log;
use crate::planes::Planes;
use crate::planes::testing::{self, Asked, Deaf, store};

const SECRET: &str = "s3cret";

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(SECRET), |deep, _| json!([deep]))
}

fn deployment(name: &str, spec: &Value) -> Value {
    json!({ "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": "5" },
        "spec": { "cityCode": "DFW", "env": SECRET, "more": spec }, "status": { "replicas": 1 } })
}

fn list(items: &[Value], more: Option<&str>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "metadata": { "resourceVersion": "9", "continue": more }, "items": items })
}

/// A project whose server answers lists of WorkloadDeployments so, once they are read, and what it was asked; other kinds are
/// empty, and watches bring nothing.
async fn listed(answer: impl Fn(&str) -> (u16, Value) + Send + Sync + 'static) -> (Planes, Vec<String>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = Arc::clone(&asked);
    let answer = move |Asked { line, .. }: Asked| {
        if line.contains("watch=true") {
            return None;
        }
        if !line.contains("/workloaddeployments") {
            return Some((200, list(&[], None)));
        }
        lines.lock().unwrap().push(line.clone());
        Some(answer(&line))
    };
    let planes = testing::answering(Arc::new(Deaf), Arc::new(answer));
    planes.engage(&project(), None).await.unwrap();
    sleep(Duration::from_millis(100)).await;
    let asked = asked.lock().unwrap().clone();
    (planes, asked)
}

fn project() -> Plane {
    Plane::Project("p".to_owned())
}

#[tokio::test(start_paused = true)]
async fn what_one_tenant_makes_leaves_the_others_of_its_list() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.subscriber());
    let (planes, _) = listed(|_| {
        let mut odd = deployment("odd", &json!(null));
        odd["metadata"]["labels"] = json!({ "a": { SECRET: SECRET } });
        let items = [
            deployment("good", &json!({ "any": SECRET })),
            deployment("deep-122", &nested(122)),
            deployment("deep-126", &nested(126)),
            deployment("deep-200", &nested(200)),
            deployment("large", &json!("x".repeat(1_100_000))),
            odd,
            json!(SECRET),
        ];
        (200, list(&items, None))
    })
    .await;
    let all = store(&planes, &project(), WORKLOAD_DEPLOYMENT);
    assert!(all.is_known() && store(&planes, &project(), WORKLOAD).is_known());
    let get = |name: &str| all.get("n", name).known().flatten();
    assert_eq!(get("good").unwrap().text("/spec/more/any"), Some(SECRET));
    for levels in [122, 126, 200] {
        let deep = get(&format!("deep-{levels}")).unwrap();
        assert_eq!(deep.excess(), Some(Excess::Depth { levels: levels + 2 }));
        assert_eq!(
            (deep.text("/spec/cityCode"), deep.int("/status/replicas")),
            (Some("DFW"), Some(1))
        );
    }
    assert!(matches!(get("large").unwrap().excess(), Some(Excess::Bytes { .. })));
    assert!(get("large").unwrap().data_bytes() < 200);
    let unreadable = all.unreadable();
    assert!(
        matches!(unreadable.as_slice(), [(_, name, _)] if name == "odd"),
        "{unreadable:?}"
    );
    assert_eq!(planes.stats().excessive_by_plane.get(&project()), Some(&4));
    drop(guard);
    assert!(!log.text().contains(SECRET), "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_list_is_reported_without_its_values() {
    for answer in [json!({ "items": SECRET }), json!([SECRET]), json!({ "kind": SECRET })] {
        for code in [200, 403, 500] {
            let log = Log::default();
            let guard = tracing::subscriber::set_default(log.subscriber());
            let reported = answer.clone();
            let (planes, _) = listed(move |_| (code, reported.clone())).await;
            let all = store(&planes, &project(), WORKLOAD_DEPLOYMENT);
            let trouble = all.trouble().unwrap_or_default();
            assert!(
                !all.is_known() && !trouble.is_empty() && !trouble.contains(SECRET),
                "{trouble}"
            );
            drop(guard);
            assert!(!log.text().contains(SECRET), "{}", log.text());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pages_follow_each_other_and_are_asked_for_smaller_where_they_are_too_large() {
    let (planes, asked) = listed(|line| {
        let limit: usize = line
            .split("limit=")
            .nth(1)
            .unwrap()
            .split('&')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let first: usize = line
            .split("continue=")
            .nth(1)
            .map_or(0, |from| from.split('&').next().unwrap().parse().unwrap());
        let last = (first + limit).min(20);
        let items: Vec<Value> = (first..last)
            .map(|number| deployment(&format!("d-{number}"), &json!("x".repeat(1_500_000))))
            .collect();
        (200, list(&items, (last < 20).then(|| last.to_string()).as_deref()))
    })
    .await;
    let all = store(&planes, &project(), WORKLOAD_DEPLOYMENT);
    assert_eq!(all.all().known().unwrap().len(), 20);
    assert_eq!(all.excessive(), 20);
    assert!(
        asked[0].contains("limit=16") && asked[1].contains("limit=4"),
        "{asked:?}"
    );
    assert!(asked[1..].iter().all(|line| !line.contains("limit=16")), "{asked:?}");
}
