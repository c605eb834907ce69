//! Where a command reads and writes, so that tests can stand in for the terminal; what an interrupted one says; and tables as
//! people read them, with ages as `kubectl` shows them.

use std::{
    io::{self, Read, Write},
    sync::Mutex,
};

use itertools::Itertools as _;
use jiff::Timestamp;
use popcell_client::sync::lock;
pub use popcell_core::rejection::shown;

/// Standard streams of one run.
pub struct Console {
    /// Results: what scripts read.
    pub out: Box<dyn Write>,
    /// Progress and remarks: what people read.
    pub err: Box<dyn Write>,
    /// Read by `-`.
    pub stdin: Box<dyn Read>,
}

impl Console {
    /// The streams of this process.
    pub fn standard() -> Self {
        Self {
            out: Box::new(std::io::stdout()),
            err: Box::new(std::io::stderr()),
            stdin: Box::new(std::io::stdin()),
        }
    }
}

static LAST_WORDS: Mutex<Option<String>> = Mutex::new(None);

/// From now on an interrupt says this before the process ends.
pub fn leave(words: String) {
    *lock(&LAST_WORDS) = Some(words);
}

/// What was last left to be said.
pub fn last_words() -> Option<String> {
    lock(&LAST_WORDS).clone()
}

/// Writes the lines, heads included, each as a row of columns that are as wide as they need to be; nothing follows the last
/// one. What of a text would steer a terminal is escaped. comfy-table would bring three crates for these few lines.
pub(crate) fn write_table<const N: usize>(lines: &[[String; N]], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<[String; N]> = lines
        .iter()
        .map(|line| line.each_ref().map(|cell| shown(cell)))
        .collect();
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    for line in &lines {
        let mut cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// How long ago, in the largest unit that gives at least 2.
pub(crate) fn age(created: Option<Timestamp>, now: Timestamp) -> String {
    let Some(created) = created else {
        return "-".to_owned();
    };
    let seconds = now.as_second().saturating_sub(created.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Namespace and name, or the name alone.
pub(crate) fn address(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_does_not_steer_the_terminal_and_its_columns_line_up() {
        let lines = [["A", "B"], ["a\u{1b}[2Jb", "c"], ["é\u{202e}", "\nd"]].map(|line| line.map(str::to_owned));
        let mut out = Vec::new();
        write_table(&lines, &mut out).unwrap();
        let expected = "A            B\na\\u{1b}[2Jb  c\né\\u{202e}    \\nd\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
