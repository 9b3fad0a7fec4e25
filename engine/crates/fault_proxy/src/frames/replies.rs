//! Replies, as the proxy sees them: a frame is a line, a value with its line, or a binary packet.

use std::ops::Range;

use cachemark_protocol::binary::request::HEADER_BYTES;
use cachemark_protocol::words::{Words, unsigned};
use memchr::memchr;

use crate::frames::{Grammar, Scan};

const REPLY_MAGIC: u8 = 0x81;
/// The longest line. memcached's longest are errors and statistics, far below it.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// A frame as the faults see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyFrame {
    /// Where its value begins, and the value's length.
    value: Option<(usize, usize)>,
    /// The reply to `version`.
    pub is_version: bool,
    /// More frames of the same reply follow.
    pub has_more: bool,
}

const PLAIN: ReplyFrame = ReplyFrame { value: None, is_version: false, has_more: false };

impl ReplyFrame {
    /// The place of the value in the frame, if it has one that is not empty.
    pub fn value(&self) -> Option<Range<usize>> {
        self.value.filter(|(_, bytes)| *bytes > 0).map(|(at, bytes)| at..at + bytes)
    }
}

/// The replies of a connection. Their first byte decides the protocol.
#[derive(Default)]
pub struct Replies {
    is_binary: Option<bool>,
}

impl Grammar for Replies {
    type What = ReplyFrame;

    fn scan(&mut self, bytes: &[u8]) -> Scan<ReplyFrame> {
        let Some(first) = bytes.first() else { return Scan::Incomplete };
        if *self.is_binary.get_or_insert(*first == REPLY_MAGIC) {
            binary(bytes)
        } else {
            text(bytes)
        }
    }
}

fn text(bytes: &[u8]) -> Scan<ReplyFrame> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(newline) = memchr(b'\n', window) else {
        return if window.len() < LINE_BYTES_MAX { Scan::Incomplete } else { Scan::Unknown };
    };
    let line = bytes[..newline].strip_suffix(b"\r").unwrap_or(&bytes[..newline]);
    let line_bytes = newline + 1;
    let mut words = Words::of(line);
    let (length, has_more) = match words.next() {
        Some(b"VALUE") => (words.nth(2), true),
        Some(b"VA") => (words.next(), false),
        first => {
            let what = ReplyFrame {
                is_version: first == Some(b"VERSION"),
                has_more: first == Some(b"STAT"),
                ..PLAIN
            };
            return Scan::Frame { bytes: line_bytes, what };
        }
    };
    let Some(length) = length.and_then(unsigned).filter(|length| *length <= u64::from(u32::MAX))
    else {
        return Scan::Unknown;
    };
    let value = Some((line_bytes, length as usize));
    let what = ReplyFrame { value, has_more, ..PLAIN };
    Scan::Frame { bytes: line_bytes + length as usize + 2, what }
}

fn binary(bytes: &[u8]) -> Scan<ReplyFrame> {
    if bytes[0] != REPLY_MAGIC {
        return Scan::Unknown;
    }
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Scan::Incomplete };
    let body = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
    let key = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let before = key + usize::from(header[4]);
    let is_done = header[6..8] == [0, 0];
    // Get and get-and-touch, quiet or not, with and without the key.
    let is_read = matches!(header[1], 0x00 | 0x09 | 0x0c | 0x0d | 0x1d | 0x1e | 0x23 | 0x24);
    let what = ReplyFrame {
        value: (is_read && is_done && before <= body)
            .then(|| (HEADER_BYTES + before, body - before)),
        is_version: header[1] == 0x0b,
        // Statistics end with an empty packet.
        has_more: header[1] == 0x10 && body > 0 && is_done,
    };
    Scan::Frame { bytes: HEADER_BYTES + body, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(reply: &[u8]) -> Scan<ReplyFrame> {
        Replies::default().scan(reply)
    }

    fn value(bytes: usize, at: usize, length: usize, has_more: bool) -> Scan<ReplyFrame> {
        let value = Some((at, length));
        Scan::Frame { bytes, what: ReplyFrame { value, has_more, ..PLAIN } }
    }

    #[test]
    fn a_text_reply_is_a_line_or_a_value() {
        assert_eq!(scan(b"VALUE a 0 2\r\nzz"), value(17, 13, 2, true));
        assert_eq!(scan(b"VALUE a 0 2 77\r\n"), value(20, 16, 2, true));
        assert_eq!(scan(b"VA 2 f0\r\nzz\r\n"), value(13, 9, 2, false));
        assert_eq!(scan(b"VA 2\r\n"), value(10, 6, 2, false));
        for line in [&b"END\r\n"[..], b"STORED\r\n", b"HD \r\n", b"SERVER_ERROR x\r\n", b"\n"] {
            assert_eq!(scan(line), Scan::Frame { bytes: line.len(), what: PLAIN });
        }
        let version = ReplyFrame { is_version: true, ..PLAIN };
        assert_eq!(scan(b"VERSION 1.6\r\n"), Scan::Frame { bytes: 13, what: version });
        let statistic = ReplyFrame { has_more: true, ..PLAIN };
        assert_eq!(scan(b"STAT pid 1\r\n"), Scan::Frame { bytes: 12, what: statistic });
        for part in [&b""[..], b"VAL", b"END\r"] {
            assert_eq!(scan(part), Scan::Incomplete);
        }
        for odd in [&b"VALUE a 0\r\n"[..], b"VALUE a 0 x\r\n", b"VA -1\r\n", &[b'x'; 70_000]] {
            assert_eq!(scan(odd), Scan::Unknown);
        }
        assert_eq!(ReplyFrame { value: Some((13, 0)), ..PLAIN }.value(), None);
    }

    #[test]
    fn a_binary_reply_is_a_packet() {
        let packet = |opcode: u8, status: u8| {
            let mut bytes = [0; HEADER_BYTES];
            (bytes[0], bytes[1], bytes[3], bytes[4]) = (REPLY_MAGIC, opcode, 3, 4);
            (bytes[7], bytes[11]) = (status, 10);
            bytes
        };
        assert_eq!(scan(&packet(0x0d, 0)), value(34, 31, 3, false));
        assert_eq!(scan(&packet(0x0d, 1)), Scan::Frame { bytes: 34, what: PLAIN });
        assert_eq!(scan(&packet(0x01, 0)), Scan::Frame { bytes: 34, what: PLAIN });
        assert_eq!(scan(&packet(0x01, 0)[..23]), Scan::Incomplete);
        assert_eq!(Replies { is_binary: Some(true) }.scan(b"END\r\n"), Scan::Unknown);
    }
}
