//! When a storage command does not store.

use crate::store::entry::Entry;
use crate::store::outcome::{Mode, Outcome};

/// The outcome if this mode does not store over the present item; `None` if it does.
pub fn check(mode: Mode, expected_cas: u64, entry: &mut Entry<'_>) -> Option<Outcome> {
    let mode = match mode {
        Mode::Set | Mode::Add | Mode::Replace if expected_cas != 0 => Mode::Cas(expected_cas),
        other => other,
    };
    let present = entry.compared_cas();
    match (mode, present) {
        (Mode::Append | Mode::Prepend, Some(cas)) if expected_cas != 0 && cas != expected_cas => {
            Some(Outcome::Exists)
        }
        (Mode::Add, Some(_)) | (Mode::Replace | Mode::Append | Mode::Prepend, None) => {
            Some(Outcome::NotStored)
        }
        (Mode::Cas(_), None) => {
            entry.count(|counters| counters.cas_misses += 1);
            Some(Outcome::NotFound)
        }
        (Mode::Cas(expected), Some(cas)) if cas != expected => {
            entry.count(|counters| counters.cas_badval += 1);
            Some(Outcome::Exists)
        }
        (Mode::Cas(_), Some(_)) => {
            entry.count(|counters| counters.cas_hits += 1);
            None
        }
        _ => None,
    }
}
