//! One connection without its socket: operations in, bytes out; bytes in, completions out.

use std::collections::VecDeque;

use cachemark_protocol::encode;
use cachemark_protocol::reply::{ErrorKind, Reply, Violation, parse};
use cachemark_tape::{Op, Tape, Verb};

use crate::tally::{Failure, Figures, Stamps, Tally};

/// An operation that was handed to a connection.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    pub op: Op,
    /// When it was meant to start; in a closed loop that is when it was sent.
    due_ns: u64,
    sent_ns: u64,
    open_loop: bool,
    /// A barrier is not an operation: it ends those that have no reply.
    barrier: bool,
    /// Keys of the run that are answered (mset) or passed (mget).
    passed: u16,
    wrong: bool,
    failure: Option<Failure>,
    /// The token that a cas has read, and whether its second command is under way.
    token: Option<u64>,
    swapping: bool,
    figures: Figures,
}

impl Pending {
    /// An operation that is to be sent as soon as the bytes before it are.
    pub fn closed(op: Op) -> Pending {
        Pending::new(op, 0, false)
    }

    /// An operation that was due at an instant, however late it is sent.
    pub fn open(op: Op, due_ns: u64) -> Pending {
        Pending::new(op, due_ns, true)
    }

    fn new(op: Op, due_ns: u64, open_loop: bool) -> Pending {
        Pending {
            op,
            due_ns,
            sent_ns: 0,
            open_loop,
            barrier: false,
            passed: 0,
            wrong: false,
            failure: None,
            token: None,
            swapping: false,
            figures: Figures::default(),
        }
    }

    /// Whether the first command of a cas went well and its second is to follow.
    fn has_to_swap(&self) -> bool {
        self.token.is_some() && !self.swapping && !self.wrong && self.failure.is_none()
    }

    fn stamps(&self, now_ns: u64) -> Stamps {
        Stamps {
            verb: self.op.verb,
            noreply: self.op.noreply,
            due_ns: if self.open_loop { self.due_ns } else { self.sent_ns },
            sent_ns: self.sent_ns,
            now_ns,
        }
    }
}

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
            stamp_one(pending, now_ns, tally);
        }
        self.unstamped = 0;
        for pending in self.quiet.iter_mut().filter(|pending| pending.sent_ns == 0) {
            stamp_one(pending, now_ns, tally);
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
                stamp_one(&mut pending, now_ns, tally);
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

#[inline]
fn stamp_one(pending: &mut Pending, now_ns: u64, tally: &mut Tally) {
    if pending.sent_ns != 0 {
        return; // the second command of a cas: the operation began with its first
    }
    pending.sent_ns = now_ns;
    if pending.barrier {
        tally.barriers += 1;
        return;
    }
    tally.begun(pending.op.verb, pending.op.noreply);
    if pending.open_loop {
        tally.lag.saturating_record(now_ns.saturating_sub(pending.due_ns).max(1));
    }
}

fn write_op(out: &mut Vec<u8>, op: &Op, tape: &Tape) {
    let key = op.key;
    match op.verb {
        Verb::Get => encode::get(out, "get", tape.run(op).map(|k| tape.key(k))),
        Verb::Mget => encode::get(out, "get", tape.run(op).map(|k| tape.key(k))),
        Verb::Gets | Verb::Cas => encode::get(out, "gets", tape.run(op).map(|k| tape.key(k))),
        Verb::Gat => encode::get_and_touch(out, tape.key(key), op.exptime_s),
        Verb::Touch => encode::touch(out, tape.key(key), op.exptime_s, op.noreply),
        Verb::Delete => encode::delete(out, tape.key(key), op.noreply),
        Verb::Version => encode::version(out),
        Verb::Incr | Verb::Decr => {
            encode::count(out, op.verb.name(), tape.key(key), op.length, op.noreply);
        }
        Verb::Set | Verb::Add | Verb::Replace => {
            let value = tape.value(key, op.length);
            encode::store(out, op.verb.name(), tape.key(key), op.exptime_s, value, op.noreply);
        }
        Verb::Mset => {
            for k in tape.run(op) {
                let value = tape.value(k, tape.value_length(k));
                encode::store(out, "set", tape.key(k), op.exptime_s, value, op.noreply);
            }
        }
    }
}

/// Take one reply for an operation; true when the operation is answered whole.
fn answer(pending: &mut Pending, reply: &Reply<'_>, tape: &Tape) -> Result<bool, Violation> {
    if let Reply::Error(kind) = reply {
        pending.failure = Some(match kind {
            ErrorKind::Client => Failure::Client,
            ErrorKind::Server => Failure::Server,
        });
        return Ok(end_of_batch(pending));
    }
    match (pending.op.verb, reply) {
        (Verb::Cas, Reply::Value { key, flags, data, cas }) if pending.token.is_none() => {
            take_value(pending, key, *flags, data, tape);
            pending.token = Some(cas.ok_or(Violation)?);
            return Ok(false);
        }
        (Verb::Cas, Reply::End) if !pending.swapping => {
            pending.figures.misses = 1 - pending.figures.hits
        }
        (Verb::Cas, Reply::Stored) if pending.swapping => {}
        (Verb::Cas, Reply::Exists) if pending.swapping => pending.figures.not_stored = 1,
        // Gone between the two.
        (Verb::Cas, Reply::NotFound) if pending.swapping => {
            pending.figures.hits = 0;
            pending.figures.misses = 1;
        }
        (Verb::Incr | Verb::Decr, Reply::Number(_)) => pending.figures.hits = 1,
        (Verb::Incr | Verb::Decr, Reply::NotFound) => pending.figures.misses = 1,
        (
            Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat,
            Reply::Value { key, flags, data, .. },
        ) => {
            take_value(pending, key, *flags, data, tape);
            return Ok(false);
        }
        (Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat, Reply::End) => {
            pending.figures.misses = u32::from(pending.op.run) - pending.figures.hits;
        }
        (Verb::Set, Reply::Stored) => {}
        (Verb::Add | Verb::Replace, Reply::Stored) => {}
        (Verb::Add | Verb::Replace, Reply::NotStored) => pending.figures.not_stored = 1,
        (Verb::Mset, Reply::Stored) => return Ok(end_of_batch(pending)),
        (Verb::Delete, Reply::Deleted) | (Verb::Touch, Reply::Touched) => pending.figures.hits = 1,
        (Verb::Delete | Verb::Touch, Reply::NotFound) => pending.figures.misses = 1,
        (Verb::Version, Reply::Version) => {}
        // `set` refused without an error text: the item could not be stored.
        (Verb::Set, Reply::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Reply::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(end_of_batch(pending));
        }
        _ => return Err(Violation),
    }
    Ok(true)
}

/// A batch of sets has one reply for each; anything else has one in all.
fn end_of_batch(pending: &mut Pending) -> bool {
    pending.passed += 1;
    pending.op.verb != Verb::Mset || pending.passed == pending.op.run
}

/// A VALUE block: it must be the next key of the run that was found, with the tape's bytes.
fn take_value(pending: &mut Pending, key: &[u8], flags: u32, data: &[u8], tape: &Tape) {
    let skip = usize::from(pending.passed);
    let found = tape.run(&pending.op).enumerate().skip(skip).find(|(_, k)| tape.key(*k) == key);
    let Some((position, k)) = found else {
        pending.wrong = true;
        return;
    };
    pending.passed = position as u16 + 1;
    pending.figures.hits += 1;
    pending.figures.value_bytes += data.len() as u64;
    if tape.verifies() {
        let holds = tape.holds_length(data.len() as u64);
        let right = holds && flags == 0 && tape.value(k, data.len() as u32) == data;
        pending.wrong |= !right;
    }
}

fn record(pending: &Pending, now_ns: u64, tape: &Tape, tally: &mut Tally) {
    if pending.barrier {
        return;
    }
    if let Some(failure) = pending.failure {
        tally.failure(&pending.stamps(now_ns), failure);
    } else if pending.wrong {
        tally.wrong(pending.op.verb, pending.op.noreply);
    } else {
        let mut figures = write_figures(&pending.op, tape);
        figures.hits = pending.figures.hits;
        figures.misses = pending.figures.misses;
        figures.not_stored = pending.figures.not_stored;
        if pending.op.verb != Verb::Cas {
            figures.value_bytes += pending.figures.value_bytes;
        } else if figures.hits == 0 {
            figures.value_bytes = 0;
        }
        tally.completed(&pending.stamps(now_ns), &figures);
    }
}

/// What an operation names and writes, known before any reply.
fn write_figures(op: &Op, tape: &Tape) -> Figures {
    let mut figures = Figures { keys: u32::from(op.run), ..Figures::default() };
    for k in tape.run(op) {
        figures.key_bytes += tape.key(k).len() as u64;
        figures.value_bytes += match op.verb {
            Verb::Mset => u64::from(tape.value_length(k)),
            verb if verb.writes() => u64::from(op.length),
            _ => 0,
        };
    }
    figures
}
