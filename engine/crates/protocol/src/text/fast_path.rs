//! A fast parser for the most frequent requests.

use crate::limits::KEY_BYTES_MAX;
use crate::meta::request::{MetaRequest, MetaVerb};
use crate::text::command::Command;
use crate::text::keys::Keys;
use crate::words::{Words, first_blank, first_control};

/// Parse a `get` or `mg` of one key in the form that clients use. `None` means that the general parser has to
/// parse the request.
#[inline(always)]
pub fn parse(bytes: &[u8]) -> Option<(Command<'_>, usize)> {
    if let Some(rest) = bytes.strip_prefix(b"get ") {
        let (key, behind) = split_key(rest)?;
        let length = bytes.len() - behind.len() + 2;
        return behind
            .starts_with(b"\r\n")
            .then_some((Command::Get { keys: Keys::one(key), cas: false }, length));
    }
    let (key, behind) = split_key(bytes.strip_prefix(b"mg ")?)?;
    let (flags, end) = behind.split_at(first_control(behind)?);
    let length = bytes.len() - end.len() + 2;
    let request = MetaRequest { verb: MetaVerb::Get, key, length: 0, flags: Words::of(flags) };
    end.starts_with(b"\r\n").then_some((Command::Meta(request), length))
}

/// Split off the key. A blank or a line end follows it.
#[inline]
fn split_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = first_blank(bytes).filter(|end| (1..=KEY_BYTES_MAX).contains(end))?;
    Some(bytes.split_at(end))
}
