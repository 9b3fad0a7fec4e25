//! `lru_crawler metadump`: a line for each item, without using it, in memcached's form (its doc/protocol.txt,
//! "LRU_Crawler"). This store has no crawler: each line is written as its item is come upon.

use cachemark_storage::Item;

use crate::execute::Turn;
use crate::meta_reply::append_facts;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Append the lines of a part of the store, 0 the first; the next part, `None` once the dump has ended.
pub fn write(part: usize, turn: &mut Turn<'_>) -> Option<usize> {
    let Turn { state, now_s, out } = turn;
    let next = state.store.for_each_in_part(part, *now_s, |key, item| append(out, key, item));
    if next.is_none() {
        out.extend_from_slice(b"END\r\n");
    }
    next
}

fn append(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>) {
    out.extend_from_slice(b"key=");
    key.iter().for_each(|byte| append_plainly(out, *byte));
    let ends_s = if item.expires_s == 0 { -1 } else { i64::from(item.expires_s) };
    append_facts(out, key, item, ends_s, item.accessed_s);
    out.push(b'\n');
}

/// A byte as URIs have it (RFC 3986, 2.1).
fn append_plainly(out: &mut Vec<u8>, byte: u8) {
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(byte);
    } else {
        let digit = |four: u8| HEX[usize::from(four)];
        out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
    }
}
