//! Calls a module so that a panic in it is a result. In WebAssembly it would be a trap: the module's fault, and no reason
//! to stop the other tests or to fill the screen.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// What the last guarded panic said; `Some` while this thread is inside [`guarded`].
    static LAST: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Calls `call`; a panic in it becomes a message that says what it said and where.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let taken = LAST.with_borrow_mut(|last| last.as_mut().map(|last| *last = told(info)).is_some());
            if !taken {
                previous(info);
            }
        }));
    });
    LAST.set(Some(String::new()));
    let result = panic::catch_unwind(AssertUnwindSafe(call));
    let said = LAST.take().unwrap_or_default();
    result.map_err(|_| format!("panicked ({said}); in WebAssembly this is a trap"))
}

fn told(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("without a message");
    match info.location() {
        Some(place) => format!("{message} at {}:{}", place.file(), place.line()),
        None => message.to_owned(),
    }
}
