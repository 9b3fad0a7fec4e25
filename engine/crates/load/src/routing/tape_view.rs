//! The tape as a connection sees it: where several servers are used, the runs of an operation are
//! in the order of their homes, so that what goes to one server is one piece.

use std::ops::Deref;

use cachemark_tape::{Op, Tape};

use super::key_routing::Spread;

#[derive(Clone, Copy)]
pub struct Book<'tape> {
    tape: &'tape Tape,
    spread: Option<&'tape Spread>,
}

impl<'tape> Book<'tape> {
    pub fn new(tape: &'tape Tape, spread: Option<&'tape Spread>) -> Book<'tape> {
        Book { tape, spread }
    }

    /// The value of a key at a length, as long as the tape lives.
    #[inline]
    pub fn value(&self, k: u32, length: u32) -> &'tape [u8] {
        self.tape.value(k, length)
    }

    /// The key at a place of an operation's run, or its only one.
    #[inline]
    pub fn key_at(&self, op: &Op, at: u16) -> u32 {
        match self.spread {
            _ if !op.verb.has_run() => op.key,
            None => self.tape.run_key(op, at),
            Some(spread) => spread.run_key(op, at),
        }
    }

    /// All keys of an operation.
    #[inline]
    pub fn keys(&self, op: &Op) -> impl Iterator<Item = u32> {
        let (book, op) = (*self, *op);
        (0..op.run).map(move |at| book.key_at(&op, at))
    }
}

impl<'tape> Deref for Book<'tape> {
    type Target = Tape;

    #[inline]
    fn deref(&self) -> &Tape {
        self.tape
    }
}
