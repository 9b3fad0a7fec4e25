//! The meta commands. A value comes with its key; a quiet command carries a mark that comes back if
//! it is answered all the same.

use cachemark_protocol::meta::client::{self as codec, Answer, Get, Mode, Reply};
use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;
use cachemark_protocol::text::encode;
use cachemark_protocol::words::unsigned;
use cachemark_tape::Verb;

use super::traits::{By, Taken, Wire};
use crate::connection::outgoing::Outgoing;
use crate::connection::verification::{failure_of, take_named, take_token};
use crate::operation::{Failure, Pending};
use crate::routing::Book;

pub struct Meta;

const VALUE: Get = Get { value: true, cas: false, touch_s: None, batch: false, quiet: false };

impl Wire for Meta {
    const NAMELESS_ERRORS: bool = true;

    #[inline]
    fn write<'tape>(out: &mut Outgoing<'tape>, pending: &Pending, book: Book<'tape>) {
        let op = &pending.op;
        let key = || book.key(op.key);
        match pending.command() {
            Verb::Get | Verb::Fetch => codec::get(out.bytes(), key(), &VALUE),
            Verb::Gets | Verb::Cas => codec::get(out.bytes(), key(), &Get { cas: true, ..VALUE }),
            Verb::Gat => {
                codec::get(out.bytes(), key(), &Get { touch_s: Some(op.exptime_s), ..VALUE })
            }
            Verb::Touch => {
                let touch_s = Some(op.exptime_s);
                let touch = Get { value: false, touch_s, quiet: op.noreply, ..VALUE };
                codec::get(out.bytes(), key(), &touch);
            }
            Verb::Mget => {
                for k in book.keys(op) {
                    codec::get(out.bytes(), book.key(k), &Get { batch: true, ..VALUE });
                }
                codec::noop(out.bytes());
            }
            Verb::Delete => codec::delete(out.bytes(), key(), op.noreply),
            Verb::Version => encode::version(out.bytes()),
            Verb::Flush => encode::flush(out.bytes(), op.noreply),
            Verb::Append => codec::store(out, Mode::Append, key(), 0, b"", op.noreply),
            Verb::Prepend => codec::store(out, Mode::Prepend, key(), 0, b"", op.noreply),
            Verb::Incr | Verb::Decr => {
                codec::count(out.bytes(), key(), op.length, op.verb == Verb::Incr, op.noreply);
            }
            Verb::Set | Verb::Add | Verb::Replace => {
                let mode = match pending.command() {
                    Verb::Add => Mode::Add,
                    Verb::Replace => Mode::Replace,
                    _ => Mode::Set,
                };
                let value = book.value(op.key, op.length);
                codec::store(out, mode, key(), op.exptime_s, value, op.noreply);
            }
            Verb::Mset => {
                for k in book.keys(op) {
                    let value = book.value(k, book.value_length(k));
                    let key = book.key(k);
                    codec::store(out, Mode::Set, key, op.exptime_s, value, op.noreply);
                }
            }
        }
    }

    fn write_swap<'tape>(
        out: &mut Outgoing<'tape>,
        pending: &Pending,
        token: u64,
        book: Book<'tape>,
    ) {
        let op = &pending.op;
        let value = book.value(op.key, op.length);
        codec::store(out, Mode::Cas(token), book.key(op.key), op.exptime_s, value, false);
    }

    fn write_barrier(out: &mut Vec<u8>, _tag: u32) {
        encode::version(out);
    }

    #[inline]
    fn take(
        bytes: &[u8],
        front: Option<&mut Pending>,
        book: Book<'_>,
    ) -> Result<Option<Taken>, Violation> {
        let Some((reply, bytes)) = codec::parse(bytes)? else { return Ok(None) };
        let by = if reply.quiet {
            By::Quiet(None)
        } else {
            By::Front { whole: answer(front.ok_or(Violation)?, &reply, book)? }
        };
        Ok(Some(Taken { bytes, by }))
    }
}

/// Take one reply for an operation; true when the operation is answered whole.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, book: Book<'_>) -> Result<bool, Violation> {
    if let Answer::Error(kind) = reply.answer {
        pending.failure = Some(failure_of(kind));
        // Of several gets each may fail; the end of them is told all the same.
        return Ok(pending.op.verb != Verb::Mget && pending.end_of_batch());
    }
    match (pending.command(), reply.answer) {
        (Verb::Get | Verb::Gets | Verb::Gat, Answer::Value(data)) => {
            value(pending, reply, data, book)?;
        }
        (Verb::Mget, Answer::Value(data)) => {
            value(pending, reply, data, book)?;
            return Ok(false);
        }
        (Verb::Mget, Answer::NotFound) => return Ok(false), // a server that tells what it need not
        (Verb::Mget, Answer::End) => pending.end_of_reads(),
        (Verb::Cas, Answer::Value(data)) if !pending.swapping => {
            value(pending, reply, data, book)?;
            take_token(pending, reply.cas.ok_or(Violation)?);
        }
        (Verb::Cas, Answer::Done) if pending.swapping => {}
        (Verb::Cas, Answer::Exists) if pending.swapping => pending.figures.not_stored = 1,
        (Verb::Cas, Answer::NotFound) if pending.swapping => pending.gone_between(),
        (Verb::Incr | Verb::Decr, Answer::Value(data)) => {
            unsigned(data).ok_or(Violation)?;
            pending.figures.hits = 1;
        }
        (Verb::Set | Verb::Add | Verb::Replace, Answer::Done)
        | (Verb::Append | Verb::Prepend | Verb::Flush, Answer::Done) => {}
        (Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend, Answer::NotStored) => {
            pending.figures.not_stored = 1;
        }
        (Verb::Mset, Answer::Done) => return Ok(pending.end_of_batch()),
        (Verb::Delete | Verb::Touch, Answer::Done) => pending.figures.hits = 1,
        (Verb::Version, Answer::Version) => {}
        (Verb::Set, Answer::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Answer::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(pending.end_of_batch());
        }
        (
            Verb::Get
            | Verb::Gets
            | Verb::Gat
            | Verb::Cas
            | Verb::Incr
            | Verb::Decr
            | Verb::Delete
            | Verb::Touch,
            Answer::NotFound,
        ) => pending.figures.misses = 1,
        _ => return Err(Violation),
    }
    Ok(true)
}

#[inline]
fn value(
    pending: &mut Pending,
    reply: &Reply<'_>,
    data: &[u8],
    book: Book<'_>,
) -> Result<(), Violation> {
    let (Some(key), Some(flags)) = (reply.key, reply.flags) else { return Err(Violation) };
    take_named(pending, key, flags, data, book);
    Ok(())
}
