//! Names that are Karmada's own, Kubernetes' rules for the others, and for quantities that may be requested.

use popcell_contract::Quantity;
pub(crate) use popcell_contract::names::{is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name};

/// Whether a domain is Karmada's own.
pub(crate) fn is_karmadas(domain: &str) -> bool {
    domain == "karmada.io" || domain.ends_with(".karmada.io")
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
    fn karmadas_own_domains() {
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
