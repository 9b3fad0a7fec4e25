//! One connection without its socket: it turns operations into bytes, and bytes into completed
//! operations.

mod outgoing;
#[cfg(test)]
mod reply_limit_tests;
pub(crate) mod verification;
mod wire;

use std::collections::VecDeque;
use std::marker::PhantomData;

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;

use outgoing::OutputBuffer;
pub(crate) use outgoing::WriteBatch;
use wire::ReplyTo;
pub use wire::{Binary, Meta, SpacedText, Text, Wire};

use crate::operation::{Failure, Pending};
use crate::record::Recorder;
use crate::routing::TapeView;

/// The state of one connection.
pub struct Connection<'tape, W> {
    /// Operations that wait for a reply, oldest first.
    waiting: VecDeque<Pending>,
    /// Operations without a reply whose bytes have not all been written.
    quiet: Vec<Pending>,
    /// How many of `waiting`, counted from the back, have no send time yet.
    unstamped: usize,
    out: OutputBuffer<'tape>,
    /// The beginning of an incomplete reply: the first `filled` bytes of this buffer.
    unread: Vec<u8>,
    filled: usize,
    /// An incomplete reply that is longer, and longer than a value of the tape can be, is a violation.
    reply_bytes_max: usize,
    /// Operations without a reply were written after the last command that has a reply.
    barrier_needed: bool,
    /// The number of the next command.
    next_tag: u32,
    wire: PhantomData<W>,
}

/// The size of a read.
pub const READ_BYTES: usize = 64 * 1024;

/// The longest reply of which a connection keeps the beginning, and how much all connections of a thread keep. A
/// server that sends without end must not use up the client's memory.
pub const REPLY_BYTES_MAX: usize = 16 << 20;
const REPLIES_BYTES_MAX: usize = 256 << 20;

impl<'tape, W: Wire> Connection<'tape, W> {
    /// A new connection for up to `depth` operations in flight, one of the thread's `connections`.
    pub fn new(depth: usize, connections: usize) -> Connection<'tape, W> {
        Connection {
            reply_bytes_max: (REPLIES_BYTES_MAX / connections.max(1)).min(REPLY_BYTES_MAX),
            waiting: VecDeque::with_capacity(depth + 1),
            quiet: Vec::with_capacity(depth),
            unstamped: 0,
            out: OutputBuffer::new(READ_BYTES),
            unread: vec![0; READ_BYTES],
            filled: 0,
            barrier_needed: false,
            next_tag: 0,
            wire: PhantomData,
        }
    }

    /// Operations that have not completed.
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.quiet.len()
    }

    /// Whether a barrier must be sent before the window can end.
    pub fn needs_barrier(&self) -> bool {
        self.barrier_needed && self.waiting.is_empty() && self.quiet.is_empty()
    }

    /// Append the bytes of an operation. `mark_sent` sets its send time.
    #[inline(always)]
    pub fn send(&mut self, mut pending: Pending, view: TapeView<'tape>) {
        self.assign_tag(&mut pending);
        W::write(&mut self.out, &pending, view);
        if pending.op.noreply {
            self.quiet.push(pending);
        } else {
            self.waiting.push_back(pending);
            self.unstamped += 1;
        }
    }

    /// Append the command whose reply ends the operations without a reply.
    pub fn send_barrier(&mut self) {
        let mut pending = Pending::barrier();
        self.assign_tag(&mut pending);
        W::write_barrier(self.out.bytes(), pending.tag);
        self.waiting.push_back(pending);
        self.unstamped += 1;
        self.barrier_needed = false;
    }

    /// Number the commands of an operation: at most one per key, and one that ends them.
    #[inline]
    fn assign_tag(&mut self, pending: &mut Pending) {
        pending.tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(u32::from(pending.op.run) + 1);
    }

    /// Set the send time of everything that was appended since the last call. Call it just before the
    /// write. One time for all is correct, because they leave in one system call.
    #[inline]
    pub fn mark_sent(&mut self, now_ns: u64, recorder: &mut Recorder) {
        let first = self.waiting.len() - self.unstamped;
        for pending in self.waiting.range_mut(first..) {
            recorder.sent(pending, now_ns);
        }
        self.unstamped = 0;
        for pending in self.quiet.iter_mut().filter(|pending| pending.sent_ns == 0) {
            recorder.sent(pending, now_ns);
        }
    }

    /// The bytes to write.
    #[inline]
    pub fn output(&self) -> WriteBatch<'_> {
        self.out.batch()
    }

    #[inline]
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Whether operations without a reply wait to be written.
    #[inline]
    pub fn has_quiet(&self) -> bool {
        !self.quiet.is_empty()
    }

    /// `bytes` bytes were written. Operations without a reply complete when all output has been
    /// written. Returns how many completed.
    #[inline]
    pub fn wrote(
        &mut self,
        bytes: usize,
        now_ns: u64,
        view: TapeView<'_>,
        recorder: &mut Recorder,
    ) -> usize {
        self.out.wrote(bytes);
        if self.has_output() || self.quiet.is_empty() {
            return 0;
        }
        self.barrier_needed = true;
        let ended = self.quiet.drain(..).filter(|pending| recorder.answered(pending, now_ns, view));
        ended.count()
    }

    /// The buffer for the next read: behind the incomplete reply, or else `shared`. A buffer per
    /// connection would push the others out of the CPU caches.
    #[inline]
    pub fn read_buffer<'a>(&'a mut self, shared: &'a mut [u8]) -> &'a mut [u8] {
        if self.filled == 0 {
            return shared;
        }
        if self.filled == self.unread.len() {
            // A value is larger than the buffer: the buffer grows and stays large.
            self.unread.resize(self.unread.len() * 2, 0);
        }
        &mut self.unread[self.filled..]
    }

    /// `bytes` bytes were read into `read_buffer`: complete the operations that they answer. Returns
    /// how many completed. After a violation, replies cannot be assigned to operations any more, and
    /// the caller must fail the connection.
    #[inline]
    pub fn read(
        &mut self,
        shared: &[u8],
        bytes: usize,
        now_ns: u64,
        view: TapeView<'tape>,
        recorder: &mut Recorder,
    ) -> (usize, Result<(), Violation>) {
        if self.filled == 0 {
            let (used, ended, read) = self.parse_replies(&shared[..bytes], now_ns, view, recorder);
            let rest = &shared[used..bytes];
            self.unread[..rest.len()].copy_from_slice(rest);
            self.filled = rest.len();
            return (ended, read);
        }
        let filled = self.filled + bytes;
        let mut unread = std::mem::take(&mut self.unread);
        let (used, ended, read) = self.parse_replies(&unread[..filled], now_ns, view, recorder);
        unread.copy_within(used..filled, 0);
        self.unread = unread;
        self.filled = filled - used;
        (ended, read)
    }

    /// Complete the operations that `bytes` answers. Returns how many bytes were used, and how many
    /// operations completed.
    #[inline]
    fn parse_replies(
        &mut self,
        bytes: &[u8],
        now_ns: u64,
        view: TapeView<'tape>,
        recorder: &mut Recorder,
    ) -> (usize, usize, Result<(), Violation>) {
        let (mut begin, mut ended) = (0, 0);
        let read = loop {
            if begin == bytes.len() {
                break Ok(());
            }
            let front = self.waiting.front_mut();
            let parsed = match W::parse_reply(&bytes[begin..], front, view) {
                Ok(Some(parsed)) => parsed,
                Ok(None) if self.is_too_long(bytes.len() - begin, view) => break Err(Violation),
                Ok(None) => break Ok(()),
                Err(violation) => break Err(violation),
            };
            begin += parsed.bytes;
            match parsed.reply_to {
                ReplyTo::Oldest { whole: false } => {}
                ReplyTo::Oldest { whole: true } => match self.answered(now_ns, view, recorder) {
                    Ok(ends) => ended += usize::from(ends),
                    Err(violation) => break Err(violation),
                },
                ReplyTo::OldestHit(counts) => {
                    let hit = self.waiting.front().expect("what was answered");
                    recorder.succeeded(hit, now_ns, &counts);
                    self.waiting.pop_front();
                    ended += 1;
                }
                ReplyTo::Quiet(None) => {}
                ReplyTo::Quiet(Some((verb, failure))) => {
                    recorder.metrics.retract_noreply(verb, failure)
                }
            }
        };
        (begin, ended, read)
    }

    /// Whether `bytes` are more than any reply can have: a value of the tape fits into its pool.
    fn is_too_long(&self, bytes: usize, view: TapeView<'_>) -> bool {
        bytes > self.reply_bytes_max && !view.pool_covers(bytes.saturating_sub(READ_BYTES) as u64)
    }

    /// The oldest operation was answered. True if that completed it.
    #[inline(always)]
    fn answered(
        &mut self,
        now_ns: u64,
        view: TapeView<'tape>,
        recorder: &mut Recorder,
    ) -> Result<bool, Violation> {
        // It stays where it is until it is recorded: a copy of it costs more than its record.
        let done = self.waiting.front().expect("what was answered");
        if W::ERRORS_ARE_ANONYMOUS && self.barrier_needed && done.failure.is_some() {
            return Err(Violation);
        }
        if done.needs_second_command() {
            let first = *done;
            self.waiting.pop_front();
            self.send_second_command(first, view);
            return Ok(false);
        }
        let ends = recorder.answered(done, now_ns, view);
        self.waiting.pop_front();
        Ok(ends)
    }

    /// Append the second command of a cas or fetch, after everything that was sent since its first.
    fn send_second_command(&mut self, mut pending: Pending, view: TapeView<'tape>) {
        pending.in_second_command = true;
        self.assign_tag(&mut pending);
        match pending.token {
            Some(token) => W::write_cas_store(&mut self.out, &pending, token, view),
            None => W::write(&mut self.out, &pending, view),
        }
        self.waiting.push_back(pending);
        if self.unstamped > 0 {
            // Operations before it in the output have no send time yet. Then it has to wait for
            // `mark_sent` as well, which leaves send times alone that are set.
            self.unstamped += 1;
        }
    }

    /// When the oldest operation in flight was sent; `None` if there is none.
    #[inline]
    pub fn oldest_sent_ns(&self) -> Option<u64> {
        let waiting = self.waiting.front().filter(|pending| pending.sent_ns > 0);
        let quiet = self.quiet.first().filter(|pending| pending.sent_ns > 0);
        [waiting, quiet].into_iter().flatten().map(|pending| pending.sent_ns).min()
    }

    /// The connection is lost, and all operations on it fail: with `first` if they were sent at or
    /// before `before_ns`, else as `Failure::Connection`. Returns how many operations ended.
    ///
    /// If `first` is a timeout, the younger operations are cut off by this client, not by the server.
    /// They have waited as well, and their waits belong into the tail: without them, a stall would
    /// leave one time for each connection, instead of one for each operation.
    pub fn fail(
        &mut self,
        first: Failure,
        before_ns: u64,
        now_ns: u64,
        view: TapeView<'_>,
        recorder: &mut Recorder,
    ) -> usize {
        let mut ended = 0;
        for mut pending in self.waiting.drain(..).chain(self.quiet.drain(..)) {
            if pending.sent_ns == 0 && !pending.barrier {
                recorder.sent(&mut pending, now_ns);
            }
            let late = pending.sent_ns <= before_ns;
            let failure = if late { first } else { Failure::Connection };
            pending.cut_off = first == Failure::Timeout && !late;
            ended += usize::from(recorder.failed(pending, failure, now_ns, view));
        }
        self.unstamped = 0;
        self.out.clear();
        self.filled = 0;
        // Its reply may have been without end.
        self.unread.truncate(READ_BYTES);
        self.unread.shrink_to_fit();
        self.barrier_needed = false;
        ended
    }
}
