//! Names from outside, as they may stand in a line of a log.

use std::fmt::{self, Write};

/// So many characters of a name are shown: the longest that Kubernetes accepts.
pub const LONGEST: usize = 253;

/// A text from outside: in one line, without control characters, cut at [`LONGEST`] characters.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(&'a str);

/// Shows a text from outside in a log.
pub fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut letters = self.0.chars();
        for letter in letters.by_ref().take(LONGEST) {
            if is_plain(letter) {
                f.write_char(letter)?;
            } else {
                write!(f, "{}", letter.escape_unicode())?;
            }
        }
        match letters.next() {
            Some(_) => f.write_str("..."),
            None => Ok(()),
        }
    }
}

/// Whether a letter only shows itself: no control, no line of its own, no change of direction, nothing invisible.
fn is_plain(letter: char) -> bool {
    !(letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_line_and_cut() {
        for (text, expected) in [
            ("", ""),
            ("web-1", "web-1"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("a\nlevel=ERROR", "a\\u{a}level=ERROR"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b\u{200b}\u{85}", "a\\u{202e}b\\u{200b}\\u{85}"),
        ] {
            assert_eq!(shown(text).to_string(), expected);
        }
        let longest = "\u{e9}".repeat(LONGEST);
        assert_eq!(shown(&longest).to_string(), longest);
        assert_eq!(shown(&format!("{longest}x")).to_string(), format!("{longest}..."));
    }
}
