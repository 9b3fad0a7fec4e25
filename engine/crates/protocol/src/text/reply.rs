//! Replies as a client reads them: one reply, or one VALUE block, at a time.

use memchr::{memchr, memchr2};

use crate::reply_errors::{ErrorKind, Violation, error_line};
use crate::words::decimal;

/// The longest reply line: a VALUE line with a key of 250 bytes, or an error message.
const LINE_BYTES_MAX: usize = 2048;

/// One line of a reply; a VALUE comes with its data.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    Value {
        key: &'a [u8],
        flags: u32,
        data: &'a [u8],
        cas: Option<u64>,
    },
    /// The new number of a counter.
    Number(u64),
    End,
    Stored,
    NotStored,
    Exists,
    NotFound,
    Deleted,
    Touched,
    /// The reply to a flush.
    Ok,
    Version,
    /// `ERROR`, `CLIENT_ERROR …`, `SERVER_ERROR …`.
    Error(ErrorKind),
}

/// Parse the first reply of `bytes`: the reply and its length in bytes, or `None` if it is not complete. The
/// data of a value is not scanned.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    // Replies to reads come first, because they are the most frequent.
    if bytes.starts_with(b"VALUE ") {
        return value(bytes);
    }
    if bytes.starts_with(b"END\r\n") {
        return Ok(Some((Reply::End, 5)));
    }
    line(bytes)
}

fn line(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(newline) = memchr(b'\n', window) else {
        return if window.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Violation) };
    };
    let line = window[..newline].strip_suffix(b"\r").ok_or(Violation)?;
    Ok(Some((plain(line)?, newline + 1)))
}

fn plain(line: &[u8]) -> Result<Reply<'_>, Violation> {
    match line {
        b"END" => Ok(Reply::End),
        b"STORED" => Ok(Reply::Stored),
        b"NOT_STORED" => Ok(Reply::NotStored),
        b"EXISTS" => Ok(Reply::Exists),
        b"NOT_FOUND" => Ok(Reply::NotFound),
        b"DELETED" => Ok(Reply::Deleted),
        b"TOUCHED" => Ok(Reply::Touched),
        b"OK" => Ok(Reply::Ok),
        _ if line.starts_with(b"VERSION ") => Ok(Reply::Version),
        _ => {
            let number = decimal(Some(line)).map(Reply::Number);
            number.or_else(|| error_line(line).map(Reply::Error)).ok_or(Violation)
        }
    }
}

/// `VALUE key flags length[ cas]`, then the data and its line end.
#[inline]
fn value(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    let key_at = b"VALUE ".len();
    let window = &bytes[key_at..bytes.len().min(LINE_BYTES_MAX)];
    let Some(key_bytes) = memchr2(b' ', b'\n', window) else {
        return if bytes.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Violation) };
    };
    // A key contains no line end.
    if window[key_bytes] == b'\n' {
        return Err(Violation);
    }
    let key = &window[..key_bytes];
    let mut rest = &bytes[key_at + key_bytes + 1..];
    let Some(flags) = number(&mut rest)? else { return Ok(None) };
    let Some((b' ', after)) = rest.split_first() else { return Err(Violation) };
    rest = after;
    let Some(length) = number(&mut rest)? else { return Ok(None) };
    let mut cas = None;
    if let Some((b' ', after)) = rest.split_first() {
        rest = after;
        let Some(token) = number(&mut rest)? else { return Ok(None) };
        cas = Some(token);
    }
    if rest.len() < 2 {
        return if rest == b"\r" { Ok(None) } else { Err(Violation) };
    }
    let flags = u32::try_from(flags).map_err(|_| Violation)?;
    let length = u32::try_from(length).map_err(|_| Violation)? as usize;
    if key.is_empty() || !rest.starts_with(b"\r\n") {
        return Err(Violation);
    }
    let Some(block) = rest.get(2..2 + length + 2) else { return Ok(None) };
    let (data, tail) = block.split_at(length);
    if tail != b"\r\n" {
        return Err(Violation);
    }
    let whole = bytes.len() - rest.len() + length + 4;
    Ok(Some((Reply::Value { key, flags, data, cas }, whole)))
}

/// The number at the front; `None` if its end has not arrived yet.
#[inline]
fn number(rest: &mut &[u8]) -> Result<Option<u64>, Violation> {
    let (mut sum, mut digits) = (0_u64, 0);
    for byte in *rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            *rest = &rest[digits..];
            return if digits > 0 { Ok(Some(sum)) } else { Err(Violation) };
        }
        sum = sum
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit)))
            .ok_or(Violation)?;
        digits += 1;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_reply_is_known() {
        let cases: [(&[u8], Reply); 12] = [
            (b"EXISTS\r\n", Reply::Exists),
            (b"18446744073709551615\r\n", Reply::Number(u64::MAX)),
            (b"END\r\n", Reply::End),
            (b"STORED\r\n", Reply::Stored),
            (b"NOT_STORED\r\n", Reply::NotStored),
            (b"NOT_FOUND\r\n", Reply::NotFound),
            (b"DELETED\r\n", Reply::Deleted),
            (b"TOUCHED\r\n", Reply::Touched),
            (b"OK\r\n", Reply::Ok),
            (b"VERSION 1.6.18\r\n", Reply::Version),
            (b"CLIENT_ERROR bad\r\n", Reply::Error(ErrorKind::Client)),
            (b"SERVER_ERROR out of memory\r\n", Reply::Error(ErrorKind::Server)),
        ];
        for (bytes, reply) in cases {
            assert_eq!(parse(bytes), Ok(Some((reply, bytes.len()))));
        }
    }

    #[test]
    fn a_value_may_hold_line_ends() {
        let bytes = b"VALUE k 7 4 99\r\na\r\nb\r\nEND\r\n";
        let value = Reply::Value { key: b"k", flags: 7, data: b"a\r\nb", cas: Some(99) };
        assert_eq!(parse(bytes), Ok(Some((value, 22))));
    }

    #[test]
    fn garbage_is_a_violation() {
        for bytes in [
            &b"HELLO\r\n"[..],
            b"12x\r\n",
            b"\r\n",
            b"END\n",
            b"VALUE k 0\r\n",
            b"VALUE k x 1\r\na\r\n",
            b"VALUE k 0 1\r\nabc",
            b"VALUE k 0 99999999999999999999\r\n",
            b"VALUE  0 1\r\na\r\n",
            b"VALUE k\r\n",
            b"VALUE k 0 1 \r\na\r\n",
            b"VALUE k 0 1 2 3\r\na\r\n",
            b"VALUE k 0 1\na\r\n",
            b"VALUE k 0 1\rx",
            b"VALUE k 4294967296 1\r\na\r\n",
        ] {
            assert_eq!(parse(bytes), Err(Violation), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(parse(&[b'x'; LINE_BYTES_MAX]), Err(Violation));
    }

    proptest! {
        #[test]
        fn a_reply_is_whole_or_not_there(
            key in "[!-~]{1,40}",
            data in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = format!("VALUE {key} 0 {}\r\n", data.len()).into_bytes();
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..cut]), Ok(None));
            }
            let whole = Reply::Value { key: key.as_bytes(), flags: 0, data: &data, cas: None };
            prop_assert_eq!(parse(&bytes), Ok(Some((whole, bytes.len()))));
        }
    }
}
