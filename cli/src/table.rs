//! Tables as people read them: two blanks between columns that are as wide as they need to be, ages as `kubectl` shows them, and
//! addresses of objects.
//! comfy-table would bring three crates for these few lines.

use std::io::{self, Write};

use jiff::Timestamp;

/// Writes the lines, heads included, each as a row; nothing follows the last column.
pub(crate) fn write<const N: usize>(lines: &[[String; N]], out: &mut dyn Write) -> io::Result<()> {
    let mut widths = [0; N];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    for line in lines {
        let cells = line.iter().zip(widths);
        let cells: Vec<_> = cells.map(|(cell, width)| format!("{cell:<width$}")).collect();
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
