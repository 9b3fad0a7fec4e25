//! Where a request ends, and whether the script has a say in it.

use cachemark_protocol::binary::request::{HEADER_BYTES, Header, REQUEST_MAGIC, Verb};
use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The script answers.
    Read,
    /// `stats reset`: the script and its log begin anew.
    Restart,
    Other,
}

/// Which protocol a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Text,
    Binary,
}

/// The request at the front of `bytes`: its length and kind; `None` when it is not whole. Reads
/// whose first key does not begin with `prefix` are not the script's. A connection's first byte
/// tells its dialect, which is noted.
pub fn frame(bytes: &[u8], prefix: &[u8], dialect: &mut Option<Dialect>) -> Option<(usize, Kind)> {
    let told = match bytes.first()? {
        &REQUEST_MAGIC => Dialect::Binary,
        _ => Dialect::Text,
    };
    match dialect.get_or_insert(told) {
        Dialect::Binary => binary(bytes, prefix),
        Dialect::Text => text(bytes, prefix),
    }
}

fn read(key: Option<&[u8]>, prefix: &[u8]) -> Kind {
    match key {
        Some(key) if key.starts_with(prefix) => Kind::Read,
        _ => Kind::Other,
    }
}

fn text(bytes: &[u8], prefix: &[u8]) -> Option<(usize, Kind)> {
    let (length, kind) = match parse(bytes) {
        Parsed::Incomplete => return None,
        Parsed::TooLong => (bytes.len(), Kind::Other),
        Parsed::Refused(refusal, line) => (line + refusal.swallow() as usize, Kind::Other),
        Parsed::Command(command, line) => match command {
            Command::Get { mut keys, .. } | Command::GetAndTouch { mut keys, .. } => {
                (line, read(keys.next(), prefix))
            }
            Command::Meta(request) => match request.verb {
                MetaVerb::Get => (line, read(Some(request.key), prefix)),
                MetaVerb::Set => (line + request.length as usize + 2, Kind::Other),
                _ => (line, Kind::Other),
            },
            Command::Store(store) => (line + store.length as usize + 2, Kind::Other),
            Command::Stats { topic: b"reset" } => (line, Kind::Restart),
            _ => (line, Kind::Other),
        },
    };
    (length <= bytes.len()).then_some((length, kind))
}

fn binary(bytes: &[u8], prefix: &[u8]) -> Option<(usize, Kind)> {
    let Some(header) = Header::read(bytes) else {
        // Of another protocol: the session ends it.
        return (bytes.len() >= HEADER_BYTES).then_some((bytes.len(), Kind::Other));
    };
    let length = HEADER_BYTES + header.body_bytes();
    let body = bytes.get(HEADER_BYTES..length)?;
    let kind = match header.verb() {
        Some(Verb::Get | Verb::GetAndTouch) => read(header.key(body), prefix),
        Some(Verb::Stat) if header.key(body) == Some(b"reset") => Kind::Restart,
        _ => Kind::Other,
    };
    Some((length, kind))
}

/// Spoil the value in the reply to a read; false when it has none.
pub fn spoil(reply: &mut [u8]) -> bool {
    const REPLY_MAGIC: u8 = 0x81;
    let at = match reply.first() {
        Some(&REPLY_MAGIC) if reply.len() > HEADER_BYTES && reply[6..8] == [0, 0] => {
            let key = usize::from(u16::from_be_bytes([reply[2], reply[3]]));
            Some(HEADER_BYTES + key + usize::from(reply[4]))
        }
        Some(b'V') => reply.iter().position(|byte| *byte == b'\n').map(|end| end + 1),
        _ => None,
    };
    match at.and_then(|at| reply.get_mut(at)) {
        Some(byte) => {
            *byte ^= 1;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: &[u8]) -> Option<(usize, Kind)> {
        super::frame(bytes, b"", &mut None)
    }

    #[test]
    fn a_request_ends_with_its_data() {
        assert_eq!(frame(b"get a b\r\nget c"), Some((9, Kind::Read)));
        assert_eq!(frame(b"gets a\r\n"), Some((8, Kind::Read)));
        assert_eq!(frame(b"set a 0 0 3\r\nab"), None);
        assert_eq!(frame(b"set a 0 0 3\r\nabc\r\nget"), Some((18, Kind::Other)));
        assert_eq!(frame(b"set a x 0 3\r\nabc\r\n"), Some((18, Kind::Other)));
        assert_eq!(frame(b"stats reset\r\n"), Some((13, Kind::Restart)));
        assert_eq!(frame(b"stats\r\n"), Some((7, Kind::Other)));
        assert_eq!(frame(b"mg a v\r\nmn"), Some((8, Kind::Read)));
        assert_eq!(frame(b"ms a 2 T0\r\nab\r\nmn\r\n"), Some((15, Kind::Other)));
        assert_eq!(frame(b"mn\r\n"), Some((4, Kind::Other)));
        assert_eq!((frame(b""), frame(b"get a")), (None, None));
    }

    #[test]
    fn a_binary_request_ends_with_its_body() {
        let request = |opcode: u8, key: &[u8]| {
            let mut bytes = vec![0x80, opcode, 0, key.len() as u8];
            bytes.resize(24, 0);
            bytes[11] = key.len() as u8;
            bytes.extend_from_slice(key);
            bytes
        };
        assert_eq!(frame(&request(0x0d, b"abc")), Some((27, Kind::Read)));
        assert_eq!(frame(&request(0x0d, b"abc")[..26]), None);
        assert_eq!(frame(&request(0x0a, b"")), Some((24, Kind::Other)));
        assert_eq!(frame(&request(0x10, b"reset")), Some((29, Kind::Restart)));
    }

    #[test]
    fn a_connection_speaks_as_it_began() {
        let mut dialect = Some(Dialect::Text);
        assert_eq!(super::frame(b"\x80get\r\n", b"", &mut dialect), Some((6, Kind::Other)));
        let mut dialect = Some(Dialect::Binary);
        assert_eq!(super::frame(b"get a\r\n", b"", &mut dialect), None);
        assert_eq!(super::frame(&[b'\n'; 30], b"", &mut dialect), Some((30, Kind::Other)));
    }

    #[test]
    fn reads_of_other_keys_are_not_the_scripts() {
        assert_eq!(super::frame(b"get ours:1\r\n", b"ours:", &mut None), Some((12, Kind::Read)));
        assert_eq!(super::frame(b"get theirs\r\n", b"ours:", &mut None), Some((12, Kind::Other)));
    }

    #[test]
    fn only_a_value_can_be_spoilt() {
        let mut hit = *b"VALUE a 0 2\r\nzz\r\nEND\r\n";
        assert!(spoil(&mut hit));
        assert_eq!(&hit, b"VALUE a 0 2\r\n{z\r\nEND\r\n");
        let mut hit = *b"VA 2 f0\r\nzz\r\n";
        assert!(spoil(&mut hit));
        assert_eq!(&hit, b"VA 2 f0\r\n{z\r\n");
        assert!(!spoil(&mut b"END\r\n".to_vec()));
    }
}
