use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn canonical_form_is_kubernetes() {
    // Pairs from the tests and documentation of k8s.io/apimachinery/pkg/api/resource.
    for (text, canonical) in [
        ("0", "0"),
        ("0m", "0"),
        ("0Ki", "0"),
        ("+0.0", "0"),
        ("1", "1"),
        ("1.", "1"),
        (".5", "500m"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("500m", "500m"),
        ("1000m", "1"),
        ("1000", "1k"),
        ("1001", "1001"),
        ("100000", "100k"),
        ("-1000", "-1k"),
        ("-1.5Gi", "-1536Mi"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("1Ki", "1Ki"),
        ("1000Ki", "1000Ki"),
        ("0.5Mi", "512Ki"),
        ("0.0009765625Ki", "1"),
        ("0.1Ki", "102400m"),
        ("2e3", "2e3"),
        ("12e5", "1200e3"),
        ("1E3", "1e3"),
        ("1e-3", "1e-3"),
        ("1e0", "1"),
        ("1E", "1E"),
        ("1n", "1n"),
        ("1u", "1u"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("9Ei", "9223372036854775807"),
        ("10E", "9223372036854775807"),
        ("1e9999999999999", "9223372036854775807e0"),
        ("1e-99999999999", "1e-9"),
        ("00000000000000000000000000000000000000001", "1"),
        ("1234567890123.123456789", "1234567890123123456789n"),
    ] {
        let canonical = canonical.trim_end_matches("e0");
        assert_eq!(read(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn amounts_are_exact_and_cut_to_what_kubernetes_reads() {
    for (text, amount) in [
        ("0e99", 0),
        ("500m", ONE / 2),
        ("+1.5Gi", GIB * 3 / 2),
        ("-1", -ONE),
        ("0.1n", 1),
        ("1e-99", 1),
        ("123456789012345678901n", 123_456_789_012_345_678_901),
        ("1e99", LARGEST),
        ("-1e99", -LARGEST),
        ("9999999999999999999Ei", LARGEST),
    ] {
        assert_eq!(nano(text), Some(amount), "{text}");
    }
    assert_eq!(nano("lots"), None);
}

#[test]
fn what_is_no_quantity_is_refused() {
    for text in [
        "", "-", "+", ".", "m", "1.2.3", "1mm", "1 ", " 1", "1ki", "1K", "1e", "1e1.5", "Gi", "lots", "1e+", "e3",
        "1e3m", "--1", "1Kie3", "٣",
    ] {
        assert!(text.parse::<Quantity>().is_err(), "{text:?}");
    }
}

#[test]
fn arithmetic_is_exact_and_keeps_the_style() {
    assert_eq!((read("0.1") + read("0.2")).to_string(), "300m");
    assert_eq!((read("512Mi") + read("0.5Gi")).to_string(), "1Gi");
    assert_eq!((read("0") + read("1Gi")).to_string(), "1Gi");
    assert_eq!((read("250m") * 4).to_string(), "1");
    assert_eq!(
        ["1Gi", "512Mi"].map(read).into_iter().sum::<Quantity>().to_string(),
        "1536Mi"
    );
    assert_eq!(read("1Ki"), read("1024"));
    assert!(read("999m") < read("1"));
    assert!(read("1Gi") > read("1G"));
    assert!(
        (read("8E") * i64::MAX) * i64::MAX > read("8E"),
        "stops at the end, does not turn round"
    );
}

fn texts() -> impl Strategy<Value = String> {
    (
        "[-+]?([0-9]{1,12}(\\.[0-9]{0,12})?|\\.[0-9]{1,12})",
        prop::sample::select(vec![
            "", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E-2", "e+1",
        ]),
    )
        .prop_map(|(number, suffix)| format!("{number}{suffix}"))
}

proptest! {
    #[test]
    fn canonical_text_means_the_same(text in texts()) {
        let quantity = read(&text);
        let canonical = quantity.to_string();
        prop_assert_eq!(read(&canonical), quantity);
        prop_assert_eq!(read(&canonical).to_string(), canonical);
    }

    #[test]
    fn addition_is_a_commutative_group(a in texts(), b in texts(), c in texts()) {
        let (a, b, c) = (read(&a), read(&b), read(&c));
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!((a + b) + c, a + (b + c));
        prop_assert_eq!(a + Quantity::default(), a);
        prop_assert_eq!(a + a * -1, Quantity::default());
    }

    #[test]
    fn multiplication_is_repeated_addition(text in texts(), n in 0_i64..20) {
        let quantity = read(&text);
        let sum: Quantity = (0..n).map(|_| quantity).sum();
        prop_assert_eq!(quantity * n, sum);
    }

    #[test]
    fn few_digits_and_many_mean_the_same(number in 0_i64..1_000_000_000_000, suffix in "(|n|u|m|k|M|G|E|Ki|Mi|Gi|Ei|e3|e-2|E12)") {
        let text = format!("{number}{suffix}");
        let padded = format!("{}{text}", "0".repeat(16));
        prop_assert_eq!(read(&text), read(&padded));
        prop_assert_eq!(read(&text).to_string(), read(&padded).to_string());
    }

    #[test]
    fn no_text_panics(text in "[-+.0-9eEinukKmMGTP]{0,40}") {
        let _ = text.parse::<Quantity>();
    }
}
