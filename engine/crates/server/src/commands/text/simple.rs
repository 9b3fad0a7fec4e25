//! Commands without data and without a long reply.

use std::sync::atomic::Ordering;

use cachemark_storage::Arithmetic;

use crate::commands::context::RequestContext;
use crate::commands::decimal::append_number;
use crate::commands::observe;
use crate::commands::text::reply::reply;
use crate::state::event_log::kinds;

#[inline(never)]
pub fn delete(key: &[u8], noreply: bool, context: &mut RequestContext<'_>) {
    let watched = context.wants(kinds::DELETIONS);
    let length = watched.then(|| context.state.store.value_length(key, context.now_s)).flatten();
    let found = context.state.store.delete(key, context.now_s);
    if let Some(length) = length.filter(|_| found) {
        observe::deleted(key, "delete", length, context);
    }
    reply(context.out, noreply, if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
}

#[inline(never)]
pub fn arithmetic(
    key: &[u8],
    delta: u64,
    increment: bool,
    noreply: bool,
    context: &mut RequestContext<'_>,
) {
    let result = context.state.store.arithmetic(key, delta, increment, context.now_s);
    if !noreply {
        append_result(context.out, result);
    }
}

#[inline(never)]
pub fn touch(key: &[u8], exptime: i64, noreply: bool, context: &mut RequestContext<'_>) {
    let found = context.state.store.touch(key, exptime, context.now_s);
    reply(context.out, noreply, if found { b"TOUCHED\r\n" } else { b"NOT_FOUND\r\n" });
}

#[inline(never)]
pub fn flush_all(delay: i64, noreply: bool, context: &mut RequestContext<'_>) {
    context.state.flushes.fetch_add(1, Ordering::Relaxed);
    if !context.state.settings.commands.flush {
        return reply(context.out, noreply, b"CLIENT_ERROR flush_all not allowed\r\n");
    }
    context.state.store.flush(delay, context.now_s);
    reply(context.out, noreply, b"OK\r\n");
}

#[inline(never)]
pub fn version(context: &mut RequestContext<'_>) {
    context.out.extend_from_slice(b"VERSION ");
    context.out.extend_from_slice(context.state.version.as_bytes());
    context.out.extend_from_slice(b"\r\n");
}

fn append_result(out: &mut Vec<u8>, result: Arithmetic) {
    match result {
        Arithmetic::Number(number) => {
            append_number(out, number);
            out.extend_from_slice(b"\r\n");
        }
        // In the text protocol, `incr` and `decr` have no cas number.
        Arithmetic::NotFound | Arithmetic::Exists => out.extend_from_slice(b"NOT_FOUND\r\n"),
        Arithmetic::NoRoom => out.extend_from_slice(b"SERVER_ERROR out of memory in incr\r\n"),
        Arithmetic::NonNumeric => out
            .extend_from_slice(b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
    }
}
