//! Which server is asked, and how long a client of one is kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::future::join;
use kube::Config;
use popcell_core::plan::Plane;
use tokio::time::{advance, pause};

use super::*;
use crate::admission::ask::{Clients, IDLE, MOST};
use crate::planes::{Addressing, Direct, Projects, SINGLE, Tokens};

fn project(id: &str) -> Plane {
    Plane::Project(id.to_owned())
}

fn of(id: &Value) -> Value {
    let mut request = create(workload());
    request["userInfo"]["extra"]["iam.miloapis.com/parent-name"] = id.clone();
    request
}

#[tokio::test]
async fn a_review_asks_the_server_of_its_own_project_engaged_or_not() {
    let served = Served::new(
        Mode::Milo,
        Servers::seeing(|asked| match (&asked.plane, asked.what.as_str()) {
            (Plane::Project(id), LIST) if id == "p2" => bindings(&[binding("LHR")]),
            (_, what) => good(what),
        }),
    );
    assert_eq!(
        served.validate(&of(&json!(["p1", "other"]))).await["allowed"],
        json!(true)
    );
    let (code, _, message) = served.refused(&of(&json!(["p2"]))).await;
    assert_eq!(code, 422);
    assert!(message.contains(r#"supported values: "LHR""#), "{message}");
    assert_eq!(served.servers.clients(), [project("p1"), project("p2")]);
    let planes: BTreeSet<Plane> = served.servers.asked().into_iter().map(|one| one.plane).collect();
    assert_eq!(planes, [project("p1"), project("p2")].into());
}

#[tokio::test]
async fn in_single_mode_the_local_server_is_asked_whatever_the_request_names() {
    let served = Served::new(Mode::Single, Servers::new(good));
    for id in [json!(["p1"]), json!(null), json!(["../x"])] {
        assert_eq!(served.validate(&of(&id)).await["allowed"], json!(true), "{id}");
    }
    assert_eq!(served.servers.clients(), [project(SINGLE)]);
}

#[tokio::test]
async fn a_request_that_names_no_project_is_denied() {
    let served = Served::good();
    let mut bare = create(workload());
    bare["userInfo"] = Value::Null;
    for request in [of(&json!([])), of(&json!([""])), of(&json!(null)), bare] {
        let status = served.validate(&request).await["status"].take();
        assert_eq!(
            status,
            json!({
                "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
                "reason": "Forbidden", "code": 403,
                "message": "workloads.compute.datumapis.com \"web\" is forbidden: the request names no project: \
                            userInfo.extra[iam.miloapis.com/parent-name] is empty",
                "details": { "name": "web", "group": "compute.datumapis.com", "kind": "workloads" },
            })
        );
        assert_eq!(served.servers.outcomes(), ["denied"]);
    }
    assert_eq!(served.servers.clients(), []);
}

#[tokio::test]
async fn a_project_id_that_would_lead_elsewhere_is_refused_before_a_client_is_made() {
    let served = Served::good();
    for id in ["../p2", "p1/../p2", "P", "p1?x", "a b", "p1#"] {
        let (code, reason, message) = served.refused(&of(&json!([id]))).await;
        assert_eq!((code, reason.as_str()), (403, "Forbidden"));
        assert!(
            message.contains(&format!("project id \"{id}\" is not a DNS-1123 subdomain")),
            "{message}"
        );
    }
    assert_eq!(served.servers.clients(), []);

    // A dot is good in a path and names another client's service in a host.
    let transport = Direct {
        local: Config::new("https://local".parse().unwrap()),
        hub: None,
        projects: Projects::Milo {
            addressing: Addressing::Service,
            config: Box::new(Config::new("https://milo".parse().unwrap())),
        },
        claims: None,
        tokens: Tokens::default(),
    };
    let record = served.servers.record();
    let served = Served {
        router: router(Admission::new(Mode::Milo, Arc::new(transport), record, LARGEST)),
        servers: served.servers,
    };
    let (code, _, message) = served.refused(&of(&json!(["a.kube-system"]))).await;
    assert_eq!(code, 403);
    assert!(message.contains("an id with dots has none"), "{message}");
}

#[tokio::test]
async fn two_reviews_of_one_project_at_once_share_a_client() {
    let served = Served::good();
    let (one, other) = (create(workload()), create(in_cities(&["ORD"])));
    let (one, other) = join(served.validate(&one), served.validate(&other)).await;
    assert_eq!((&one["allowed"], &other["allowed"]), (&json!(true), &json!(true)));
    served.validate(&create(workload())).await;
    assert_eq!(served.servers.clients(), [project("p1")]);
}

#[tokio::test]
async fn clients_are_bounded_in_number_and_the_least_used_goes_first() {
    pause();
    let servers = Servers::new(good);
    let clients = Clients::new(servers.transport());
    for number in 0..MOST {
        clients.get(&project(&format!("p{number}"))).unwrap();
        advance(std::time::Duration::from_millis(1)).await;
    }
    clients.get(&project("p0")).unwrap();
    clients.get(&project("more")).unwrap();
    assert_eq!(clients.len(), MOST);
    let made = servers.clients().len();
    clients.get(&project("p0")).unwrap();
    assert_eq!(servers.clients().len(), made, "p0 was used last but one");
    clients.get(&project("p1")).unwrap();
    assert_eq!(servers.clients().len(), made + 1, "p1 had to go");
}

#[tokio::test]
async fn idle_clients_are_dropped() {
    pause();
    let servers = Servers::new(good);
    let clients = Clients::new(servers.transport());
    clients.get(&project("a")).unwrap();
    clients.get(&project("b")).unwrap();
    advance(IDLE / 2).await;
    clients.get(&project("b")).unwrap();
    advance(IDLE / 2).await;
    clients.get(&project("c")).unwrap();
    assert_eq!(clients.len(), 2, "a was not used");
    clients.get(&project("b")).unwrap();
    assert_eq!(servers.clients().len(), 3);
}
