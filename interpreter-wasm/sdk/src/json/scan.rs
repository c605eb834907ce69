//! One pass over JSON text (RFC 8259): checks all of it and notes where every value and key lies.
//!
//! The notes are a flat list in the order of the text (a "tape"), so that reading an object allocates twice, whatever
//! its size, and a part that nobody looks at (managedFields) costs its length and no more.

use super::MAX_DEPTH;
/// Where one value or key lies in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// First byte; of a string its opening quote.
    pub(super) start: usize,
    /// After the last byte.
    pub(super) end: usize,
    /// Index of the entry after this value and all that is inside it.
    pub(super) next: usize,
    /// A string with escapes, which has to be decoded.
    pub(super) escaped: bool,
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

/// The tape of one JSON text: the root first; the entries of an object are key, value, key, value. The error is a message
/// that names the byte.
pub(super) fn scan(text: &str) -> Result<Vec<Entry>, String> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        depth: 0,
        tape: Vec::with_capacity(text.len() / 12 + 8),
    };
    scanner.document().map_err(|problem| match problem.expected {
        TOO_DEEP => format!("nested deeper than {MAX_DEPTH} levels at byte {}", problem.at),
        expected => format!("not JSON at byte {}: expected {expected}", problem.at),
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
        let index = self.open();
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let plain = plain(rest);
            self.at += plain;
            match rest.get(plain) {
                Some(b'"') => break,
                Some(b'\\') => {
                    if let Some(entry) = self.tape.get_mut(index) {
                        entry.escaped = true;
                    }
                    self.escape()?;
                }
                _ => return Err(self.expected("the end of the string")),
            }
        }
        self.at += 1;
        self.close(index);
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
        let index = self.open();
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
        self.close(index);
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
        let index = self.open();
        self.at += word.len();
        self.close(index);
        Ok(())
    }

    fn open(&mut self) -> usize {
        let index = self.tape.len();
        self.tape.push(Entry {
            start: self.at,
            end: self.at,
            next: index + 1,
            escaped: false,
        });
        index
    }

    fn close(&mut self, index: usize) {
        let next = self.tape.len();
        if let Some(entry) = self.tape.get_mut(index) {
            entry.end = self.at;
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
