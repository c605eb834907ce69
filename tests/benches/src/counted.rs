//! What the controller's own metrics count.

use std::collections::BTreeMap;

use popcell_test_support::probe::{label, samples};

/// Samples of `popcell_writes_total`, by their labels as words: plane, verb, kind, code.
#[must_use]
pub fn writes(page: &str) -> BTreeMap<String, f64> {
    let named = samples(page, "popcell_writes_total").filter_map(|(labels, value)| {
        let [plane, verb, kind, code] = ["plane_kind", "verb", "kind", "code"].map(|name| label(labels, name));
        Some((format!("{} {} {} {}", plane?, verb?, kind?, code?), value))
    });
    named.collect()
}

/// Reconciles by reconciler, with any outcome.
#[must_use]
pub fn reconciles(page: &str) -> BTreeMap<String, f64> {
    let mut found = BTreeMap::new();
    for (labels, value) in samples(page, "popcell_reconciles_total") {
        let reconciler = label(labels, "reconciler").unwrap_or_default();
        *found.entry(reconciler.to_owned()).or_insert(0.0) += value;
    }
    found
}

/// What grew from then to now, divided by a number of objects; what did not grow is skipped.
#[must_use]
pub fn grown(now: &BTreeMap<String, f64>, then: &BTreeMap<String, f64>, objects: usize) -> BTreeMap<String, f64> {
    let each = now.iter().map(|(key, now)| {
        let then = then.get(key).copied().unwrap_or_default();
        (key.clone(), share(now - then, objects))
    });
    each.filter(|(_, count)| *count > 0.0).collect()
}

/// A count for each of a number of objects.
#[must_use]
pub fn share(count: f64, objects: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "there are few")]
    let objects = objects as f64;
    count / objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_named_by_their_labels() {
        let page = "# TYPE popcell_writes_total counter\n\
                    popcell_writes_total{plane_kind=\"hub\",kind=\"Namespace\",verb=\"create\",code=\"201\"} 3\n";
        assert_eq!(
            writes(page),
            BTreeMap::from([("hub create Namespace 201".to_owned(), 3.0)])
        );
    }

    #[test]
    fn reconciles_are_summed_over_outcomes() {
        let page = "popcell_reconciles_total{reconciler=\"claim\",outcome=\"unchanged\"} 3\n\
                    popcell_reconciles_total{reconciler=\"claim\",outcome=\"written\"} 2\n";
        assert_eq!(reconciles(page), BTreeMap::from([("claim".to_owned(), 5.0)]));
    }

    #[test]
    fn what_grew_is_shared_out() {
        let of = |count: f64| BTreeMap::from([("a".to_owned(), count), ("b".to_owned(), 1.0)]);
        assert_eq!(grown(&of(9.0), &of(1.0), 4), BTreeMap::from([("a".to_owned(), 2.0)]));
    }
}
