use std::sync::Mutex;

use popcell_core::object::Fields;
use popcell_core::plan::Plane;
use serde_json::Value;
use tokio::time::sleep;

use super::*;
use crate::context::testing::Log;
use crate::planes::testing::{self, Answer};

const BUILT_IN: &str = "datumcloud/d1-standard-2";

fn object(object: &str, name: &str, cpu: &str) -> Value {
    json!({ "apiVersion": "compute.datumapis.com/v1alpha", "kind": "InstanceType",
        "metadata": { "name": object, "uid": object, "resourceVersion": "5", "creationTimestamp": "2026-01-01T00:00:00Z" },
        "spec": { "name": name, "cpu": cpu, "memory": "1Gi" } })
}

fn names(types: &InstanceTypes) -> Option<Vec<String>> {
    let known = types.known().known()?;
    Some(known.names().into_iter().map(str::to_owned).collect())
}

/// A server that says what it is told to say, and what it was asked.
#[derive(Default)]
struct Server {
    says: Mutex<Option<(u16, Value)>>,
    asked: Mutex<Vec<String>>,
}

impl Server {
    fn client(self: &Arc<Self>) -> Client {
        let server = Arc::clone(self);
        let answer: Arc<Answer> = Arc::new(move |asked: testing::Asked| {
            server.asked.lock().unwrap().push(asked.line.clone());
            let says = server.says.lock().unwrap().clone();
            says.filter(|_| !asked.line.contains("watch="))
        });
        testing::client(&answer, &Plane::Cell)
    }

    fn says(&self, code: u16, body: Value) {
        *self.says.lock().unwrap() = Some((code, body));
    }

    fn refuses(&self, code: u16) {
        self.says(
            code,
            json!({ "kind": "Status", "status": "Failure", "code": code, "message": "m", "reason": "r" }),
        );
    }

    fn asked(&self) -> usize {
        std::mem::take(&mut *self.asked.lock().unwrap()).len()
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_kind_or_the_right_to_it_there_is_the_built_in_type_until_it_is_served() {
    for code in [404, 403] {
        let server = Arc::<Server>::default();
        let (watch, types) = InstanceTypeWatch::new(server.client());
        let running = tokio::spawn(watch.run());
        sleep(Duration::from_secs(30)).await;
        assert_eq!(names(&types), None, "no answer is no catalogue");
        server.refuses(503);
        sleep(Duration::from_secs(30)).await;
        assert_eq!(names(&types), None, "nor is an error");
        server.refuses(code);
        let by = Instant::now() + Duration::from_secs(9);
        assert!(types.known_by(by).await.known().is_some(), "{code}");
        assert_eq!(names(&types).unwrap(), [BUILT_IN]);
        server.asked();
        sleep(Duration::from_mins(10)).await;
        assert!((9..=11).contains(&server.asked()), "once a minute");
        let list = json!({ "metadata": { "resourceVersion": "7" }, "items": [object("large", "acme/large", "4")] });
        server.says(200, list);
        sleep(Duration::from_mins(2)).await;
        assert_eq!(names(&types).unwrap(), ["acme/large"], "{code}");
        running.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_read_stays_while_the_server_is_unreachable() {
    let (watch, types) = InstanceTypeWatch::new(Arc::<Server>::default().client());
    let mut ignored = BTreeSet::new();
    testing::list(&watch.store, vec![object("large", "acme/large", "4")]);
    watch.read(&mut ignored);
    assert_eq!(names(&types).unwrap(), ["acme/large"]);
    watch.store.lose("the connection broke".to_owned());
    watch.read(&mut ignored);
    assert_eq!(names(&types).unwrap(), ["acme/large"]);
    // What cannot be read is ignored by name, and once none counts there is the built-in type again.
    testing::list(&watch.store, vec![object("odd", "acme/odd", "lots")]);
    watch.read(&mut ignored);
    assert_eq!(names(&types).unwrap(), [BUILT_IN]);
    assert_eq!(
        ignored.iter().map(|one| one.object.as_str()).collect::<Vec<_>>(),
        ["odd"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_is_told_by_the_name_of_the_type_and_a_repeated_list_not_at_all() {
    let (watch, types) = InstanceTypeWatch::new(Arc::<Server>::default().client());
    let told = Arc::<Mutex<Vec<String>>>::default();
    let log = Arc::clone(&told);
    let running = tokio::spawn(types.clone().follow(move |change| {
        log.lock().unwrap().push(match change {
            Change::Applied { now, .. } => now.text("/spec/name").unwrap().to_owned(),
            other => format!("{other:?}"),
        });
    }));
    let step = async |objects: Vec<Value>, expected: &[&str]| {
        testing::list(&watch.store, objects);
        watch.read(&mut BTreeSet::new());
        sleep(Duration::from_secs(1)).await;
        let told = std::mem::take(&mut *told.lock().unwrap());
        assert_eq!(told, expected);
    };
    let (large, small) = (object("large", "acme/large", "4"), object("small", "acme/small", "1"));
    step(vec![large.clone()], &["Listed"]).await;
    step(vec![large.clone()], &[]).await;
    step(vec![large.clone(), small.clone()], &["acme/small"]).await;
    step(vec![object("large", "acme/large", "8"), small.clone()], &["acme/large"]).await;
    step(vec![small], &["acme/large"]).await;
    let many = |number: usize| object(&format!("t{number}"), &format!("acme/t{number}"), "1");
    step((0..=ONE_BY_ONE).map(many).collect(), &["Listed"]).await;
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn of_many_that_are_ignored_some_are_named_the_others_counted_and_none_is_logged_twice() {
    const MANY: usize = 20_000;
    let log = Log::default();
    let _listens = tracing::subscriber::set_default(log.subscriber());
    let (watch, types) = InstanceTypeWatch::new(Arc::<Server>::default().client());
    let odd = |number: usize, cpu: &str| object(&format!("odd-{number:05}"), "acme/odd", cpu);
    let mut objects: Vec<Value> = (0..MANY).map(|number| odd(number, "lots")).collect();
    objects.push(object("large", "acme/large", "4"));
    let mut ignored = BTreeSet::new();
    testing::list(&watch.store, objects.clone());
    watch.read(&mut ignored);
    let lines = || log.text().lines().filter(|line| line.contains("ignored")).count();
    assert_eq!((ignored.len(), lines()), (MANY, LOGGED + 1));
    let last = format!("more={} ignored={MANY}", MANY - LOGGED);
    assert!(log.text().contains(&last), "{}", log.text());
    assert_eq!(names(&types).unwrap(), ["acme/large"]);
    // The same again, and one more.
    watch.read(&mut ignored);
    assert_eq!(lines(), LOGGED + 1);
    objects.push(odd(MANY, "lots"));
    testing::list(&watch.store, objects);
    watch.read(&mut ignored);
    assert_eq!(lines(), LOGGED + 2);
}

#[tokio::test(start_paused = true)]
async fn changes_that_follow_each_other_closely_are_read_together() {
    let log = Log::default();
    let _listens = tracing::subscriber::set_default(log.subscriber());
    let (watch, types) = InstanceTypeWatch::new(Arc::<Server>::default().client());
    let watch = Arc::new(watch);
    let running = tokio::spawn({
        let watch = Arc::clone(&watch);
        async move { watch.keep().await }
    });
    for number in 0..100 {
        testing::list(
            &watch.store,
            vec![object("large", "acme/large", &format!("{}", number + 1))],
        );
        watch.changed.notify_one();
        sleep(Duration::from_millis(10)).await;
    }
    sleep(APART).await;
    let read = log.text().matches("the catalogue of instance types was read").count();
    assert!((2..=4).contains(&read), "{read} reads in 1 s");
    let size = types.known().known().unwrap().size("acme/large");
    assert_eq!(size.unwrap().cpu.to_string(), "100", "the last one counts");
    running.abort();
}
