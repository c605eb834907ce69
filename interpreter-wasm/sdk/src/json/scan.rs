//! One pass over JSON text (RFC 8259): checks all of it and notes where every object and array ends.
//!
//! The notes are a flat list in the order of the text (a "tape"), so that a part that is not read (managedFields) costs
//! its length and no more, and a walk over the values of one object or array steps over what is inside them. Strings and
//! numbers are not noted: their end is found again by whoever walks, and a list of numbers would need ten times its text.

use popcell_contract::json::{MAX_DEPTH, place};

/// Where one object or array ends. It begins where a walk finds it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// After the last byte.
    pub(super) end: u32,
    /// Index of the entry after this value and all that is inside it.
    pub(super) next: u32,
}

/// Whether a byte may stand between two values.
pub(super) fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':')
}

/// How many bytes the string has that begins the text, quotes included, and whether it has escapes. The text is valid.
pub(super) fn string_length(text: &[u8]) -> (usize, bool) {
    let (mut at, mut escaped) = (1, false);
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let plain = plain(rest);
        at += plain;
        match rest.get(plain) {
            Some(b'\\') => {
                escaped = true;
                // What follows a backslash is no end, and the digits after a `u` are plain.
                at += 2;
            }
            Some(_) => return (at + 1, escaped),
            None => return (text.len(), escaped),
        }
    }
}

/// How many bytes the number or word has that begins the text. The text is valid.
pub(super) fn scalar_length(text: &[u8]) -> usize {
    let is_end = |byte: &u8| is_between(*byte) || matches!(byte, b'}' | b']');
    text.iter().position(is_end).unwrap_or(text.len())
}

/// Bytes up to the first that means something in a string: its end, an escape, or a control character, which is none.
fn plain(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return index * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let tail = rest
        .iter()
        .position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
    words.len() * 8 + tail.unwrap_or(rest.len())
}

/// The lowest bit that is set lies in the lowest of the eight bytes that is a quote, a backslash or a control character;
/// none is set where there is none. (Higher bits may be wrong: subtracting borrows from the next byte.)
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let below = |word: u64, limit: u8| word.wrapping_sub(ONES * u64::from(limit)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, 0x20) | equal(b'"') | equal(b'\\')) & HIGH
}

/// Why a text cannot be read: the pointer to the place, where it is known, and a message that names the byte.
pub(super) struct Unreadable {
    pub(super) place: String,
    pub(super) message: String,
}

/// The tape of one JSON text: the root first.
pub(super) fn scan(text: &str) -> Result<Vec<Entry>, Unreadable> {
    // As many entries as opening brackets, at most, and each needs a closing one: a vector that grows has up to three
    // times its memory for a moment.
    let brackets = text.bytes().filter(|byte| matches!(byte, b'{' | b'[')).count();
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        tape: Vec::with_capacity(brackets.min(text.len() / 2)),
    };
    scanner.document().map_err(|problem| match problem.expected {
        TOO_DEEP => Unreadable {
            place: place(text.get(..problem.at).unwrap_or_default()),
            message: format!("nested deeper than {MAX_DEPTH} levels at byte {}", problem.at),
        },
        expected => Unreadable {
            place: String::new(),
            message: format!("not JSON at byte {}: expected {expected}", problem.at),
        },
    })?;
    Ok(scanner.tape)
}

const TOO_DEEP: &str = "less depth";

struct Problem {
    at: usize,
    expected: &'static str,
}

type Scanned = Result<(), Problem>;

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    tape: Vec<Entry>,
}

impl Scanner<'_> {
    fn document(&mut self) -> Scanned {
        self.value()?;
        match self.next_token() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the text")),
        }
    }

    fn value(&mut self) -> Scanned {
        match self.next_token() {
            Some(b'"') => self.string(),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.expected("a value")),
        }
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Scanned) -> Scanned {
        if self.depth == MAX_DEPTH {
            return Err(self.expected(TOO_DEEP));
        }
        let index = self.open();
        self.depth += 1;
        self.at += 1;
        inside(self)?;
        self.at += 1;
        self.depth -= 1;
        self.close(index);
        Ok(())
    }

    fn object(&mut self) -> Scanned {
        if self.next_token() == Some(b'}') {
            return Ok(());
        }
        loop {
            if self.next_token() != Some(b'"') {
                return Err(self.expected("a key in quotes"));
            }
            self.string()?;
            if self.next_token() != Some(b':') {
                return Err(self.expected("a colon"));
            }
            self.at += 1;
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b'}') => return Ok(()),
                _ => return Err(self.expected("a comma or the end of the object")),
            }
        }
    }

    fn array(&mut self) -> Scanned {
        if self.next_token() == Some(b']') {
            return Ok(());
        }
        loop {
            self.value()?;
            match self.next_token() {
                Some(b',') => self.at += 1,
                Some(b']') => return Ok(()),
                _ => return Err(self.expected("a comma or the end of the array")),
            }
        }
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = plain(rest);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                _ => return Err(self.expected("the end of the string")),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Scanned {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.expected("four hexadecimal digits"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.expected("an escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scanned {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.expected("a digit"));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Scanned {
        if !self.bytes.get(self.at..).unwrap_or_default().starts_with(word) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn open(&mut self) -> usize {
        let index = self.tape.len();
        self.tape.push(Entry { end: 0, next: 0 });
        index
    }

    fn close(&mut self, index: usize) {
        // The text was found short enough for 32 bits.
        let short = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let next = short(self.tape.len());
        if let Some(entry) = self.tape.get_mut(index) {
            entry.end = short(self.at);
            entry.next = next;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn expected(&self, expected: &'static str) -> Problem {
        Problem { at: self.at, expected }
    }
}
