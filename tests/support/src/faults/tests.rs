use std::time::Duration;

use axum::Router;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use popcell_api::kind::WORKLOAD;
use tempfile::TempDir;

use super::*;
use crate::eventually;

const SOON: Duration = Duration::from_secs(10);

/// Something that answers, behind a proxy, with a client in front of it.
struct Bench {
    proxy: FaultProxy,
    api: Api<DynamicObject>,
    created: Arc<Mutex<u64>>,
    _files: TempDir,
}

async fn bench() -> Bench {
    let created = Arc::<Mutex<u64>>::default();
    let counted = Arc::clone(&created);
    let answer = async move |request: Request| {
        if request.method() == http::Method::POST {
            *lock(&counted) += 1;
        }
        let object = json!({ "apiVersion": "v1", "kind": "Any", "metadata": { "name": "web" } });
        let list = json!({ "kind": "List", "metadata": { "resourceVersion": "7" }, "items": [object] });
        let event = json!({ "type": "ADDED", "object": object });
        match Asked::of(request.method(), request.uri()).verb {
            "list" => list.to_string().into_response(),
            "watch" => {
                let first = futures::stream::iter([Ok::<_, io::Error>(event.to_string() + "\n")]);
                Body::from_stream(futures::StreamExt::chain(first, futures::stream::pending())).into_response()
            }
            _ => object.to_string().into_response(),
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    let files = tempfile::tempdir().unwrap();
    let behind = kubeconfig::write(files.path(), "behind", &kubeconfig::document(&url, None, &json!({}))).unwrap();
    let proxy = FaultProxy::start(&behind).await.unwrap();
    let before = proxy.kubeconfig(files.path(), "before").unwrap();
    let client = Plane::connect("before", &before).await.unwrap().client().clone();
    let api = Api::namespaced_with(client, "n", &WORKLOAD.resource());
    Bench {
        proxy,
        api,
        created,
        _files: files,
    }
}

impl Bench {
    async fn list(&self) -> Result<usize, kube::Error> {
        self.api.list(&ListParams::default()).await.map(|list| list.items.len())
    }

    async fn create(&self) -> Result<DynamicObject, kube::Error> {
        let object = DynamicObject::new("web", &WORKLOAD.resource());
        self.api.create(&PostParams::default(), &object).await
    }
}

fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

#[tokio::test]
async fn without_a_fault_answers_are_the_servers_and_all_are_counted() {
    let bench = bench().await;
    assert_eq!(bench.list().await.unwrap(), 1);
    bench.create().await.unwrap();
    assert_eq!(bench.proxy.count(|asked| asked.verb == "list"), 1);
    assert_eq!(bench.proxy.count(Asked::writes), 1);
    assert_eq!(bench.proxy.answered(200, Asked::writes), 1);
}

#[tokio::test]
async fn a_fault_is_for_what_it_matches_and_ends_when_it_is_dropped() {
    let bench = bench().await;
    let refused = bench.proxy.inject(Fault::refused(403, "Forbidden"), Asked::writes);
    assert_eq!(code(&bench.create().await.unwrap_err()), 403);
    assert_eq!(bench.list().await.unwrap(), 1);
    assert_eq!((refused.hits(), *lock(&bench.created)), (1, 0));
    let later = bench.proxy.inject(Fault::not_served(), |_| true);
    assert_eq!(code(&bench.create().await.unwrap_err()), 404);
    later.lift();
    assert_eq!(code(&bench.create().await.unwrap_err()), 403);
    refused.lift();
    bench.create().await.unwrap();
    assert_eq!(bench.proxy.count(Asked::writes), 4);
}

#[tokio::test]
async fn answers_that_are_none() {
    let bench = bench().await;
    let html = bench.proxy.inject(Fault::html(200), |_| true);
    assert!(matches!(bench.list().await.unwrap_err(), kube::Error::SerdeError(_)));
    html.lift();
    let _closed = bench.proxy.inject(Fault::HungUp, |_| true);
    assert!(!matches!(bench.list().await.unwrap_err(), kube::Error::Api(_)));
}

#[tokio::test]
async fn held_lines_arrive_although_no_reader_waits() {
    let bench = bench().await;
    let held = bench.proxy.inject(Fault::Held, Asked::writes);
    let impatient = tokio::time::timeout(Duration::from_millis(100), bench.create()).await;
    assert!(impatient.is_err());
    assert_eq!((held.hits(), *lock(&bench.created)), (1, 0));
    held.lift();
    let arrived = async || {
        anyhow::ensure!(*lock(&bench.created) == 1, "nothing was created");
        Ok(())
    };
    eventually("it arrives", SOON, arrived).await.unwrap();
    assert_eq!(bench.proxy.answered(200, Asked::writes), 1);
}

#[tokio::test]
async fn silence_ends_with_a_closed_connection() {
    let bench = bench().await;
    let silence = bench.proxy.inject(Fault::Silent, |_| true);
    let (answer, ()) = tokio::join!(bench.list(), async {
        while silence.hits() == 0 {
            tokio::task::yield_now().await;
        }
        silence.lift();
    });
    assert!(!matches!(answer.unwrap_err(), kube::Error::Api(_)));
    assert_eq!(bench.list().await.unwrap(), 1);
}

#[tokio::test]
async fn a_cut_ends_answers_in_the_middle() {
    let bench = bench().await;
    let mut events = Box::pin(bench.api.watch(&kube::api::WatchParams::default(), "7").await.unwrap());
    let first = futures::StreamExt::next(&mut events).await.unwrap();
    assert!(matches!(first, Ok(kube::api::WatchEvent::Added(_))), "{first:?}");
    bench.proxy.cut();
    // kube takes a connection that ends for the end of the watch.
    let last = futures::StreamExt::next(&mut events).await;
    assert!(!matches!(last, Some(Ok(_))), "{last:?}");
}
