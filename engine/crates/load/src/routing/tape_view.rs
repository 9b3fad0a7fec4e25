//! The tape as a connection sees it. With several servers, the run of an operation is sorted by server,
//! so that the part for one server is contiguous.

use std::ops::Deref;

use cachemark_tape::{Op, Tape};

use super::key_routing::KeyRouting;

#[derive(Clone, Copy)]
pub struct TapeView<'tape> {
    tape: &'tape Tape,
    routing: Option<&'tape KeyRouting>,
}

impl<'tape> TapeView<'tape> {
    pub fn new(tape: &'tape Tape, routing: Option<&'tape KeyRouting>) -> TapeView<'tape> {
        TapeView { tape, routing }
    }

    /// The value of a key at a length. It lives as long as the tape.
    #[inline]
    pub fn value(&self, k: u32, length: u32) -> &'tape [u8] {
        self.tape.value(k, length)
    }

    /// The value that a write of one key stores. It lives as long as the tape.
    #[inline]
    pub fn written(&self, op: &Op) -> &'tape [u8] {
        self.tape.value_of(op.key, op.length, op.generation)
    }

    /// The key at a position of an operation's run; the only key if the operation has no run.
    #[inline]
    pub fn key_at(&self, op: &Op, at: u16) -> u32 {
        match self.routing {
            _ if !op.verb.has_run() => op.key,
            None => self.tape.run_key(op, at),
            Some(routing) => routing.run_key(op, at),
        }
    }

    /// All keys of an operation.
    #[inline]
    pub fn keys(&self, op: &Op) -> impl Iterator<Item = u32> {
        let (view, op) = (*self, *op);
        (0..op.run).map(move |at| view.key_at(&op, at))
    }
}

impl<'tape> Deref for TapeView<'tape> {
    type Target = Tape;

    #[inline]
    fn deref(&self) -> &Tape {
        self.tape
    }
}
