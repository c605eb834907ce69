use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::cell::testing::cell;
use crate::context::testing::Fixture;
use crate::planes::testing::Asked;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/compute-system/leases";

fn status(code: u16) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "" };
    (
        code,
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "no", "reason": reason }),
    )
}

/// A hub with the Lease of a cell whose Cluster has this uid.
#[derive(Default)]
struct Hub {
    lease: Mutex<Option<Value>>,
    uid: Mutex<&'static str>,
    away: Mutex<bool>,
    written: Mutex<usize>,
}

impl Hub {
    fn answer(&self, asked: &Asked) -> Option<(u16, Value)> {
        let (verb, path) = asked.line.split('?').next()?.split_once(' ')?;
        if path.ends_with("/clusters/dfw-01") {
            let cluster = json!({ "metadata": { "name": "dfw-01" }, "spec": { "id": *self.uid.lock().unwrap() } });
            return Some((200, cluster));
        }
        if path.ends_with("/configmaps/popcell-removed-cells") {
            let mut absent = status(404);
            absent.1["details"] = json!({ "kind": "configmaps", "name": "popcell-removed-cells" });
            return Some(absent);
        }
        let name = path.strip_prefix(LEASE)?;
        if *self.away.lock().unwrap() {
            return Some(status(503));
        }
        let mut lease = self.lease.lock().unwrap();
        match (verb, name, lease.clone()) {
            ("GET", "/popcell-cell-dfw-01", Some(found)) => Some((200, found)),
            ("GET", _, _) => Some(status(404)),
            ("POST", "", None) | ("PUT", "/popcell-cell-dfw-01", Some(_)) => {
                let mut written = self.written.lock().unwrap();
                *written += 1;
                let mut stored = asked.body.clone();
                stored["metadata"]["resourceVersion"] = json!(written.to_string());
                *lease = Some(stored.clone());
                Some((200, stored))
            }
            _ => Some(status(409)),
        }
    }

    fn holder(&self) -> String {
        let lease = self.lease.lock().unwrap();
        lease.as_ref().unwrap()["spec"]["holderIdentity"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

async fn context(hub: &Arc<Hub>) -> Fixture {
    let hub = Arc::clone(hub);
    Fixture::in_cell(Vec::new(), &[], Arc::new(move |asked| hub.answer(&asked))).await
}

/// A look of each of these processes, in turn, one renewal after the last; who writes after it.
async fn turn(
    processes: &mut BTreeMap<&'static str, (Holder, Cell)>,
    fixture: &Fixture,
    names: &[&'static str],
) -> Vec<bool> {
    tokio::time::advance(RENEW).await;
    let mut writes = Vec::new();
    for name in names {
        let (holder, cell) = processes.get_mut(name).unwrap();
        look(holder, cell, &fixture.context).await.unwrap();
        writes.push(cell.identity_cache.identity() == Identity::Matches);
    }
    writes
}

#[tokio::test(start_paused = true)]
async fn of_two_clusters_that_are_one_cell_the_later_writes_and_the_other_says_so_until_it_is_gone() {
    let hub = Arc::new(Hub {
        uid: Mutex::new("cell-uid"),
        ..Hub::default()
    });
    let fixture = context(&hub).await;
    let mut both: BTreeMap<_, _> = ["first", "second"]
        .map(|name| (name, (Holder::new(name.to_owned()), cell(None))))
        .into();
    assert_eq!(turn(&mut both, &fixture, &["first"]).await, [true]);
    assert_eq!(turn(&mut both, &fixture, &["first"]).await, [true]);
    assert_eq!(turn(&mut both, &fixture, &["second", "first"]).await, [true, false]);
    for _ in 0..10 {
        assert_eq!(turn(&mut both, &fixture, &["first", "second"]).await, [false, true]);
        assert_eq!(hub.holder(), "second");
    }
    let Identity::Mismatch(why) = both["first"].1.identity_cache.identity() else {
        panic!("it does not say so");
    };
    for part in [
        "second",
        "compute-system/popcell-cell-dfw-01",
        "cell-uid",
        "stop one of them",
    ] {
        assert!(why.contains(part), "{why}");
    }
    // A hub that says nothing of it any more stops nobody.
    *hub.away.lock().unwrap() = true;
    let mut writes = Vec::new();
    for _ in 0..3 {
        tokio::time::advance(RENEW).await;
        let (holder, cell) = both.get_mut("first").unwrap();
        assert!(look(holder, cell, &fixture.context).await.is_err());
        writes.push(cell.identity_cache.identity() == Identity::Matches);
    }
    assert_eq!(writes, [false, false, true]);
    *hub.away.lock().unwrap() = false;
    assert_eq!(turn(&mut both, &fixture, &["second", "first"]).await, [true, false]);
    // The second is stopped.
    let mut writes = Vec::new();
    for _ in 0..5 {
        writes.extend(turn(&mut both, &fixture, &["first"]).await);
    }
    assert_eq!(writes, [false, false, true, true, true]);
    assert_eq!(hub.holder(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_of_the_cell_takes_the_lease_at_once_and_a_cell_of_another_uid_never() {
    let hub = Arc::new(Hub {
        uid: Mutex::new("cell-uid"),
        ..Hub::default()
    });
    let fixture = context(&hub).await;
    let mut one: BTreeMap<_, _> = [("old", (Holder::new("old".to_owned()), cell(None)))].into();
    turn(&mut one, &fixture, &["old"]).await;
    one.insert("new", (Holder::new("new".to_owned()), cell(None)));
    assert_eq!(turn(&mut one, &fixture, &["new"]).await, [true]);
    assert_eq!(hub.holder(), "new");
    let written = *hub.written.lock().unwrap();
    *hub.uid.lock().unwrap() = "another";
    one.insert("mistaken", (Holder::new("mistaken".to_owned()), cell(None)));
    assert_eq!(turn(&mut one, &fixture, &["mistaken"]).await, [false]);
    assert_eq!((hub.holder().as_str(), *hub.written.lock().unwrap()), ("new", written));
}

#[tokio::test(start_paused = true)]
async fn a_cell_that_was_removed_meanwhile_writes_no_lease_without_a_notice() {
    let hub = Arc::new(Hub {
        uid: Mutex::new("cell-uid"),
        ..Hub::default()
    });
    let fixture = context(&hub).await;
    let mut one: BTreeMap<_, _> = [("one", (Holder::new("one".to_owned()), cell(None)))].into();
    turn(&mut one, &fixture, &["one"]).await;
    *hub.uid.lock().unwrap() = "another";
    assert_eq!(turn(&mut one, &fixture, &["one"]).await, [false]);
    assert_eq!(*hub.written.lock().unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_does_not_answer_about_leases_stops_no_cell() {
    let hub = Arc::new(Hub {
        uid: Mutex::new("cell-uid"),
        away: Mutex::new(true),
        ..Hub::default()
    });
    let fixture = context(&hub).await;
    let (mut holder, cell) = (Holder::new("one".to_owned()), cell(None));
    assert!(look(&mut holder, &cell, &fixture.context).await.is_err());
    assert_eq!(cell.identity_cache.identity(), Identity::Matches);
}
