//! The classic text protocol.

use cachemark_protocol::encode;
use cachemark_protocol::reply::{Reply, Violation, parse};
use cachemark_tape::Verb;

use crate::book::Book;
use crate::judge::{failure_of, take_named, take_token};
use crate::pending::Pending;
use crate::tally::Failure;
use crate::wire::{By, Taken, Wire};

pub struct Text;

impl Wire for Text {
    // A server keeps its errors to itself where no reply is asked for.
    const NAMELESS_ERRORS: bool = false;

    #[inline]
    fn write(out: &mut Vec<u8>, pending: &Pending, book: Book<'_>) {
        let op = &pending.op;
        let key = || book.key(op.key);
        match pending.command() {
            Verb::Get | Verb::Fetch => encode::get(out, "get", std::iter::once(key())),
            Verb::Gets | Verb::Cas => encode::get(out, "gets", std::iter::once(key())),
            Verb::Mget => encode::get(out, "get", book.keys(op).map(|k| book.key(k))),
            Verb::Gat => encode::get_and_touch(out, key(), op.exptime_s),
            Verb::Touch => encode::touch(out, key(), op.exptime_s, op.noreply),
            Verb::Delete => encode::delete(out, key(), op.noreply),
            Verb::Version => encode::version(out),
            Verb::Incr | Verb::Decr => {
                encode::count(out, op.verb.name(), key(), op.length, op.noreply);
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

    fn write_swap(out: &mut Vec<u8>, pending: &Pending, token: u64, book: Book<'_>) {
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
        let Some((reply, bytes)) = parse(bytes)? else { return Ok(None) };
        let whole = answer(front.ok_or(Violation)?, &reply, book)?;
        Ok(Some(Taken { bytes, by: By::Front { whole } }))
    }
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
        (Verb::Set | Verb::Add | Verb::Replace, Reply::Stored) => {}
        (Verb::Add | Verb::Replace, Reply::NotStored) => pending.figures.not_stored = 1,
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
