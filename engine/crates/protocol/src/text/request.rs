//! Parses requests for a server, one command line at a time, and refuses what memcached 1.6 refuses.
//!
//! The data of a storage command is not part of the line. The caller takes `length` bytes and a line end
//! behind it.

use memchr::memchr;

use crate::limits::KEY_BYTES_MAX;
use crate::meta::request::{MetaRequest, MetaVerb};
use crate::text::command::{Command, ControlVerb, Store, StoreVerb};
use crate::text::fast_path;
use crate::text::keys::Keys;
use crate::text::refusal::Refusal;
use crate::words::{Words, exptime, stored_exptime, unsigned, unsigned_as_in_c};

/// If the end of a line has not arrived after this many bytes, the connection is closed, unless the command is a
/// get.
const LINE_BYTES_MAX: usize = 2048;
/// The shortest line, with its end. A shorter line is refused.
const LINE_BYTES_MIN: usize = 4;
/// The same for a get, which may have many keys on one line.
const GET_LINE_BYTES_MAX: usize = 1 << 20;
/// The longest value: lengths are 32-bit numbers, with room for the line end.
const LENGTH_MAX: u64 = i32::MAX as u64 - 2;

const MALFORMED: Refusal = Refusal::BadFormat { swallow: 0 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// The line is not complete.
    Incomplete,
    /// A command, and the length of its line with the line end.
    Command(Command<'a>, usize),
    Refused(Refusal, usize),
    /// The line is too long for a command: close the connection.
    TooLong,
}

/// Parse the first line of `bytes`.
// The fast path is short, and its callers need no call then; `parse_any` stays out of line.
#[inline(always)]
pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    match fast_path::parse(bytes) {
        Some((command, length)) => Parsed::Command(command, length),
        None => parse_any(bytes),
    }
}

fn parse_any(bytes: &[u8]) -> Parsed<'_> {
    let Some(newline) = memchr(b'\n', bytes) else {
        let many_keys = bytes.starts_with(b"get ") || bytes.starts_with(b"gets ");
        let most = if many_keys { GET_LINE_BYTES_MAX } else { LINE_BYTES_MAX };
        return if bytes.len() > most { Parsed::TooLong } else { Parsed::Incomplete };
    };
    if newline + 1 < LINE_BYTES_MIN {
        return Parsed::Refused(MALFORMED, newline + 1);
    }
    let line = bytes[..newline].strip_suffix(b"\r").unwrap_or(&bytes[..newline]);
    match command(line) {
        Ok(command) => Parsed::Command(command, newline + 1),
        Err(refusal) => Parsed::Refused(refusal.unless_noreply(line), newline + 1),
    }
}

#[inline]
fn command(line: &[u8]) -> Result<Command<'_>, Refusal> {
    let (verb, rest) = match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &[][..]),
    };
    let words = Words::of(rest);
    match verb {
        b"get" => get(words, false),
        b"gets" => get(words, true),
        b"set" => store(StoreVerb::Set, words),
        b"add" => store(StoreVerb::Add, words),
        b"replace" => store(StoreVerb::Replace, words),
        b"append" => store(StoreVerb::Append, words),
        b"prepend" => store(StoreVerb::Prepend, words),
        b"cas" => store(StoreVerb::Cas, words),
        b"mg" => meta(MetaVerb::Get, words),
        b"ms" => meta_set(words),
        b"md" => meta(MetaVerb::Delete, words),
        b"ma" => meta(MetaVerb::Arithmetic, words),
        b"me" => meta(MetaVerb::Debug, words),
        b"mn" => Ok(Command::MetaNoop),
        b"gat" => get_and_touch(words, false),
        b"gats" => get_and_touch(words, true),
        b"delete" => delete(words),
        b"incr" => arithmetic(words, true),
        b"decr" => arithmetic(words, false),
        b"touch" => touch(words),
        b"version" => Ok(Command::Version),
        b"stats" => Ok(Command::Stats { topic: words.rest() }),
        b"quit" => Ok(Command::Quit),
        b"watch" => Ok(Command::Watch { kinds: words }),
        // Behind blanks, memcached looks for the commands of operators only.
        b"" => operators(words),
        _ => operators(Words::of(line)),
    }
}

#[inline]
fn get(words: Words<'_>, cas: bool) -> Result<Command<'_>, Refusal> {
    Ok(Command::Get { keys: Keys::parse(words).ok_or(MALFORMED)?, cas })
}

fn get_and_touch(mut words: Words<'_>, cas: bool) -> Result<Command<'_>, Refusal> {
    let seconds = words.next().ok_or(MALFORMED)?;
    let mut ahead = words;
    ahead.next().ok_or(MALFORMED)?;
    let exptime = exptime(seconds).ok_or(Refusal::BadExptime)?;
    let keys = Keys::parse(words).ok_or(MALFORMED)?;
    Ok(Command::GetAndTouch { keys, exptime, cas })
}

fn store(verb: StoreVerb, mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let mut word = || words.next();
    let (Some(key), Some(flags), Some(seconds), Some(length)) = (word(), word(), word(), word())
    else {
        return Err(MALFORMED);
    };
    let length = unsigned(length).filter(|length| *length <= LENGTH_MAX).ok_or(MALFORMED)?;
    // From here on the length of the data is known, so that it can be swallowed with the line.
    let refused = Refusal::BadFormat { swallow: length + 2 };
    let cas = match verb {
        StoreVerb::Cas => word().and_then(unsigned).ok_or(refused)?,
        _ => 0,
    };
    let flags = unsigned_as_in_c(flags).ok_or(refused)?;
    let exptime = stored_exptime(seconds).ok_or(refused)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(refused);
    }
    Ok(Command::Store(Store {
        verb,
        key,
        flags: flags as u32,
        exptime,
        length,
        cas,
        noreply: is_noreply(words),
    }))
}

#[inline]
fn meta(verb: MetaVerb, mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let key = key(&mut words)?;
    Ok(Command::Meta(MetaRequest { verb, key, length: 0, flags: words }))
}

fn meta_set(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let (Some(key), Some(length)) = (words.next(), words.next()) else {
        return Err(MALFORMED);
    };
    let length = unsigned(length).filter(|length| *length <= LENGTH_MAX).ok_or(MALFORMED)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(Refusal::BadFormat { swallow: length + 2 });
    }
    Ok(Command::Meta(MetaRequest { verb: MetaVerb::Set, key, length, flags: words }))
}

fn delete(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let noreply = is_noreply(words);
    let key = key(&mut words)?;
    // Early versions allowed a time here: other words are skipped.
    Ok(Command::Delete { key, noreply })
}

fn arithmetic(mut words: Words<'_>, increment: bool) -> Result<Command<'_>, Refusal> {
    let key = key(&mut words)?;
    let delta = words.next().ok_or(MALFORMED)?;
    Ok(Command::Arithmetic {
        key,
        delta: unsigned(delta).ok_or(Refusal::BadDelta)?,
        increment,
        noreply: is_noreply(words),
    })
}

fn touch(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let key = key(&mut words)?;
    let seconds = words.next().ok_or(MALFORMED)?;
    Ok(Command::Touch {
        key,
        exptime: exptime(seconds).ok_or(Refusal::BadExptime)?,
        noreply: is_noreply(words),
    })
}

fn flush_all(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let noreply = is_noreply(words);
    let delay = match words.next() {
        None => 0,
        Some(_) if noreply && words.next().is_none() => 0,
        Some(delay) => exptime(delay).ok_or(Refusal::BadExptime)?,
    };
    Ok(Command::FlushAll { delay, noreply })
}

/// A command of operators: `flush_all`, or one that controls the server.
fn operators(mut words: Words<'_>) -> Result<Command<'_>, Refusal> {
    let verb = match words.next().unwrap_or_default() {
        b"flush_all" => return flush_all(words),
        b"verbosity" => ControlVerb::Verbosity,
        b"cache_memlimit" => ControlVerb::MemoryLimit,
        b"slabs" => ControlVerb::Slabs,
        b"lru" => ControlVerb::Lru,
        b"lru_crawler" => ControlVerb::Crawler,
        b"shutdown" => ControlVerb::Shutdown,
        b"refresh_certs" => ControlVerb::RefreshCertificates,
        b"debugtime" => ControlVerb::DebugTime,
        _ => return Err(Refusal::Unknown),
    };
    Ok(Command::Control { verb, words, noreply: is_noreply(words) })
}

#[inline]
fn key<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Refusal> {
    let key = words.next().ok_or(MALFORMED)?;
    if key.len() > KEY_BYTES_MAX { Err(Refusal::BadKey) } else { Ok(key) }
}

/// Whether the last word is `noreply`, whatever precedes it.
fn is_noreply(words: Words<'_>) -> bool {
    words.last() == Some(b"noreply")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_storage_command_names_its_data() {
        let line = b"cas k 7 -1 5 42 noreply\r\nhello\r\n";
        let store = Store {
            verb: StoreVerb::Cas,
            key: b"k",
            flags: 7,
            exptime: -1,
            length: 5,
            cas: 42,
            noreply: true,
        };
        assert_eq!(parse(line), Parsed::Command(Command::Store(store), 25));
    }

    #[test]
    fn refused_data_is_swallowed() {
        let refused = Parsed::Refused(Refusal::BadFormat { swallow: 3 }, 16);
        assert_eq!(
            parse(b"set a abc 0 1\r\n"),
            Parsed::Refused(Refusal::BadFormat { swallow: 3 }, 15)
        );
        assert_eq!(parse(b"cas a 0 0 1 xyz\n"), refused);
    }

    #[test]
    fn a_line_that_is_too_long_is_refused() {
        assert_eq!(parse(&[b'x'; 1000]), Parsed::Incomplete);
        assert_eq!(parse(&[b'x'; 3000]), Parsed::TooLong);
        let mut long_get = b"get ".to_vec();
        long_get.resize(3000, b'k');
        assert_eq!(parse(&long_get), Parsed::Incomplete);
        long_get.resize(GET_LINE_BYTES_MAX + 1, b'k');
        assert_eq!(parse(&long_get), Parsed::TooLong);
    }

    proptest! {
        #[test]
        fn the_fast_path_reads_as_the_general_one_does(line in "(get|mg) {1,2}[!-~]{1,251}( [a-zA-Z0-9]{0,9}){0,3}[\r\n\t]{1,2}") {
            if let Some((command, length)) = fast_path::parse(line.as_bytes()) {
                prop_assert_eq!(Parsed::Command(command, length), parse_any(line.as_bytes()));
            }
        }

        #[test]
        fn any_bytes_are_parsed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_line_is_complete_or_incomplete(line in "(get|set|cas|incr|touch|zz)( [a-z0-9]{1,9}){0,6}") {
            let bytes = format!("{line}\r\n").into_bytes();
            for cut in 0..bytes.len() {
                prop_assert_eq!(parse(&bytes[..cut]), Parsed::Incomplete);
            }
            prop_assert_ne!(parse(&bytes), Parsed::Incomplete);
        }
    }
}
