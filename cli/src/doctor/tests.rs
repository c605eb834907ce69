use std::time::Duration;

use jiff::Timestamp;
use popcell_core::object::Object;
use popcell_engine::{Description, Implemented, Target};
use popcell_protocol::{Gvk, Operation};

use super::{
    observe::{Called, Observed, Reached, Seen},
    *,
};
use crate::{
    args::reach::Names,
    endpoint::{
        Endpoint,
        certificate::{Bundle, testing::authority},
        dial::Presented,
    },
    planes::karmada::{Configuration, Customization, Served},
};

fn read(text: &str) -> Vec<Object> {
    let documents = popcell_sdk::test::yaml::documents(text).unwrap();
    documents
        .iter()
        .map(|node| serde_json::from_str(&node.to_json()).unwrap())
        .collect()
}

/// An environment in which everything is in order.
fn healthy() -> Observed {
    let issuer = authority("popcell", 2020..2090);
    let bundle = Bundle::parse(issuer.pem().as_bytes()).unwrap();
    let configuration = read(include_str!("../../tests/fixtures/configuration-good.yaml"));
    let widget = || Gvk::new("example.io", "v1", "Widget");
    Observed {
        server: "https://karmada/".into(),
        names: Names {
            config_name: "popcell".into(),
            webhook_name: "interpreter.popcell.datumapis.com".into(),
        },
        city_label: "topology.datum.net/city-code".into(),
        expiry_days: 14,
        now: "2026-06-01T00:00:00Z".parse().unwrap(),
        server_skew: Some(0),
        configurations: Ok(configuration.iter().map(Configuration::read).collect()),
        customizations: Ok(Vec::new()),
        members: Ok(read(include_str!("../../tests/fixtures/clusters.yaml"))),
        modules: Some(vec![Description {
            name: "widget".into(),
            version: "0.1.0".into(),
            targets: vec![Target {
                kind: widget(),
                operations: [(Operation::InterpretHealth, true), (Operation::Retain, false)]
                    .map(|(operation, register)| Implemented { operation, register })
                    .into(),
            }],
        }]),
        kinds: vec![(widget(), Ok(Served::WithStatus))],
        endpoint: Some(Reached {
            address: Ok(Endpoint::parse("https://10.0.0.7:8443/interpret").unwrap()),
            bundle: Ok(Some(bundle.clone())),
            resolved: Some(Ok(vec!["10.0.0.7:8443".parse().unwrap()])),
            connected: Some(Ok(())),
            handshake: Some(Ok(())),
            presented: Some(Presented {
                certificate: bundle.certificates()[0].clone(),
                distrust: None,
                misnomer: None,
            }),
            calls: vec![(
                widget(),
                Operation::InterpretHealth,
                Called::Answered(Duration::from_millis(3)),
            )],
            limit: Duration::from_secs(5),
            skew: Some(-1),
        }),
    }
}

fn set_webhook(observed: &mut Observed, change: impl Fn(&mut crate::planes::karmada::Webhook)) {
    change(&mut observed.configurations.as_mut().unwrap()[0].webhooks[0]);
}

/// The ids that did not pass, with their verdicts.
fn wrong(observed: &Observed) -> Vec<(&'static str, CheckResult)> {
    let checks = verdicts(observed);
    assert_eq!(
        checks.iter().map(|check| check.id).collect::<Vec<_>>(),
        Id::ALL,
        "every check, once, in order"
    );
    checks
        .into_iter()
        .filter(|check| !matches!(check.result, CheckResult::Pass(_)))
        .map(|check| (check.id.as_str(), check.result))
        .collect()
}

fn failed(observed: &Observed) -> Vec<&'static str> {
    wrong(observed)
        .into_iter()
        .filter(|(_, result)| matches!(result, CheckResult::Fail(_)))
        .map(|(id, _)| id)
        .collect()
}

fn warned(observed: &Observed) -> Vec<&'static str> {
    wrong(observed)
        .into_iter()
        .filter(|(_, result)| matches!(result, CheckResult::Warn(_)))
        .map(|(id, _)| id)
        .collect()
}

#[test]
fn a_healthy_setup_passes_every_check() {
    assert_eq!(wrong(&healthy()), []);
}

#[test]
fn a_missing_bundle_a_wrong_one_and_a_shadowing_webhook_are_reported() {
    let mut missing = healthy();
    missing.endpoint.as_mut().unwrap().bundle = Ok(None);
    assert_eq!(warned(&missing), ["ca-bundle"]);

    let mut wrong = healthy();
    let reached = wrong.endpoint.as_mut().unwrap();
    reached.presented.as_mut().unwrap().distrust = Some("invalid peer certificate: UnknownIssuer".into());
    reached.handshake = Some(Err("refused".into()));
    reached.calls.clear();
    assert_eq!(failed(&wrong), ["tls-trusted"]);

    let mut broken = healthy();
    broken.endpoint.as_mut().unwrap().bundle = Err("there is no CERTIFICATE block in it".into());
    assert_eq!(failed(&broken), ["ca-bundle"]);

    let mut shadowed = healthy();
    let other = read(include_str!("../../tests/fixtures/configurations.yaml"));
    shadowed.configurations.as_mut().unwrap().extend(
        other
            .iter()
            .map(Configuration::read)
            .filter(|found| found.name == "another"),
    );
    assert_eq!(failed(&shadowed), ["precedence-webhook"]);
}

#[test]
fn a_hand_written_rule_for_all_operations_is_reported() {
    let mut observed = healthy();
    set_webhook(&mut observed, |webhook| webhook.rules[0].operations = vec!["*".into()]);
    assert_eq!(failed(&observed), ["config-rules-explicit"]);
}

#[test]
fn rules_and_modules_are_compared_both_ways() {
    let mut more = healthy();
    set_webhook(&mut more, |webhook| {
        webhook.rules[0].operations.push("InterpretReplica".into());
    });
    assert_eq!(failed(&more), ["config-rules-match-modules"]);
    let mut added = healthy();
    set_webhook(&mut added, |webhook| webhook.rules[0].operations.push("Retain".into()));
    assert_eq!(wrong(&added), [], "an operation added by the operator is in order");
    let mut less = healthy();
    less.modules.as_mut().unwrap()[0].targets[0].operations[1].register = true;
    assert_eq!(warned(&less), ["config-rules-match-modules"]);
}

#[test]
fn a_kind_without_the_status_that_we_aggregate_is_reported() {
    let with = |served: Seen<Served>, operation: &str| {
        let mut observed = healthy();
        set_webhook(&mut observed, |webhook| {
            webhook.rules[0].operations = vec![operation.into()];
        });
        observed.modules = None;
        observed.kinds[0].1 = served;
        let id = "config-kinds-served";
        (failed(&observed).contains(&id), warned(&observed).contains(&id))
    };
    assert_eq!(with(Ok(Served::WithoutStatus), "AggregateStatus"), (true, false));
    assert_eq!(with(Ok(Served::WithoutStatus), "InterpretHealth"), (false, false));
    assert_eq!(with(Ok(Served::Not), "AggregateStatus"), (false, true));
    assert_eq!(with(Err("403".into()), "InterpretHealth"), (true, false));
}

#[test]
fn a_deadline_has_to_be_set() {
    for (seconds, fails) in [(None, true), (Some(0), true), (Some(31), true), (Some(30), false)] {
        let mut observed = healthy();
        set_webhook(&mut observed, |webhook| webhook.timeout_seconds = seconds);
        assert_eq!(failed(&observed).contains(&"config-timeout"), fails, "{seconds:?}");
    }
}

#[test]
fn an_unregistered_webhook_is_one_failure_and_not_ten() {
    let mut observed = healthy();
    observed.configurations = Ok(Vec::new());
    observed.endpoint = None;
    assert_eq!(failed(&observed), ["config-present"]);
    observed.configurations = Err("failed to list: 403 forbidden".into());
    assert_eq!(failed(&observed), ["karmada-reachable"]);
}

#[test]
fn each_step_on_the_way_is_distinguished() {
    type Cut = (&'static str, fn(&mut Reached));
    let cut: [Cut; 4] = [
        ("endpoint-resolves", |reached| {
            reached.resolved = Some(Err("no such host".into()));
            reached.connected = None;
            reached.handshake = None;
            reached.presented = None;
        }),
        ("endpoint-connects", |reached| {
            reached.connected = Some(Err("connection refused".into()));
            reached.handshake = None;
            reached.presented = None;
        }),
        ("tls-names", |reached| {
            reached.presented.as_mut().unwrap().misnomer = Some("not valid for name".into());
            reached.handshake = Some(Err("not valid for name".into()));
        }),
        ("call-answered", |reached| {
            reached.calls[0].2 = Called::NotServed("no module".into());
        }),
    ];
    for (id, cut) in cut {
        let mut observed = healthy();
        cut(observed.endpoint.as_mut().unwrap());
        assert_eq!(failed(&observed), [id]);
    }
}

#[test]
fn a_certificate_that_ends_is_announced_and_then_refused() {
    let mut observed = healthy();
    for (now, ids) in [
        ("2089-12-20T00:00:00Z", ["tls-expiry"].as_slice()),
        ("2089-12-01T00:00:00Z", &[]),
    ] {
        observed.now = now.parse::<Timestamp>().unwrap();
        assert_eq!(warned(&observed), ids, "{now}");
    }
    observed.now = "2090-02-01T00:00:00Z".parse().unwrap();
    assert_eq!(failed(&observed), ["ca-bundle", "tls-expiry"]);
    observed.now = "2019-02-01T00:00:00Z".parse().unwrap();
    assert_eq!(failed(&observed), ["ca-bundle", "tls-expiry"], "not valid yet");
}

#[test]
fn clocks_that_differ_are_reported() {
    for (server, webhook, warns, fails) in [
        (Some(9), Some(0), false, false),
        (Some(-10), Some(0), true, false),
        (Some(0), Some(300), false, true),
        (Some(0), Some(-3600), false, true),
        // Each is near to us, and they are far from each other.
        (Some(-8), Some(8), true, false),
        (None, Some(20), true, false),
    ] {
        let mut observed = healthy();
        observed.server_skew = server;
        observed.endpoint.as_mut().unwrap().skew = webhook;
        assert_eq!(
            warned(&observed).contains(&"clock-skew"),
            warns,
            "{server:?} {webhook:?}"
        );
        assert_eq!(
            failed(&observed).contains(&"clock-skew"),
            fails,
            "{server:?} {webhook:?}"
        );
    }
    let mut silent = healthy();
    silent.server_skew = None;
    silent.endpoint.as_mut().unwrap().skew = None;
    assert!(matches!(wrong(&silent)[..], [("clock-skew", CheckResult::Skip(_))]));
}

#[test]
fn a_call_that_takes_most_of_the_deadline_is_announced() {
    let mut observed = healthy();
    observed.endpoint.as_mut().unwrap().calls[0].2 = Called::Answered(Duration::from_millis(2_600));
    assert_eq!(warned(&observed), ["call-answered"]);
}

#[test]
fn members_decide_about_service_and_cities() {
    let mut pull = healthy();
    pull.members.as_mut().unwrap()[0].data["spec"]["syncMode"] = "Pull".into();
    assert_eq!(failed(&pull), Vec::<&str>::new(), "a URL is what agents need");
    set_webhook(&mut pull, |webhook| {
        webhook.client_config.url = None;
        webhook.client_config.service = Some(crate::planes::karmada::ServiceReference::default());
    });
    assert_eq!(failed(&pull), ["members-pull"]);

    let label = "topology.datum.net/city-code";
    let with = |city: Option<&str>| {
        let mut observed = healthy();
        let city = city.map(|city| (label.to_owned(), city.to_owned()));
        observed.members.as_mut().unwrap()[1].metadata.labels = Some(city.into_iter().collect());
        observed
    };
    assert_eq!(failed(&with(Some("dfw"))), ["members-city"]);
    assert_eq!(warned(&with(Some("DFW"))), ["members-city"]);
    assert_eq!(warned(&with(None)), ["members-city"]);
}

#[test]
fn a_customization_before_us_is_reported() {
    let mut observed = healthy();
    let kind = Gvk::new("example.io", "v1", "Widget");
    observed.customizations = Ok(vec![Customization {
        name: "old".into(),
        kind,
        operations: vec![Operation::InterpretHealth],
    }]);
    assert_eq!(failed(&observed), ["precedence-customization"]);
}

#[test]
fn every_check_has_a_section_in_the_troubleshooting_page() {
    let page = include_str!("../../../docs/troubleshooting.md");
    for id in Id::ALL {
        assert!(page.contains(&format!("\n### {}\n", id.as_str())), "{}", id.as_str());
    }
}
