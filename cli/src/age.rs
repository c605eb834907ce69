//! Ages, as people read them.

use jiff::Timestamp;

/// How long ago, in the largest unit that gives at least 2, as `kubectl` shows ages.
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
