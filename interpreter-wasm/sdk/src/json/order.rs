//! An order of keys that is cheap to make: by a hash, and by the text only where hashes are equal.
//!
//! The order means nothing; equal keys stand beside each other, and a key is found by halving. Whoever chooses keys of one
//! hash makes it as dear as an order by text, and no dearer.

/// 32 bits of a key.
pub(super) fn hash(key: &str) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state ^ word).wrapping_mul(MULTIPLIER).rotate_left(29);
    let (words, rest) = key.as_bytes().as_chunks::<8>();
    let mut state = key.len() as u64;
    for word in words {
        state = mix(state, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    state = mix(mix(state, u64::from_le_bytes(last)), MULTIPLIER);
    (state >> 32) as u32
}

/// A key by its hash and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Marked(u64);

impl Marked {
    pub(super) fn new(key: &str, position: u32) -> Self {
        Self(u64::from(hash(key)) << 32 | u64::from(position))
    }

    pub(super) fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is a position of 32 bits")]
    pub(super) fn position(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// Sorts by hash, then key, then position. `key` gives the key at a position.
pub(super) fn sort<'a>(marks: &mut [Marked], key: impl Fn(usize) -> &'a str) {
    // Numbers: by hash and position.
    marks.sort_unstable();
    for equal in marks.chunk_by_mut(|one, next| one.hash() == next.hash()) {
        if equal.len() > 1 {
            // Stable: positions stay in their order.
            equal.sort_by(|one, next| key(one.position()).cmp(key(next.position())));
        }
    }
}

/// The last position of the key among sorted marks.
pub(super) fn find<'a>(marks: &[Marked], wanted: &str, key: impl Fn(usize) -> &'a str) -> Option<usize> {
    let wanted_hash = hash(wanted);
    let is_not_after = |mark: &Marked| match mark.hash().cmp(&wanted_hash) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Greater => false,
        std::cmp::Ordering::Equal => key(mark.position()) <= wanted,
    };
    let last = marks.get(marks.partition_point(is_not_after).checked_sub(1)?)?;
    (last.hash() == wanted_hash && key(last.position()) == wanted).then(|| last.position())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_the_last_of_each_key(keys in prop::collection::vec("[a-c]{0,2}|[a-z]{7,9}", 0..60), other in "[a-d]{0,3}") {
            let key = |position: usize| keys[position].as_str();
            let mut marks: Vec<Marked> =
                keys.iter().enumerate().map(|(position, key)| Marked::new(key, u32::try_from(position).unwrap())).collect();
            sort(&mut marks, key);
            for wanted in keys.iter().chain([&other]) {
                prop_assert_eq!(find(&marks, wanted, key), keys.iter().rposition(|key| key == wanted));
            }
        }

        #[test]
        fn keys_of_one_hash_are_distinguished(keys in prop::collection::vec("[a-c]{0,2}", 1..30)) {
            // As if all hashes were equal: only the texts decide.
            let key = |position: usize| keys[position].as_str();
            let mut marks: Vec<Marked> = (0..keys.len()).map(|position| Marked(position as u64)).collect();
            sort(&mut marks, key);
            let sorted: Vec<&str> = marks.iter().map(|mark| key(mark.position())).collect();
            prop_assert!(sorted.is_sorted());
        }
    }

    #[test]
    fn hashes_differ_where_keys_do_not_much() {
        let hashes: std::collections::BTreeSet<u32> =
            (0..10_000).map(|number| hash(&format!("key-{number}"))).collect();
        assert!(hashes.len() > 9_990, "{}", hashes.len());
        assert_ne!(hash("a"), hash("a\0"));
    }
}
