//! The status of the functions for C, and the text of the last failure.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io::{self, ErrorKind};

pub const OK: c_int = 0;
pub const NOT_FOUND: c_int = 1;
pub const EXISTS: c_int = 2;
pub const NO_ROOM: c_int = 3;
pub const BUFFER: c_int = 4;
pub const NOT_A_NUMBER: c_int = 5;
pub const INVALID: c_int = -1;
pub const SYSTEM: c_int = -2;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// The status, with a text for `cm_store_error`.
pub fn failed(status: c_int, text: impl Into<Vec<u8>>) -> c_int {
    let text = CString::new(text).unwrap_or_default();
    ERROR.with_borrow_mut(|error| *error = text);
    status
}

fn refused(error: &io::Error) -> c_int {
    let status = match error.kind() {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::AlreadyExists => EXISTS,
        ErrorKind::InvalidInput => INVALID,
        _ => SYSTEM,
    };
    failed(status, error.to_string())
}

/// The status of a call that succeeds or is refused.
pub fn status(result: io::Result<()>) -> c_int {
    result.map_or_else(|error| refused(&error), |()| OK)
}

/// Why the last call on this thread failed; valid until the next that fails.
pub fn last_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}
