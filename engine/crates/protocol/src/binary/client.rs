//! The client's side of the binary protocol: encodes requests and parses replies. (memcached's wiki,
//! BinaryProtocolRevamped.)

use crate::binary::request::{
    HEADER_BYTES, REPLY_MAGIC, REQUEST_MAGIC, big_endian_u32, big_endian_u64,
};
use crate::reply_errors::{ErrorKind, Violation};
use crate::sink::Sink;

/// The numbers of the commands.
pub mod opcode {
    pub const GET: u8 = 0x00;
    pub const SET: u8 = 0x01;
    pub const ADD: u8 = 0x02;
    pub const REPLACE: u8 = 0x03;
    pub const DELETE: u8 = 0x04;
    pub const INCREMENT: u8 = 0x05;
    pub const DECREMENT: u8 = 0x06;
    pub const FLUSH: u8 = 0x08;
    pub const NOOP: u8 = 0x0a;
    pub const VERSION: u8 = 0x0b;
    /// A get whose miss has no reply, and whose hit has the key.
    pub const GET_KEY_QUIET: u8 = 0x0d;
    pub const APPEND: u8 = 0x0e;
    pub const PREPEND: u8 = 0x0f;
    pub const TOUCH: u8 = 0x1c;
    pub const GET_AND_TOUCH: u8 = 0x1d;
    pub const SASL_AUTH: u8 = 0x21;

    /// The quiet opcode of a write, which has a reply only if it fails.
    pub const fn quiet(opcode: u8) -> u8 {
        match opcode {
            APPEND | PREPEND => opcode + 0x0b,
            _ => opcode | 0x10,
        }
    }

    /// Whether it is a write whose success has no reply.
    pub const fn is_quiet_write(opcode: u8) -> bool {
        matches!(opcode, 0x11..=0x16 | 0x18..=0x1a)
    }
}

/// The exptime with which `incr` and `decr` do not create a counter.
const NEVER_CREATE: [u8; 4] = [0xff; 4];

/// The variable part of a request's header.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub opcode: u8,
    /// The reply returns it unchanged.
    pub opaque: u32,
    /// The cas number that the item must have; 0 is any.
    pub cas: u64,
}

impl Head {
    pub fn new(opcode: u8, opaque: u32) -> Head {
        Head { opcode, opaque, cas: 0 }
    }
}

fn request<'v>(out: &mut impl Sink<'v>, head: &Head, extras: &[u8], key: &[u8], value: &'v [u8]) {
    let body = extras.len() + key.len() + value.len();
    let mut bytes = [0; HEADER_BYTES];
    bytes[0] = REQUEST_MAGIC;
    bytes[1] = head.opcode;
    bytes[2..4].copy_from_slice(&(key.len() as u16).to_be_bytes());
    bytes[4] = extras.len() as u8;
    bytes[8..12].copy_from_slice(&(body as u32).to_be_bytes());
    bytes[12..16].copy_from_slice(&head.opaque.to_be_bytes());
    bytes[16..24].copy_from_slice(&head.cas.to_be_bytes());
    let front = out.bytes();
    front.extend_from_slice(&bytes);
    front.extend_from_slice(extras);
    front.extend_from_slice(key);
    out.value(value);
}

/// A command with a key only: get, delete.
#[inline]
pub fn plain(out: &mut Vec<u8>, head: &Head, key: &[u8]) {
    request(out, head, &[], key, &[]);
}

/// A command without a key: noop, version, flush.
#[inline]
pub fn bare(out: &mut Vec<u8>, head: &Head) {
    request(out, head, &[], &[], &[]);
}

/// Set, add, replace. Flags are always 0, so that every client stores the same bytes.
pub fn store<'v>(
    out: &mut impl Sink<'v>,
    head: &Head,
    key: &[u8],
    exptime_s: u32,
    value: &'v [u8],
) {
    let mut extras = [0; 8];
    extras[4..].copy_from_slice(&exptime_s.to_be_bytes());
    request(out, head, &extras, key, value);
}

/// Append, prepend: the item keeps its flags and its expiry.
pub fn extend<'v>(out: &mut impl Sink<'v>, head: &Head, key: &[u8], value: &'v [u8]) {
    request(out, head, &[], key, value);
}

/// Increment, decrement. A missing counter is not created.
pub fn count(out: &mut Vec<u8>, head: &Head, key: &[u8], amount: u32) {
    let mut extras = [0; 20];
    extras[..8].copy_from_slice(&u64::from(amount).to_be_bytes());
    extras[16..].copy_from_slice(&NEVER_CREATE);
    request(out, head, &extras, key, &[]);
}

/// Touch, get-and-touch.
pub fn touch(out: &mut Vec<u8>, head: &Head, key: &[u8], exptime_s: u32) {
    request(out, head, &exptime_s.to_be_bytes(), key, &[]);
}

/// A login by SASL PLAIN with user and password. (RFC 4616: authorization, authentication, password.)
pub fn sasl_plain(out: &mut Vec<u8>, user: &[u8], password: &[u8]) {
    let message = [&[0], user, &[0], password].concat();
    request(out, &Head::new(opcode::SASL_AUTH, 0), &[], b"PLAIN", &message);
}

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    NotFound,
    Exists,
    NotStored,
    Error(ErrorKind),
}

impl Answer {
    fn of(status: u16) -> Answer {
        match status {
            0x0000 => Answer::Done,
            0x0001 => Answer::NotFound,
            0x0002 => Answer::Exists,
            0x0005 => Answer::NotStored,
            // Too large, out of memory, not supported, internal error, busy, temporary failure.
            0x0003 | 0x0082..=0x0086 => Answer::Error(ErrorKind::Server),
            _ => Answer::Error(ErrorKind::Client),
        }
    }
}

/// One reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    pub opcode: u8,
    pub opaque: u32,
    pub answer: Answer,
    pub cas: u64,
    pub extras: &'a [u8],
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl Reply<'_> {
    /// The flags of a value; `None` if the reply has none.
    #[inline]
    pub fn flags(&self) -> Option<u32> {
        (self.extras.len() == 4).then(|| big_endian_u32(self.extras))
    }

    /// The new number of a counter; `None` if the value is no number.
    #[inline]
    pub fn number(&self) -> Option<u64> {
        (self.value.len() == 8).then(|| big_endian_u64(self.value))
    }
}

/// Parse the first reply of `bytes`: the reply and its length in bytes, or `None` if it is not complete.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    if bytes.first().is_some_and(|magic| *magic != REPLY_MAGIC) {
        return Err(Violation);
    }
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let key_bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let extras_bytes = usize::from(header[4]);
    let body_bytes = big_endian_u32(&header[8..12]) as usize;
    let value_at = extras_bytes + key_bytes;
    if value_at > body_bytes {
        return Err(Violation);
    }
    let Some(body) = bytes.get(HEADER_BYTES..HEADER_BYTES + body_bytes) else { return Ok(None) };
    let reply = Reply {
        opcode: header[1],
        opaque: big_endian_u32(&header[12..16]),
        answer: Answer::of(u16::from_be_bytes([header[6], header[7]])),
        cas: big_endian_u64(&header[16..24]),
        extras: &body[..extras_bytes],
        key: &body[extras_bytes..value_at],
        value: &body[value_at..],
    };
    Ok(Some((reply, HEADER_BYTES + body_bytes)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::binary::request::{Header, Reply as Sent, Status, Verb};

    fn read(write: impl FnOnce(&mut Vec<u8>)) -> (Header, Vec<u8>) {
        let mut out = Vec::new();
        write(&mut out);
        let header = Header::parse(&out).expect("a header");
        assert_eq!(header.check(), Ok(()));
        assert!(header.body(&out).is_some(), "whole");
        (header, out)
    }

    #[test]
    fn a_server_reads_what_is_written() {
        let (header, out) = read(|out| {
            store(out, &Head { opcode: opcode::SET, opaque: 7, cas: 9 }, b"k", 60, b"abc");
        });
        let body = header.body(&out).expect("a body");
        assert_eq!((header.verb(), header.opaque, header.cas), (Some(Verb::Set), 7, 9));
        assert_eq!((body.extras, body.key), (&[0, 0, 0, 0, 0, 0, 0, 60][..], &b"k"[..]));
        assert_eq!(body.value, b"abc");
        let (header, out) = read(|out| count(out, &Head::new(opcode::INCREMENT, 0), b"n", 0x0102));
        let body = header.body(&out).expect("a body");
        assert_eq!(body.extras[..10], [0, 0, 0, 0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(body.extras[16..], NEVER_CREATE);
    }

    #[test]
    fn every_command_is_known_by_its_opcode() {
        let known = [
            (opcode::GET, Verb::Get),
            (opcode::ADD, Verb::Add),
            (opcode::REPLACE, Verb::Replace),
            (opcode::DELETE, Verb::Delete),
            (opcode::DECREMENT, Verb::Decrement),
            (opcode::FLUSH, Verb::Flush),
            (opcode::NOOP, Verb::Noop),
            (opcode::VERSION, Verb::Version),
            (opcode::APPEND, Verb::Append),
            (opcode::PREPEND, Verb::Prepend),
            (opcode::TOUCH, Verb::Touch),
            (opcode::GET_AND_TOUCH, Verb::GetAndTouch),
        ];
        for (opcode, verb) in known {
            let mut out = Vec::new();
            bare(&mut out, &Head::new(opcode, 1));
            let header = Header::parse(&out).expect("a header");
            assert_eq!(header.verb(), Some(verb));
            assert!(!header.is_quiet());
        }
        for opcode in [1, 2, 3, 4, 5, 6, opcode::FLUSH, opcode::APPEND, opcode::PREPEND] {
            let mut out = Vec::new();
            bare(&mut out, &Head::new(opcode::quiet(opcode), 1));
            let header = Header::parse(&out).expect("a header");
            bare(&mut out, &Head::new(opcode, 1));
            let loud = Header::parse(&out[HEADER_BYTES..]).expect("a header");
            assert!(header.is_quiet() && opcode::is_quiet_write(header.opcode));
            assert_eq!(header.verb(), loud.verb());
        }
    }

    #[test]
    fn a_reply_is_read_as_a_server_writes_it() {
        let (header, _) = read(|out| plain(out, &Head::new(opcode::GET_KEY_QUIET, 3), b"k"));
        let mut out = Vec::new();
        let sent = Sent { status: Status::Ok, extras: &[0; 4], key: b"k", value: b"v", cas: 5 };
        sent.append(&header, &mut out);
        let (reply, length) = parse(&out).expect("a reply").expect("whole");
        assert_eq!(length, out.len());
        assert_eq!((reply.opcode, reply.opaque, reply.cas), (opcode::GET_KEY_QUIET, 3, 5));
        assert_eq!((reply.flags(), reply.key, reply.value), (Some(0), &b"k"[..], &b"v"[..]));
        assert_eq!(reply.answer, Answer::Done);
    }

    #[test]
    fn a_status_is_an_answer_or_somebody_s_fault() {
        use ErrorKind::{Client, Server};
        let expected = [
            (Status::NotFound, Answer::NotFound),
            (Status::Exists, Answer::Exists),
            (Status::NotStored, Answer::NotStored),
            (Status::TooLarge, Answer::Error(Server)),
            (Status::OutOfMemory, Answer::Error(Server)),
            (Status::InvalidArguments, Answer::Error(Client)),
            (Status::NonNumeric, Answer::Error(Client)),
            (Status::UnknownCommand, Answer::Error(Client)),
        ];
        for (status, answer) in expected {
            assert_eq!(Answer::of(status as u16), answer);
        }
    }

    #[test]
    fn garbage_is_a_violation_at_its_first_byte() {
        for bytes in [&b"END\r\n"[..], b"\x80", b"V"] {
            assert_eq!(parse(bytes), Err(Violation));
        }
        let mut longer_than_its_body = vec![0x81, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 6];
        longer_than_its_body.resize(40, 0);
        assert_eq!(parse(&longer_than_its_body), Err(Violation));
    }

    proptest! {
        #[test]
        fn a_reply_is_whole_or_not_there(
            key in "[!-~]{0,40}",
            value in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let (header, _) = read(|out| plain(out, &Head::new(opcode::GET, 3), b"k"));
            let sent = Sent {
                status: Status::Ok, extras: &[0; 4], key: key.as_bytes(), value: &value, cas: 5,
            };
            let mut bytes = Vec::new();
            sent.append(&header, &mut bytes);
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..cut]), Ok(None));
            }
            let (reply, length) = parse(&bytes).expect("a reply").expect("whole");
            prop_assert_eq!((reply.key, reply.value, length),
                (key.as_bytes(), &value[..], bytes.len()));
        }
    }
}
