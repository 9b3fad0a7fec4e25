//! Finds the end of a request, and whether the script answers it.

use cachemark_protocol::binary::request::{HEADER_BYTES, Header, REQUEST_MAGIC, Verb};
use cachemark_protocol::meta::request::MetaVerb;
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// The script answers it.
    Read,
    /// `stats reset`: restart the script and its log.
    Restart,
    Other,
}

/// The protocol of a connection: its first byte decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionProtocol {
    Text,
    Binary,
}

/// The length and kind of the first request in `bytes`; `None` if it is incomplete. The script answers
/// only reads whose first key starts with `prefix`. The first byte of a connection sets its protocol.
pub fn next_request(
    bytes: &[u8],
    prefix: &[u8],
    protocol: &mut Option<ConnectionProtocol>,
) -> Option<(usize, RequestKind)> {
    let detected = match bytes.first()? {
        &REQUEST_MAGIC => ConnectionProtocol::Binary,
        _ => ConnectionProtocol::Text,
    };
    match protocol.get_or_insert(detected) {
        ConnectionProtocol::Binary => binary(bytes, prefix),
        ConnectionProtocol::Text => text(bytes, prefix),
    }
}

fn read(key: Option<&[u8]>, prefix: &[u8]) -> RequestKind {
    match key {
        Some(key) if key.starts_with(prefix) => RequestKind::Read,
        _ => RequestKind::Other,
    }
}

fn text(bytes: &[u8], prefix: &[u8]) -> Option<(usize, RequestKind)> {
    let (length, kind) = match parse(bytes) {
        Parsed::Incomplete => return None,
        Parsed::TooLong => (bytes.len(), RequestKind::Other),
        Parsed::Refused(refusal, line) => (line + refusal.swallow() as usize, RequestKind::Other),
        Parsed::Command(command, line) => match command {
            Command::Get { mut keys, .. } | Command::GetAndTouch { mut keys, .. } => {
                (line, read(keys.next(), prefix))
            }
            Command::Meta(request) => match request.verb {
                MetaVerb::Get => (line, read(Some(request.key), prefix)),
                MetaVerb::Set => (line + request.length as usize + 2, RequestKind::Other),
                _ => (line, RequestKind::Other),
            },
            Command::Store(store) => (line + store.length as usize + 2, RequestKind::Other),
            Command::Stats { topic: b"reset" } => (line, RequestKind::Restart),
            _ => (line, RequestKind::Other),
        },
    };
    (length <= bytes.len()).then_some((length, kind))
}

fn binary(bytes: &[u8], prefix: &[u8]) -> Option<(usize, RequestKind)> {
    let Some(header) = Header::parse(bytes) else {
        // Not the binary protocol: the session will close the connection.
        return (bytes.len() >= HEADER_BYTES).then_some((bytes.len(), RequestKind::Other));
    };
    let length = HEADER_BYTES + header.body_bytes();
    let body = bytes.get(HEADER_BYTES..length)?;
    let kind = match header.verb() {
        Some(Verb::Get | Verb::GetAndTouch) => read(header.key(body), prefix),
        Some(Verb::Stat) if header.key(body) == Some(b"reset") => RequestKind::Restart,
        _ => RequestKind::Other,
    };
    Some((length, kind))
}

/// Change the value in the reply to a read. False if the reply has no value.
pub fn corrupt_value(reply: &mut [u8]) -> bool {
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

    fn next_request(bytes: &[u8]) -> Option<(usize, RequestKind)> {
        super::next_request(bytes, b"", &mut None)
    }

    #[test]
    fn a_request_ends_with_its_data() {
        assert_eq!(next_request(b"get a b\r\nget c"), Some((9, RequestKind::Read)));
        assert_eq!(next_request(b"gets a\r\n"), Some((8, RequestKind::Read)));
        assert_eq!(next_request(b"set a 0 0 3\r\nab"), None);
        assert_eq!(next_request(b"set a 0 0 3\r\nabc\r\nget"), Some((18, RequestKind::Other)));
        assert_eq!(next_request(b"set a x 0 3\r\nabc\r\n"), Some((18, RequestKind::Other)));
        assert_eq!(next_request(b"stats reset\r\n"), Some((13, RequestKind::Restart)));
        assert_eq!(next_request(b"stats\r\n"), Some((7, RequestKind::Other)));
        assert_eq!(next_request(b"mg a v\r\nmn"), Some((8, RequestKind::Read)));
        assert_eq!(next_request(b"ms a 2 T0\r\nab\r\nmn\r\n"), Some((15, RequestKind::Other)));
        assert_eq!(next_request(b"mn\r\n"), Some((4, RequestKind::Other)));
        assert_eq!((next_request(b""), next_request(b"get a")), (None, None));
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
        assert_eq!(next_request(&request(0x0d, b"abc")), Some((27, RequestKind::Read)));
        assert_eq!(next_request(&request(0x0d, b"abc")[..26]), None);
        assert_eq!(next_request(&request(0x0a, b"")), Some((24, RequestKind::Other)));
        assert_eq!(next_request(&request(0x10, b"reset")), Some((29, RequestKind::Restart)));
    }

    #[test]
    fn the_first_byte_sets_the_protocol() {
        let mut protocol = Some(ConnectionProtocol::Text);
        assert_eq!(
            super::next_request(b"\x80get\r\n", b"", &mut protocol),
            Some((6, RequestKind::Other))
        );
        let mut protocol = Some(ConnectionProtocol::Binary);
        assert_eq!(super::next_request(b"get a\r\n", b"", &mut protocol), None);
        assert_eq!(
            super::next_request(&[b'\n'; 30], b"", &mut protocol),
            Some((30, RequestKind::Other))
        );
    }

    #[test]
    fn reads_of_other_keys_are_not_scripted() {
        assert_eq!(
            super::next_request(b"get ours:1\r\n", b"ours:", &mut None),
            Some((12, RequestKind::Read))
        );
        assert_eq!(
            super::next_request(b"get theirs\r\n", b"ours:", &mut None),
            Some((12, RequestKind::Other))
        );
    }

    #[test]
    fn only_a_value_can_be_corrupted() {
        let mut hit = *b"VALUE a 0 2\r\nzz\r\nEND\r\n";
        assert!(corrupt_value(&mut hit));
        assert_eq!(&hit, b"VALUE a 0 2\r\n{z\r\nEND\r\n");
        let mut hit = *b"VA 2 f0\r\nzz\r\n";
        assert!(corrupt_value(&mut hit));
        assert_eq!(&hit, b"VA 2 f0\r\n{z\r\n");
        assert!(!corrupt_value(&mut b"END\r\n".to_vec()));
    }
}
