//! One connection without its socket: operations in, bytes out; bytes in, completions out.

mod outgoing;
pub(crate) mod verification;
mod wire;

use std::collections::VecDeque;
use std::marker::PhantomData;

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;

pub(crate) use outgoing::Batch;
use outgoing::Outgoing;
use wire::By;
pub use wire::{Binary, Meta, Text, Wire};

use crate::operation::{Failure, Pending};
use crate::record::Ledger;
use crate::routing::Book;

/// The state of one connection.
pub struct Connection<'tape, W> {
    /// Operations that wait for a reply, oldest first.
    waiting: VecDeque<Pending>,
    /// Operations without a reply whose bytes are not all written.
    quiet: Vec<Pending>,
    /// How many of `waiting`, counted from the back, are not stamped as sent yet.
    unstamped: usize,
    out: Outgoing<'tape>,
    /// The beginning of a reply that is not whole: so many bytes of the buffer.
    unread: Vec<u8>,
    filled: usize,
    /// Operations without a reply were written since the last command that had one.
    unanswered: bool,
    /// Commands are numbered as they are written.
    next_tag: u32,
    wire: PhantomData<W>,
}

/// What is read in one system call.
pub const READ_BYTES: usize = 64 * 1024;

impl<'tape, W: Wire> Connection<'tape, W> {
    /// A fresh connection with room for `depth` outstanding operations.
    pub fn new(depth: usize) -> Connection<'tape, W> {
        Connection {
            waiting: VecDeque::with_capacity(depth + 1),
            quiet: Vec::with_capacity(depth),
            unstamped: 0,
            out: Outgoing::new(READ_BYTES),
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
    pub fn send(&mut self, mut pending: Pending, book: Book<'tape>) {
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
        W::write_barrier(self.out.bytes(), pending.tag);
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
    pub fn outgoing(&self) -> Batch<'_> {
        self.out.batch()
    }

    #[inline]
    pub fn has_outgoing(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether operations wait that are complete once they are written.
    #[inline]
    pub fn has_quiet(&self) -> bool {
        !self.quiet.is_empty()
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
        self.out.wrote(bytes);
        if self.has_outgoing() || self.quiet.is_empty() {
            return 0;
        }
        self.unanswered = true;
        let ended = self.quiet.drain(..).filter(|pending| ledger.answered(pending, now_ns, book));
        ended.count()
    }

    /// Where to read to: behind what is there of a reply, else to `shared`, so that connections do
    /// not take turns in the caches.
    #[inline]
    pub fn incoming<'a>(&'a mut self, shared: &'a mut [u8]) -> &'a mut [u8] {
        if self.filled == 0 {
            return shared;
        }
        if self.filled == self.unread.len() {
            // A value larger than the buffer: grow once, and keep it.
            self.unread.resize(self.unread.len() * 2, 0);
        }
        &mut self.unread[self.filled..]
    }

    /// So many bytes were read to where `incoming` said: complete what they answer, and tell how many
    /// operations that was. After a violation the stream cannot be matched to operations any more;
    /// the connection must be failed.
    #[inline]
    pub fn read(
        &mut self,
        shared: &[u8],
        bytes: usize,
        now_ns: u64,
        book: Book<'tape>,
        ledger: &mut Ledger,
    ) -> (usize, Result<(), Violation>) {
        if self.filled == 0 {
            let (used, ended, read) = self.digest(&shared[..bytes], now_ns, book, ledger);
            let rest = &shared[used..bytes];
            self.unread[..rest.len()].copy_from_slice(rest);
            self.filled = rest.len();
            return (ended, read);
        }
        let filled = self.filled + bytes;
        let mut unread = std::mem::take(&mut self.unread);
        let (used, ended, read) = self.digest(&unread[..filled], now_ns, book, ledger);
        unread.copy_within(used..filled, 0);
        self.unread = unread;
        self.filled = filled - used;
        (ended, read)
    }

    /// Complete what is answered: how many bytes that took, and how many operations it was.
    #[inline]
    fn digest(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        book: Book<'tape>,
        ledger: &mut Ledger,
    ) -> (usize, usize, Result<(), Violation>) {
        let (mut begin, mut ended) = (0, 0);
        let read = loop {
            if begin == bytes.len() {
                break Ok(());
            }
            let front = self.waiting.front_mut();
            let taken = match W::take(&bytes[begin..], front, book) {
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
        (begin, ended, read)
    }

    /// The oldest operation is answered; true when that ended it.
    #[inline]
    fn answered(
        &mut self,
        now_ns: u64,
        book: Book<'tape>,
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
    fn swap(&mut self, mut pending: Pending, book: Book<'tape>) {
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
        self.filled = 0;
        self.unanswered = false;
        ended
    }
}
