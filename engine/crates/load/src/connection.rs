//! One connection without its socket: operations in, bytes out; bytes in, completions out.

use std::collections::VecDeque;

use cachemark_protocol::encode;
use cachemark_protocol::reply::{Violation, parse};
use cachemark_tape::{Op, Tape, Verb};

use crate::judge::{answer, record, write_figures, write_op};
use crate::pending::Pending;
use crate::tally::{Failure, Tally};

/// The state of one connection.
pub struct Connection {
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
}

const READ_BYTES: usize = 64 * 1024;

impl Connection {
    /// A fresh connection with room for `depth` outstanding operations.
    pub fn new(depth: usize) -> Connection {
        Connection {
            waiting: VecDeque::with_capacity(depth + 1),
            quiet: Vec::with_capacity(depth),
            unstamped: 0,
            out: Vec::with_capacity(READ_BYTES),
            written: 0,
            unread: vec![0; READ_BYTES],
            filled: 0,
            unanswered: false,
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
    pub fn send(&mut self, pending: Pending, tape: &Tape) {
        write_op(&mut self.out, &pending.op, tape);
        if pending.op.noreply {
            self.quiet.push(pending);
        } else {
            self.waiting.push_back(pending);
            self.unstamped += 1;
        }
    }

    /// Append the command that ends operations without a reply.
    pub fn send_barrier(&mut self) {
        encode::version(&mut self.out);
        let version =
            Op { verb: Verb::Version, noreply: false, run: 0, key: 0, length: 0, exptime_s: 0 };
        let mut pending = Pending::closed(version);
        pending.barrier = true;
        self.waiting.push_back(pending);
        self.unstamped += 1;
        self.unanswered = false;
    }

    /// Note the instant at which the bytes that were appended go out: just before the write.
    /// One stamp for a batch is right, as the batch leaves in one system call.
    #[inline]
    pub fn stamp(&mut self, now_ns: u64, tally: &mut Tally) {
        let first = self.waiting.len() - self.unstamped;
        for pending in self.waiting.range_mut(first..) {
            pending.sent(now_ns, tally);
        }
        self.unstamped = 0;
        for pending in self.quiet.iter_mut().filter(|pending| pending.sent_ns == 0) {
            pending.sent(now_ns, tally);
        }
    }

    /// The bytes to write.
    #[inline]
    pub fn outgoing(&self) -> &[u8] {
        &self.out[self.written..]
    }

    /// So many of them were written. Operations without a reply are complete once all are.
    #[inline]
    pub fn wrote(&mut self, bytes: usize, now_ns: u64, tape: &Tape, tally: &mut Tally) {
        self.written += bytes;
        if self.written < self.out.len() {
            return;
        }
        self.out.clear();
        self.written = 0;
        for pending in self.quiet.drain(..) {
            self.unanswered = true;
            tally.completed(&pending.stamps(now_ns), &write_figures(&pending.op, tape));
        }
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

    /// So many bytes were read: complete what they answer. After a violation the stream cannot be
    /// matched to operations any more; the connection must be failed.
    pub fn read(
        &mut self,
        bytes: usize,
        now_ns: u64,
        tape: &Tape,
        tally: &mut Tally,
    ) -> Result<(), Violation> {
        self.filled += bytes;
        let mut begin = 0;
        while let Some((reply, length)) = parse(&self.unread[begin..self.filled])? {
            let Some(front) = self.waiting.front_mut() else {
                return Err(Violation);
            };
            if answer(front, &reply, tape)? {
                let done = self.waiting.pop_front().expect("there is a front");
                if done.has_to_swap() {
                    self.swap(done, tape);
                } else {
                    record(&done, now_ns, tape, tally);
                }
            }
            begin += length;
        }
        self.unread.copy_within(begin..self.filled, 0);
        self.filled -= begin;
        Ok(())
    }

    /// The second command of a cas, behind whatever was sent since its first.
    fn swap(&mut self, mut pending: Pending, tape: &Tape) {
        pending.swapping = true;
        let op = pending.op;
        let value = tape.value(op.key, op.length);
        let token = pending.token.unwrap_or_default();
        encode::cas(&mut self.out, tape.key(op.key), op.exptime_s, value, token);
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
    /// that were sent before `before_ns`, the others lost their connection.
    pub fn fail(&mut self, first: Failure, before_ns: u64, now_ns: u64, tally: &mut Tally) {
        for mut pending in self.waiting.drain(..).chain(self.quiet.drain(..)) {
            if pending.barrier {
                continue;
            }
            if pending.sent_ns == 0 {
                pending.sent(now_ns, tally);
            }
            let late = pending.sent_ns <= before_ns;
            let failure = if late { first } else { Failure::Connection };
            tally.failure(&pending.stamps(now_ns), failure);
        }
        self.unstamped = 0;
        self.out.clear();
        self.written = 0;
        self.filled = 0;
        self.unanswered = false;
    }
}
