//! Reports the effects of commands on items to the log that clients watch, and to `stats detail`. Commands call
//! this only while a client watches or `stats detail` is on.

use cachemark_storage::expires_s;

use crate::commands::context::RequestContext;
use crate::state::event_lines::{self, ItemStore};
use crate::state::event_log::kinds;
use crate::state::prefixes::Use;

/// The coming access of a command to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Get,
    Delete,
    /// Anything else that looks for an item first.
    Other,
}

/// Whether a client watches lookups, or `stats detail` counts them.
#[inline]
pub fn lookups_are_observed(context: &RequestContext<'_>) -> bool {
    context.wants(kinds::FETCHERS | kinds::DETAIL)
}

/// A command is about to look for a key. Its value's length is found by a lookup of its own, so that commands
/// need not know it.
#[cold]
pub fn looks_up(access: Access, key: &[u8], context: &RequestContext<'_>) {
    let length = context.state.store.value_length(key, context.now_s);
    if context.wants(kinds::FETCHERS) {
        let socket = context.socket.unwrap_or(-1);
        context.state.log.write(kinds::FETCHERS, &event_lines::item_get(key, length, socket));
    }
    match access {
        Access::Get => count(key, Use::Get { hit: length.is_some() }, context),
        Access::Delete => count(key, Use::Delete, context),
        Access::Other => {}
    }
}

fn count(key: &[u8], usage: Use, context: &RequestContext<'_>) {
    if context.wants(kinds::DETAIL) {
        context.state.prefixes.count(key, context.state.settings.prefix_delimiter, usage);
    }
}

/// A command is about to store a value.
#[cold]
pub fn stores(key: &[u8], context: &RequestContext<'_>) {
    looks_up(Access::Other, key, context);
    count(key, Use::Set, context);
}

/// Log the result of a storage command: `code` is the reply's line or its first word, in any protocol.
#[cold]
pub fn stored(
    key: &[u8],
    command: &str,
    code: &[u8],
    exptime: i64,
    length: usize,
    context: &RequestContext<'_>,
) {
    if !context.wants(kinds::MUTATIONS) {
        return;
    }
    let status = match code.trim_ascii_end() {
        b"STORED" | b"HD" => "stored",
        b"EXISTS" | b"EX" => "exists",
        b"NOT_FOUND" | b"NF" => "not_found",
        b"NOT_STORED" | b"NS" => "not_stored",
        b"SERVER_ERROR object too large for cache" => "too_large",
        _ => "no_memory",
    };
    let ttl_s = match exptime {
        0 => 0,
        exptime => expires_s(exptime, context.now_s).saturating_sub(context.now_s),
    };
    let item = ItemStore { key, status, command, ttl_s, length };
    let line = event_lines::item_store(&item, context.socket.unwrap_or(-1));
    context.state.log.write(kinds::MUTATIONS, &line);
}

/// The length and the exptime of an item that a command has stored: what it sent, or what the item has by now if the
/// command `joins` a value to it.
#[cold]
pub fn of_stored(
    key: &[u8],
    joins: bool,
    sent: (usize, i64),
    context: &RequestContext<'_>,
) -> (usize, i64) {
    if !joins {
        return sent;
    }
    let entry = context.state.store.entry(key, context.now_s);
    entry.item().map_or(sent, |item| (item.value.len(), i64::from(item.expires_s)))
}

/// An item was deleted.
#[inline]
pub fn deleted(key: &[u8], command: &str, length: usize, context: &RequestContext<'_>) {
    if context.wants(kinds::DELETIONS) {
        let line = event_lines::deleted(key, command, length);
        context.state.log.write(kinds::DELETIONS, &line);
    }
}
