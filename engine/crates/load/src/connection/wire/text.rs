//! The classic text protocol.

use cachemark_protocol::reply_errors::Violation;
use cachemark_protocol::sink::Sink;
use cachemark_protocol::text::encode::{self, LineEnd};
use cachemark_protocol::text::reply::{Reply, parse};
use cachemark_tape::Verb;

use super::traits::{ParsedReply, ReplyTo, Wire};
use crate::connection::outgoing::OutputBuffer;
use crate::connection::verification::{failure_of, is_right, keep_cas_token, verify_keyed_value};
use crate::operation::{Failure, OperationCounts, Pending};
use crate::routing::TapeView;

/// The text protocol. `SPACE`: a space ends each line that may take `noreply` and does not. memcached
/// ignores the space; emcache refuses the line without it. It is a type so that lines cost no test.
pub struct TextWith<const SPACE: bool>;

pub type Text = TextWith<false>;
pub type SpacedText = TextWith<true>;

impl<const SPACE: bool> TextWith<SPACE> {
    #[inline]
    fn line_end(noreply: bool) -> LineEnd {
        if SPACE && !noreply { LineEnd::Space } else { LineEnd::of(noreply) }
    }

    /// The commands of any operation. Not inlined, so that the code for a get is short.
    #[inline(never)]
    fn write_any<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>) {
        let op = &pending.op;
        let key = || view.key(op.key);
        let end = Self::line_end(op.noreply);
        match pending.command() {
            Verb::Get | Verb::Fetch => encode::get_one(out.bytes(), key()),
            Verb::Gets | Verb::Cas => encode::get(out.bytes(), "gets", std::iter::once(key())),
            Verb::Mget => encode::get(out.bytes(), "get", view.keys(op).map(|k| view.key(k))),
            Verb::Gat => encode::get_and_touch(out.bytes(), key(), op.exptime_s),
            Verb::Touch => encode::touch(out.bytes(), key(), op.exptime_s, end),
            Verb::Delete => encode::delete(out.bytes(), key(), end),
            Verb::Version => encode::version(out.bytes()),
            Verb::Flush => encode::flush(out.bytes(), LineEnd::of(op.noreply)),
            Verb::Append | Verb::Prepend => {
                encode::store(out, op.verb.name(), key(), 0, b"", end);
            }
            Verb::Incr | Verb::Decr => {
                encode::count(out.bytes(), op.verb.name(), key(), op.length, end);
            }
            Verb::Set | Verb::Add | Verb::Replace => {
                let value = view.written(op);
                encode::store(out, pending.command().name(), key(), op.exptime_s, value, end);
            }
            Verb::Mset => {
                for k in view.keys(op) {
                    let value = view.value(k, view.value_length(k));
                    encode::store(out, "set", view.key(k), op.exptime_s, value, end);
                }
            }
        }
    }
}

impl<const SPACE: bool> Wire for TextWith<SPACE> {
    // The server sends no error for a command with `noreply`.
    const ERRORS_ARE_ANONYMOUS: bool = false;

    #[inline(always)]
    fn write<'tape>(out: &mut OutputBuffer<'tape>, pending: &Pending, view: TapeView<'tape>) {
        match pending.op.verb {
            Verb::Get => encode::get_one(out.bytes(), view.key(pending.op.key)),
            _ => Self::write_any(out, pending, view),
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
        encode::cas(out, view.key(op.key), op.exptime_s, value, token, Self::line_end(false));
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
        let Some(pending) = front else {
            return Err(Violation); // no request asked for it
        };
        if let Some((bytes, counts)) = parse_hit(bytes, pending, view) {
            return Ok(Some(ParsedReply { bytes, reply_to: ReplyTo::OldestHit(counts) }));
        }
        let Some((reply, bytes)) = parse(bytes)? else { return Ok(None) };
        let whole = answer(pending, &reply, view)?;
        Ok(Some(ParsedReply { bytes, reply_to: ReplyTo::Oldest { whole } }))
    }
}

/// The fast path: a complete hit with the right value for a get of one key, the most frequent reply. The
/// key is known, so it is compared and not parsed. Returns the length of the reply, and its counts.
/// `None` for everything else, which the full parser reads.
#[inline(always)]
fn parse_hit(
    bytes: &[u8],
    pending: &Pending,
    view: TapeView<'_>,
) -> Option<(usize, OperationCounts)> {
    if pending.op.verb != Verb::Get || pending.keys_answered > 0 || pending.split_id.is_some() {
        return None;
    }
    let key = view.key(pending.op.key);
    let line = bytes.strip_prefix(b"VALUE ")?.strip_prefix(key)?;
    let mut rest = line.strip_prefix(b" 0 ")?;
    let mut length = 0;
    while let [digit @ b'0'..=b'9', after @ ..] = rest {
        // At most nine digits: a longer length does not fit into memory, or is not a length.
        length = length * 10 + usize::from(digit - b'0');
        rest = after;
        if length >= 1_000_000_000 {
            return None;
        }
    }
    let block = rest.strip_prefix(b"\r\n")?;
    let (data, tail) = block.split_at_checked(length)?;
    let after = tail.strip_prefix(b"\r\nEND\r\n")?;
    let counts = OperationCounts {
        hits: 1,
        keys: 1,
        key_bytes: key.len() as u64,
        value_bytes: length as u64,
        ..OperationCounts::default()
    };
    is_right(pending.op.key, pending.op.generation, 0, data, view)
        .then_some((bytes.len() - after.len(), counts))
}

/// Apply one reply to an operation. True if the operation has been answered completely.
#[inline]
fn answer(pending: &mut Pending, reply: &Reply<'_>, view: TapeView<'_>) -> Result<bool, Violation> {
    if let Reply::Error(kind) = reply {
        pending.failure = Some(failure_of(*kind));
        return Ok(pending.is_last_of_batch());
    }
    match (pending.command(), reply) {
        (Verb::Cas, Reply::Value { key, flags, data, cas }) if pending.token.is_none() => {
            verify_keyed_value(pending, key, *flags, data, view)?;
            keep_cas_token(pending, cas.ok_or(Violation)?);
            return Ok(false);
        }
        (Verb::Cas, Reply::End) if !pending.in_second_command => {
            pending.counts.misses = 1 - pending.counts.hits;
        }
        (Verb::Cas, Reply::Stored) if pending.in_second_command => {}
        // Not found: it was deleted since it was read.
        (Verb::Cas, Reply::Exists | Reply::NotFound) if pending.in_second_command => {
            pending.counts.not_stored = 1;
        }
        (Verb::Incr | Verb::Decr, Reply::Number(_)) => pending.counts.hits = 1,
        (Verb::Incr | Verb::Decr, Reply::NotFound) => pending.counts.misses = 1,
        (
            Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat,
            Reply::Value { key, flags, data, .. },
        ) => {
            verify_keyed_value(pending, key, *flags, data, view)?;
            return Ok(false);
        }
        (Verb::Get | Verb::Gets | Verb::Mget | Verb::Gat, Reply::End) => {
            pending.count_missing_keys()
        }
        (Verb::Set | Verb::Add | Verb::Replace, Reply::Stored)
        | (Verb::Append | Verb::Prepend, Reply::Stored)
        | (Verb::Flush, Reply::Ok) => {}
        (Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend, Reply::NotStored) => {
            pending.counts.not_stored = 1;
        }
        (Verb::Mset, Reply::Stored) => return Ok(pending.is_last_of_batch()),
        (Verb::Delete, Reply::Deleted) | (Verb::Touch, Reply::Touched) => pending.counts.hits = 1,
        (Verb::Delete | Verb::Touch, Reply::NotFound) => pending.counts.misses = 1,
        (Verb::Version, Reply::Version) => {}
        // A `set` that is refused without an error text: the item could not be stored.
        (Verb::Set, Reply::NotStored) => pending.failure = Some(Failure::Server),
        (Verb::Mset, Reply::NotStored) => {
            pending.failure = Some(Failure::Server);
            return Ok(pending.is_last_of_batch());
        }
        _ => return Err(Violation),
    }
    Ok(true)
}
