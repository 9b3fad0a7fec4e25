//! The classic text protocol.

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;
use cachemark_protocol::text::encode;
use cachemark_protocol::text::reply::{Reply, parse};
use cachemark_tape::Verb;

use super::traits::{By, Taken, Wire};
use crate::connection::outgoing::Outgoing;
use crate::connection::verification::{failure_of, take_named, take_token, take_value};
use crate::operation::{Failure, Pending};
use crate::routing::Book;

pub struct Text;

impl Wire for Text {
    // A server keeps its errors to itself where no reply is asked for.
    const NAMELESS_ERRORS: bool = false;

    #[inline]
    fn write<'tape>(out: &mut Outgoing<'tape>, pending: &Pending, book: Book<'tape>) {
        let op = &pending.op;
        let key = || book.key(op.key);
        match pending.command() {
            Verb::Get | Verb::Fetch => encode::get(out.bytes(), "get", std::iter::once(key())),
            Verb::Gets | Verb::Cas => encode::get(out.bytes(), "gets", std::iter::once(key())),
            Verb::Mget => encode::get(out.bytes(), "get", book.keys(op).map(|k| book.key(k))),
            Verb::Gat => encode::get_and_touch(out.bytes(), key(), op.exptime_s),
            Verb::Touch => encode::touch(out.bytes(), key(), op.exptime_s, op.noreply),
            Verb::Delete => encode::delete(out.bytes(), key(), op.noreply),
            Verb::Version => encode::version(out.bytes()),
            Verb::Flush => encode::flush(out.bytes(), op.noreply),
            Verb::Append | Verb::Prepend => {
                encode::store(out, op.verb.name(), key(), 0, b"", op.noreply);
            }
            Verb::Incr | Verb::Decr => {
                encode::count(out.bytes(), op.verb.name(), key(), op.length, op.noreply);
            }
            Verb::Set | Verb::Add | Verb::Replace => {
                let value = book.value(op.key, op.length);
                encode::store(
                    out,
                    pending.command().name(),
                    key(),
                    op.exptime_s,
                    value,
                    op.noreply,
                );
            }
            Verb::Mset => {
                for k in book.keys(op) {
                    let value = book.value(k, book.value_length(k));
                    encode::store(out, "set", book.key(k), op.exptime_s, value, op.noreply);
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
        encode::cas(out, book.key(op.key), op.exptime_s, value, token);
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
        let Some(pending) = front else {
            return if parse(bytes)?.is_some() { Err(Violation) } else { Ok(None) };
        };
        if let Some(bytes) = hit(bytes, pending, book) {
            return Ok(Some(Taken { bytes, by: By::Front { whole: true } }));
        }
        let Some((reply, bytes)) = parse(bytes)? else { return Ok(None) };
        let whole = answer(pending, &reply, book)?;
        Ok(Some(Taken { bytes, by: By::Front { whole } }))
    }
}

/// Take the whole reply to a get of one key that was found, if that is what comes first: most of
/// what is measured. Its key is known, so that it is compared, not looked for. How many bytes it was;
/// anything else is left as it is, to those who look closer.
#[inline]
fn hit(bytes: &[u8], pending: &mut Pending, book: Book<'_>) -> Option<usize> {
    if pending.op.verb != Verb::Get || pending.passed > 0 || pending.barrier {
        return None;
    }
    let line = bytes.strip_prefix(b"VALUE ")?.strip_prefix(book.key(pending.op.key))?;
    let mut rest = line.strip_prefix(b" 0 ")?;
    let mut length = 0;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        // Nine digits at most: more do not fit a buffer, or are none.
        length = length * 10 + usize::from(digit - b'0');
        rest = after;
        if length >= 1_000_000_000 {
            return None;
        }
    }
    let block = rest.strip_prefix(b"\r\n")?;
    let (data, tail) = block.split_at_checked(length)?;
    let after = tail.strip_prefix(b"\r\nEND\r\n")?;
    take_value(pending, pending.op.key, 0, data, book);
    Some(bytes.len() - after.len())
}

/// Take one reply for an operation; true when the operation is answered whole.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, book: Book<'_>) -> Result<bool, Violation> {
    if let Reply::Error(kind) = reply {
        pending.failure = Some(failure_of(*kind));
        return Ok(pending.end_of_batch());
    }
    match (pending.command(), reply) {
        (Verb::Cas, Reply::Value { key, flags, data, cas }) if pending.token.is_none() => {
            take_named(pending, key, *flags, data, book);
            take_token(pending, cas.ok_or(Violation)?);
            return Ok(false);
        }
        (Verb::Cas, Reply::End) if !pending.swapping => {
            pending.figures.misses = 1 - pending.figures.hits;
        }
        (Verb::Cas, Reply::Stored) if pending.swapping => {}
        (Verb::Cas, Reply::Exists) if pending.swapping => pending.figures.not_stored = 1,
        (Verb::Cas, Reply::NotFound) if pending.swapping => pending.gone_between(),
        (Verb::Incr | Verb::Decr, Reply::Number(_)) => pending.figures.hits = 1,
        (Verb::Incr | Verb::Decr, Reply::NotFound) => pending.figures.misses = 1,
        (
            Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat,
            Reply::Value { key, flags, data, .. },
        ) => {
            take_named(pending, key, *flags, data, book);
            return Ok(false);
        }
        (Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat, Reply::End) => pending.end_of_reads(),
        (Verb::Set | Verb::Add | Verb::Replace, Reply::Stored)
        | (Verb::Append | Verb::Prepend, Reply::Stored)
        | (Verb::Flush, Reply::Ok) => {}
        (Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend, Reply::NotStored) => {
            pending.figures.not_stored = 1;
        }
        (Verb::Mset, Reply::Stored) => return Ok(pending.end_of_batch()),
        (Verb::Delete, Reply::Deleted) | (Verb::Touch, Reply::Touched) => pending.figures.hits = 1,
        (Verb::Delete | Verb::Touch, Reply::NotFound) => pending.figures.misses = 1,
        (Verb::Version, Reply::Version) => {}
        // `set` refused without an error text: the item could not be stored.
        (Verb::Set, Reply::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Reply::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(pending.end_of_batch());
        }
        _ => return Err(Violation),
    }
    Ok(true)
}
