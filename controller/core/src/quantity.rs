//! Kubernetes quantities as exact numbers: for limits at admission.

/// One, in the unit that [`parse`] answers in: a thousand-millionth is the finest that Kubernetes keeps.
pub const ONE: i128 = 1_000_000_000;
/// One GiB of bytes.
pub const GIB: i128 = (1 << 30) * ONE;

/// A quantity such as `500m`, `1.5`, `10Gi` or `1e3`, in thousand-millionths; finer parts are rounded up, as Kubernetes
/// does. `None` where it is none, or too large for any use.
pub fn parse(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = unsigned
        .find(|one: char| !one.is_ascii_digit() && one != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let scale = scale(suffix)?;
    let places = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let scaled = digits.checked_mul(scale.0)?.checked_mul(ONE)?;
    let divisor = places.checked_mul(scale.1)?;
    let value = scaled.checked_add(divisor - 1)? / divisor;
    Some(if negative { -value } else { value })
}

/// Multiplier and divisor of a suffix.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    const DECIMAL: [(&str, u32); 6] = [("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    const SMALL: [(&str, u32); 3] = [("m", 3), ("u", 6), ("n", 9)];
    let find = |table: &[(&str, u32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, power)| *power);
    if suffix.is_empty() {
        return Some((1, 1));
    }
    if let Some(power) = find(&BINARY) {
        return Some((1 << power, 1));
    }
    if let Some(power) = find(&DECIMAL) {
        return Some((10_i128.checked_pow(power)?, 1));
    }
    if let Some(power) = find(&SMALL) {
        return Some((1, 10_i128.checked_pow(power)?));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        for (text, value) in [
            ("1", Some(ONE)),
            ("0", Some(0)),
            ("500m", Some(ONE / 2)),
            ("1.5", Some(ONE * 3 / 2)),
            (".5", Some(ONE / 2)),
            ("10Gi", Some(10 * GIB)),
            ("1e3", Some(1000 * ONE)),
            ("1E3", Some(1000 * ONE)),
            ("1E", Some(ONE * 1_000_000_000_000_000_000)),
            ("5e-1", Some(ONE / 2)),
            ("-1", Some(-ONE)),
            ("+2", Some(2 * ONE)),
            ("0.1n", Some(1)),
            ("1.5Gi", Some(GIB * 3 / 2)),
            ("", None),
            (".", None),
            ("Gi", None),
            ("1.2.3", None),
            ("1 Gi", None),
            ("lots", None),
            ("1e99", None),
            ("99999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
    }
}
