//! The meta commands. A value comes with its key. A quiet command has a flag that its reply, if there
//! is one, repeats.

use cachemark_protocol::meta::client::{self as codec, Answer, Get, Mode, Reply};
use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;
use cachemark_protocol::text::encode::{self, LineEnd};
use cachemark_protocol::words::unsigned;
use cachemark_tape::Verb;

use super::traits::{ParsedReply, ReplyTo, Wire};
use crate::connection::outgoing::OutputBuffer;
use crate::connection::verification::{failure_of, keep_cas_token, verify_keyed_value};
use crate::operation::{Failure, Pending};
use crate::routing::TapeView;

pub struct Meta;

const VALUE: Get = Get { value: true, cas: false, touch_s: None, batch: false, quiet: false };

impl Wire for Meta {
    const ERRORS_ARE_ANONYMOUS: bool = true;

    #[inline]
    fn write<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>) {
        let op = &pending.op;
        let key = || view.key(op.key);
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
                for k in view.keys(op) {
                    codec::get(out.bytes(), view.key(k), &Get { batch: true, ..VALUE });
                }
                codec::noop(out.bytes());
            }
            Verb::Delete => codec::delete(out.bytes(), key(), op.noreply),
            Verb::Version => encode::version(out.bytes()),
            Verb::Flush => encode::flush(out.bytes(), LineEnd::of(op.noreply)),
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
                let value = view.written(op);
                codec::store(out, mode, key(), op.exptime_s, value, op.noreply);
            }
            Verb::Mset => {
                for k in view.keys(op) {
                    let value = view.value(k, view.value_length(k));
                    let key = view.key(k);
                    codec::store(out, Mode::Set, key, op.exptime_s, value, op.noreply);
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
        let value = view.written(op);
        codec::store(out, Mode::Cas(token), view.key(op.key), op.exptime_s, value, false);
    }

    fn write_barrier(out: &mut Vec<u8>, _tag: u32) {
        encode::version(out);
    }

    #[inline]
    fn parse_reply(
        bytes: &[u8],
        front: Option<&mut Pending>,
        view: TapeView<'_>,
    ) -> Result<Option<ParsedReply>, Violation> {
        let Some((reply, bytes)) = codec::parse(bytes)? else { return Ok(None) };
        let reply_to = if reply.quiet {
            ReplyTo::Quiet(None)
        } else {
            ReplyTo::Oldest { whole: answer(front.ok_or(Violation)?, &reply, view)? }
        };
        Ok(Some(ParsedReply { bytes, reply_to }))
    }
}

/// Apply one reply to an operation. True if the operation has been answered completely.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, view: TapeView<'_>) -> Result<bool, Violation> {
    if let Answer::Error(kind) = reply.answer {
        pending.failure = Some(failure_of(kind));
        // Each get of an mget may fail. Its end is still a reply of its own.
        return Ok(pending.op.verb != Verb::Mget && pending.is_last_of_batch());
    }
    match (pending.command(), reply.answer) {
        (Verb::Get | Verb::Gets | Verb::Gat, Answer::Value(data)) => {
            value(pending, reply, data, view)?;
        }
        (Verb::Mget, Answer::Value(data)) => {
            value(pending, reply, data, view)?;
            return Ok(false);
        }
        (Verb::Mget, Answer::NotFound) => return Ok(false), // the server need not send this
        (Verb::Mget, Answer::End) => pending.count_missing_keys(),
        (Verb::Cas, Answer::Value(data)) if !pending.in_second_command => {
            value(pending, reply, data, view)?;
            keep_cas_token(pending, reply.cas.ok_or(Violation)?);
        }
        (Verb::Cas, Answer::Done) if pending.in_second_command => {}
        (Verb::Cas, Answer::Exists | Answer::NotFound) if pending.in_second_command => {
            pending.counts.not_stored = 1;
        }
        (Verb::Incr | Verb::Decr, Answer::Value(data)) => {
            unsigned(data).ok_or(Violation)?;
            pending.counts.hits = 1;
        }
        (Verb::Set | Verb::Add | Verb::Replace, Answer::Done)
        | (Verb::Append | Verb::Prepend | Verb::Flush, Answer::Done) => {}
        (Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend, Answer::NotStored) => {
            pending.counts.not_stored = 1;
        }
        (Verb::Mset, Answer::Done) => return Ok(pending.is_last_of_batch()),
        (Verb::Delete | Verb::Touch, Answer::Done) => pending.counts.hits = 1,
        (Verb::Version, Answer::Version) => {}
        (Verb::Set, Answer::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Answer::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(pending.is_last_of_batch());
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
        ) => pending.counts.misses = 1,
        _ => return Err(Violation),
    }
    Ok(true)
}

#[inline]
fn value(
    pending: &mut Pending,
    reply: &Reply<'_>,
    data: &[u8],
    view: TapeView<'_>,
) -> Result<(), Violation> {
    let (Some(key), Some(flags)) = (reply.key, reply.flags) else { return Err(Violation) };
    verify_keyed_value(pending, key, flags, data, view)
}
