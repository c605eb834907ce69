//! Kubernetes quantities, exactly.
//!
//! Amounts are counted in nano units, the finest that Kubernetes knows, as 128-bit integers; so sums and products of what
//! Kubernetes admits are exact. Reading and writing follow k8s.io/apimachinery/pkg/api/resource.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Mul};
use std::str::FromStr;

/// One, in nano units.
pub const ONE: i128 = ONE_64 as i128;
/// One GiB of bytes, in nano units.
pub const GIB: i128 = (1 << 30) * ONE;

const ONE_64: i64 = 1_000_000_000;

/// The largest amount that Kubernetes reads, in nano units; what is larger is cut to it.
pub const LARGEST: i128 = i64::MAX as i128 * ONE;

/// Exponents beyond this all mean "cut to the largest" or "rounded up to one nano" for any text that is written by hand.
const MAX_POWER: i64 = 9_999;

/// Decimal suffixes by their exponent.
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

/// Binary suffixes by their power of 1024.
const BINARY: [(&str, u32); 6] = [("Ki", 1), ("Mi", 2), ("Gi", 3), ("Ti", 4), ("Pi", 5), ("Ei", 6)];

/// An amount of a resource: `500m`, `1.5Gi`, `2e3`.
///
/// Two quantities are equal when their amounts are, whatever their spelling. Text is always the canonical form, in the
/// style (decimal, binary, exponent) that was read. Arithmetic keeps the style of the first operand that is not zero, and
/// stops at the ends of 128 bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantity {
    nano: i128,
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Style {
    #[default]
    Decimal,
    Binary,
    Exponent,
}

/// The text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a quantity: expected a number with a suffix such as m, k, Mi or e3, or none")]
pub struct NotAQuantity(pub String);

/// The amount that a text says, in nano units; `None` where it is no quantity.
pub fn nano(text: &str) -> Option<i128> {
    parse(text).map(Quantity::nano)
}

impl Quantity {
    /// A whole number.
    pub fn whole(number: i64) -> Self {
        Self {
            nano: i128::from(number) * ONE,
            style: Style::Decimal,
        }
    }

    /// A number of thousandths.
    pub fn milli(number: i64) -> Self {
        Self {
            nano: i128::from(number) * (ONE / 1000),
            style: Style::Decimal,
        }
    }

    /// The amount in nano units.
    pub const fn nano(self) -> i128 {
        self.nano
    }

    /// Whether the amount is zero.
    pub fn is_zero(&self) -> bool {
        self.nano == 0
    }

    /// Whether the amount is below zero.
    pub fn is_negative(&self) -> bool {
        self.nano < 0
    }

    fn write_decimal(self, f: &mut fmt::Formatter<'_>, style: Style) -> fmt::Result {
        let (mantissa, thousands) = reduced(self.nano, 1000, 9);
        let exponent = thousands * 3 - 9;
        if style == Style::Exponent {
            return if exponent == 0 {
                write!(f, "{mantissa}")
            } else {
                write!(f, "{mantissa}e{exponent}")
            };
        }
        let suffix = DECIMAL
            .iter()
            .find(|(_, power)| *power == exponent)
            .map_or("", |(suffix, _)| *suffix);
        write!(f, "{mantissa}{suffix}")
    }

    fn write_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mantissa, power) = reduced(self.units(), 1024, 6);
        let suffix = BINARY
            .iter()
            .find(|(_, of)| i32::try_from(*of) == Ok(power))
            .map_or("", |(suffix, _)| *suffix);
        write!(f, "{mantissa}{suffix}")
    }

    /// Whole units, without what is below one.
    fn units(self) -> i128 {
        match i64::try_from(self.nano) {
            Ok(nano) => (nano / ONE_64).into(),
            Err(_) => self.nano / ONE,
        }
    }

    fn style_of_sum(self, other: Self) -> Style {
        if self.is_zero() { other.style } else { self.style }
    }
}

/// The amount divided by `base` as often as it goes without a rest, at most `most` times, and how often that was. Most
/// amounts fit 64 bits, and in WebAssembly a division of 128 bits takes a hundred times as long as one of 64.
fn reduced(amount: i128, base: i64, most: i32) -> (i128, i32) {
    let (mut amount, mut times) = (amount, 0);
    while times < most {
        if let Ok(mut small) = i64::try_from(amount) {
            while times < most && small % base == 0 {
                small /= base;
                times += 1;
            }
            return (small.into(), times);
        }
        if amount % i128::from(base) != 0 {
            break;
        }
        amount /= i128::from(base);
        times += 1;
    }
    (amount, times)
}

impl FromStr for Quantity {
    type Err = NotAQuantity;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| NotAQuantity(text.chars().take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Quantity> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at_checked(end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let unit = Unit::parse(suffix)?;
    let nano = unit.nano(whole, fraction);
    Some(Quantity {
        nano: if text.starts_with('-') { -nano } else { nano },
        style: unit.style,
    })
}

/// What a suffix stands for: `factor` times ten to the `power`.
struct Unit {
    factor: i128,
    power: i64,
    style: Style,
}

impl Unit {
    fn parse(suffix: &str) -> Option<Self> {
        if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some(Self {
                factor: 1,
                power: i64::from(*power),
                style: Style::Decimal,
            });
        }
        if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
            return Some(Self {
                factor: 1024_i128.checked_pow(*power)?,
                power: 0,
                style: Style::Binary,
            });
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let power = digits.parse().unwrap_or(MAX_POWER).min(MAX_POWER);
        let power = if exponent.starts_with('-') { -power } else { power };
        Some(Self {
            factor: 1,
            power,
            style: Style::Exponent,
        })
    }

    /// The amount of a few digits without a point, which is what people write; `None` for everything else.
    fn short(&self, whole: &str, fraction: &str) -> Option<i128> {
        if whole.len() > 15 || !fraction.is_empty() {
            return None;
        }
        let scale = 10_i128.checked_pow(u32::try_from(self.power + 9).ok()?)?;
        let units: i64 = whole.parse().ok()?;
        let nano = i128::from(units).checked_mul(self.factor)?.checked_mul(scale)?;
        Some(nano.min(LARGEST))
    }

    /// The amount of these digits, rounded away from zero to whole nanos and cut to the largest that Kubernetes reads.
    /// Exact for any number of digits.
    fn nano(&self, whole: &str, fraction: &str) -> i128 {
        if let Some(nano) = self.short(whole, fraction) {
            return nano;
        }
        let written = whole.trim_start_matches('0');
        let digits: Vec<i128> = written
            .bytes()
            .chain(fraction.bytes())
            .map(|byte| i128::from(byte - b'0'))
            .collect();
        if digits.iter().all(|&digit| digit == 0) {
            return 0;
        }
        let point = i64::try_from(written.len())
            .unwrap_or(i64::MAX)
            .saturating_add(self.power);
        let (before, after) = digits
            .split_at_checked(usize::try_from(point).unwrap_or(0))
            .unwrap_or((&digits, &[]));

        let mut units: i128 = 0;
        let padding = usize::try_from(point).unwrap_or(0).saturating_sub(digits.len());
        for digit in before.iter().copied().chain(std::iter::repeat_n(0, padding)) {
            units = units * 10 + digit;
            if units > LARGEST / ONE {
                return LARGEST;
            }
        }

        // From the last digit to the point: a tenth of a whole number of nanos, and whether anything was left over.
        let (mut below, mut left_over) = (0, false);
        let zeros = usize::try_from(point.saturating_neg()).unwrap_or(0);
        for digit in after.iter().rev().copied().chain(std::iter::repeat_n(0, zeros)) {
            let tenfold = below + digit * self.factor * ONE;
            left_over |= tenfold % 10 != 0;
            below = tenfold / 10;
        }

        let exact = units
            .checked_mul(self.factor * ONE)
            .and_then(|nano| nano.checked_add(below));
        exact.map_or(LARGEST, |nano| nano.saturating_add(i128::from(left_over)).min(LARGEST))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_whole = self.units() * ONE == self.nano;
        match self.style {
            _ if self.is_zero() => f.write_str("0"),
            Style::Binary if is_whole && self.nano.abs() >= 1024 * ONE => self.write_binary(f),
            Style::Binary => self.write_decimal(f, Style::Decimal),
            style => self.write_decimal(f, style),
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            nano: self.nano.saturating_add(other.nano),
            style: self.style_of_sum(other),
        }
    }
}

impl Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(quantities: I) -> Self {
        quantities.fold(Self::default(), Add::add)
    }
}

impl Mul<i64> for Quantity {
    type Output = Self;

    fn mul(self, factor: i64) -> Self {
        Self {
            nano: self.nano.saturating_mul(i128::from(factor)),
            style: self.style,
        }
    }
}

#[cfg(test)]
mod tests;
