//! The result of an answer, byte by byte.

use crate::tape::{Operation, Tape, Verb};

/// The result of an operation. From `WrongValue` on it failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
pub enum ReplyStatus {
    Done,
    Missed,
    NotStored,
    WrongValue,
    Timeout,
    Connection,
    Server,
    Client,
    Protocol,
}

/// A call log keeps at most this many bytes of a wrong value.
const MOST_WRONG_BYTES: usize = 4096;

/// The result of an operation: status, keys found, value bytes read or written, a wrong value.
pub struct Verified {
    pub status: ReplyStatus,
    pub found: usize,
    pub value_bytes: usize,
    pub wrong: Vec<u8>,
}

impl Verified {
    /// A result without keys or values.
    pub fn of(status: ReplyStatus) -> Verified {
        Verified { status, found: 0, value_bytes: 0, wrong: Vec::new() }
    }

    fn done(found: usize, value_bytes: usize) -> Verified {
        Verified { found, value_bytes, ..Verified::of(ReplyStatus::Done) }
    }

    #[cold]
    fn wrong(value: &[u8]) -> Verified {
        let wrong = value[..value.len().min(MOST_WRONG_BYTES)].to_vec();
        Verified { wrong, ..Verified::of(ReplyStatus::WrongValue) }
    }
}

/// Whether a read may bring a value, at any length that a write has; `told` is the generation in its record.
fn right(tape: &Tape, key: u32, value: &[u8], told: u8) -> bool {
    !tape.verified || tape.allows(key, value, told)
}

/// A value that was read, if its flags are 0, as in all items of cachemark; else a value that no key has.
pub fn plain(value: &[u8], flags: u32) -> &[u8] {
    if flags == 0 { value } else { b"other flags than 0" }
}

/// A read of one key.
pub fn one(tape: &Tape, op: &Operation, value: Option<&[u8]>) -> Verified {
    let Some(value) = value else { return Verified::of(ReplyStatus::Missed) };
    if value != op.value && !right(tape, op.indexes[0], value, op.generation) {
        return Verified::wrong(value);
    }
    Verified::done(1, value.len())
}

/// A read of many keys: the values that were found, mostly in the order of the request.
pub fn many<'a>(
    tape: &Tape,
    op: &Operation,
    items: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) -> Verified {
    let mut verified = Verified::of(ReplyStatus::Done);
    let (mut used, mut next) = (vec![false; op.keys.len()], 0);
    for (key, value) in items {
        let after = next..op.keys.len();
        let mut places = after.chain(0..next);
        let Some(at) = places.find(|&at| !used[at] && op.keys[at].as_bytes() == key) else {
            return Verified::wrong(value);
        };
        // The record tells the generation of the first key.
        let told = if at == 0 { op.generation } else { 0 };
        if !right(tape, op.indexes[at], value, told) {
            return Verified::wrong(value);
        }
        used[at] = true;
        next = at + 1;
        verified.found += 1;
        verified.value_bytes += value.len();
    }
    verified
}

/// A write that was stored, or refused.
pub fn written(op: &Operation, stored: bool) -> Verified {
    if !stored {
        // A plain `set` has no reason to be refused.
        return Verified::of(if op.verb == Verb::SET {
            ReplyStatus::Server
        } else {
            ReplyStatus::NotStored
        });
    }
    let batch = op.pairs.iter().map(|(_, value)| value.len()).sum();
    let value_bytes = if op.verb == Verb::MSET { batch } else { op.value.len() };
    Verified::done(0, value_bytes)
}

/// A `delete`, `touch` or step of a counter: whether the key was there.
pub fn known(there: bool) -> Verified {
    Verified {
        found: usize::from(there),
        ..Verified::of(if there { ReplyStatus::Done } else { ReplyStatus::Missed })
    }
}

/// A `cas`: None without the key, or the value that was read and whether it was replaced.
pub fn compared(tape: &Tape, op: &Operation, answer: Option<(&[u8], bool)>) -> Verified {
    let Some((value, stored)) = answer else { return Verified::of(ReplyStatus::Missed) };
    if !right(tape, op.indexes[0], value, 0) {
        return Verified::wrong(value);
    }
    let status = if stored { ReplyStatus::Done } else { ReplyStatus::NotStored };
    Verified { status, ..Verified::done(1, if stored { op.value.len() } else { 0 }) }
}
