//! Kubernetes' rules for names (apimachinery, util/validation).

/// RFC 1123 label: 1 to 63 of `a-z0-9-`, with letters or digits at both ends.
pub(crate) fn is_dns_label(text: &str) -> bool {
    ends_well(
        text,
        63,
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

/// RFC 1123 subdomain: labels between dots, at most 253.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text
            .split('.')
            .all(|label| label.len() <= 253 && is_any_length_label(label))
}

fn is_any_length_label(text: &str) -> bool {
    ends_well(
        text,
        253,
        |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit(),
        |byte| byte == b'-',
    )
}

/// Value of a label: empty, or 1 to 63 of `A-Za-z0-9-_.` with letters or digits at both ends.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// Key of a label, of an annotation, or name of a resource: `[subdomain/]name`.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// Whether a domain is Karmada's own.
pub(crate) fn is_karmadas(domain: &str) -> bool {
    domain == "karmada.io" || domain.ends_with(".karmada.io")
}

fn is_name_part(text: &str) -> bool {
    ends_well(
        text,
        63,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| matches!(byte, b'-' | b'_' | b'.'),
    )
}

fn ends_well(text: &str, longest: usize, end: impl Fn(u8) -> bool, between: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= longest
        && bytes.first().is_some_and(|byte| end(*byte))
        && bytes.last().is_some_and(|byte| end(*byte))
        && bytes.iter().all(|byte| end(*byte) || between(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_kubernetes_has_them() {
        assert!(is_dns_label("v1alpha1") && is_dns_label("a-b"));
        assert!(!is_dns_label("-a") && !is_dns_label("A") && !is_dns_label("") && !is_dns_label(&"a".repeat(64)));
        assert!(is_subdomain("compute.datumapis.com") && !is_subdomain("a..b") && !is_subdomain(""));
        assert!(is_label_value("") && is_label_value("A_b.C-1") && !is_label_value("a/b") && !is_label_value("a+b"));
        assert!(is_qualified_name("nvidia.com/gpu") && is_qualified_name("cpu"));
        assert!(!is_qualified_name("a/b/c") && !is_qualified_name("/a") && !is_qualified_name("a/"));
        assert!(is_karmadas("karmada.io") && is_karmadas("work.karmada.io") && !is_karmadas("notkarmada.io"));
    }
}
