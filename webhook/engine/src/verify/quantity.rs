//! The syntax of Kubernetes quantities (apimachinery, api/resource/quantity.go): number and suffix.

/// The largest power of ten that is let through: Kubernetes caps values long before it.
const MAX_EXPONENT: i32 = 30;
const SUFFIXES: [&str; 16] = [
    "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
];

/// Why a text is no quantity that can be requested, if so.
pub(super) fn objection(text: &str) -> Option<&'static str> {
    if text.len() > 64 {
        return Some("is longer than 64 characters");
    }
    if text.starts_with('-') {
        return Some("is negative");
    }
    let number = text.strip_prefix('+').unwrap_or(text);
    let suffix = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let digits = number.strip_suffix(suffix).unwrap_or(number);
    let is_number = digits.bytes().filter(|byte| *byte == b'.').count() <= 1 && digits.bytes().any(|byte| byte != b'.');
    if is_number && (SUFFIXES.contains(&suffix) || is_exponent(suffix)) {
        None
    } else {
        Some("is no Kubernetes quantity")
    }
}

fn is_exponent(suffix: &str) -> bool {
    let power = suffix
        .strip_prefix(['e', 'E'])
        .and_then(|power| power.parse::<i32>().ok());
    power.is_some_and(|power| (-MAX_EXPONENT..=MAX_EXPONENT).contains(&power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_what_kubernetes_accepts() {
        for text in [
            "0", "1", "100m", "1.5", ".5", "5.", "+1", "2Gi", "1E", "1e3", "1E3", "1e-3", "1e+3", "12.50Mi", "3n",
        ] {
            assert_eq!(objection(text), None, "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "", "abc", "Ki", ".", "1.2.3", "1 Gi", " 1", "1gi", "1KI", "1K", "1e", "1ee3", "1e99", "0x10", "1_0", "-1",
            "--1",
        ] {
            assert!(objection(text).is_some(), "{text}");
        }
        assert!(objection(&"1".repeat(65)).is_some());
    }
}
