//! The client's side of the meta commands: encodes requests and parses replies. (memcached's doc/protocol.txt,
//! "Meta Commands".)

use memchr::memchr;

use crate::reply_errors::{ErrorKind, Violation, error_line};
use crate::sink::Sink;
use crate::words::decimal;

/// The longest reply line: of a value with a key of 250 bytes and its flags, or an error message.
const LINE_BYTES_MAX: usize = 2048;
/// The opaque token of a quiet command, by which a reply to it is recognized.
const QUIET: &[u8] = b" q Oq";

/// The request of an `mg`. A command without a reply requests nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Get {
    /// The value. Without it the reply only says whether the item exists.
    pub value: bool,
    pub cas: bool,
    /// A new expiry time.
    pub touch_s: Option<u32>,
    /// A miss has no reply: the key is one of several, followed by an `mn`.
    pub batch: bool,
    pub quiet: bool,
}

/// `mg key flags`. The reply with a value has the key and the client flags too.
pub fn get(out: &mut Vec<u8>, key: &[u8], get: &Get) {
    command(out, b"mg ", key);
    if let Some(exptime_s) = get.touch_s {
        mark(out, b'T', u64::from(exptime_s));
    }
    if get.value {
        out.extend_from_slice(b" k f");
    }
    if get.cas {
        out.extend_from_slice(b" c");
    }
    if get.value {
        out.extend_from_slice(b" v");
    }
    if get.batch {
        out.extend_from_slice(b" q");
    }
    end(out, get.quiet);
}

/// The mode of `ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    /// Store only if the item has this cas number.
    Cas(u64),
}

/// `ms key length flags` and the data. Client flags are 0, so that every client stores the same bytes.
#[inline]
pub fn store<'v>(
    out: &mut impl Sink<'v>,
    mode: Mode,
    key: &[u8],
    exptime_s: u32,
    value: &'v [u8],
    quiet: bool,
) {
    let head = out.bytes();
    command(head, b"ms ", key);
    head.push(b' ');
    number(head, value.len() as u64);
    if exptime_s > 0 {
        mark(head, b'T', u64::from(exptime_s));
    }
    match mode {
        Mode::Set => {}
        Mode::Add => head.extend_from_slice(b" ME"),
        Mode::Replace => head.extend_from_slice(b" MR"),
        Mode::Append => head.extend_from_slice(b" MA"),
        Mode::Prepend => head.extend_from_slice(b" MP"),
        Mode::Cas(token) => mark(head, b'C', token),
    }
    end(head, quiet);
    out.value(value);
    out.bytes().extend_from_slice(b"\r\n");
}

/// `ma key` with the amount. The reply has the new number.
pub fn count(out: &mut Vec<u8>, key: &[u8], amount: u32, up: bool, quiet: bool) {
    command(out, b"ma ", key);
    if !up {
        out.extend_from_slice(b" MD");
    }
    mark(out, b'D', u64::from(amount));
    if !quiet {
        out.extend_from_slice(b" v");
    }
    end(out, quiet);
}

/// `md key`.
pub fn delete(out: &mut Vec<u8>, key: &[u8], quiet: bool) {
    command(out, b"md ", key);
    end(out, quiet);
}

/// `mn`, whose reply follows the replies to all earlier commands.
pub fn noop(out: &mut Vec<u8>) {
    out.extend_from_slice(b"mn\r\n");
}

fn command(out: &mut Vec<u8>, word: &[u8], key: &[u8]) {
    out.extend_from_slice(word);
    out.extend_from_slice(key);
}

fn mark(out: &mut Vec<u8>, letter: u8, value: u64) {
    out.extend_from_slice(&[b' ', letter]);
    number(out, value);
}

#[inline]
fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn end(out: &mut Vec<u8>, quiet: bool) {
    if quiet {
        out.extend_from_slice(QUIET);
    }
    out.extend_from_slice(b"\r\n");
}

/// The kind of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer<'a> {
    /// `VA length` and the value.
    Value(&'a [u8]),
    /// `HD`: done, or the item exists; `OK` for a flush.
    Done,
    /// `EN` for a read, `NF` for another command.
    NotFound,
    NotStored,
    Exists,
    /// `MN`.
    End,
    Version,
    Error(ErrorKind),
}

/// A reply, with the flags that were requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    pub answer: Answer<'a>,
    pub key: Option<&'a [u8]>,
    pub flags: Option<u32>,
    pub cas: Option<u64>,
    /// The reply is to a quiet command that failed, or that was done and answered nevertheless.
    pub quiet: bool,
}

/// Parse the first reply of `bytes`: the reply and its length in bytes, or `None` if it is not complete. The
/// data of a value is not scanned.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Option<(Reply<'_>, usize)>, Violation> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(newline) = memchr(b'\n', window) else {
        return if window.len() < LINE_BYTES_MAX { Ok(None) } else { Err(Violation) };
    };
    let line = window[..newline].strip_suffix(b"\r").ok_or(Violation)?;
    let line_bytes = newline + 1;
    let Some((word, marks)) = line.split_at_checked(2) else { return Err(Violation) };
    let plain = |answer| Ok(Some((marked(answer, marks)?, line_bytes)));
    match word {
        b"VA" => value(marks, &bytes[line_bytes..], line_bytes),
        b"HD" => plain(Answer::Done),
        b"OK" if marks.is_empty() => plain(Answer::Done),
        b"EN" | b"NF" => plain(Answer::NotFound),
        b"NS" => plain(Answer::NotStored),
        b"EX" => plain(Answer::Exists),
        b"MN" => plain(Answer::End),
        _ if line.starts_with(b"VERSION ") => Ok(Some((bare(Answer::Version), line_bytes))),
        _ => {
            let kind = error_line(line).ok_or(Violation)?;
            Ok(Some((bare(Answer::Error(kind)), line_bytes)))
        }
    }
}

fn bare(answer: Answer<'_>) -> Reply<'_> {
    Reply { answer, key: None, flags: None, cas: None, quiet: false }
}

/// Parse ` length flags`, then the data and its line end.
fn value<'a>(
    rest: &'a [u8],
    data: &'a [u8],
    line_bytes: usize,
) -> Result<Option<(Reply<'a>, usize)>, Violation> {
    let rest = rest.strip_prefix(b" ").ok_or(Violation)?;
    let (length, marks) = rest.split_at(memchr(b' ', rest).unwrap_or(rest.len()));
    let length = decimal(Some(length)).and_then(|n| u32::try_from(n).ok()).ok_or(Violation)?;
    let length = length as usize;
    // Flags are checked before the data has arrived, so that invalid bytes are refused at once.
    let mut reply = marked(Answer::Value(&[]), marks)?;
    let Some(data) = data.get(..length + 2) else { return Ok(None) };
    let (data, tail) = data.split_at(length);
    if tail != b"\r\n" {
        return Err(Violation);
    }
    reply.answer = Answer::Value(data);
    Ok(Some((reply, line_bytes + length + 2)))
}

fn marked<'a>(answer: Answer<'a>, mut marks: &'a [u8]) -> Result<Reply<'a>, Violation> {
    let mut reply = bare(answer);
    while let Some(rest) = marks.strip_prefix(b" ") {
        let end = memchr(b' ', rest).unwrap_or(rest.len());
        let (mark, next) = rest.split_at(end);
        marks = next;
        // memcached writes a space at the end of a line without flags.
        let Some((letter, token)) = mark.split_first() else { continue };
        match letter {
            b'k' => reply.key = Some(token),
            b'f' => {
                let flags = decimal(Some(token)).and_then(|n| u32::try_from(n).ok());
                reply.flags = Some(flags.ok_or(Violation)?);
            }
            b'c' => reply.cas = Some(decimal(Some(token)).ok_or(Violation)?),
            b'O' => reply.quiet = true,
            _ if letter.is_ascii_alphabetic() => {}
            _ => return Err(Violation),
        }
    }
    if marks.is_empty() { Ok(reply) } else { Err(Violation) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn commands_are_as_memcached_reads_them() {
        let asked = |what: Get| written(|out| get(out, b"k", &what));
        let value = Get { value: true, ..Get::default() };
        assert_eq!(asked(value), "mg k k f v\r\n");
        assert_eq!(asked(Get { cas: true, ..value }), "mg k k f c v\r\n");
        assert_eq!(asked(Get { batch: true, ..value }), "mg k k f v q\r\n");
        assert_eq!(asked(Get { touch_s: Some(9), ..value }), "mg k T9 k f v\r\n");
        let touch = Get { touch_s: Some(0), ..Get::default() };
        assert_eq!(asked(touch), "mg k T0\r\n");
        assert_eq!(asked(Get { quiet: true, ..touch }), "mg k T0 q Oq\r\n");
        let stored = |mode, quiet| written(|out| store(out, mode, b"k", 60, b"abc", quiet));
        assert_eq!(stored(Mode::Set, false), "ms k 3 T60\r\nabc\r\n");
        assert_eq!(stored(Mode::Add, true), "ms k 3 T60 ME q Oq\r\nabc\r\n");
        assert_eq!(stored(Mode::Cas(7), false), "ms k 3 T60 C7\r\nabc\r\n");
        assert_eq!(written(|out| count(out, b"n", 5, true, false)), "ma n D5 v\r\n");
        assert_eq!(written(|out| count(out, b"n", 5, false, true)), "ma n MD D5 q Oq\r\n");
        assert_eq!(written(|out| delete(out, b"k", false)), "md k\r\n");
        assert_eq!(written(noop), "mn\r\n");
    }

    #[test]
    fn every_reply_is_known() {
        let cases: [(&[u8], Answer); 9] = [
            (b"HD\r\n", Answer::Done),
            (b"HD \r\n", Answer::Done),
            (b"EN\r\n", Answer::NotFound),
            (b"NF\r\n", Answer::NotFound),
            (b"NS\r\n", Answer::NotStored),
            (b"EX\r\n", Answer::Exists),
            (b"MN\r\n", Answer::End),
            (b"VERSION 1.6.18\r\n", Answer::Version),
            (b"SERVER_ERROR out of memory\r\n", Answer::Error(ErrorKind::Server)),
        ];
        for (bytes, answer) in cases {
            assert_eq!(parse(bytes), Ok(Some((bare(answer), bytes.len()))));
        }
        let quiet = Reply { quiet: true, ..bare(Answer::NotStored) };
        assert_eq!(parse(b"NS Oq\r\n"), Ok(Some((quiet, 7))));
    }

    #[test]
    fn a_value_has_its_marks_and_may_contain_line_ends() {
        let bytes = b"VA 4 kfoo f7 c99 W\r\na\r\nb\r\nMN\r\n";
        let value = Reply {
            answer: Answer::Value(b"a\r\nb"),
            key: Some(b"foo"),
            flags: Some(7),
            cas: Some(99),
            quiet: false,
        };
        assert_eq!(parse(bytes), Ok(Some((value, 26))));
    }

    #[test]
    fn garbage_is_a_violation() {
        for bytes in [
            &b"HELLO\r\n"[..],
            b"\r\n",
            b"H\r\n",
            b"HD\n",
            b"HDx\r\n",
            b"VA\r\n",
            b"VA x\r\n",
            b"VA 1 fx\r\na\r\n",
            b"VA 1 !\r\na\r\n",
            b"VA 1\r\nabc",
            b"VA 99999999999999999999\r\n",
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
            let mut bytes = format!("VA {} k{key} f0\r\n", data.len()).into_bytes();
            bytes.extend_from_slice(&data);
            bytes.extend_from_slice(b"\r\n");
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..cut]), Ok(None));
            }
            let whole = Reply {
                key: Some(key.as_bytes()), flags: Some(0), ..bare(Answer::Value(&data))
            };
            prop_assert_eq!(parse(&bytes), Ok(Some((whole, bytes.len()))));
        }
    }
}
