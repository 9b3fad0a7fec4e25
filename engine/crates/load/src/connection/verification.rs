//! Whether replies are right, and what an operation came to; the same for every protocol.

use cachemark_planted::{Bug, planted};
use cachemark_protocol::reply_errors::ErrorKind;

use crate::operation::{Failure, Pending};
use crate::routing::Book;

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
