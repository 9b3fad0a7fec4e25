//! The binary protocol. A reply repeats the number of its command, so a reply to another operation is
//! noticed at once.

use cachemark_protocol::binary::client::{self as codec, Answer, Head, Reply, opcode};
use cachemark_protocol::reply_errors::{ErrorKind, Violation};
use cachemark_protocol::sink::Sink;
use cachemark_tape::Verb;

use super::traits::{ParsedReply, ReplyTo, Wire};
use crate::connection::outgoing::OutputBuffer;
use crate::connection::verification::{failure_of, keep_cas_token, verify_value};
use crate::operation::{Failure, Pending};
use crate::routing::TapeView;

pub struct Binary;

impl Wire for Binary {
    const ERRORS_ARE_ANONYMOUS: bool = false;

    #[inline]
    fn write<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>) {
        let op = &pending.op;
        let loud = opcode_of(pending.command());
        let head = Head::new(if op.noreply { opcode::quiet(loud) } else { loud }, pending.tag);
        let key = || view.key(op.key);
        match pending.command() {
            Verb::Get | Verb::Fetch | Verb::Gets | Verb::Cas | Verb::Delete => {
                codec::plain(out.bytes(), &head, key())
            }
            Verb::Mget => write_mget(out.bytes(), pending, view),
            Verb::Touch | Verb::Gat => codec::touch(out.bytes(), &head, key(), op.exptime_s),
            Verb::Version | Verb::Flush => codec::bare(out.bytes(), &head),
            Verb::Append | Verb::Prepend => codec::extend(out, &head, key(), b""),
            Verb::Incr | Verb::Decr => codec::count(out.bytes(), &head, key(), op.length),
            Verb::Set | Verb::Add | Verb::Replace => {
                codec::store(out, &head, key(), op.exptime_s, view.written(op));
            }
            Verb::Mset => {
                for (tag, k) in (pending.tag..).zip(view.keys(op)) {
                    let value = view.value(k, view.value_length(k));
                    let head = Head { opaque: tag, ..head };
                    codec::store(out, &head, view.key(k), op.exptime_s, value);
                }
            }
        }
    }

    fn write_cas_store<'tape>(
        out: &mut OutputBuffer<'tape>,
        pending: &Pending,
        token: u64,
        view: TapeView<'tape>,
    ) {
        let op = &pending.op;
        let head = Head { opcode: opcode::SET, opaque: pending.tag, cas: token };
        codec::store(out, &head, view.key(op.key), op.exptime_s, view.written(op));
    }

    fn write_barrier(out: &mut Vec<u8>, tag: u32) {
        codec::bare(out, &Head::new(opcode::VERSION, tag));
    }

    #[inline]
    fn parse_reply(
        bytes: &[u8],
        front: Option<&mut Pending>,
        view: TapeView<'_>,
    ) -> Result<Option<ParsedReply>, Violation> {
        let Some((reply, bytes)) = codec::parse(bytes)? else { return Ok(None) };
        let reply_to = if opcode::is_quiet_write(reply.opcode) {
            ReplyTo::Quiet(quiet_failure(&reply))
        } else {
            ReplyTo::Oldest { whole: answer(front.ok_or(Violation)?, &reply, view)? }
        };
        Ok(Some(ParsedReply { bytes, reply_to }))
    }
}

/// Quiet gets, whose misses have no reply, and a noop that ends them.
fn write_mget(out: &mut Vec<u8>, pending: &Pending, view: TapeView<'_>) {
    let mut head = Head::new(opcode::GET_KEY_QUIET, pending.tag);
    for k in view.keys(&pending.op) {
        codec::plain(out, &head, view.key(k));
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

/// Which quiet operation failed, and how. `None`: it found nothing to do, which is no failure.
fn quiet_failure(reply: &Reply<'_>) -> Option<(Verb, Failure)> {
    let Answer::Error(kind) = reply.answer else { return None };
    let quiet =
        |verb: &Verb| verb.may_be_noreply() && opcode::quiet(opcode_of(*verb)) == reply.opcode;
    let verb = Verb::ALL.into_iter().find(quiet)?;
    Some((verb, failure_of(kind)))
}

/// Apply one reply to an operation. True if the operation has been answered completely.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, view: TapeView<'_>) -> Result<bool, Violation> {
    let op = pending.op;
    let number = reply.opaque.wrapping_sub(pending.tag);
    match op.verb {
        Verb::Mget => return answer_mget(pending, reply, number, view),
        Verb::Mset => return answer_mset(pending, reply, number),
        _ if number != 0 => return Err(Violation),
        Verb::Cas if pending.in_second_command => return answer_cas_store(pending, reply),
        _ if reply.opcode != opcode_of(pending.command()) => return Err(Violation),
        _ => {}
    }
    match (pending.command(), reply.answer) {
        (_, Answer::Error(kind)) => pending.failure = Some(failure_of(kind)),
        (Verb::Get | Verb::Gets | Verb::Gat | Verb::Cas, Answer::Done) => {
            let flags = reply.flags().ok_or(Violation)?;
            verify_value(pending, op.key, flags, reply.value, view);
            if op.verb == Verb::Cas {
                keep_cas_token(pending, reply.cas);
            }
        }
        (Verb::Incr | Verb::Decr, Answer::Done) => {
            reply.number().ok_or(Violation)?;
            pending.counts.hits = 1;
        }
        (Verb::Delete | Verb::Touch, Answer::Done) => pending.counts.hits = 1,
        (Verb::Set | Verb::Add | Verb::Replace | Verb::Version, Answer::Done)
        | (Verb::Append | Verb::Prepend | Verb::Flush, Answer::Done) => {}
        (Verb::Add, Answer::Exists | Answer::NotStored)
        | (Verb::Replace, Answer::NotFound | Answer::NotStored)
        | (Verb::Append | Verb::Prepend, Answer::NotStored) => pending.counts.not_stored = 1,
        (Verb::Set, Answer::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Set | Verb::Add | Verb::Replace | Verb::Version, _)
        | (Verb::Append | Verb::Prepend | Verb::Flush, _) => return Err(Violation),
        (_, Answer::NotFound) => pending.counts.misses = 1,
        _ => return Err(Violation),
    }
    Ok(true)
}

/// Apply the reply to the second command of a cas.
fn answer_cas_store(pending: &mut Pending, reply: &Reply<'_>) -> Result<bool, Violation> {
    match reply.answer {
        _ if reply.opcode != opcode::SET => return Err(Violation),
        Answer::Done => {}
        Answer::Exists | Answer::NotFound => pending.counts.not_stored = 1,
        Answer::NotStored => pending.failure = Some(failure_of(ErrorKind::Server)),
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
    }
    Ok(true)
}

/// Apply one reply to the quiet gets of an mget: a value, an error, or the end.
fn answer_mget(
    pending: &mut Pending,
    reply: &Reply<'_>,
    number: u32,
    view: TapeView<'_>,
) -> Result<bool, Violation> {
    let op = pending.op;
    if reply.opcode == opcode::NOOP && number == u32::from(op.run) {
        if reply.answer != Answer::Done {
            return Err(Violation);
        }
        pending.count_missing_keys();
        return Ok(true);
    }
    let turn = u32::from(pending.keys_answered)..u32::from(op.run);
    if reply.opcode != opcode::GET_KEY_QUIET || !turn.contains(&number) {
        return Err(Violation);
    }
    let at = number as u16;
    let k = view.key_at(&op, at);
    pending.keys_answered = at + 1;
    match reply.answer {
        Answer::Done => {
            let flags = reply.flags().ok_or(Violation)?;
            if reply.key != view.key(k) {
                return Err(Violation);
            }
            verify_value(pending, k, flags, reply.value, view);
        }
        Answer::NotFound => {} // the server need not send this
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
        _ => return Err(Violation),
    }
    Ok(false)
}

/// Apply one reply to a batch of sets.
fn answer_mset(pending: &mut Pending, reply: &Reply<'_>, number: u32) -> Result<bool, Violation> {
    if reply.opcode != opcode::SET || number != u32::from(pending.keys_answered) {
        return Err(Violation);
    }
    match reply.answer {
        Answer::Done => {}
        Answer::NotStored => pending.failure = Some(Failure::Server),
        Answer::Error(kind) => pending.failure = Some(failure_of(kind)),
        _ => return Err(Violation),
    }
    Ok(pending.is_last_of_batch())
}
