//! The requests that are most of all, read at once.

use crate::limits::KEY_BYTES_MAX;
use crate::meta::request::{MetaRequest, MetaVerb};
use crate::text::command::Command;
use crate::text::keys::Keys;
use crate::words::{Words, first_blank, first_control};

/// What most requests are: a `get` or `mg` of one key, written as clients write it. Where its line
/// ends is found on the way. `None` says nothing.
#[inline(always)]
pub fn read(bytes: &[u8]) -> Option<(Command<'_>, usize)> {
    if let Some(rest) = bytes.strip_prefix(b"get ") {
        let (key, behind) = key_of(rest)?;
        let length = bytes.len() - behind.len() + 2;
        return behind
            .starts_with(b"\r\n")
            .then_some((Command::Get { keys: Keys::one(key), cas: false }, length));
    }
    let (key, behind) = key_of(bytes.strip_prefix(b"mg ")?)?;
    let (flags, end) = behind.split_at(first_control(behind)?);
    let length = bytes.len() - end.len() + 2;
    let request = MetaRequest { verb: MetaVerb::Get, key, length: 0, flags: Words::of(flags) };
    end.starts_with(b"\r\n").then_some((Command::Meta(request), length))
}

/// A key and what is behind it: a blank or a line's end.
#[inline]
fn key_of(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = first_blank(bytes).filter(|end| (1..=KEY_BYTES_MAX).contains(end))?;
    Some(bytes.split_at(end))
}
