//! Requests, as the proxy sees them.

use cachemark_protocol::binary::request::{HEADER_BYTES, Header, REQUEST_MAGIC, Verb};
use cachemark_protocol::meta::request::{MetaRequest, MetaVerb};
use cachemark_protocol::text::command::Command;
use cachemark_protocol::text::request::{Parsed, parse};

use crate::frames::{Grammar, Scan};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// It uses an item and has exactly one reply.
    Item,
    /// `version`.
    Version,
    Other,
}

/// The requests of a connection. Its first byte decides the protocol.
#[derive(Default)]
pub struct Requests {
    is_binary: Option<bool>,
}

impl Grammar for Requests {
    type What = RequestKind;

    fn scan(&mut self, bytes: &[u8]) -> Scan<RequestKind> {
        let Some(first) = bytes.first() else { return Scan::Incomplete };
        if *self.is_binary.get_or_insert(*first == REQUEST_MAGIC) {
            binary(bytes)
        } else {
            text(bytes)
        }
    }
}

fn text(bytes: &[u8]) -> Scan<RequestKind> {
    let (command, line) = match parse(bytes) {
        Parsed::Incomplete => return Scan::Incomplete,
        Parsed::TooLong => return Scan::Unknown,
        Parsed::Refused(refusal, line) => {
            let bytes = line + refusal.swallow() as usize;
            return Scan::Frame { bytes, what: RequestKind::Other };
        }
        Parsed::Command(command, line) => (command, line),
    };
    let item = |replied: bool| if replied { RequestKind::Item } else { RequestKind::Other };
    let (data, what) = match command {
        Command::Get { .. } | Command::GetAndTouch { .. } => (0, RequestKind::Item),
        Command::Store(store) => (store.length as usize + 2, item(!store.noreply)),
        Command::Delete { noreply, .. }
        | Command::Arithmetic { noreply, .. }
        | Command::Touch { noreply, .. } => (0, item(!noreply)),
        Command::Meta(request) => meta(&request),
        Command::Version => (0, RequestKind::Version),
        _ => (0, RequestKind::Other),
    };
    Scan::Frame { bytes: line + data, what }
}

/// The length of the data and the kind of a meta command.
fn meta(request: &MetaRequest<'_>) -> (usize, RequestKind) {
    let data = match request.verb {
        MetaVerb::Set => request.length as usize + 2,
        _ => 0,
    };
    let is_quiet = request.options().is_ok_and(|options| options.quiet);
    let what = match request.verb {
        MetaVerb::Debug => RequestKind::Other,
        _ if is_quiet => RequestKind::Other,
        _ => RequestKind::Item,
    };
    (data, what)
}

fn binary(bytes: &[u8]) -> Scan<RequestKind> {
    let Some(header) = Header::parse(bytes) else {
        return match bytes[0] {
            REQUEST_MAGIC => Scan::Incomplete,
            _ => Scan::Unknown,
        };
    };
    let what = match header.verb() {
        Some(Verb::Version) => RequestKind::Version,
        Some(Verb::Get | Verb::GetAndTouch | Verb::Set | Verb::Add | Verb::Replace)
        | Some(Verb::Append | Verb::Prepend | Verb::Delete | Verb::Touch)
        | Some(Verb::Increment | Verb::Decrement)
            if !header.is_quiet() =>
        {
            RequestKind::Item
        }
        _ => RequestKind::Other,
    };
    Scan::Frame { bytes: HEADER_BYTES + header.body_bytes(), what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(bytes: usize, what: RequestKind) -> Scan<RequestKind> {
        Scan::Frame { bytes, what }
    }

    #[test]
    fn a_text_request_has_an_end_and_a_kind() {
        for (request, expected) in [
            (&b"get a b\r\nget c"[..], frame(9, RequestKind::Item)),
            (b"set a 0 0 3\r\na", frame(18, RequestKind::Item)),
            (b"set a 0 0 3 noreply\r\na", frame(26, RequestKind::Other)),
            (b"set a x 0 3\r\n", frame(18, RequestKind::Other)),
            (b"incr a 1\r\n", frame(10, RequestKind::Item)),
            (b"delete a noreply\r\n", frame(18, RequestKind::Other)),
            (b"mg a v\r\nmn", frame(8, RequestKind::Item)),
            (b"mg a v q\r\n", frame(10, RequestKind::Other)),
            (b"ms a 2 T0\r\n", frame(15, RequestKind::Item)),
            (b"mn\r\n", frame(4, RequestKind::Other)),
            (b"version\r\n", frame(9, RequestKind::Version)),
            (b"stats\r\n", frame(7, RequestKind::Other)),
            (b"get a", Scan::Incomplete),
            (b"", Scan::Incomplete),
        ] {
            assert_eq!(Requests::default().scan(request), expected, "{}", request.escape_ascii());
        }
        assert_eq!(Requests::default().scan(&[b'x'; 5000]), Scan::Unknown);
    }

    #[test]
    fn a_binary_request_has_an_end_and_a_kind() {
        for (opcode, what) in [
            (0x00, RequestKind::Item),
            (0x09, RequestKind::Other),
            (0x0a, RequestKind::Other),
            (0x0b, RequestKind::Version),
            (0x10, RequestKind::Other),
            (0x1c, RequestKind::Item),
        ] {
            let mut request = [0; HEADER_BYTES];
            (request[0], request[1], request[11]) = (REQUEST_MAGIC, opcode, 5);
            assert_eq!(Requests::default().scan(&request), frame(29, what));
            assert_eq!(Requests::default().scan(&request[..23]), Scan::Incomplete);
        }
        let mut requests = Requests { is_binary: Some(true) };
        assert_eq!(requests.scan(b"get a\r\n"), Scan::Unknown);
    }
}
