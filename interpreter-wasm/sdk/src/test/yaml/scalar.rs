//! What a scalar means. The rules are those of the reader that Kubernetes and Karmada use (sigs.k8s.io/yaml, YAML 1.1
//! as go-yaml v2 reads it), so that a file means the same here and there; only numbers keep more of what was written.

/// A scalar with its meaning.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    /// In JSON's grammar.
    Number(String),
    Text(String),
}

/// The meaning of `text`. `plain` = written without quotes; `tag` = the name after `!!`, if there is one.
pub(super) fn resolve(text: &str, plain: bool, tag: Option<&str>) -> Result<Scalar, String> {
    match tag {
        Some("str") => Ok(Scalar::Text(text.to_owned())),
        Some("null" | "bool" | "int" | "float") => tagged(text, tag.unwrap_or_default()),
        Some(_) => Err("only the tags !!str, !!int, !!float, !!bool and !!null are understood".to_owned()),
        None if plain => untagged(text),
        None => Ok(Scalar::Text(text.to_owned())),
    }
}

/// The key of a mapping that `text` writes: Kubernetes turns what is no text into the text that JSON would have of it, so
/// that `on: 1` and `yes: 1` have the key `true`, and `0x10: 1` has the key `16`.
pub(super) fn key(text: &str, plain: bool, tag: Option<&str>) -> Result<String, String> {
    match resolve(text, plain, tag)? {
        Scalar::Text(text) => Ok(text),
        Scalar::Bool(value) => Ok(value.to_string()),
        Scalar::Number(digits) if digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok() => Ok(digits),
        Scalar::Number(_) => Err(format!(
            "the key {text} is a number that is no integer of 64 bits, and its digits would change: put it in quotes"
        )),
        Scalar::Null => Err(format!("the key {text:?} is null, which is no key: put it in quotes")),
    }
}

fn tagged(text: &str, tag: &str) -> Result<Scalar, String> {
    let scalar = untagged(text)?;
    let fits = match &scalar {
        Scalar::Null => tag == "null",
        Scalar::Bool(_) => tag == "bool",
        Scalar::Number(digits) => tag == "float" || (tag == "int" && !digits.contains(['.', 'e', 'E'])),
        Scalar::Text(_) => false,
    };
    if fits {
        Ok(scalar)
    } else {
        Err(format!("{text:?} is not a {tag}"))
    }
}

fn untagged(text: &str) -> Result<Scalar, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" | "true" | "True" | "TRUE" => Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" | "false" | "False" | "FALSE" => Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf"
        | "-.INF" => return Err(format!("{text} cannot be written as JSON")),
        _ => match number(text) {
            Some(digits) => Scalar::Number(digits),
            None => Scalar::Text(text.to_owned()),
        },
    })
}

/// The number that `text` writes, in JSON's grammar.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return None;
    }
    let plain = text.replace('_', "");
    let (sign, body) = match plain.as_bytes().first()? {
        b'-' => ("-", plain.get(1..)?),
        b'+' => ("", plain.get(1..)?),
        _ => ("", plain.as_str()),
    };
    let digits = with_radix(body).or_else(|| decimal(body))?;
    if digits == "0" {
        Some(digits)
    } else {
        Some(format!("{sign}{digits}"))
    }
}

/// `0x1f`, `0o17`, `017` and `0b11`, as decimal digits.
fn with_radix(body: &str) -> Option<String> {
    let rest = body.strip_prefix('0')?;
    let (radix, digits) = match rest.as_bytes().first()? {
        b'x' | b'X' => (16, rest.get(1..)?),
        b'o' | b'O' => (8, rest.get(1..)?),
        b'b' | b'B' => (2, rest.get(1..)?),
        _ => (8, rest),
    };
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(|value| value.to_string())
}

/// Decimal integers of any length and decimal fractions.
fn decimal(body: &str) -> Option<String> {
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (body, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || (whole.is_empty() && fraction.is_none_or(str::is_empty)) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let mut digits = String::from(if whole.is_empty() { "0" } else { whole });
    if let Some(fraction) = fraction {
        if !all_digits(fraction) {
            return None;
        }
        digits.push('.');
        digits.push_str(if fraction.is_empty() { "0" } else { fraction });
    }
    if let Some(exponent) = exponent {
        let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if unsigned.is_empty() || !all_digits(unsigned) {
            return None;
        }
        digits.push('e');
        digits.push_str(exponent);
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        resolve(text, true, None).unwrap()
    }

    #[test]
    fn reads_numbers_as_kubernetes_does() {
        for (text, digits) in [
            ("0", "0"),
            ("-0", "0"),
            ("+5", "5"),
            ("1_000", "1000"),
            ("0x1F", "31"),
            ("0o17", "15"),
            ("017", "15"),
            ("0b101", "5"),
            ("089", "89"),
            ("1.50", "1.50"),
            (".5", "0.5"),
            ("5.", "5.0"),
            ("1e3", "1e3"),
            ("-1.5E-3", "-1.5e-3"),
            ("9223372036854775808", "9223372036854775808"),
        ] {
            assert_eq!(plain(text), Scalar::Number(digits.to_owned()), "{text}");
        }
    }

    #[test]
    fn keys_are_what_kubernetes_makes_of_them() {
        for (written, read) in [
            ("y", "true"),
            ("Yes", "true"),
            ("on", "true"),
            ("TRUE", "true"),
            ("n", "false"),
            ("no", "false"),
            ("off", "false"),
            ("False", "false"),
            ("1", "1"),
            ("-0", "0"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("18446744073709551615", "18446744073709551615"),
            ("only", "only"),
            ("1.2.3", "1.2.3"),
        ] {
            assert_eq!(key(written, true, None).as_deref(), Ok(read), "{written}");
            assert_eq!(key(written, false, None).as_deref(), Ok(written), "quoted {written}");
        }
        for written in ["1.5", "1e3", "18446744073709551616", "~", "null", "", ".inf"] {
            let refused = key(written, true, None).unwrap_err();
            assert!(refused.contains(written), "{refused}");
        }
        assert_eq!(key("on", true, Some("str")).as_deref(), Ok("on"));
    }

    #[test]
    fn leaves_what_only_looks_like_a_number() {
        for text in [
            "1.2.3",
            "10m",
            "1Gi",
            "2023-04-06T15:01:47Z",
            "-",
            "+",
            ".",
            "e3",
            "1e",
            "0x",
            "1:30",
            "_1",
            "--1",
        ] {
            assert_eq!(plain(text), Scalar::Text(text.to_owned()), "{text}");
        }
    }

    #[test]
    fn refuses_a_tag_that_does_not_fit() {
        assert_eq!(resolve("x", true, Some("int")).unwrap_err(), "\"x\" is not a int");
        assert_eq!(resolve("1.5", true, Some("int")).unwrap_err(), "\"1.5\" is not a int");
        assert_eq!(
            resolve("1", false, Some("int")).unwrap(),
            Scalar::Number("1".to_owned())
        );
        assert!(resolve("x", true, Some("binary")).is_err());
    }
}
