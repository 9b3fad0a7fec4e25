//! Panics of a lane: in this worker's own code, or in the library's.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

/// The message of a lane's panic.
#[derive(Clone, Default)]
pub struct Panic {
    pub text: String,
    /// Whether this package's code panicked, such as a client file.
    pub own: bool,
}

impl Panic {
    /// The kind of the answer `error`.
    pub fn kind(&self) -> &'static str {
        if self.own { "internal" } else { "client" }
    }
}

thread_local! {
    static LAST: RefCell<Panic> = RefCell::default();
}

/// Note where each panic comes from, besides printing it on stderr.
pub fn watch() {
    let print = take_hook();
    set_hook(Box::new(move |info| {
        print(info);
        let file = info.location().map_or("", |location| location.file());
        let own = file.starts_with("src/") || file.starts_with(env!("CARGO_MANIFEST_DIR"));
        LAST.with_borrow_mut(|last| *last = Panic { text: info.to_string(), own });
    }));
}

/// The value of a function, or the message of its panic.
pub fn caught<T>(function: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(function)).map_err(|_| LAST.with_borrow(Panic::clone))
}
