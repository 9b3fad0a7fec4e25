//! The key that a client asks for next, where its request is here already: its item is on the way
//! from memory while the one before is answered. A guess at little cost, and no reading of requests: what
//! is no key does no harm.

use cachemark_protocol::binary::{HEADER_BYTES, Header};
use cachemark_protocol::words::first_blank;

/// Commands whose first word is a key.
const VERBS: [&[u8]; 4] = [b"get ", b"mg ", b"set ", b"ms "];

/// The key of the text command that `bytes` begin with.
#[inline]
pub fn text_key(bytes: &[u8]) -> Option<&[u8]> {
    let rest = VERBS.iter().find_map(|verb| bytes.strip_prefix(*verb))?;
    Some(&rest[..first_blank(rest)?])
}

/// The key of the second of the binary requests that `bytes` begin with.
#[inline]
pub fn second_binary_key(bytes: &[u8]) -> Option<&[u8]> {
    let first = Header::read(bytes)?;
    let second = bytes.get(HEADER_BYTES + first.body_bytes()..)?;
    Header::read(second)?.key(&second[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_a_request_begins() {
        assert_eq!(text_key(b"get a-key\r\nget b"), Some(&b"a-key"[..]));
        assert_eq!(text_key(b"mg a-key v\r\n"), Some(&b"a-key"[..]));
        assert_eq!(text_key(b"set a-key 0 0 1\r\nx"), Some(&b"a-key"[..]));
        for other in [&b""[..], b"ge", b"get a-k", b"version\r\n"] {
            assert_eq!(text_key(other), None);
        }
        let mut get = vec![0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
        get.resize(HEADER_BYTES, 0);
        get.push(b'k');
        assert_eq!(second_binary_key(&get), None);
        let twice = [&get[..], &get].concat();
        assert_eq!(second_binary_key(&twice), Some(&b"k"[..]));
        assert_eq!(second_binary_key(&twice[..twice.len() - 1]), None);
    }
}
