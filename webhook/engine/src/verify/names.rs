//! Kubernetes' rules for names (apimachinery, util/validation), and for quantities that may be requested.

use popcell_contract::Quantity;

/// RFC 1123 label: 1 to 63 of `a-z0-9-`, with letters or digits at both ends.
pub(crate) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_lower_case_name(text)
}

/// RFC 1123 subdomain: labels of any length between dots, at most 253.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_lower_case_name)
}

fn is_lower_case_name(text: &str) -> bool {
    ends_well(
        text,
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
    text.len() <= 63
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

/// The largest power of ten that is let through: Kubernetes caps values long before it, and computes with the rest.
const MAX_EXPONENT: i32 = 30;

/// Why a text is no quantity that can be requested, if so.
pub(super) fn quantity_objection(text: &str) -> Option<&'static str> {
    if text.len() > 64 {
        return Some("is longer than 64 characters");
    }
    if text.starts_with('-') {
        return Some("is negative");
    }
    if text.parse::<Quantity>().is_ok() && has_small_exponent(text) {
        None
    } else {
        Some("is no Kubernetes quantity")
    }
}

/// Whether a quantity is written without a power of ten (`1E` and `1Ei` have a suffix) or with one in range.
fn has_small_exponent(quantity: &str) -> bool {
    match quantity.split_once(['e', 'E']) {
        None | Some((_, "" | "i")) => true,
        Some((_, power)) => power
            .parse::<i32>()
            .is_ok_and(|power| (-MAX_EXPONENT..=MAX_EXPONENT).contains(&power)),
    }
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

    #[test]
    fn accepts_what_kubernetes_accepts() {
        for text in [
            "0", "1", "100m", "1.5", ".5", "5.", "+1", "2Gi", "1E", "1Ei", "1e3", "1E3", "1e-3", "1e+3", "12.50Mi",
            "3n",
        ] {
            assert_eq!(quantity_objection(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "abc",
            "Ki",
            ".",
            "1.2.3",
            "1 Gi",
            " 1",
            "1gi",
            "1KI",
            "1K",
            "1e",
            "1ee3",
            "1e99",
            "1e-31",
            "1e99999999999",
            "0x10",
            "1_0",
            "-1",
            "--1",
        ] {
            assert!(quantity_objection(text).is_some(), "{text}");
        }
        assert!(quantity_objection(&"1".repeat(65)).is_some());
    }
}
