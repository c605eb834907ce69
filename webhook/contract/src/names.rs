//! Kubernetes' rules for names (apimachinery, `util/validation`).

/// Longest label of a domain name, longest value of a label, and longest name in a key.
pub const LABEL_LENGTH: usize = 63;
/// Longest DNS-1123 subdomain.
const SUBDOMAIN_LENGTH: usize = 253;

/// Whether a text is a DNS-1123 label: 1 to 63 of `a-z0-9-`, with letters or digits at both ends.
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= LABEL_LENGTH && is_dns_part(text)
}

/// Whether a text is a DNS-1123 subdomain. Its parts have no limit of their own for Kubernetes.
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= SUBDOMAIN_LENGTH && text.split('.').all(is_dns_part)
}

/// Whether a text can be the value of a label: empty, or 1 to 63 of `A-Za-z0-9-_.` with letters or digits at both ends.
#[must_use]
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Whether a text can be the key of a label or of an annotation, or the name of a resource: `[subdomain/]name`.
#[must_use]
pub fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_dns_subdomain(domain) && is_name_part(name),
        None => is_name_part(text),
    }
}

fn is_dns_part(text: &str) -> bool {
    ends_well(
        text,
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

fn is_name_part(text: &str) -> bool {
    text.len() <= LABEL_LENGTH
        && ends_well(
            text,
            |byte| byte.is_ascii_alphanumeric(),
            |byte| matches!(byte, b'-' | b'_' | b'.'),
        )
}

fn ends_well(text: &str, end: impl Fn(u8) -> bool, between: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| end(*byte))
        && bytes.last().is_some_and(|byte| end(*byte))
        && bytes.iter().all(|byte| end(*byte) || between(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_kubernetes_has_them() {
        assert!(is_dns_label("v1alpha1") && is_dns_label("a-b"));
        assert!(!is_dns_label("-a") && !is_dns_label("A") && !is_dns_label("") && !is_dns_label(&"a".repeat(64)));
        assert!(is_dns_subdomain("compute.datumapis.com") && !is_dns_subdomain("a..b") && !is_dns_subdomain(""));
        assert!(is_label_value("") && is_label_value("A_b.C-1") && !is_label_value("a/b") && !is_label_value("a+b"));
        assert!(is_qualified_name("nvidia.com/gpu") && is_qualified_name("cpu"));
    }

    #[test]
    fn keys_are_those_of_kubernetes() {
        let part = "p".repeat(64);
        let name = "n".repeat(63);
        for good in ["app", "a/B_c.1", &name, &format!("{part}.example.com/a")] {
            assert!(is_qualified_name(good), "{good}");
        }
        let (long_name, long_domain) = (format!("{name}n"), format!("{}/a", [&*part; 4].join(".")));
        for bad in ["", "/", "a/", "/a", "a/b/c", "A/b", "a..b/c", "-a", "a b"] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
        assert!(!is_qualified_name(&long_name) && !is_qualified_name(&long_domain));
    }
}
