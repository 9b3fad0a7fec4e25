//! memcached's rules: when a command is refused, and what an exptime means.

use crate::entry::Entry;

/// Exptimes up to this are from now on, above it they are instants.
const RELATIVE_EXPTIME_MAX_S: i64 = 60 * 60 * 24 * 30;

/// How a value is to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas(u64),
}

/// What came of storing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Stored,
    NotStored,
    Exists,
    NotFound,
}

/// What came of `incr` or `decr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Number(u64),
    NotFound,
    /// It has another unique number than the one that was asked for.
    Exists,
    NonNumeric,
    /// There is no room for the new number; the item is gone.
    NoRoom,
}

/// What came of deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    Deleted,
    NotFound,
    /// It has another unique number than the one that was asked for.
    Exists,
}

/// Whether a mode forbids to store, given the item that is there.
pub fn refusal(mode: Mode, expected_cas: u64, entry: &mut Entry<'_>) -> Option<Outcome> {
    let mode = match mode {
        Mode::Set | Mode::Add | Mode::Replace if expected_cas != 0 => Mode::Cas(expected_cas),
        other => other,
    };
    let there = entry.item().map(|item| item.cas);
    match (mode, there) {
        (Mode::Append | Mode::Prepend, Some(cas)) if expected_cas != 0 && cas != expected_cas => {
            Some(Outcome::Exists)
        }
        (Mode::Add, Some(_)) | (Mode::Replace | Mode::Append | Mode::Prepend, None) => {
            Some(Outcome::NotStored)
        }
        (Mode::Cas(_), None) => {
            entry.counters().cas_misses += 1;
            Some(Outcome::NotFound)
        }
        (Mode::Cas(expected), Some(cas)) if cas != expected => {
            entry.counters().cas_badval += 1;
            Some(Outcome::Exists)
        }
        (Mode::Cas(_), Some(_)) => {
            entry.counters().cas_hits += 1;
            None
        }
        _ => None,
    }
}

/// An exptime as an instant: 0 never, negative at once, small from now on, large as it is.
pub fn expires_s(exptime: i64, now_s: u32) -> u32 {
    match exptime {
        0 => 0,
        ..0 => 1,
        1..=RELATIVE_EXPTIME_MAX_S => now_s.saturating_add(exptime as u32),
        _ => u32::try_from(exptime).unwrap_or(u32::MAX),
    }
}
