//! One connection without its socket: operations in, bytes out; bytes in, completions out.

use std::collections::VecDeque;
use std::marker::PhantomData;

use cachemark_protocol::reply::Violation;

use crate::book::Book;
use crate::ledger::Ledger;
use crate::pending::Pending;
use crate::tally::Failure;
use crate::wire::{By, Wire};

/// The state of one connection.
pub struct Connection<W> {
    /// Operations that wait for a reply, oldest first.
    waiting: VecDeque<Pending>,
    /// Operations without a reply whose bytes are not all written.
    quiet: Vec<Pending>,
    /// How many of `waiting`, counted from the back, are not stamped as sent yet.
    unstamped: usize,
    out: Vec<u8>,
    written: usize,
    unread: Vec<u8>,
    filled: usize,
    /// Operations without a reply were written since the last command that had one.
    unanswered: bool,
    /// Commands are numbered as they are written.
    next_tag: u32,
    wire: PhantomData<W>,
}

const READ_BYTES: usize = 64 * 1024;

impl<W: Wire> Connection<W> {
    /// A fresh connection with room for `depth` outstanding operations.
    pub fn new(depth: usize) -> Connection<W> {
        Connection {
            waiting: VecDeque::with_capacity(depth + 1),
            quiet: Vec::with_capacity(depth),
            unstamped: 0,
            out: Vec::with_capacity(READ_BYTES),
            written: 0,
            unread: vec![0; READ_BYTES],
            filled: 0,
            unanswered: false,
            next_tag: 0,
            wire: PhantomData,
        }
    }

    /// Operations that are not completed.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.quiet.len()
    }

    /// Whether a barrier is owed before the window may end.
    pub fn owes_barrier(&self) -> bool {
        self.unanswered && self.waiting.is_empty() && self.quiet.is_empty()
    }

    /// Append an operation's bytes. They count as sent when `stamp` is called.
    #[inline]
    pub fn send(&mut self, mut pending: Pending, book: Book<'_>) {
        self.number(&mut pending);
        W::write(&mut self.out, &pending, book);
        if pending.op.noreply {
            self.quiet.push(pending);
        } else {
            self.waiting.push_back(pending);
            self.unstamped += 1;
        }
    }

    /// Append the command that ends operations without a reply.
    pub fn send_barrier(&mut self) {
        let mut pending = Pending::barrier();
        self.number(&mut pending);
        W::write_barrier(&mut self.out, pending.tag);
        self.waiting.push_back(pending);
        self.unstamped += 1;
        self.unanswered = false;
    }

    /// An operation has a command for each key, and one that ends them, at most.
    #[inline]
    fn number(&mut self, pending: &mut Pending) {
        pending.tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(u32::from(pending.op.run) + 1);
    }

    /// Note the instant at which the bytes that were appended go out: just before the write.
    /// One stamp for a batch is right, as the batch leaves in one system call.
    #[inline]
    pub fn stamp(&mut self, now_ns: u64, ledger: &mut Ledger) {
        let first = self.waiting.len() - self.unstamped;
        for pending in self.waiting.range_mut(first..) {
            ledger.sent(pending, now_ns);
        }
        self.unstamped = 0;
        for pending in self.quiet.iter_mut().filter(|pending| pending.sent_ns == 0) {
            ledger.sent(pending, now_ns);
        }
    }

    /// The bytes to write.
    #[inline]
    pub fn outgoing(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many of them were written. Operations without a reply are complete once all are: how many.
    #[inline]
    pub fn wrote(
        &mut self,
        bytes: usize,
        now_ns: u64,
        book: Book<'_>,
        ledger: &mut Ledger,
    ) -> usize {
        self.written += bytes;
        if self.written < self.out.len() {
            return 0;
        }
        self.out.clear();
        self.written = 0;
        self.unanswered |= !self.quiet.is_empty();
        let ended = self.quiet.drain(..).filter(|pending| ledger.answered(pending, now_ns, book));
        ended.count()
    }

    /// Where to read to.
    #[inline]
    pub fn incoming(&mut self) -> &mut [u8] {
        if self.filled == self.unread.len() {
            // A value larger than the buffer: grow once, and keep it.
            self.unread.resize(self.unread.len() * 2, 0);
        }
        &mut self.unread[self.filled..]
    }

    /// So many bytes were read: complete what they answer, and tell how many operations that was.
    /// After a violation the stream cannot be matched to operations any more; the connection must be
    /// failed.
    pub fn read(
        &mut self,
        bytes: usize,
        now_ns: u64,
        book: Book<'_>,
        ledger: &mut Ledger,
    ) -> (usize, Result<(), Violation>) {
        self.filled += bytes;
        let (mut begin, mut ended) = (0, 0);
        let read = loop {
            let front = self.waiting.front_mut();
            let taken = match W::take(&self.unread[begin..self.filled], front, book) {
                Ok(Some(taken)) => taken,
                Ok(None) => break Ok(()),
                Err(violation) => break Err(violation),
            };
            begin += taken.bytes;
            match taken.by {
                By::Front { whole: false } => {}
                By::Front { whole: true } => match self.answered(now_ns, book, ledger) {
                    Ok(ends) => ended += usize::from(ends),
                    Err(violation) => break Err(violation),
                },
                By::Quiet(None) => {}
                By::Quiet(Some((verb, failure))) => ledger.tally.retract(verb, failure),
            }
        };
        self.unread.copy_within(begin..self.filled, 0);
        self.filled -= begin;
        (ended, read)
    }

    /// The oldest operation is answered; true when that ended it.
    #[inline]
    fn answered(
        &mut self,
        now_ns: u64,
        book: Book<'_>,
        ledger: &mut Ledger,
    ) -> Result<bool, Violation> {
        let done = self.waiting.pop_front().expect("what was answered");
        if W::NAMELESS_ERRORS && self.unanswered && done.failure.is_some() {
            self.waiting.push_front(done);
            return Err(Violation);
        }
        if done.has_to_swap() {
            self.swap(done, book);
            return Ok(false);
        }
        Ok(ledger.answered(&done, now_ns, book))
    }

    /// The second command of a cas or fetch, behind whatever was sent since its first.
    fn swap(&mut self, mut pending: Pending, book: Book<'_>) {
        pending.swapping = true;
        self.number(&mut pending);
        match pending.token {
            Some(token) => W::write_swap(&mut self.out, &pending, token, book),
            None => W::write(&mut self.out, &pending, book),
        }
        self.waiting.push_back(pending);
        if self.unstamped > 0 {
            // What lies before it in the buffer is not stamped yet; those that are, stay as they are.
            self.unstamped += 1;
        }
    }

    /// When the oldest operation that waits was sent; `None` if none waits.
    #[inline]
    pub fn oldest_sent_ns(&self) -> Option<u64> {
        let waiting = self.waiting.front().filter(|pending| pending.sent_ns > 0);
        let quiet = self.quiet.first().filter(|pending| pending.sent_ns > 0);
        [waiting, quiet].into_iter().flatten().map(|pending| pending.sent_ns).min()
    }

    /// The connection is lost: every operation on it failed. `first` is what befell the operations
    /// that were sent before `before_ns`, the others lost their connection. How many ended with it.
    pub fn fail(
        &mut self,
        first: Failure,
        before_ns: u64,
        now_ns: u64,
        book: Book<'_>,
        ledger: &mut Ledger,
    ) -> usize {
        let mut ended = 0;
        for mut pending in self.waiting.drain(..).chain(self.quiet.drain(..)) {
            if pending.sent_ns == 0 && !pending.barrier {
                ledger.sent(&mut pending, now_ns);
            }
            let late = pending.sent_ns <= before_ns;
            let failure = if late { first } else { Failure::Connection };
            ended += usize::from(ledger.failed(pending, failure, now_ns, book));
        }
        self.unstamped = 0;
        self.out.clear();
        self.written = 0;
        self.filled = 0;
        self.unanswered = false;
        ended
    }
}
