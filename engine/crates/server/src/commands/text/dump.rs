//! `lru_crawler metadump`: a line for each item, in memcached's form (its doc/protocol.txt, "LRU_Crawler"),
//! which is not recorded as a use of the item. This store has no crawler: the lines are written while the
//! items are iterated.

use cachemark_storage::Item;

use crate::commands::context::RequestContext;
use crate::commands::meta::reply::append_details;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Append the lines of the parts of the store from `resume_at` on. False if the output became too long
/// before the last part.
pub fn write(resume_at: &mut usize, context: &mut RequestContext<'_>, pause_at: usize) -> bool {
    while let Some(next) = write_part(*resume_at, context) {
        *resume_at = next;
        if context.out.len() >= pause_at {
            return false;
        }
    }
    *resume_at = 0;
    true
}

/// Append the lines of one part and return the next; `None`, and `END`, after the last.
fn write_part(part: usize, context: &mut RequestContext<'_>) -> Option<usize> {
    let RequestContext { state, now_s, out } = context;
    let next = state.store.for_each_in_part(part, *now_s, |key, item| append(out, key, item));
    if next.is_none() {
        out.extend_from_slice(b"END\r\n");
    }
    next
}

fn append(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>) {
    out.extend_from_slice(b"key=");
    key.iter().for_each(|byte| append_percent_encoded(out, *byte));
    let expires_s = if item.expires_s == 0 { -1 } else { i64::from(item.expires_s) };
    append_details(out, key, item, expires_s, item.accessed_s);
    out.push(b'\n');
}

/// Append a byte of a key in percent-encoding (RFC 3986, 2.1).
fn append_percent_encoded(out: &mut Vec<u8>, byte: u8) {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(byte);
    } else {
        let digit = |four: u8| HEX[usize::from(four)];
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
    }
}
