//! Requests as a client writes them, appended to a buffer that is used again.

use crate::sink::Sink;

/// How the line of a command ends that may take `noreply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    Plain,
    /// The server sends no reply.
    Noreply,
    /// A space before the end of the line. Some servers refuse the line without it.
    Space,
}

impl LineEnd {
    /// The end of a command with or without a reply.
    #[inline]
    pub fn of(noreply: bool) -> LineEnd {
        if noreply { LineEnd::Noreply } else { LineEnd::Plain }
    }

    #[inline]
    fn bytes(self) -> &'static [u8] {
        match self {
            LineEnd::Plain => b"\r\n",
            LineEnd::Noreply => b" noreply\r\n",
            LineEnd::Space => b" \r\n",
        }
    }
}

/// A storage command's header and data: `set key 0 exptime length[ noreply]`.
///
/// `verb` is the command's word; flags are always 0, so that every client stores the same bytes.
#[inline]
pub fn store<'v>(
    out: &mut impl Sink<'v>,
    verb: &str,
    key: &[u8],
    exptime_s: u32,
    value: &'v [u8],
    end: LineEnd,
) {
    let head = out.bytes();
    word(head, verb.as_bytes());
    word(head, key);
    head.extend_from_slice(b"0 ");
    number(head, u64::from(exptime_s));
    head.push(b' ');
    number(head, value.len() as u64);
    head.extend_from_slice(end.bytes());
    out.value(value);
    out.bytes().extend_from_slice(b"\r\n");
}

/// `cas key 0 exptime length token` and the data.
pub fn cas<'v>(
    out: &mut impl Sink<'v>,
    key: &[u8],
    exptime_s: u32,
    value: &'v [u8],
    token: u64,
    end: LineEnd,
) {
    let head = out.bytes();
    head.extend_from_slice(b"cas ");
    word(head, key);
    head.extend_from_slice(b"0 ");
    number(head, u64::from(exptime_s));
    head.push(b' ');
    number(head, value.len() as u64);
    head.push(b' ');
    number(head, token);
    head.extend_from_slice(end.bytes());
    out.value(value);
    out.bytes().extend_from_slice(b"\r\n");
}

/// `incr key amount[ noreply]`, or `decr`.
pub fn count(out: &mut Vec<u8>, verb: &str, key: &[u8], amount: u32, end: LineEnd) {
    word(out, verb.as_bytes());
    word(out, key);
    number(out, u64::from(amount));
    out.extend_from_slice(end.bytes());
}

/// `get key key …`, or `gets`.
pub fn get<'a>(out: &mut Vec<u8>, verb: &str, keys: impl Iterator<Item = &'a [u8]>) {
    out.extend_from_slice(verb.as_bytes());
    for key in keys {
        out.push(b' ');
        out.extend_from_slice(key);
    }
    out.extend_from_slice(b"\r\n");
}

/// `get key`: the most frequent request. One check of the buffer's room is enough.
#[inline]
pub fn get_one(out: &mut Vec<u8>, key: &[u8]) {
    out.reserve(b"get \r\n".len() + key.len());
    out.extend_from_slice(b"get ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// `gat exptime key`.
pub fn get_and_touch(out: &mut Vec<u8>, key: &[u8], exptime_s: u32) {
    out.extend_from_slice(b"gat ");
    number(out, u64::from(exptime_s));
    out.push(b' ');
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// `touch key exptime[ noreply]`.
pub fn touch(out: &mut Vec<u8>, key: &[u8], exptime_s: u32, end: LineEnd) {
    out.extend_from_slice(b"touch ");
    word(out, key);
    number(out, u64::from(exptime_s));
    out.extend_from_slice(end.bytes());
}

/// `delete key[ noreply]`.
pub fn delete(out: &mut Vec<u8>, key: &[u8], end: LineEnd) {
    out.extend_from_slice(b"delete ");
    out.extend_from_slice(key);
    out.extend_from_slice(end.bytes());
}

/// `version`.
pub fn version(out: &mut Vec<u8>) {
    out.extend_from_slice(b"version\r\n");
}

/// `flush_all[ noreply]`.
pub fn flush(out: &mut Vec<u8>, end: LineEnd) {
    out.extend_from_slice(b"flush_all");
    out.extend_from_slice(end.bytes());
}

#[inline]
fn word(out: &mut Vec<u8>, word: &[u8]) {
    out.extend_from_slice(word);
    out.push(b' ');
}

#[inline]
fn number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::LineEnd::{Noreply, Plain, Space};
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn commands_are_as_memcached_reads_them() {
        let set = written(|out| store(out, "set", b"k", 60, b"abc", Plain));
        assert_eq!(set, "set k 0 60 3\r\nabc\r\n");
        let quiet = written(|out| store(out, "add", b"k", 0, b"", Noreply));
        assert_eq!(quiet, "add k 0 0 0 noreply\r\n\r\n");
        let keys: [&[u8]; 2] = [b"a", b"b"];
        assert_eq!(written(|out| get(out, "get", keys.into_iter())), "get a b\r\n");
        assert_eq!(written(|out| get_one(out, b"abc")), "get abc\r\n");
        assert_eq!(written(|out| get_and_touch(out, b"k", 9)), "gat 9 k\r\n");
        assert_eq!(written(|out| touch(out, b"k", 9, Noreply)), "touch k 9 noreply\r\n");
        assert_eq!(written(|out| delete(out, b"k", Plain)), "delete k\r\n");
        assert_eq!(written(|out| cas(out, b"k", 9, b"ab", 7, Plain)), "cas k 0 9 2 7\r\nab\r\n");
        assert_eq!(written(|out| count(out, "incr", b"k", 3, Noreply)), "incr k 3 noreply\r\n");
        assert_eq!(written(version), "version\r\n");
        assert_eq!(written(|out| flush(out, Noreply)), "flush_all noreply\r\n");
    }
    #[test]
    fn a_space_ends_each_line_that_may_take_noreply() {
        let set = written(|out| store(out, "set", b"k", 60, b"abc", Space));
        assert_eq!(set, "set k 0 60 3 \r\nabc\r\n");
        assert_eq!(written(|out| cas(out, b"k", 9, b"ab", 7, Space)), "cas k 0 9 2 7 \r\nab\r\n");
        assert_eq!(written(|out| count(out, "incr", b"k", 3, Space)), "incr k 3 \r\n");
        assert_eq!(written(|out| touch(out, b"k", 9, Space)), "touch k 9 \r\n");
        assert_eq!(written(|out| delete(out, b"k", Space)), "delete k \r\n");
    }
}
