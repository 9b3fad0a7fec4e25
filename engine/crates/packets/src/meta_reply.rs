//! A reply line of the meta protocol.

use cachemark_protocol::words::Words;

/// The word, the length of a value behind the line, and the meaning of the marks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MetaReply<'a> {
    pub word: &'a [u8],
    pub value_bytes: Option<u64>,
    /// The size that the mark `s` tells.
    size: Option<u64>,
    pub opaque: &'a [u8],
    pub key: &'a [u8],
}

impl<'a> MetaReply<'a> {
    /// Parse a line without its end; `None` if it is no reply of the meta protocol.
    pub(crate) fn parse(line: &'a [u8]) -> Option<MetaReply<'a>> {
        let mut words = Words::of(line);
        let word = words.next().filter(|word| word.len() == 2)?;
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<u64>().ok();
        let value_bytes = match word {
            b"VA" => Some(words.next().and_then(number)?),
            b"HD" | b"EN" | b"NF" | b"NS" | b"EX" | b"MN" | b"ME" => None,
            _ => return None,
        };
        let mut reply = MetaReply { word, value_bytes, size: None, opaque: b"", key: b"" };
        for mark in words {
            match mark {
                [b'O', opaque @ ..] => reply.opaque = opaque,
                [b'k', key @ ..] => reply.key = key,
                [b's', size @ ..] => reply.size = number(size),
                _ => {}
            }
        }
        Some(reply)
    }

    /// The size of the value, if the reply tells it.
    pub(crate) fn length(&self) -> Option<u32> {
        self.value_bytes.or(self.size).and_then(|bytes| u32::try_from(bytes).ok())
    }

    pub(crate) fn succeeded(&self) -> bool {
        matches!(self.word, b"VA" | b"HD")
    }
}
