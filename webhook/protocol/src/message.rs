//! Messages for Karmada: they end in its events.

/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 256;

/// The text in one line of at most [`MAX_MESSAGE`] bytes.
pub fn one_line(text: String) -> String {
    let mut line = if text.contains(char::is_control) {
        text.replace(char::is_control, " ")
    } else {
        text
    };
    cut(&mut line, MAX_MESSAGE);
    line
}

/// Cuts a text to at most so many bytes, between characters; a text that was cut ends with `...`.
pub fn cut(text: &mut String, bytes: usize) {
    const MARK: &str = "...";
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
}
