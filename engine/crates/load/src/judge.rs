//! Whether replies are right, and what an operation came to; the same for every protocol.

use cachemark_planted::{Bug, planted};
use cachemark_protocol::reply_errors::ErrorKind;
use cachemark_tape::{Op, Verb};

use crate::book::Book;
use crate::pending::Pending;
use crate::tally::{Failure, Figures, Tally};

pub(crate) fn failure_of(kind: ErrorKind) -> Failure {
    match kind {
        ErrorKind::Client => Failure::Client,
        ErrorKind::Server => Failure::Server,
    }
}

/// A value that comes with its key: that must be the next one of the run that was found.
#[inline]
pub(crate) fn take_named(
    pending: &mut Pending,
    key: &[u8],
    flags: u32,
    data: &[u8],
    book: Book<'_>,
) {
    let op = pending.op;
    if !op.verb.has_run() {
        pending.wrong |= pending.passed > 0 || book.key(op.key) != key;
        if !pending.wrong {
            pending.passed = 1;
            take_value(pending, op.key, flags, data, book);
        }
        return;
    }
    let found = (pending.passed..op.run).find(|at| book.key(book.key_at(&op, *at)) == key);
    let Some(at) = found else {
        pending.wrong = true;
        return;
    };
    pending.passed = at + 1;
    take_value(pending, book.key_at(&op, at), flags, data, book);
}

/// A value of a key: it must be the tape's, byte by byte.
#[inline]
pub(crate) fn take_value(pending: &mut Pending, k: u32, flags: u32, data: &[u8], book: Book<'_>) {
    pending.figures.hits += 1;
    pending.figures.value_bytes += data.len() as u64;
    if book.verifies() && !planted(Bug::UnverifiedValues) {
        let holds = book.holds_length(data.len() as u64);
        let right = holds && flags == 0 && book.value(k, data.len() as u32) == data;
        pending.wrong |= !right;
    }
}

/// What a cas has read, to be named when it writes.
pub(crate) fn take_token(pending: &mut Pending, token: u64) {
    pending.token = Some(token);
}

/// Enter an operation that is answered.
pub(crate) fn record(pending: &Pending, now_ns: u64, book: Book<'_>, tally: &mut Tally) {
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
