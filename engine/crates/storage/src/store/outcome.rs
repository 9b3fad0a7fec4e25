//! Modes of storing, outcomes of commands, and what an exptime means.

/// An exptime up to this is relative to now, a larger one is an instant.
const RELATIVE_EXPTIME_MAX_S: i64 = 60 * 60 * 24 * 30;

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas(u64),
}

/// The outcome of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stored,
    NotStored,
    Exists,
    NotFound,
}

/// The outcome of `incr` or `decr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Number(u64),
    NotFound,
    /// The item has another cas number than the expected one.
    Exists,
    NonNumeric,
    /// There is no room for the new number; the item was removed.
    NoRoom,
}

/// The outcome of deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    Deleted,
    NotFound,
    /// The item has another cas number than the expected one.
    Exists,
}

/// An exptime as an instant, in seconds since the epoch: 0 is never, a negative one has passed, a small one
/// is relative to now, a large one is an instant.
pub fn expires_s(exptime: i64, now_s: u32) -> u32 {
    match exptime {
        0 => 0,
        ..0 => 1,
        1..=RELATIVE_EXPTIME_MAX_S => now_s.saturating_add(exptime as u32),
        _ => u32::try_from(exptime).unwrap_or(u32::MAX),
    }
}
