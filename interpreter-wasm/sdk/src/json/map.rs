//! The fields of an object: in their order, and found by their keys without looking at all of them.
//!
//! Keys have an order that is cheap to make: by a hash, and by the text only where hashes are equal. It means nothing; equal
//! keys stand beside each other, and a key is found by halving. Whoever chooses keys of one hash makes it as dear as an order
//! by text, and no dearer.

use std::sync::OnceLock;

use super::{Json, Key};

/// Objects of fewer fields are searched from end to end.
const SMALL: usize = 16;

/// Fields in their order. A field that was removed stays in its place, marked, so that nothing has to move; of two fields
/// with one key at most one is not removed.
#[derive(Clone, Default)]
pub(crate) struct Map {
    fields: Vec<(Key, Json)>,
    removed: Vec<bool>,
    count: usize,
    index: OnceLock<Index>,
}

/// Finds fields by their keys.
#[derive(Clone, Default)]
struct Index {
    /// So many fields from the first one have keys in ascending order, as Go writes maps.
    ascending: usize,
    /// The others in the order of [`sort_marks`], in runs, each at most half as long as the one before: adding one
    /// merges few.
    runs: Vec<Vec<Marked>>,
}

impl Map {
    /// Of fields with one key the last one stays.
    pub(super) fn of(fields: Vec<(Key, Json)>) -> Self {
        let mut map = Self {
            count: fields.len(),
            fields,
            ..Self::default()
        };
        if !all_differ(&map.fields) && ascending(&map.fields) < map.fields.len() {
            map.remove_duplicates();
        }
        map
    }

    fn remove_duplicates(&mut self) {
        let mut marks = marks(&self.fields, 0);
        sort_marks(&mut marks, |position| key(&self.fields, position));
        let is_earlier = |pair: &[Marked]| match pair {
            [one, next] => key(&self.fields, one.position()) == key(&self.fields, next.position()),
            _ => false,
        };
        let pairs = marks.windows(2).filter(|pair| is_earlier(pair));
        let earlier: Vec<usize> = pairs
            .filter_map(|pair| pair.first().map(|mark| mark.position()))
            .collect();
        for position in earlier {
            self.mark_removed(position);
        }
        self.index = OnceLock::from(Index {
            ascending: 0,
            runs: vec![marks],
        });
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How many places for fields there are, those of removed ones included.
    pub(super) fn places(&self) -> usize {
        self.fields.len()
    }

    /// The field in a place; `None` where it was removed.
    pub(super) fn place(&self, position: usize) -> Option<(&str, &Json)> {
        let (key, value) = self.fields.get(position)?;
        (!self.is_removed(position)).then(|| (key.as_str(), value))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        (0..self.places()).filter_map(|position| self.place(position))
    }

    pub(super) fn get(&self, key: &str) -> Option<&Json> {
        let position = self.find(key)?;
        self.fields.get(position).map(|(_, value)| value)
    }

    /// As [`Map::get`], and looks first at the place after the last find: maps that are compared often have one order.
    pub(crate) fn get_near(&self, key: &str, next: &mut usize) -> Option<&Json> {
        let is_key = |(found, _): &(Key, Json)| found.as_bytes() == key.as_bytes();
        let is_next = !self.is_removed(*next) && self.fields.get(*next).is_some_and(is_key);
        let position = if is_next { *next } else { self.find(key)? };
        *next = position + 1;
        self.fields.get(position).map(|(_, value)| value)
    }

    /// The value of the key, which is made `null` where there was none.
    pub(super) fn get_or_add(&mut self, key: &str) -> Option<&mut Json> {
        let position = match self.any_position(key) {
            Some(position) => {
                if self.is_removed(position) {
                    self.restore(position);
                }
                position
            }
            None => self.push(Key::Owned(key.to_owned()), Json::null()),
        };
        self.fields.get_mut(position).map(|(_, value)| value)
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Json> {
        let position = self.find(key)?;
        self.mark_removed(position);
        self.fields.get_mut(position).map(|(_, value)| std::mem::take(value))
    }

    /// Removes the fields for which `keep` says no.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&str, &Json) -> bool) {
        for position in 0..self.fields.len() {
            let drops = matches!(self.place(position), Some((key, value)) if !keep(key, value));
            if drops {
                self.mark_removed(position);
                if let Some((_, value)) = self.fields.get_mut(position) {
                    *value = Json::null();
                }
            }
        }
    }

    fn push(&mut self, key: Key, value: Json) -> usize {
        let position = self.fields.len();
        self.fields.push((key, value));
        self.count += 1;
        if let Some(index) = self.index.get_mut() {
            index.add(&self.fields, position);
        }
        position
    }

    fn mark_removed(&mut self, position: usize) {
        if self.removed.len() <= position {
            self.removed.resize(self.fields.len(), false);
        }
        if let Some(removed) = self.removed.get_mut(position) {
            self.count -= usize::from(!*removed);
            *removed = true;
        }
    }

    fn restore(&mut self, position: usize) {
        if let Some((_, value)) = self.fields.get_mut(position) {
            *value = Json::null();
        }
        if let Some(removed) = self.removed.get_mut(position) {
            self.count += usize::from(*removed);
            *removed = false;
        }
    }

    fn is_removed(&self, position: usize) -> bool {
        self.removed.get(position).copied().unwrap_or(false)
    }

    fn find(&self, key: &str) -> Option<usize> {
        self.any_position(key).filter(|position| !self.is_removed(*position))
    }

    /// The last place of the key, also of a field that was removed.
    fn any_position(&self, key: &str) -> Option<usize> {
        if self.fields.len() <= SMALL {
            return self
                .fields
                .iter()
                .rposition(|(name, _)| name.as_bytes() == key.as_bytes());
        }
        let index = self.index.get_or_init(|| Index::of(&self.fields));
        index.find(&self.fields, key)
    }
}

fn key(fields: &[(Key, Json)], position: usize) -> &str {
    fields.get(position).map_or("", |(key, _)| key.as_str())
}

fn ascending(fields: &[(Key, Json)]) -> usize {
    let mut before: Option<&[u8]> = None;
    for (position, (key, _)) in fields.iter().enumerate() {
        let key = key.as_bytes();
        if before.is_some_and(|before| before >= key) {
            return position;
        }
        before = Some(key);
    }
    fields.len()
}

/// Whether the lengths and the first and last letters alone tell all keys apart; `false` says nothing.
fn all_differ(fields: &[(Key, Json)]) -> bool {
    let mut seen = 0_u128;
    fields.iter().all(|(key, _)| {
        let key = key.as_bytes();
        let (first, last) = (key.first().copied().unwrap_or(0), key.last().copied().unwrap_or(0));
        let mark = 1 << ((usize::from(first) * 31 + usize::from(last) * 7 + key.len()) % 128);
        let is_new = seen & mark == 0;
        seen |= mark;
        is_new
    })
}

fn marks(fields: &[(Key, Json)], from: usize) -> Vec<Marked> {
    let mark = |position: usize| Marked::new(key(fields, position), u32::try_from(position).unwrap_or(u32::MAX));
    (from..fields.len()).map(mark).collect()
}

impl Index {
    fn of(fields: &[(Key, Json)]) -> Self {
        let ascending = ascending(fields);
        let mut run = marks(fields, ascending);
        sort_marks(&mut run, |position| key(fields, position));
        Self {
            ascending,
            runs: if run.is_empty() { Vec::new() } else { vec![run] },
        }
    }

    /// The last field with the key.
    fn find(&self, fields: &[(Key, Json)], wanted: &str) -> Option<usize> {
        let head = fields.get(..self.ascending).unwrap_or_default();
        let in_head = head
            .partition_point(|(key, _)| key.as_bytes() <= wanted.as_bytes())
            .checked_sub(1);
        let in_head = in_head.filter(|position| key(fields, *position) == wanted);
        let in_runs = self
            .runs
            .iter()
            .filter_map(|run| find_mark(run, wanted, |position| key(fields, position)));
        in_head.into_iter().chain(in_runs).max()
    }

    /// Takes in the field at the last position.
    fn add(&mut self, fields: &[(Key, Json)], position: usize) {
        let rises = position
            .checked_sub(1)
            .is_none_or(|before| key(fields, before) < key(fields, position));
        if position == self.ascending && rises {
            self.ascending += 1;
            return;
        }
        let mut run = vec![Marked::new(
            key(fields, position),
            u32::try_from(position).unwrap_or(u32::MAX),
        )];
        while let Some(mut last) = self.runs.pop_if(|last| last.len() <= 2 * run.len()) {
            last.append(&mut run);
            sort_marks(&mut last, |position| key(fields, position));
            run = last;
        }
        self.runs.push(run);
    }
}

/// 32 bits of a key.
fn hash(key: &str) -> u32 {
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

    fn hash(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is a position of 32 bits")]
    pub(super) fn position(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }
}

/// Sorts by hash, then key, then position. `key` gives the key at a position.
pub(super) fn sort_marks<'a>(marks: &mut [Marked], key: impl Fn(usize) -> &'a str) {
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
fn find_mark<'a>(marks: &[Marked], wanted: &str, key: impl Fn(usize) -> &'a str) -> Option<usize> {
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
            sort_marks(&mut marks, key);
            for wanted in keys.iter().chain([&other]) {
                prop_assert_eq!(find_mark(&marks, wanted, key), keys.iter().rposition(|key| key == wanted));
            }
        }

        #[test]
        fn keys_of_one_hash_are_distinguished(keys in prop::collection::vec("[a-c]{0,2}", 1..30)) {
            // As if all hashes were equal: only the texts decide.
            let key = |position: usize| keys[position].as_str();
            let mut marks: Vec<Marked> = (0..keys.len()).map(|position| Marked(position as u64)).collect();
            sort_marks(&mut marks, key);
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
