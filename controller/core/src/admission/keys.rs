//! Labels and annotations: readable for every server behind us, small enough for all of them, and none of ours.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use popcell_api::{InstanceTemplateSpec, TemplateMetadata, annotations};

use super::field::Faults;
use crate::names::{is_label_value, is_qualified_name};
use crate::object::Object;
use crate::reserved::{self, Place};

const METADATA: &str = "spec.template.metadata";
/// What all annotations of an object may have together, keys and values, in bytes: Kubernetes' own limit
/// (k8s.io/apimachinery, pkg/api/validation `TotalAnnotationSizeLimitB`).
const ANNOTATIONS_SIZE: usize = 256 * 1024;
const RESERVED: &str = "the key is reserved: use a domain of your own";

pub(super) fn check(template: &InstanceTemplateSpec, faults: &mut Faults) {
    let metadata = template.metadata.as_ref();
    if let Some(metadata) = metadata {
        check_metadata(METADATA, metadata, faults);
    }
    for (index, volume) in template.spec.volumes.iter().enumerate() {
        let disk = volume.disk.as_ref().and_then(|disk| disk.template.metadata.as_ref());
        if let Some(metadata) = disk {
            let path = format!("{}.volumes[{index}].disk.template.metadata", super::INSTANCE);
            check_metadata(&path, metadata, faults);
        }
    }
    let keys = metadata.and_then(|metadata| metadata.annotations.get(annotations::SSH_KEYS));
    let path = format!("{METADATA}.annotations[{}]", annotations::SSH_KEYS);
    match keys {
        Some(keys) => ssh_keys(&path, keys, faults),
        None if template.spec.runtime.virtual_machine.is_some() => {
            faults.required(path, "a virtual machine needs one line of user:key or more");
        }
        None => {}
    }
}

/// Reserved keys that an object may have or be given.
#[derive(Clone, Copy, Default)]
pub(super) struct Exempt<'a> {
    /// A label with this value.
    pub(super) label: Option<(&'a str, &'a str)>,
    /// Annotations that an update may write.
    pub(super) annotations: &'a [&'a str],
}

/// Reserved keys on the object itself that it did not have before, or not with that value.
pub(super) fn check_object(old: Option<&Object>, new: &Object, exempt: Exempt<'_>, faults: &mut Faults) {
    for (field, key) in reserved_changes(old, new, exempt) {
        faults.forbidden(format!("metadata.{field}[{key}]"), RESERVED);
    }
}

/// Whether an update gives the object a reserved key, or another value of one.
pub(super) fn adds_reserved(old: &Object, new: &Object, exempt: Exempt<'_>) -> bool {
    !reserved_changes(Some(old), new, exempt).is_empty()
}

type Texts = BTreeMap<String, String>;

fn reserved_changes<'a>(old: Option<&Object>, new: &'a Object, exempt: Exempt<'_>) -> Vec<(&'static str, &'a str)> {
    let old = old.map(|old| &old.metadata);
    let labels = |key: &str, value: &str| exempt.label == Some((key, value));
    let annotations = |key: &str, _: &str| old.is_some() && exempt.annotations.contains(&key);
    let mut found = changes(
        old.and_then(|old| old.labels.as_ref()),
        new.metadata.labels.as_ref(),
        Place::Label,
        labels,
    );
    found.extend(changes(
        old.and_then(|old| old.annotations.as_ref()),
        new.metadata.annotations.as_ref(),
        Place::Annotation,
        annotations,
    ));
    found
}

fn changes<'a>(
    old: Option<&Texts>,
    new: Option<&'a Texts>,
    place: Place,
    is_exempt: impl Fn(&str, &str) -> bool,
) -> Vec<(&'static str, &'a str)> {
    let field = match place {
        Place::Label => "labels",
        Place::Annotation => "annotations",
    };
    let kept = |key: &str, value: &String| old.and_then(|old| old.get(key)) == Some(value);
    new.into_iter()
        .flatten()
        .filter(|(key, value)| reserved::on_object(place, key) && !kept(key, value) && !is_exempt(key, value))
        .map(|(key, _)| (field, key.as_str()))
        .collect()
}

/// Labels and annotations of what is made from a template.
fn check_metadata(path: &str, metadata: &TemplateMetadata, faults: &mut Faults) {
    for (key, value) in &metadata.labels {
        let path = format!("{path}.labels");
        key_is_good(&path, key, Place::Label, faults);
        if !is_label_value(value) {
            let rule = "must be at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit";
            faults.invalid(format!("{path}[{key}]"), value.as_str(), rule);
        }
    }
    let path = format!("{path}.annotations");
    for key in metadata.annotations.keys() {
        key_is_good(&path, key, Place::Annotation, faults);
    }
    let size = |(key, value): (&String, &String)| key.len().saturating_add(value.len());
    let total = metadata.annotations.iter().map(size).fold(0, usize::saturating_add);
    if total > ANNOTATIONS_SIZE {
        faults.too_long(path, ANNOTATIONS_SIZE);
    }
}

fn key_is_good(path: &str, key: &str, place: Place, faults: &mut Faults) {
    // Of annotations Kubernetes takes capital letters in the domain too (apimachinery, `ValidateAnnotations`).
    let good = match place {
        Place::Label => is_qualified_name(key),
        Place::Annotation => is_qualified_name(&key.to_ascii_lowercase()),
    };
    if !good {
        faults.invalid(path, key, "is not a qualified name");
        return;
    }
    if reserved::in_template(place, key) {
        faults.forbidden(format!("{path}[{key}]"), RESERVED);
    }
}

fn ssh_keys(path: &str, keys: &str, faults: &mut Faults) {
    let mut any = false;
    for (number, line) in keys.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        any = true;
        let rule = match line.split_once(':') {
            None => "must be user:key",
            Some((user, _)) if user.trim().is_empty() => "the user must not be empty",
            Some((_, key)) if !is_authorized_key(key) => "the key must be one of authorized_keys",
            Some(_) => continue,
        };
        faults.invalid(path, line, &format!("line {}: {rule}", number + 1));
    }
    if !any {
        faults.required(path, "one line of user:key or more");
    }
}

/// `[options] type base64 [comment]`, where the decoded key begins with its own type (RFC 4253, section 6.6).
fn is_authorized_key(key: &str) -> bool {
    const TYPES: [&str; 7] = [
        "ssh-ed25519",
        "ssh-rsa",
        "ecdsa-sha2-nistp256",
        "ecdsa-sha2-nistp384",
        "ecdsa-sha2-nistp521",
        "sk-ssh-ed25519@openssh.com",
        "sk-ecdsa-sha2-nistp256@openssh.com",
    ];
    let mut words = key.split_whitespace().skip_while(|word| !TYPES.contains(word));
    let (Some(type_), Some(encoded)) = (words.next(), words.next()) else {
        return false;
    };
    let Ok(blob) = STANDARD.decode(encoded) else {
        return false;
    };
    let Some((length, rest)) = blob.split_first_chunk::<4>() else {
        return false;
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    rest.get(..length) == Some(type_.as_bytes()) && rest.len() > length
}
