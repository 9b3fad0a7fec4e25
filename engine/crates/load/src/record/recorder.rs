//! The way from operations to figures. An operation whose keys are on several servers is sent in
//! parts; it begins with the first that goes out and ends with the last that is answered.

use cachemark_tape::{Op, Verb};

use super::metrics::Tally;
use crate::operation::{Failure, Figures, Pending};
use crate::routing::Book;

/// A player's figures, and what they wait for.
pub struct Ledger {
    pub tally: Tally,
    joints: Vec<Joint>,
    free: Vec<u32>,
}

/// An operation in parts.
struct Joint {
    /// The operation as a whole, with what its parts came to so far.
    whole: Pending,
    left: u16,
}

impl Ledger {
    pub fn new(tally: Tally) -> Ledger {
        Ledger { tally, joints: Vec::new(), free: Vec::new() }
    }

    /// An operation that is going to be sent in so many parts: the number that they bear.
    pub fn join(&mut self, whole: Pending, parts: u16) -> u32 {
        let joint = Joint { whole, left: parts };
        match self.free.pop() {
            Some(number) => {
                self.joints[number as usize] = joint;
                number
            }
            None => {
                self.joints.push(joint);
                self.joints.len() as u32 - 1
            }
        }
    }

    /// Note that an operation, or a part of one, goes out now.
    #[inline]
    pub fn sent(&mut self, pending: &mut Pending, now_ns: u64) {
        if pending.sent_ns != 0 {
            return; // a second command: the operation began with its first
        }
        pending.sent_ns = now_ns;
        match pending.joint {
            None => begin(pending, now_ns, &mut self.tally),
            Some(number) => {
                let whole = &mut self.joints[number as usize].whole;
                if whole.sent_ns == 0 {
                    whole.sent_ns = now_ns;
                    begin(whole, now_ns, &mut self.tally);
                }
            }
        }
    }

    /// Note that it was answered; true when an operation ended with it.
    #[inline]
    pub fn answered(&mut self, pending: &Pending, now_ns: u64, book: Book<'_>) -> bool {
        match pending.joint {
            _ if pending.barrier => true,
            None => {
                record(pending, now_ns, book, &mut self.tally);
                true
            }
            Some(number) => self.part_ended(number, pending, now_ns, book),
        }
    }

    /// Note that it failed; true when an operation ended with it.
    pub fn failed(
        &mut self,
        mut pending: Pending,
        failure: Failure,
        now_ns: u64,
        book: Book<'_>,
    ) -> bool {
        pending.failure = Some(failure);
        self.answered(&pending, now_ns, book)
    }

    fn part_ended(&mut self, number: u32, part: &Pending, now_ns: u64, book: Book<'_>) -> bool {
        let joint = &mut self.joints[number as usize];
        let whole = &mut joint.whole;
        whole.failure = whole.failure.or(part.failure);
        whole.wrong |= part.wrong;
        if !part.copies {
            whole.figures.hits += part.figures.hits;
            whole.figures.misses += part.figures.misses;
            whole.figures.not_stored += part.figures.not_stored;
            whole.figures.value_bytes += part.figures.value_bytes;
        }
        joint.left -= 1;
        if joint.left > 0 {
            return false;
        }
        record(whole, now_ns, book, &mut self.tally);
        self.free.push(number);
        true
    }
}

#[inline]
fn begin(pending: &Pending, now_ns: u64, tally: &mut Tally) {
    if pending.barrier {
        tally.barriers += 1;
        return;
    }
    tally.begun(pending.op.verb, pending.op.noreply);
    if pending.open_loop {
        tally.lag.saturating_record(now_ns.saturating_sub(pending.due_ns).max(1));
    }
}

/// Enter an operation that is answered.
fn record(pending: &Pending, now_ns: u64, book: Book<'_>, tally: &mut Tally) {
    if let Some(failure) = pending.failure {
        tally.failure(&pending.stamps(now_ns), failure);
    } else if pending.wrong {
        tally.wrong(pending.op.verb, pending.op.noreply);
    } else {
        let mut figures = write_figures(&pending.op, book);
        figures.hits = pending.figures.hits;
        figures.misses = pending.figures.misses;
        figures.not_stored = pending.figures.not_stored;
        match pending.op.verb {
            Verb::Cas if figures.hits == 0 => figures.value_bytes = 0,
            Verb::Cas => {}
            Verb::Fetch if figures.hits > 0 => figures.value_bytes = pending.figures.value_bytes,
            Verb::Fetch => {}
            _ => figures.value_bytes += pending.figures.value_bytes,
        }
        tally.completed(&pending.stamps(now_ns), &figures);
    }
}

/// What an operation names and writes, known before any reply.
#[inline]
fn write_figures(op: &Op, book: Book<'_>) -> Figures {
    let mut figures = Figures { keys: u32::from(op.run), ..Figures::default() };
    if op.run == 1 && !op.verb.has_run() {
        figures.key_bytes = book.key(op.key).len() as u64;
        figures.value_bytes = if op.verb.writes() { u64::from(op.length) } else { 0 };
        return figures;
    }
    for k in book.keys(op) {
        figures.key_bytes += book.key(k).len() as u64;
        figures.value_bytes += match op.verb {
            Verb::Mset => u64::from(book.value_length(k)),
            verb if verb.writes() => u64::from(op.length),
            _ => 0,
        };
    }
    figures
}
