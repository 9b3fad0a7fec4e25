//! The storage commands, from `set` to `cas`.

use std::sync::atomic::Ordering;

use cachemark_protocol::text::command::{Store, StoreVerb};
use cachemark_storage::{Marks, Mode, Outcome};

use crate::commands::context::RequestContext;
use crate::commands::observe;
use crate::commands::text::reply::reply;
use crate::commands::uploads::{self, Destination};
use crate::requests::connection_state::{ConnectionState, Consumed};
use crate::state::event_log::kinds;

/// Carry out a storage command whose line has this length and whose data follows it. `None` if the data is
/// not complete. An item that is too large is refused before its data arrives.
pub fn store(
    store: &Store<'_>,
    line: usize,
    rest: &[u8],
    connection: &mut ConnectionState,
    context: &mut RequestContext<'_>,
) -> Option<Consumed> {
    if !context.fits(store.key.len() as u64 + store.length) {
        context.state.too_large.fetch_add(1, Ordering::Relaxed);
        if store.verb == StoreVerb::Set {
            context.drop_stale(store.key);
        }
        let text = b"SERVER_ERROR object too large for cache\r\n";
        report(store, text, context);
        reply(context.out, store.noreply, text);
        connection.swallow = store.length + 2;
        return Some(Consumed::bytes(line));
    }
    let length = store.length as usize;
    let Some(data) = rest.get(line..line + length + 2) else {
        if matches!(store.verb, StoreVerb::Append | StoreVerb::Prepend) {
            return None;
        }
        let Store { key, flags, exptime, .. } = *store;
        let to = Destination { key, flags, exptime, length };
        return uploads::begin(&to, line, rest, connection, context);
    };
    let (value, end) = data.split_at(length);
    finish(store, value, end, context);
    Some(Consumed::bytes(line + data.len()))
}

/// Carry out a storage command whose data is complete, and ends in these two bytes.
pub fn finish(store: &Store<'_>, value: &[u8], end: &[u8], context: &mut RequestContext<'_>) {
    let text = match end {
        b"\r\n" => {
            if observe::lookups_are_observed(context) {
                observe::stores(store.key, context);
            }
            let text = store_value(store, value, context);
            report(store, text, context);
            text
        }
        _ => b"CLIENT_ERROR bad data chunk\r\n",
    };
    reply(context.out, store.noreply, text);
}

/// Report the result of the command to watching clients.
fn report(store: &Store<'_>, text: &[u8], context: &RequestContext<'_>) {
    if context.wants(kinds::MUTATIONS) {
        let joins = matches!(store.verb, StoreVerb::Append | StoreVerb::Prepend);
        let sent = (store.length as usize, store.exptime);
        let (length, exptime) = observe::of_stored(store.key, joins, sent, context);
        observe::stored(store.key, store.verb.name(), text, exptime, length, context);
    }
}

/// Store a value and return the reply line.
fn store_value(store: &Store<'_>, value: &[u8], context: &mut RequestContext<'_>) -> &'static [u8] {
    let mode = match store.verb {
        StoreVerb::Set => Mode::Set,
        StoreVerb::Add => Mode::Add,
        StoreVerb::Replace => Mode::Replace,
        StoreVerb::Append => Mode::Append,
        StoreVerb::Prepend => Mode::Prepend,
        StoreVerb::Cas => Mode::Cas(store.cas),
    };
    let items = &context.state.store;
    if matches!(mode, Mode::Append | Mode::Prepend) {
        let present = items.value_length(store.key, context.now_s).unwrap_or(0);
        if !context.fits((store.key.len() + present + value.len()) as u64) {
            return b"NOT_STORED\r\n";
        }
    }
    let outcome = match context.reserved.take() {
        Some(item) => Some(items.store_reserved(item, mode, 0, Marks::default(), context.now_s).0),
        None => items.store(mode, store.key, store.flags, store.exptime, value, context.now_s),
    };
    match outcome {
        Some(Outcome::Stored) => b"STORED\r\n",
        Some(Outcome::NotStored) => b"NOT_STORED\r\n",
        Some(Outcome::Exists) => b"EXISTS\r\n",
        Some(Outcome::NotFound) => b"NOT_FOUND\r\n",
        None => {
            if mode == Mode::Set {
                context.drop_stale(store.key);
            }
            context.state.no_memory.fetch_add(1, Ordering::Relaxed);
            b"SERVER_ERROR out of memory storing object\r\n"
        }
    }
}
