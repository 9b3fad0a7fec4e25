//! The server's side of the binary protocol: parses requests and encodes replies. Each is a header of 24 bytes,
//! then extras, key and value. (memcached's wiki, BinaryProtocolRevamped; where that says nothing, the
//! behaviour of memcached.)

pub const HEADER_BYTES: usize = 24;
/// The first byte of every request. On a new connection it selects the binary protocol.
pub const REQUEST_MAGIC: u8 = 0x80;
pub(crate) const REPLY_MAGIC: u8 = 0x81;

use crate::limits::KEY_BYTES_MAX;

/// The command of an opcode, whether or not it is quiet or returns the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Delete,
    Increment,
    Decrement,
    Touch,
    GetAndTouch,
    Flush,
    Noop,
    Version,
    Stat,
    Quit,
    SaslMechanisms,
    SaslAuthenticate,
    SaslStep,
}

impl Verb {
    fn of(opcode: u8) -> Option<Verb> {
        Some(match opcode {
            0x00 | 0x09 | 0x0c | 0x0d => Verb::Get,
            0x01 | 0x11 => Verb::Set,
            0x02 | 0x12 => Verb::Add,
            0x03 | 0x13 => Verb::Replace,
            0x04 | 0x14 => Verb::Delete,
            0x05 | 0x15 => Verb::Increment,
            0x06 | 0x16 => Verb::Decrement,
            0x07 | 0x17 => Verb::Quit,
            0x08 | 0x18 => Verb::Flush,
            0x0a => Verb::Noop,
            0x0b => Verb::Version,
            0x0e | 0x19 => Verb::Append,
            0x0f | 0x1a => Verb::Prepend,
            0x10 => Verb::Stat,
            0x1c => Verb::Touch,
            0x1d | 0x1e | 0x23 | 0x24 => Verb::GetAndTouch,
            0x20 => Verb::SaslMechanisms,
            0x21 => Verb::SaslAuthenticate,
            0x22 => Verb::SaslStep,
            _ => return None,
        })
    }

    /// Which lengths of the extras are valid, and whether there must or may be a key and a value.
    fn layout(self) -> BodyLayout {
        let (extras, key, value) = match self {
            Verb::Get | Verb::Delete => (&[0][..], Part::Needed, Part::Refused),
            Verb::Set | Verb::Add | Verb::Replace => (&[8][..], Part::Needed, Part::Allowed),
            Verb::Append | Verb::Prepend => (&[0][..], Part::Needed, Part::Allowed),
            Verb::Increment | Verb::Decrement => (&[20][..], Part::Needed, Part::Refused),
            Verb::Touch | Verb::GetAndTouch => (&[4][..], Part::Needed, Part::Refused),
            Verb::Flush => (&[0, 4][..], Part::Refused, Part::Refused),
            Verb::Noop | Verb::Version | Verb::Quit => (&[0][..], Part::Refused, Part::Refused),
            Verb::Stat => (&[0][..], Part::Allowed, Part::Refused),
            Verb::SaslMechanisms => (&[0][..], Part::Refused, Part::Refused),
            Verb::SaslAuthenticate | Verb::SaslStep => (&[0][..], Part::Needed, Part::Allowed),
        };
        BodyLayout { extras, key, value }
    }

    /// Whether it stores a value that the request carries.
    #[inline]
    pub fn stores(self) -> bool {
        self.layout().value == Part::Allowed && !self.authenticates()
    }

    /// Whether it belongs to a login.
    #[inline]
    pub fn authenticates(self) -> bool {
        matches!(self, Verb::SaslMechanisms | Verb::SaslAuthenticate | Verb::SaslStep)
    }
}

struct BodyLayout {
    extras: &'static [u8],
    key: Part,
    value: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Needed,
    Allowed,
    Refused,
}

impl Part {
    fn allows(self, length: usize) -> bool {
        match self {
            Part::Needed => length > 0,
            Part::Allowed => true,
            Part::Refused => length == 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Status {
    Ok = 0x0000,
    NotFound = 0x0001,
    Exists = 0x0002,
    TooLarge = 0x0003,
    InvalidArguments = 0x0004,
    NotStored = 0x0005,
    NonNumeric = 0x0006,
    NotAuthenticated = 0x0020,
    AuthenticationContinues = 0x0021,
    UnknownCommand = 0x0081,
    OutOfMemory = 0x0082,
}

impl Status {
    /// The message in the body of an error.
    pub fn text(self) -> &'static [u8] {
        match self {
            Status::Ok | Status::AuthenticationContinues => b"",
            Status::NotFound => b"Not found",
            Status::Exists => b"Data exists for key.",
            Status::TooLarge => b"Too large.",
            Status::InvalidArguments => b"Invalid arguments",
            Status::NotStored => b"Not stored.",
            Status::NonNumeric => b"Non-numeric server-side value for incr or decr",
            Status::NotAuthenticated => b"Auth failure.",
            Status::UnknownCommand => b"Unknown command",
            Status::OutOfMemory => b"Out of memory",
        }
    }
}

/// A request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub opcode: u8,
    key_length: u16,
    extras_length: u8,
    body_length: u32,
    /// The reply returns it unchanged.
    pub opaque: u32,
    pub cas: u64,
}

/// Why a header is invalid. In both cases the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The parts are longer than the body.
    Lengths,
    /// The opcode does not have these parts.
    Arguments,
}

/// Extras, key and value, as slices of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a> {
    pub extras: &'a [u8],
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl Header {
    /// Parse the header at the front of `bytes`. `None` if it is not complete or has another magic byte.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let header = bytes.first_chunk::<HEADER_BYTES>()?;
        (header[0] == REQUEST_MAGIC).then(|| Header {
            opcode: header[1],
            key_length: u16::from_be_bytes([header[2], header[3]]),
            extras_length: header[4],
            body_length: big_endian_u32(&header[8..12]),
            opaque: big_endian_u32(&header[12..16]),
            cas: big_endian_u64(&header[16..24]),
        })
    }

    #[inline]
    pub fn verb(&self) -> Option<Verb> {
        Verb::of(self.opcode)
    }

    /// Whether success (of a get: a miss) has no reply.
    pub fn is_quiet(&self) -> bool {
        matches!(self.opcode, 0x09 | 0x0d | 0x11..=0x1a | 0x1e | 0x24)
    }

    /// Whether the reply has the key.
    pub fn echoes_key(&self) -> bool {
        matches!(self.opcode, 0x0c | 0x0d | 0x23 | 0x24)
    }

    #[inline]
    pub fn check(&self) -> Result<(), HeaderError> {
        let (key, extras) = (usize::from(self.key_length), usize::from(self.extras_length));
        let Some(value) = self.body_bytes().checked_sub(key + extras) else {
            return Err(HeaderError::Lengths);
        };
        let Some(verb) = self.verb() else { return Ok(()) };
        let layout = verb.layout();
        let is_valid = layout.extras.contains(&self.extras_length)
            && key <= KEY_BYTES_MAX
            && layout.key.allows(key)
            && layout.value.allows(value);
        if is_valid { Ok(()) } else { Err(HeaderError::Arguments) }
    }

    #[inline]
    pub fn body_bytes(&self) -> usize {
        self.body_length as usize
    }

    /// The bytes of key and value. The header must have been checked.
    #[inline]
    pub fn item_bytes(&self) -> u64 {
        u64::from(self.body_length) - u64::from(self.extras_length)
    }

    /// The bytes of the value. The header must have been checked.
    pub fn value_bytes(&self) -> usize {
        self.body_bytes() - usize::from(self.extras_length) - usize::from(self.key_length)
    }

    /// The key, if it has arrived; the value need not have.
    pub fn key<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        let begin = usize::from(self.extras_length);
        body.get(begin..begin + usize::from(self.key_length))
    }

    /// The body behind the header; `None` if it is not complete. The header must have been checked.
    #[inline]
    pub fn body<'a>(&self, bytes: &'a [u8]) -> Option<Body<'a>> {
        let head = HEADER_BYTES + self.body_bytes() - self.value_bytes();
        let value = bytes.get(head..head + self.value_bytes())?;
        Some(Body { value, ..self.body_without_value(&bytes[..head])? })
    }

    /// The same for a request whose value is elsewhere.
    pub fn body_without_value<'a>(&self, bytes: &'a [u8]) -> Option<Body<'a>> {
        let (extras, key) =
            bytes.get(HEADER_BYTES..)?.split_at_checked(self.extras_length.into())?;
        Some(Body { extras, key: key.get(..self.key_length.into())?, value: b"" })
    }
}

/// # Panics
///
/// If there are not four bytes.
#[inline]
pub fn big_endian_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("four bytes"))
}

/// # Panics
///
/// If there are not eight bytes.
#[inline]
pub fn big_endian_u64(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}

/// A reply. It has the opcode and the opaque number of the request.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    pub status: Status,
    pub extras: &'a [u8],
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub cas: u64,
}

impl Reply<'_> {
    /// A reply with a status only. An error has its message as the value.
    #[inline]
    pub fn plain(status: Status) -> Reply<'static> {
        Reply { status, extras: b"", key: b"", value: status.text(), cas: 0 }
    }

    #[inline]
    pub fn append(&self, to: &Header, out: &mut Vec<u8>) {
        self.append_head(to, out);
        out.extend_from_slice(self.value);
    }

    /// The same without the value, which follows it.
    #[inline]
    pub fn append_head(&self, to: &Header, out: &mut Vec<u8>) {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut header = [0; HEADER_BYTES];
        header[0] = REPLY_MAGIC;
        header[1] = to.opcode;
        header[2..4].copy_from_slice(&(self.key.len() as u16).to_be_bytes());
        header[4] = self.extras.len() as u8;
        header[6..8].copy_from_slice(&(self.status as u16).to_be_bytes());
        header[8..12].copy_from_slice(&(body as u32).to_be_bytes());
        header[12..16].copy_from_slice(&to.opaque.to_be_bytes());
        header[16..24].copy_from_slice(&self.cas.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(self.extras);
        out.extend_from_slice(self.key);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header(opcode: u8, key: u16, extras: u8, body: u32) -> Header {
        Header {
            opcode,
            key_length: key,
            extras_length: extras,
            body_length: body,
            opaque: 7,
            cas: 9,
        }
    }

    #[test]
    fn a_request_is_parsed() {
        let mut bytes = vec![0x80, 0x01, 0, 1, 8, 0, 0, 0, 0, 0, 0, 14, 0, 0, 0, 7];
        bytes.extend_from_slice(&9_u64.to_be_bytes());
        bytes.extend_from_slice(&[0, 0, 0, 5, 0, 0, 0, 60, b'k', b'h', b'e', b'l', b'l', b'o']);
        let read = Header::parse(&bytes).expect("a header");
        assert_eq!(read, header(0x01, 1, 8, 14));
        assert_eq!((read.verb(), read.is_quiet(), read.check()), (Some(Verb::Set), false, Ok(())));
        let body = read.body(&bytes).expect("a body");
        assert_eq!((body.key, body.value), (&b"k"[..], &b"hello"[..]));
        assert_eq!(read.body(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn each_opcode_has_a_body_layout() {
        assert_eq!(header(0x00, 3, 0, 2).check(), Err(HeaderError::Lengths));
        for (opcode, key, extras, body) in [
            (0x00, 0, 0, 0),
            (0x00, 251, 0, 251),
            (0x00, 1, 4, 5),
            (0x01, 1, 0, 2),
            (0x0a, 1, 0, 1),
        ] {
            assert_eq!(header(opcode, key, extras, body).check(), Err(HeaderError::Arguments));
        }
        assert_eq!(header(0x60, 1, 1, 9).check(), Ok(()), "an unknown opcode has no layout");
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = REQUEST_MAGIC;
            }
            if let Some(header) = Header::parse(&bytes)
                && header.check().is_ok()
            {
                let _ = header.body(&bytes);
                let _ = header.key(&bytes[HEADER_BYTES..]);
            }
        }
    }
}
