//! How replies of the text protocol are written.

use cachemark_storage::Item;

use crate::commands::context::append_or_send;
use crate::commands::decimal::append_number;
use crate::connection::direct_send::DirectSend;

/// Append a reply line, unless the command has `noreply`.
pub fn reply(out: &mut Vec<u8>, noreply: bool, reply: &[u8]) {
    if !noreply {
        out.extend_from_slice(reply);
    }
}

/// Append a `VALUE` block, then `end`. Inlined into the closure that reads the item, so that the compiler
/// leaves out the parts of the item that are not used.
#[inline(always)]
pub fn append_value<const END: usize>(
    out: &mut Vec<u8>,
    direct: &mut Option<DirectSend<'_>>,
    key: &[u8],
    item: &Item<'_>,
    cas: bool,
    end: &[u8; END],
) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    // Most items have no flags.
    if item.flags == 0 {
        out.extend_from_slice(b" 0 ");
    } else {
        out.push(b' ');
        append_number(out, u64::from(item.flags));
        out.push(b' ');
    }
    append_number(out, item.value.len() as u64);
    if cas {
        out.push(b' ');
        append_number(out, item.cas);
    }
    out.extend_from_slice(b"\r\n");
    append_or_send(out, direct, item.value, end);
}
