//! The binary protocol. Every command carries a number that comes back with its reply, so a reply
//! that is not for the operation whose turn it is is found out at once.

use cachemark_protocol::binary::client::{self as codec, Answer, Head, Reply, opcode};
use cachemark_protocol::reply_errors::{ErrorKind, Violation};
use cachemark_protocol::sink::Sink;
use cachemark_tape::Verb;

use super::traits::{By, Taken, Wire};
use crate::connection::outgoing::Outgoing;
use crate::connection::verification::{failure_of, take_token, take_value};
use crate::operation::{Failure, Pending};
use crate::routing::Book;

pub struct Binary;

impl Wire for Binary {
    const NAMELESS_ERRORS: bool = false;

    #[inline]
    fn write<'tape>(out: &mut Outgoing<'tape>, pending: &Pending, book: Book<'tape>) {
        let op = &pending.op;
        let loud = opcode_of(pending.command());
        let head = Head::new(if op.noreply { opcode::quiet(loud) } else { loud }, pending.tag);
        let key = || book.key(op.key);
        match pending.command() {
            Verb::Get | Verb::Fetch | Verb::Gets | Verb::Cas | Verb::Delete => {
                codec::plain(out.bytes(), &head, key())
            }
            Verb::Mget => write_mget(out.bytes(), pending, book),
            Verb::Touch | Verb::Gat => codec::touch(out.bytes(), &head, key(), op.exptime_s),
            Verb::Version | Verb::Flush => codec::bare(out.bytes(), &head),
            Verb::Append | Verb::Prepend => codec::extend(out, &head, key(), b""),
            Verb::Incr | Verb::Decr => codec::count(out.bytes(), &head, key(), op.length),
            Verb::Set | Verb::Add | Verb::Replace => {
                codec::store(out, &head, key(), op.exptime_s, book.value(op.key, op.length));
            }
            Verb::Mset => {
                for (tag, k) in (pending.tag..).zip(book.keys(op)) {
                    let value = book.value(k, book.value_length(k));
                    let head = Head { opaque: tag, ..head };
                    codec::store(out, &head, book.key(k), op.exptime_s, value);
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
        let head = Head { opcode: opcode::SET, opaque: pending.tag, cas: token };
        codec::store(out, &head, book.key(op.key), op.exptime_s, book.value(op.key, op.length));
    }

    fn write_barrier(out: &mut Vec<u8>, tag: u32) {
        codec::bare(out, &Head::new(opcode::VERSION, tag));
    }

    #[inline]
    fn take(
        bytes: &[u8],
        front: Option<&mut Pending>,
        book: Book<'_>,
    ) -> Result<Option<Taken>, Violation> {
        let Some((reply, bytes)) = codec::parse(bytes)? else { return Ok(None) };
        let by = if opcode::is_quiet_write(reply.opcode) {
            By::Quiet(refusal(&reply))
        } else {
            By::Front { whole: answer(front.ok_or(Violation)?, &reply, book)? }
        };
        Ok(Some(Taken { bytes, by }))
    }
}

/// A run of quiet gets, whose misses are not answered, and a command that is.
fn write_mget(out: &mut Vec<u8>, pending: &Pending, book: Book<'_>) {
    let mut head = Head::new(opcode::GET_KEY_QUIET, pending.tag);
    for k in book.keys(&pending.op) {
        codec::plain(out, &head, book.key(k));
        head.opaque = head.opaque.wrapping_add(1);
    }
    codec::bare(out, &Head { opcode: opcode::NOOP, ..head });
}

fn opcode_of(verb: Verb) -> u8 {
    match verb {
        Verb::Get | Verb::Fetch | Verb::Gets | Verb::Cas => opcode::GET,
        Verb::Mget => opcode::GET_KEY_QUIET,
        Verb::Set | Verb::Mset => opcode::SET,
        Verb::Add => opcode::ADD,
        Verb::Replace => opcode::REPLACE,
        Verb::Delete => opcode::DELETE,
        Verb::Touch => opcode::TOUCH,
        Verb::Gat => opcode::GET_AND_TOUCH,
        Verb::Version => opcode::VERSION,
        Verb::Incr => opcode::INCREMENT,
        Verb::Decr => opcode::DECREMENT,
        Verb::Append => opcode::APPEND,
        Verb::Prepend => opcode::PREPEND,
        Verb::Flush => opcode::FLUSH,
    }
}

/// Whose quiet operation could not be done. One that found nothing to do is as it was asked for.
fn refusal(reply: &Reply<'_>) -> Option<(Verb, Failure)> {
    let Answer::Error(kind) = reply.answer else { return None };
    let quiet =
        |verb: &Verb| verb.may_be_noreply() && opcode::quiet(opcode_of(*verb)) == reply.opcode;
    let verb = Verb::ALL.into_iter().find(quiet)?;
    Some((verb, failure_of(kind)))
}

/// Take one reply for an operation; true when the operation is answered whole.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, book: Book<'_>) -> Result<bool, Violation> {
    let op = pending.op;
    let number = reply.opaque.wrapping_sub(pending.tag);
    match op.verb {
        Verb::Mget => return of_mget(pending, reply, number, book),
        Verb::Mset => return of_mset(pending, reply, number),
        _ if number != 0 => return Err(Violation),
        Verb::Cas if pending.swapping => return of_swap(pending, reply),
        _ if reply.opcode != opcode_of(pending.command()) => return Err(Violation),
        _ => {}
    }
    match (pending.command(), reply.answer) {
        (_, Answer::Error(kind)) => pending.failure = Some(failure_of(kind)),
        (Verb::Get | Verb::Gets | Verb::Gat | Verb::Cas, Answer::Done) => {
            let flags = reply.flags().ok_or(Violation)?;
            take_value(pending, op.key, flags, reply.value, book);
            if op.verb == Verb::Cas {
                take_token(pending, reply.cas);
            }
        }
        (Verb::Incr | Verb::Decr, Answer::Done) => {
            reply.number().ok_or(Violation)?;
            pending.figures.hits = 1;
        }
        (Verb::Delete | Verb::Touch, Answer::Done) => pending.figures.hits = 1,
        (Verb::Set | Verb::Add | Verb::Replace | Verb::Version, Answer::Done)
        | (Verb::Append | Verb::Prepend | Verb::Flush, Answer::Done) => {}
        (Verb::Add, Answer::Exists | Answer::NotStored)
        | (Verb::Replace, Answer::NotFound | Answer::NotStored)
        | (Verb::Append | Verb::Prepend, Answer::NotStored) => pending.figures.not_stored = 1,
        (Verb::Set, Answer::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Set | Verb::Add | Verb::Replace | Verb::Version, _)
        | (Verb::Append | Verb::Prepend | Verb::Flush, _) => return Err(Violation),
        (_, Answer::NotFound) => pending.figures.misses = 1,
        _ => return Err(Violation),
    }
    Ok(true)
}

/// The second half of a cas.
fn of_swap(pending: &mut Pending, reply: &Reply<'_>) -> Result<bool, Violation> {
    match reply.answer {
        _ if reply.opcode != opcode::SET => return Err(Violation),
        Answer::Done => {}
        Answer::Exists => pending.figures.not_stored = 1,
        Answer::NotFound => pending.gone_between(),
        Answer::NotStored => pending.failure = Some(failure_of(ErrorKind::Server)),
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
    }
    Ok(true)
}

/// A value, an error, or the end, of a run of quiet gets.
fn of_mget(
    pending: &mut Pending,
    reply: &Reply<'_>,
    number: u32,
    book: Book<'_>,
) -> Result<bool, Violation> {
    let op = pending.op;
    if reply.opcode == opcode::NOOP && number == u32::from(op.run) {
        if reply.answer != Answer::Done {
            return Err(Violation);
        }
        pending.end_of_reads();
        return Ok(true);
    }
    let turn = u32::from(pending.passed)..u32::from(op.run);
    if reply.opcode != opcode::GET_KEY_QUIET || !turn.contains(&number) {
        return Err(Violation);
    }
    let at = number as u16;
    let k = book.key_at(&op, at);
    pending.passed = at + 1;
    match reply.answer {
        Answer::Done => {
            let flags = reply.flags().ok_or(Violation)?;
            pending.wrong |= reply.key != book.key(k);
            take_value(pending, k, flags, reply.value, book);
        }
        Answer::NotFound => {} // a server that tells what it need not
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
        _ => return Err(Violation),
    }
    Ok(false)
}

/// One of a batch of sets.
fn of_mset(pending: &mut Pending, reply: &Reply<'_>, number: u32) -> Result<bool, Violation> {
    if reply.opcode != opcode::SET || number != u32::from(pending.passed) {
        return Err(Violation);
    }
    match reply.answer {
        Answer::Done => {}
        Answer::NotStored => pending.failure = Some(Failure::Server),
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
        _ => return Err(Violation),
    }
    Ok(pending.end_of_batch())
}
