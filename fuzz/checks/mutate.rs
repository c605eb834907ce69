//! Variants of the files of a corpus, for where there is no fuzzer: the same ones in each run.

/// Numbers that look like chance.
pub struct Mutator(u64);

/// What a mutation puts in: the marks of JSON, of pointers, and bytes that are none.
const PARTS: [&[u8]; 24] = [
    b"{", b"}", b"[", b"]", b"\"", b",", b":", b"\\", b"\\u00e9", b"\\ud800", b"null", b"true", b"0", b"-1", b"1e9",
    b"1.50", b"{}", b"[]", b"\"\":", b"/", b"~", b"//", b"\0", b"\xff",
];

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit.max(1)
    }

    /// One to four changes: bytes put in, taken out, repeated, or taken from another text.
    pub fn mutated(&mut self, text: &[u8], other: &[u8]) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..=self.below(4) {
            let (from, to) = {
                let (one, two) = (self.below(text.len() + 1), self.below(text.len() + 1));
                (one.min(two), one.max(two).min(one.min(two) + 40))
            };
            let new = match self.below(5) {
                0 => Vec::new(),
                1 => [&text[from..to], &text[from..to]].concat(),
                2 => {
                    let start = self.below(other.len() + 1);
                    other[start..(start + self.below(60)).min(other.len())].to_vec()
                }
                _ => PARTS[self.below(PARTS.len())].to_vec(),
            };
            let to = if self.below(2) == 0 { from } else { to };
            text.splice(from..to, new);
            text.truncate(1 << 14);
        }
        text
    }
}
