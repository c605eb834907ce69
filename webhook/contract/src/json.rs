//! JSON text that is looked at and not decoded, and how deep it may nest: modules and their host refuse the same, and name
//! the place in the same way.
//!
//! Invariant: nothing here recurses, whatever the bytes are.

/// Levels of objects and arrays that one Kubernetes object, or one JSON value of a module, may nest. The interface text
/// (`wit/interpreter.wit`) names the number. Real Kubernetes objects stay below 50.
pub const MAX_DEPTH: usize = 64;

/// The longest place in a message, in bytes: the beginning says which field it is.
const MAX_PLACE: usize = 103;

/// Cuts a text to at most so many bytes, between characters; a text that was cut ends with `...`.
pub fn cut(text: &mut String, bytes: usize) {
    const MARK: &str = "...";
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
}

/// Appends the step of a JSON pointer (RFC 6901) that leads to `key`.
pub fn push_token(pointer: &mut String, key: &str) {
    pointer.push('/');
    for part in key.chars() {
        match part {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            plain => pointer.push(plain),
        }
    }
}

/// One level that is open where a text is cut.
enum Level<'a> {
    Object { key: &'a [u8] },
    Array { index: usize },
}

/// The JSON pointer to where a beginning of a JSON text ends, cut to 103 bytes. Names in it are as they are written, escapes
/// and all: a message has to be found in the text.
pub fn place(json: &str) -> String {
    let mut levels = Vec::new();
    // The string that was read last, which is a key once a colon follows.
    let mut text: &[u8] = &[];
    for (_, token) in Scan::of(json.as_bytes()) {
        match (token, levels.last_mut()) {
            (Token::Text(found), _) => text = found,
            (Token::Colon, Some(Level::Object { key })) => *key = text,
            (Token::Comma, Some(Level::Array { index })) => *index += 1,
            (Token::Colon | Token::Comma, _) => {}
            (Token::Open(b'{'), _) => levels.push(Level::Object { key: &[] }),
            (Token::Open(_), _) => levels.push(Level::Array { index: 0 }),
            (Token::Close, _) => drop(levels.pop()),
        }
    }
    let mut place = String::new();
    for level in &levels {
        match level {
            Level::Object { key } => {
                let key = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
                push_token(&mut place, str::from_utf8(key).unwrap_or_default());
            }
            Level::Array { index } => push_token(&mut place, &index.to_string()),
        }
        if place.len() > MAX_PLACE {
            break;
        }
    }
    cut(&mut place, MAX_PLACE);
    place
}

/// What [`Scan`] finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token<'a> {
    /// The bracket.
    Open(u8),
    /// A closing bracket.
    Close,
    /// What follows a key.
    Colon,
    /// What is between two values.
    Comma,
    /// A string, with its quotes.
    Text(&'a [u8]),
}

/// Brackets, separators and complete strings, each with where it begins; everything else is passed over.
#[derive(Debug)]
pub struct Scan<'a> {
    json: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// Over a text that need not be valid.
    pub fn of(json: &'a [u8]) -> Self {
        Self { json, at: 0 }
    }

    /// After the closing quote of the string that begins at `start`; `None` where it has none.
    fn text_end(&self, start: usize) -> Option<usize> {
        let mut at = start + 1;
        loop {
            let rest = self.json.get(at..)?;
            let next = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            match rest.get(next) {
                Some(b'"') => return Some(at + next + 1),
                _ => at += next + 2,
            }
        }
    }
}

impl<'a> Iterator for Scan<'a> {
    type Item = (usize, Token<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let start = self.at;
            self.at += 1;
            let token = match self.json.get(start)? {
                bracket @ (b'{' | b'[') => Token::Open(*bracket),
                b'}' | b']' => Token::Close,
                b':' => Token::Colon,
                b',' => Token::Comma,
                b'"' => {
                    self.at = self.text_end(start)?;
                    Token::Text(self.json.get(start..self.at)?)
                }
                _ => continue,
            };
            return Some((start, token));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_text_names_the_depth() {
        let text = include_str!("../../../wit/interpreter.wit");
        assert!(text.contains(&format!("at most {MAX_DEPTH} levels")));
    }
}
