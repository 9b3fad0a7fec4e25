//! What an answer comes to, byte by byte.

use crate::tape::{Operation, Tape, Verb};

/// How an operation ended. From `Wrong` on it failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum Ending {
    Done,
    Missed,
    NotStored,
    Wrong,
    Timeout,
    Connection,
    Server,
    Client,
    Protocol,
}

/// What is noted of an operation: how it ended, the keys found, the value bytes moved.
pub struct Verdict {
    pub ending: Ending,
    pub found: usize,
    pub value_bytes: usize,
}

impl Verdict {
    /// An end without keys or values.
    pub fn of(ending: Ending) -> Verdict {
        Verdict { ending, found: 0, value_bytes: 0 }
    }
}

/// Whether a value is right for a key, at whatever length it was written.
fn right(tape: &Tape, key: u32, value: &[u8]) -> bool {
    !tape.verified || tape.value(key, value.len()) == Some(value)
}

/// A read of one key.
pub fn one(tape: &Tape, op: &Operation, value: Option<&[u8]>) -> Verdict {
    let Some(value) = value else { return Verdict::of(Ending::Missed) };
    if value != op.value && !right(tape, op.indexes[0], value) {
        return Verdict::of(Ending::Wrong);
    }
    Verdict { ending: Ending::Done, found: 1, value_bytes: value.len() }
}

/// A read of many keys: those that were found, mostly in the order in which they were asked for.
pub fn many<'a>(
    tape: &Tape,
    op: &Operation,
    items: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Verdict {
    let mut verdict = Verdict::of(Ending::Done);
    let (mut used, mut next) = (vec![false; op.keys.len()], 0);
    for (key, value) in items {
        let after = next..op.keys.len();
        let mut places = after.chain(0..next);
        let Some(at) = places.find(|&at| !used[at] && op.keys[at].as_bytes() == key) else {
            return Verdict::of(Ending::Wrong);
        };
        if !right(tape, op.indexes[at], value) {
            return Verdict::of(Ending::Wrong);
        }
        used[at] = true;
        next = at + 1;
        verdict.found += 1;
        verdict.value_bytes += value.len();
    }
    verdict
}

/// A write that was stored, or refused.
pub fn written(op: &Operation, stored: bool) -> Verdict {
    if !stored {
        // A plain `set` has no reason to be refused.
        return Verdict::of(if op.verb == Verb::SET { Ending::Server } else { Ending::NotStored });
    }
    let batch = op.pairs.iter().map(|(_, value)| value.len()).sum();
    let value_bytes = if op.verb == Verb::MSET { batch } else { op.value.len() };
    Verdict { ending: Ending::Done, found: 0, value_bytes }
}

/// A `delete`, `touch` or step of a counter: whether the key was there.
pub fn known(there: bool) -> Verdict {
    Verdict {
        found: usize::from(there),
        ..Verdict::of(if there { Ending::Done } else { Ending::Missed })
    }
}

/// A `cas`: nothing if the key was not there, or the value that was read and whether it was replaced.
pub fn compared(tape: &Tape, op: &Operation, answer: Option<(&[u8], bool)>) -> Verdict {
    let Some((value, stored)) = answer else { return Verdict::of(Ending::Missed) };
    if !right(tape, op.indexes[0], value) {
        return Verdict::of(Ending::Wrong);
    }
    let ending = if stored { Ending::Done } else { Ending::NotStored };
    Verdict { ending, found: 1, value_bytes: if stored { op.value.len() } else { 0 } }
}
