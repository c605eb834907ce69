//! What the port says of a process that is not complete yet.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use popcell_api::kind::NETWORK;
use popcell_core::metrics as table;
use popcell_core::plan::{Plane, RESOURCE_QUOTA};

use super::*;
use crate::planes::testing::{list_nothing, silent, store};
use crate::planes::{HUB, Progress, Store};

/// Status and body.
fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

async fn serve(checks: Vec<Check>, metrics: Metrics) -> Health {
    start("127.0.0.1:0".parse().unwrap(), checks, metrics).await.unwrap()
}

// The requests of these tests block the only thread of their runtime: a busy process is not a dead one.
#[tokio::test]
async fn probes_and_metrics_are_served_at_the_paths_of_upstream() {
    let metrics = Metrics::new();
    metrics.before_scrape(Box::new(|metrics| metrics.set(&table::LEADER, &[], 1.0)));
    let health = serve(Vec::new(), metrics).await;
    for path in ["/livez", "/healthz", "/readyz"] {
        assert_eq!(get(health.address(), path), (200, "ok\n".to_owned()), "{path}");
    }
    let (status, text) = get(health.address(), "/metrics");
    assert_eq!(status, 200);
    assert!(text.contains("\npopcell_leader 1.0\n"), "{text}");
}

#[tokio::test]
async fn readiness_names_the_wait_for_projects_and_each_check_passes_for_good() {
    let (projects, progress) = (Arc::<Store>::default(), Arc::<Progress>::default());
    let checks = vec![
        discovery_synced(Arc::clone(&projects), Patience::of(false)),
        projects_engaged(Arc::clone(&progress), Patience::of(false)),
    ];
    let health = serve(checks, Metrics::new()).await;
    let waits = "projects-engaged: the projects of the first list are not engaged yet\n";
    let (status, body) = get(health.address(), "/readyz");
    assert_eq!(status, 503);
    assert_eq!(
        body,
        format!("project-discovery-synced: the first list is not there yet\n{waits}")
    );

    projects.lose("403 Forbidden".to_owned());
    let (_, body) = get(health.address(), "/readyz");
    assert!(body.starts_with("project-discovery-synced: 403 Forbidden\n"), "{body}");
    list_nothing(&projects);
    assert_eq!(get(health.address(), "/readyz"), (503, waits.to_owned()));
    progress.settle(0, []);
    assert_eq!(get(health.address(), "/readyz").0, 200);
    projects.lose("away".to_owned());
    assert_eq!(get(health.address(), "/readyz").0, 200, "it can still answer reviews");
}

#[tokio::test]
async fn a_hub_that_is_not_listed_is_named_with_what_is_missing() {
    let planes = silent();
    let check = plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub, Patience::of(false));
    let health = serve(vec![check], Metrics::new()).await;
    let missing = |text: &str| assert_eq!(get(health.address(), "/readyz"), (503, format!("hub-synced: {text}\n")));
    missing("the hub is not engaged");
    planes.engage(&Plane::Hub, None).await.unwrap();
    let [namespaces, deployments, rest @ ..] = &HUB.map(|watch_spec| watch_spec.kind);
    for kind in rest {
        list_nothing(&store(&planes, &Plane::Hub, *kind));
    }
    store(&planes, &Plane::Hub, *deployments).lose("refused".to_owned());
    missing(&format!(
        "not listed yet: {}, {} (refused)",
        namespaces.kind, deployments.kind
    ));
    for kind in [namespaces, deployments] {
        list_nothing(&store(&planes, &Plane::Hub, *kind));
    }
    assert_eq!(get(health.address(), "/readyz").0, 200);
}

#[tokio::test]
async fn a_hub_without_quotas_or_networks_is_ready() {
    let planes = silent();
    planes.engage(&Plane::Hub, None).await.unwrap();
    for watch_spec in &HUB {
        let store = store(&planes, &Plane::Hub, watch_spec.kind);
        match watch_spec.kind {
            RESOURCE_QUOTA => drop(store.lose("403 Forbidden".to_owned())),
            NETWORK => drop(store.lose("404 page not found".to_owned())),
            _ => list_nothing(&store),
        }
    }
    let check = plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub, Patience::of(false));
    let health = serve(vec![check], Metrics::new()).await;
    assert_eq!(get(health.address(), "/readyz").0, 200);
    assert_eq!(planes.stats().not_synced_planes, [("hub", 0)].into());
}

#[tokio::test]
async fn a_replica_that_reviews_does_not_wait_forever_for_a_plane_that_cannot_be_read() {
    let planes = silent();
    planes.engage(&Plane::Hub, None).await.unwrap();
    let unreadable = || {
        for watch_spec in HUB {
            let trouble = "failed to watch: expected value at line 1 column 1".to_owned();
            store(&planes, &Plane::Hub, watch_spec.kind).lose(trouble);
        }
    };
    unreadable();
    for (reviews, seconds, status) in [(true, 0, 200), (true, 60, 503), (false, 0, 503)] {
        let patience = Patience::until(reviews.then(|| Instant::now() + Duration::from_secs(seconds)));
        let (projects, progress) = (Arc::<Store>::default(), Arc::<Progress>::default());
        let checks = vec![
            plane_synced(HUB_SYNCED, planes.clone(), Plane::Hub, patience),
            discovery_synced(projects, patience),
            projects_engaged(progress, patience),
        ];
        let health = serve(checks, Metrics::new()).await;
        assert_eq!(
            get(health.address(), "/readyz").0,
            status,
            "reviews: {reviews}, {seconds} s left"
        );
    }
}
