//! Kubernetes quantities as exact numbers: for limits at admission.

/// One, in the unit that [`parse`] answers in: a thousand-millionth is the finest that Kubernetes keeps.
pub const ONE: i128 = 1_000_000_000;
/// One GiB of bytes.
pub const GIB: i128 = (1 << 30) * ONE;

/// Significant digits that are kept: with the largest binary suffix they fit the number.
const DIGITS: usize = 19;

/// A quantity such as `500m`, `1.5`, `10Gi` or `1e3`, in thousand-millionths; finer parts are rounded up, as Kubernetes
/// does, and so is what comes after the first 19 digits. What is beyond range is the end of the range. `None` where it is no
/// quantity.
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
    let (multiplier, power) = scale(suffix)?;
    let all = format!("{whole}{fraction}");
    let significant = all.trim_start_matches('0');
    let (kept, rest) = significant.split_at_checked(DIGITS).unwrap_or((significant, ""));
    let kept: i128 = format!("0{kept}").parse().ok()?;
    let rounded_up = rest.bytes().any(|digit| digit != b'0');
    let length = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let power = power + length(rest) - length(fraction);
    let value = by_power_of_ten(
        kept.saturating_add(i128::from(rounded_up)).saturating_mul(multiplier),
        power,
    );
    Some(if negative { -value } else { value })
}

/// A number times a power of ten, rounded up.
fn by_power_of_ten(number: i128, power: i64) -> i128 {
    let ten = u32::try_from(power.unsigned_abs())
        .ok()
        .and_then(|power| 10_i128.checked_pow(power));
    match (ten, power >= 0) {
        _ if number == 0 => 0,
        (Some(ten), true) => number.saturating_mul(ten),
        (None, true) => i128::MAX,
        (Some(ten), false) => number / ten + i128::from(number % ten > 0),
        (None, false) => 1,
    }
}

/// Multiplier of a suffix, and power of ten with that of [`ONE`].
fn scale(suffix: &str) -> Option<(i128, i64)> {
    const ONES: i64 = 9;
    const DECIMAL: [(&str, i64); 9] = [
        ("n", -9),
        ("u", -6),
        ("m", -3),
        ("k", 3),
        ("M", 6),
        ("G", 9),
        ("T", 12),
        ("P", 15),
        ("E", 18),
    ];
    const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    if suffix.is_empty() {
        return Some((1, ONES));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some((1 << power, ONES));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((1, ONES + power));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((1, ONES + i64::from(exponent)))
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
            ("0.0", Some(0)),
            ("0e99", Some(0)),
            ("1e-99", Some(1)),
            ("0.00000000000000000000000000000000000000000001", Some(1)),
            ("1e99", Some(i128::MAX)),
            ("-1e99", Some(-i128::MAX)),
            ("1e2147483647", Some(i128::MAX)),
            ("99999999999999999999999999999999999999999", Some(i128::MAX)),
            ("9999999999999999999Ei", Some(i128::MAX)),
            ("123456789012345678901n", Some(123_456_789_012_345_679_000)),
            ("1e", None),
            ("1e1.5", None),
            ("1e99999999999", None),
        ] {
            assert_eq!(parse(text), value, "{text}");
        }
    }
}
