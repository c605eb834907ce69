//! Label and annotation keys that tenants must not set: those of Karmada, of the platform and of popcell itself.
//!
//! Admission refuses them, and a template loses them before it leaves its project: a server without the webhook, or an
//! object that is older than a rule, must not bring them to hub or cell, where controllers act on them.

use popcell_api::annotations;
use serde_json::Value;

use crate::names::is_within;

/// Domains of keys that popcell and Karmada act on, with sub-domains.
const OURS: [&str; 2] = ["karmada.io", "compute.datumapis.com"];
/// Domains of keys that the platform writes, without sub-domains.
const PLATFORM: [&str; 3] = ["meta.datumapis.com", "topology.datum.net", "quota.miloapis.com"];
/// Annotations of ours that users set in a template.
const FOR_USERS: [&str; 2] = [annotations::SSH_KEYS, annotations::RESTARTED_AT];

/// Where a key stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A label.
    Label,
    /// An annotation.
    Annotation,
}

/// Whether a key is reserved in a template: nothing but what is made for users may be there.
pub(crate) fn in_template(place: Place, key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let for_users = place == Place::Annotation && FOR_USERS.contains(&key);
    !for_users && (is_ours(domain) || PLATFORM.iter().any(|one| domain.eq_ignore_ascii_case(one)))
}

/// Whether a key is reserved on an object in a project. The platform writes keys of its own there.
pub(crate) fn on_object(place: Place, key: &str) -> bool {
    let Some((domain, _)) = key.split_once('/') else {
        return false;
    };
    let for_users = place == Place::Annotation && (FOR_USERS.contains(&key) || key == annotations::PAUSED);
    !for_users && is_ours(domain)
}

/// Domains are one in any case of letters: an annotation's may have capital ones.
fn is_ours(domain: &str) -> bool {
    let domain = domain.to_ascii_lowercase();
    OURS.into_iter().any(|parent| is_within(&domain, parent))
}

/// Takes reserved keys out of a template, those of the disks that it makes included.
pub(crate) fn strip(template: &mut Value) {
    if let Some(metadata) = template.get_mut("metadata") {
        strip_metadata(metadata);
    }
    if let Some(spec) = template.get_mut("spec") {
        strip_disks(spec);
    }
}

/// Takes reserved keys out of the disks that the spec of an Instance makes.
pub(crate) fn strip_disks(spec: &mut Value) {
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if let Some(metadata) = volume.pointer_mut("/disk/template/metadata") {
            strip_metadata(metadata);
        }
    }
}

fn strip_metadata(metadata: &mut Value) {
    for (field, place) in [("labels", Place::Label), ("annotations", Place::Annotation)] {
        if let Some(keys) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            keys.retain(|key, _| !in_template(place, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_reserved_by_its_domain_and_its_place() {
        use Place::{Annotation, Label};
        for (key, place, template, object) in [
            ("karmada.io/managed", Label, true, true),
            ("work.karmada.io/name", Annotation, true, true),
            ("Work.Karmada.IO/name", Annotation, true, true),
            ("notkarmada.io/name", Label, false, false),
            ("karmada.io", Label, false, false),
            ("compute.datumapis.com/managed-by", Label, true, true),
            ("compute.datumapis.com/source-uid", Annotation, true, true),
            ("x.compute.datumapis.com/y", Annotation, true, true),
            ("compute.datumapis.com/ssh-keys", Annotation, false, false),
            ("compute.datumapis.com/ssh-keys", Label, true, true),
            ("compute.datumapis.com/restartedAt", Annotation, false, false),
            ("compute.datumapis.com/paused", Annotation, true, false),
            ("compute.datumapis.com/paused", Label, true, true),
            ("quota.miloapis.com/x", Label, true, false),
            ("topology.datum.net/city-code", Label, true, false),
            ("Meta.DatumAPIs.com/upstream-name", Annotation, true, false),
            ("app", Label, false, false),
            ("example.com/app", Annotation, false, false),
        ] {
            assert_eq!(in_template(place, key), template, "{key} of a template");
            assert_eq!(on_object(place, key), object, "{key} of an object");
        }
    }

    #[test]
    fn a_template_loses_reserved_keys_and_nothing_else() {
        let keys = |field: &str| {
            json!({ field: { "app": "a", "karmada.io/x": "b", "compute.datumapis.com/managed-by": "popcell",
                "compute.datumapis.com/ssh-keys": "k" } })
        };
        let disk = |metadata: Value| json!({ "disk": { "template": { "metadata": metadata, "spec": {} } } });
        let mut metadata = keys("labels");
        metadata["annotations"] = keys("annotations")["annotations"].clone();
        let mut template = json!({ "metadata": metadata, "spec": {
            "volumes": [{ "secret": {} }, disk(keys("labels")), 3], "of": "later" } });
        strip(&mut template);
        assert_eq!(
            template,
            json!({ "metadata": { "labels": { "app": "a" },
                    "annotations": { "app": "a", "compute.datumapis.com/ssh-keys": "k" } },
                "spec": { "volumes": [{ "secret": {} }, disk(json!({ "labels": { "app": "a" } })), 3], "of": "later" } })
        );
        // What is no template is left to whoever reads it.
        for mut odd in [
            json!(null),
            json!([]),
            json!({ "metadata": 3, "spec": { "volumes": {} } }),
        ] {
            let before = odd.clone();
            strip(&mut odd);
            assert_eq!(odd, before);
        }
    }
}
