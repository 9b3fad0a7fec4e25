//! The requests of a tape, in the form of a trace.

use std::hash::BuildHasher;

use cachemark_miss_ratio::{Operation, Request};
use cachemark_tape::{Tape, Verb};
use foldhash::quality::FixedState;

use crate::collected::Collected;

/// The requests of a tape. A `fetch` is a get that is followed by a fill where it misses; a `get` never is.
pub fn requests_of(tape: &Tape) -> Collected {
    let (mut collected, hash) = (Collected::default(), FixedState::default());
    collected.has_times = tape.is_open_loop();
    for place in 0..tape.op_count() {
        let op = tape.op(place);
        let (operation, succeeded) = match op.verb {
            Verb::Fetch => (Operation::Get, Some(true)),
            Verb::Get => (Operation::Get, Some(false)),
            Verb::Set => (Operation::Update, Some(true)),
            Verb::Add => (Operation::Add, None),
            Verb::Replace => (Operation::Replace, None),
            Verb::Delete => (Operation::Delete, None),
            _ => (Operation::Touch, None),
        };
        let at_ns = if tape.is_open_loop() { tape.due_ns(place) } else { 0 };
        collected.request(
            at_ns,
            Request {
                hash: hash.hash_one(op.key),
                at_s: (at_ns / 1_000_000_000) as u32,
                ttl_s: op.exptime_s,
                value_bytes: tape.value_length(op.key),
                key_bytes: tape.key_length(op.key) as u8,
                operation,
                succeeded,
            },
        );
    }
    for facts in collected.keys.values_mut() {
        facts.ttl_s.get_or_insert(0);
    }
    collected
}
