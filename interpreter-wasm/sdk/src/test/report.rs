//! How a failure is shown to the author: file and line first, the line of YAML underlined, a difference in canonical
//! order.

use std::fmt::Write as _;

use similar::TextDiff;

use super::cases::{Case, CaseError, Failure};
use super::yaml::Position;

/// The failure of a case. `text` is the text of its file.
pub fn failure(case: &Case, failure: &Failure, text: &str) -> String {
    let Case {
        file, name, operation, ..
    } = case;
    let mut out = format!(
        "{}:{}: {operation} {name}: {}\n",
        file.display(),
        failure.at.line,
        failure.message
    );
    match &failure.difference {
        Some((expected, got)) => {
            let diff = TextDiff::from_lines(expected.as_str(), got.as_str());
            let _ = write!(out, "{}", diff.unified_diff().header("expected", "got"));
            out.push_str("(if the answer is right: popcell test --bless)\n");
        }
        None => out.push_str(&underlined(text, failure.at)),
    }
    out
}

/// A document that is not a test.
pub fn unreadable(error: &CaseError, text: &str) -> String {
    format!("{error}\n{}", underlined(text, error.at))
}

/// The line of a place, with the value there underlined.
fn underlined(text: &str, at: Position) -> String {
    let Some(line) = at.line.checked_sub(1).and_then(|index| text.lines().nth(index)) else {
        return String::new();
    };
    let before = at.column.saturating_sub(1);
    let value: String = line.chars().skip(before).collect();
    let quote = value.chars().next().filter(|first| matches!(first, '"' | '\''));
    let length = match quote {
        Some(quote) => value
            .chars()
            .skip(1)
            .position(|next| next == quote)
            .map_or(1, |end| end + 2),
        None => value
            .chars()
            .take_while(|next| !next.is_whitespace() && !matches!(next, ',' | '}' | ']'))
            .count(),
    };
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    let marks = "^".repeat(length.max(1));
    format!(
        "{margin} |\n{number} | {line}\n{margin} | {}{marks}\n",
        " ".repeat(before)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underlines_the_value() {
        let text = "name: ready\nspec: {replicas: two, other: 1}\n";
        let shown = underlined(text, Position { line: 2, column: 18 });
        assert_eq!(
            shown,
            "  |\n2 | spec: {replicas: two, other: 1}\n  |                  ^^^\n"
        );
        assert_eq!(underlined(text, Position { line: 9, column: 1 }), "");
        assert!(underlined("a: \"b c\" # d", Position { line: 1, column: 4 }).ends_with("|    ^^^^^\n"));
    }
}
