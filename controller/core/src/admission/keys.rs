//! Labels and annotations of the template: readable for every server behind us, and none of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use popcell_api::{InstanceTemplateSpec, annotations};

use super::field::Faults;
use crate::names::{is_label_value, is_within};

const METADATA: &str = "spec.template.metadata";
/// Domains of keys that this program, Karmada or the platform write. With sub-domains.
const RESERVED: [&str; 2] = ["karmada.io", "compute.datumapis.com"];
/// Domains of keys that the platform writes. Without sub-domains.
const RESERVED_EXACTLY: [&str; 3] = ["meta.datumapis.com", "topology.datum.net", "quota.miloapis.com"];
/// Keys of ours that are made for users.
const FOR_USERS: [&str; 2] = [annotations::SSH_KEYS, annotations::RESTARTED_AT];

pub(super) fn check(template: &InstanceTemplateSpec, faults: &mut Faults) {
    let metadata = template.metadata.as_ref();
    for (key, value) in metadata.iter().flat_map(|metadata| &metadata.labels) {
        let path = format!("{METADATA}.labels");
        key_is_good(&path, key, &[], faults);
        if !is_label_value(value) {
            let rule = "must be at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or digit";
            faults.invalid(format!("{path}[{key}]"), value.as_str(), rule);
        }
    }
    for key in metadata.iter().flat_map(|metadata| metadata.annotations.keys()) {
        key_is_good(&format!("{METADATA}.annotations"), key, &FOR_USERS, faults);
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

fn key_is_good(path: &str, key: &str, exempt: &[&str], faults: &mut Faults) {
    let (domain, name) = key
        .split_once('/')
        .map_or((None, key), |(domain, name)| (Some(domain), name));
    let good = !name.is_empty() && is_label_value(name) && domain.is_none_or(is_domain);
    if !good {
        faults.invalid(path, key, "is not a qualified name");
        return;
    }
    if domain.is_some_and(is_reserved) && !exempt.contains(&key) {
        faults.forbidden(
            format!("{path}[{key}]"),
            "the key is reserved: use a domain of your own",
        );
    }
}

fn is_reserved(domain: &str) -> bool {
    RESERVED.into_iter().any(|parent| is_within(domain, parent)) || RESERVED_EXACTLY.contains(&domain)
}

fn is_domain(domain: &str) -> bool {
    domain.len() <= 253 && domain.split('.').all(crate::names::is_dns_label)
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
