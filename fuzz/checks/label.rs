//! What is a name, a label or a project, read in a second way; what is encoded is decoded.

use std::collections::BTreeSet;

use popcell_core::admission;
use popcell_core::instance_types::Catalogue;
use popcell_core::names;
use popcell_core::object::Object;
use popcell_core::observed::Observed;
use serde_json::json;

/// Two lines: a key, and a value; names are read from the value.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (key, value) = text.split_once('\n').unwrap_or(("app", &text));
    for one in [key, value] {
        names_of(one);
    }
    labels(key, value);
}

fn names_of(text: &str) {
    assert_eq!(names::is_dns_label(text), text.len() <= 63 && dns(text), "{text:?}");
    let subdomain = text.len() <= 253 && text.split('.').all(dns);
    assert_eq!(names::is_dns_subdomain(text), subdomain, "{text:?}");
    if let Some(project) = names::project_of_label(text) {
        assert!(!project.is_empty() && !project.contains(['_', '/']), "{text:?}");
        assert!(text.ends_with(project), "{text:?}");
        if !project.starts_with("cluster-") {
            assert_eq!(names::project_of_label(project), Some(project), "{text:?}");
        }
        assert_eq!(
            names::project_of_label(&names::project_label(project)),
            Some(project),
            "{text:?}"
        );
    }
    if names::check_project(text).is_ok() {
        let label = names::project_label(text);
        assert!(subdomain && label_value(&label), "{text:?}");
        assert_eq!(names::project_of_label(&label), Some(text));
    }
    if names::check_city(text).is_ok() {
        let policy = names::city_policy(text);
        assert!(label_value(text) && names::is_dns_label(&policy), "{text:?}");
        assert_eq!(policy, names::city_policy(&text.to_ascii_uppercase()));
    }
}

/// A Workload whose template has this label is refused because of it exactly where Kubernetes would refuse it, or where the
/// key is reserved; so is the key as one of an annotation, whose domain may have capital letters.
fn labels(key: &str, value: &str) {
    let workload = json!({
        "metadata": { "name": "web" },
        "spec": {
            "placements": [{ "name": "us", "cityCodes": ["DFW"], "scaleSettings": { "minReplicas": 1 } }],
            "template": { "metadata": { "labels": { key: value }, "annotations": { key: "" } }, "spec": {
                "runtime": { "resources": { "instanceType": "datumcloud/d1-standard-2" },
                    "sandbox": { "containers": [{ "name": "web", "image": "i" }] } },
                "networkInterfaces": [{ "network": { "name": "default" } }],
            } },
        },
    });
    let Ok(workload) = serde_json::from_value::<Object>(workload) else {
        return;
    };
    let errors = admission::validate(
        None,
        &workload,
        &BTreeSet::new(),
        Observed::Known(&Catalogue::default()),
    );
    let reported: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let reported = |start: &str| reported.iter().any(|one| one.starts_with(start));
    let annotated = !reported("spec.template.metadata.annotations: Invalid value");
    assert_eq!(annotated, qualified(&key.to_ascii_lowercase()), "{key:?}");
    let path = "spec.template.metadata.labels";
    if !qualified(key) {
        assert!(reported(&format!("{path}: Invalid value")), "{key:?}");
        return;
    }
    assert!(!reported(&format!("{path}: ")), "{key:?}");
    let invalid = reported(&format!("{path}[{key}]: Invalid value"));
    assert_eq!(invalid, !label_value(value), "{key:?} = {value:?}");
    assert_eq!(reported(&format!("{path}[{key}]: Forbidden")), reserved(key), "{key:?}");
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn dns(text: &str) -> bool {
    text.chars().all(|one| matches!(one, 'a'..='z' | '0'..='9' | '-'))
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// `(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?`, 63 characters at most.
fn label_value(text: &str) -> bool {
    let ends = |one: Option<char>| one.is_none_or(|one| one.is_ascii_alphanumeric());
    text.len() <= 63
        && text
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "-_.".contains(one))
        && ends(text.chars().next())
        && ends(text.chars().last())
}

fn qualified(key: &str) -> bool {
    let mut parts = key.splitn(2, '/');
    let (first, second) = (parts.next().unwrap_or_default(), parts.next());
    let name = second.unwrap_or(first);
    let domain = second.map(|_| first);
    !name.is_empty() && label_value(name) && domain.is_none_or(|one| one.len() <= 253 && one.split('.').all(dns))
}

fn reserved(key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let within = |parent: &str| domain == parent || domain.ends_with(&format!(".{parent}"));
    within("karmada.io")
        || within("compute.datumapis.com")
        || ["meta.datumapis.com", "topology.datum.net", "quota.miloapis.com"].contains(&domain)
}
