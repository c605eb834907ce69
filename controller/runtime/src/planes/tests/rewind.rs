//! Servers that were restored from a backup.

use std::sync::{Arc, Mutex};

use popcell_api::kind::Kind;
use popcell_core::plan::Plane;
use serde_json::{Value, json};

use crate::planes::testing::{self, Asked};
use crate::planes::{Change, Listener};

/// What is told, in order.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn reported(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Listener for Log {
    fn changed(&self, _: &Plane, _: Kind, change: &Change) {
        self.0.lock().unwrap().push(super::show(change));
    }

    fn went_back(&self, plane: &Plane) {
        self.0.lock().unwrap().push(format!("{plane} went back"));
    }

    fn disengaged(&self, _: &Plane) {}

    fn forgotten(&self, plane: &Plane) {
        self.0.lock().unwrap().push(format!("{plane} forgotten"));
    }
}

fn list(version: u32, items: &[(&str, u32, u32)]) -> Value {
    let items = items.iter().map(|(name, version, generation)| {
        json!({ "metadata": { "namespace": "n", "name": name, "uid": name, "resourceVersion": version.to_string(),
            "generation": generation } })
    });
    json!({ "metadata": { "resourceVersion": version.to_string() }, "items": items.collect::<Vec<_>>() })
}

/// What is told after the first list, when a server answers these lists in turn and breaks every watch but the last.
async fn told_of(lists: Vec<Value>) -> Vec<String> {
    let log = Arc::<Log>::default();
    let left = Mutex::new(lists.into_iter());
    let answer = move |asked: Asked| {
        let mut left = left.lock().unwrap();
        match asked.line.contains("watch=") {
            false => left.next().map(|list| (200, list)),
            true if left.len() > 0 => Some((0, Value::Null)),
            true => None,
        }
    };
    let planes = testing::watching(log.clone(), Arc::new(answer), testing::of_cell);
    planes.engage(&Plane::Hub, None).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(20)).await;
    let reported = log.reported();
    planes.disengage_all().await;
    reported
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_what_was_known_is_reported_before_what_it_changes() {
    let first = || list(100, &[("a", 40, 1), ("b", 90, 1)]);
    let expected = [
        "a new->40",
        "b new->90",
        "listed",
        "lost",
        "hub went back",
        "b gone",
        "listed",
    ];
    assert_eq!(told_of(vec![first(), list(60, &[("a", 40, 1)])]).await, expected);
    // The same objects of a server that has gone on.
    let expected = ["a new->40", "b new->90", "listed", "lost", "b gone", "listed"];
    assert_eq!(told_of(vec![first(), list(160, &[("a", 40, 1)])]).await, expected);
}

#[tokio::test(start_paused = true)]
async fn an_object_as_it_was_earlier_tells_a_restore_that_has_gone_on_since() {
    let (first, later) = (list(100, &[("a", 90, 7)]), list(160, &[("a", 150, 4)]));
    let expected = ["a new->90", "listed", "lost", "hub went back", "a 90->150", "listed"];
    assert_eq!(told_of(vec![first, later]).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_project_that_was_set_back_while_it_was_not_engaged_is_noticed_unless_it_is_another() {
    let p = Plane::Project("p".to_owned());
    for (uid, deleted, expected) in [
        ("u", false, vec!["project p went back", "listed"]),
        ("v", false, vec!["project p forgotten", "listed"]),
        ("u", true, vec!["project p forgotten", "listed"]),
    ] {
        let log = Arc::<Log>::default();
        let lists = Mutex::new(vec![list(100, &[]), list(60, &[])].into_iter());
        let answer = move |asked: Asked| {
            let next = || lists.lock().unwrap().next().map(|list| (200, list));
            (!asked.line.contains("watch=")).then(next).flatten()
        };
        let watch_specs = |_: &Plane| Arc::from([crate::planes::PROJECT[0].clone()]);
        let planes = testing::watching(log.clone(), Arc::new(answer), watch_specs);
        planes.engage(&p, Some("u")).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(log.reported(), ["listed"]);
        planes.disengage(&p).await;
        if deleted {
            planes.forget(&p);
        }
        planes.engage(&p, Some(uid)).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert_eq!(log.reported(), expected, "{uid}, {deleted}");
    }
}
