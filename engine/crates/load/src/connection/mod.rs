//! One connection without its socket: operations in, bytes out; bytes in, completions out.

mod outgoing;
pub(crate) mod verification;
mod wire;

use std::collections::VecDeque;
use std::marker::PhantomData;

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;

use outgoing::OutputBuffer;
pub(crate) use outgoing::WriteBatch;
use wire::ReplyTo;
pub use wire::{Binary, Meta, Text, Wire};

use crate::operation::{Failure, Pending};
use crate::record::Recorder;
use crate::routing::TapeView;

/// The state of one connection.
pub struct Connection<'tape, W> {
    /// Operations that wait for a reply, oldest first.
    waiting: VecDeque<Pending>,
    /// Operations without a reply whose bytes are not all written.
    quiet: Vec<Pending>,
    /// How many of `waiting`, counted from the back, are not stamped as sent yet.
    unstamped: usize,
    out: OutputBuffer<'tape>,
    /// The beginning of a reply that is not whole: so many bytes of the buffer.
    unread: Vec<u8>,
    filled: usize,
    /// Operations without a reply were written since the last command that had one.
    barrier_needed: bool,
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
            out: OutputBuffer::new(READ_BYTES),
            unread: vec![0; READ_BYTES],
            filled: 0,
            barrier_needed: false,
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
    pub fn needs_barrier(&self) -> bool {
        self.barrier_needed && self.waiting.is_empty() && self.quiet.is_empty()
    }

    /// Append an operation's bytes. They count as sent when `stamp` is called.
    #[inline]
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

    /// Append the command that ends operations without a reply.
    pub fn send_barrier(&mut self) {
        let mut pending = Pending::barrier();
        self.assign_tag(&mut pending);
        W::write_barrier(self.out.bytes(), pending.tag);
        self.waiting.push_back(pending);
        self.unstamped += 1;
        self.barrier_needed = false;
    }

    /// An operation has a command for each key, and one that ends them, at most.
    #[inline]
    fn assign_tag(&mut self, pending: &mut Pending) {
        pending.tag = self.next_tag;
        self.next_tag = self.next_tag.wrapping_add(u32::from(pending.op.run) + 1);
    }

    /// Note the instant at which the bytes that were appended go out: just before the write.
    /// One stamp for a batch is right, as the batch leaves in one system call.
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

    /// Where to read to: behind what is there of a reply, else to `shared`, so that connections do
    /// not take turns in the caches.
    #[inline]
    pub fn read_buffer<'a>(&'a mut self, shared: &'a mut [u8]) -> &'a mut [u8] {
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

    /// Complete what is answered: how many bytes that took, and how many operations it was.
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
                ReplyTo::Quiet(None) => {}
                ReplyTo::Quiet(Some((verb, failure))) => {
                    recorder.metrics.retract_noreply(verb, failure)
                }
            }
        };
        (begin, ended, read)
    }

    /// The oldest operation is answered; true when that ended it.
    #[inline]
    fn answered(
        &mut self,
        now_ns: u64,
        view: TapeView<'tape>,
        recorder: &mut Recorder,
    ) -> Result<bool, Violation> {
        let done = self.waiting.pop_front().expect("what was answered");
        if W::ERRORS_ARE_ANONYMOUS && self.barrier_needed && done.failure.is_some() {
            self.waiting.push_front(done);
            return Err(Violation);
        }
        if done.needs_second_command() {
            self.send_second_command(done, view);
            return Ok(false);
        }
        Ok(recorder.answered(&done, now_ns, view))
    }

    /// The second command of a cas or fetch, behind whatever was sent since its first.
    fn send_second_command(&mut self, mut pending: Pending, view: TapeView<'tape>) {
        pending.in_second_command = true;
        self.assign_tag(&mut pending);
        match pending.token {
            Some(token) => W::write_cas_store(&mut self.out, &pending, token, view),
            None => W::write(&mut self.out, &pending, view),
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
            ended += usize::from(recorder.failed(pending, failure, now_ns, view));
        }
        self.unstamped = 0;
        self.out.clear();
        self.filled = 0;
        self.barrier_needed = false;
        ended
    }
}
