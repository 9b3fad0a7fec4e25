//! Replies as a client reads them: one reply, or one VALUE block, at a time.

use memchr::memchr;

/// The longest reply line: a VALUE line with a key of 250 bytes, or an error text.
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
    /// What a counter is now.
    Number(u64),
    End,
    Stored,
    NotStored,
    Exists,
    NotFound,
    Deleted,
    Touched,
    Version,
    /// `ERROR`, `CLIENT_ERROR …`, `SERVER_ERROR …`.
    Error(ErrorKind),
}

/// Whose fault an error reply says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    Client,
    Server,
}

/// Bytes that are no reply: the stream cannot be read any further.
#[derive(Debug, PartialEq, Eq)]
pub struct Violation;

/// Read the first reply of `bytes`: the reply and its length in bytes, or `None` if it is not
/// whole yet. A value's data is never scanned, only its length skipped.
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(newline) = memchr(b'\n', window) else {
        return if window.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Violation) };
    };
    let Some(line) = window[..newline].strip_suffix(b"\r") else {
        return Err(Violation);
    };
    if let Some(header) = line.strip_prefix(b"VALUE ") {
        return value(header, &bytes[newline + 1..], newline + 1);
    }
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
        _ if line.starts_with(b"VERSION ") => Ok(Reply::Version),
        _ => {
            let number = decimal(Some(line)).map(Reply::Number);
            number.or_else(|| error_line(line).map(Reply::Error)).ok_or(Violation)
        }
    }
}

/// Whose fault a line says it is; `None` if it is no error.
pub(crate) fn error_line(line: &[u8]) -> Option<ErrorKind> {
    match line {
        b"ERROR" => Some(ErrorKind::Client),
        _ if line.starts_with(b"CLIENT_ERROR ") => Some(ErrorKind::Client),
        _ if line.starts_with(b"SERVER_ERROR ") => Some(ErrorKind::Server),
        _ => None,
    }
}

/// `key flags length[ cas]`, then the data and its line end.
fn value<'a>(
    header: &'a [u8],
    rest: &'a [u8],
    line_bytes: usize,
) -> Result<Option<(Reply<'a>, usize)>, Violation> {
    let mut fields = header.split(|byte| *byte == b' ');
    let key = fields.next().filter(|key| !key.is_empty()).ok_or(Violation)?;
    let flags = decimal(fields.next()).and_then(|n| u32::try_from(n).ok()).ok_or(Violation)?;
    let length = decimal(fields.next()).ok_or(Violation)?;
    let token = fields.next();
    let cas = decimal(token);
    if fields.next().is_some() || token.is_some() != cas.is_some() {
        return Err(Violation);
    }
    let length = usize::try_from(length).map_err(|_| Violation)?;
    let Some(whole) = length.checked_add(2).filter(|whole| *whole <= isize::MAX as usize / 2)
    else {
        return Err(Violation);
    };
    if rest.len() < whole {
        return Ok(None);
    }
    let (data, tail) = rest[..whole].split_at(length);
    if tail != b"\r\n" {
        return Err(Violation);
    }
    Ok(Some((Reply::Value { key, flags, data, cas }, line_bytes + whole)))
}

/// A decimal number that fits 64 bits.
pub(crate) fn decimal(field: Option<&[u8]>) -> Option<u64> {
    let field = field.filter(|field| !field.is_empty() && field.len() <= 20)?;
    field.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_reply_is_known() {
        let cases: [(&[u8], Reply); 11] = [
            (b"EXISTS\r\n", Reply::Exists),
            (b"18446744073709551615\r\n", Reply::Number(u64::MAX)),
            (b"END\r\n", Reply::End),
            (b"STORED\r\n", Reply::Stored),
            (b"NOT_STORED\r\n", Reply::NotStored),
            (b"NOT_FOUND\r\n", Reply::NotFound),
            (b"DELETED\r\n", Reply::Deleted),
            (b"TOUCHED\r\n", Reply::Touched),
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
        ] {
            assert_eq!(parse(bytes), Err(Violation), "{:?}", String::from_utf8_lossy(bytes));
        }
        assert_eq!(parse(&[b'x'; LINE_BYTES_MAX]), Err(Violation));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

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
