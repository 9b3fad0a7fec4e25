//! How replies of the meta commands are written.

use cachemark_protocol::meta::request::{MetaOptions, MetaRequest, encode_key};
use cachemark_storage::{Item, SizeClasses, expires_s};

use crate::commands::context::append_or_send;
use crate::commands::decimal::append_number;
use crate::connection::direct_send::DirectSend;
use crate::state::settings::ITEM_HEADER_BYTES;
use crate::state::size_classes;

/// The effect of a read on an item.
#[derive(Clone, Copy)]
pub struct ReadEffect {
    /// The item was missing, and this command created it.
    pub created: bool,
    /// This client must store the item again, even before its expiry.
    pub won: bool,
}

/// Append the reply to an `mg` that found an item. Returns the item's new expiry, and whether this client has to store
/// it again. A `T` or an `N` affects the flags behind it.
pub fn append_hit(
    out: &mut Vec<u8>,
    direct: &mut Option<DirectSend<'_>>,
    options: &MetaOptions<'_>,
    item: &Item<'_>,
    key: &[u8],
    effect: ReadEffect,
    now_s: u32,
) -> (u32, bool) {
    let (mut expires, mut won) = (item.expires_s, effect.won);
    append_status(out, options.value, item.value.len());
    for letter in options.letters.iter() {
        match letter {
            b'T' => expires = expires_s(options.exptime.unwrap_or(0), now_s),
            b'N' if effect.created => expires = expires_s(options.vivify.unwrap_or(0), now_s),
            b'R' if !item.marks.won && expires != 0 => {
                won |= expires < expires_s(options.recache.unwrap_or(0), now_s);
            }
            b's' => append_flag(out, b's', item.value.len() as u64),
            b't' => append_ttl(out, expires, now_s),
            b'c' => append_flag(out, b'c', item.cas),
            b'f' => append_flag(out, b'f', item.flags.into()),
            b'l' => append_flag(out, b'l', now_s.saturating_sub(item.accessed_s).into()),
            b'h' => append_flag(out, b'h', item.fetched.into()),
            b'O' => append_opaque(out, options),
            b'k' => append_key(out, key, item.marks.binary_key),
            _ => {}
        }
    }
    if item.marks.won {
        out.extend_from_slice(b" Z");
    }
    if item.marks.stale {
        out.extend_from_slice(b" X");
    }
    if won {
        out.extend_from_slice(b" W");
    }
    out.extend_from_slice(b"\r\n");
    if options.value {
        append_or_send(out, direct, item.value, b"\r\n");
    }
    (expires, won)
}

#[inline]
pub fn append_status(out: &mut Vec<u8>, value: bool, length: usize) {
    if value {
        out.extend_from_slice(b"VA ");
        append_number(out, length as u64);
    } else {
        out.extend_from_slice(b"HD");
    }
}

#[inline]
pub fn append_flag(out: &mut Vec<u8>, letter: u8, number: u64) {
    out.extend_from_slice(&[b' ', letter]);
    append_number(out, number);
}

pub fn append_ttl(out: &mut Vec<u8>, expires_s: u32, now_s: u32) {
    match expires_s {
        0 => out.extend_from_slice(b" t-1"),
        at_s => append_flag(out, b't', at_s.saturating_sub(now_s).into()),
    }
}

/// Append the key as it was stored.
pub fn append_key(out: &mut Vec<u8>, key: &[u8], binary: bool) {
    out.extend_from_slice(b" k");
    if binary {
        encode_key(key, out);
        out.extend_from_slice(b" b");
    } else {
        out.extend_from_slice(key);
    }
}

fn append_opaque(out: &mut Vec<u8>, options: &MetaOptions<'_>) {
    out.push(b' ');
    out.extend_from_slice(options.opaque);
}

/// Append a flag that is returned as it was sent: the opaque token or the key.
pub fn append_echo(
    out: &mut Vec<u8>,
    letter: u8,
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
) {
    match letter {
        b'O' => append_opaque(out, options),
        b'k' => {
            out.extend_from_slice(b" k");
            out.extend_from_slice(request.key);
            if options.base64 {
                out.extend_from_slice(b" b");
            }
        }
        _ => {}
    }
}

/// Append the reply to an `me`.
pub fn append_debug(
    out: &mut Vec<u8>,
    key: &[u8],
    item: &Item<'_>,
    now_s: u32,
    classes: Option<&SizeClasses>,
) {
    out.extend_from_slice(b"ME ");
    if item.marks.binary_key {
        encode_key(key, out);
    } else {
        out.extend_from_slice(key);
    }
    let left_s = match item.expires_s {
        0 => -1,
        at_s => i64::from(at_s) - i64::from(now_s),
    };
    append_details(out, key, item, left_s, now_s.saturating_sub(item.accessed_s), classes);
    out.extend_from_slice(b"\r\n");
}

/// Append the details that `me` and a dump have of an item, each with its own form of times.
pub fn append_details(
    out: &mut Vec<u8>,
    key: &[u8],
    item: &Item<'_>,
    expires: i64,
    accessed: u32,
    classes: Option<&SizeClasses>,
) {
    let flags_bytes = if item.flags == 0 { 0 } else { size_of::<u32>() as u64 };
    let details = format!(
        " exp={expires} la={accessed} cas={} fetch={} cls={} size={}",
        item.cas,
        if item.fetched { "yes" } else { "no" },
        size_classes::number(classes, key, item),
        key.len() as u64 + item.value.len() as u64 + flags_bytes + ITEM_HEADER_BYTES,
    );
    out.extend_from_slice(details.as_bytes());
}
