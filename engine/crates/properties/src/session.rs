//! A session of the server: its replies do not depend on how the input is split, they are complete, and it keeps
//! little in memory.

use std::sync::atomic::Ordering;

use cachemark_protocol::binary::request::REQUEST_MAGIC;
use cachemark_protocol::{binary, meta, text};
use cachemark_server::{Accounts, IoMode, Session, Settings, State};
use cachemark_storage::Mode;

use crate::NOW_S;

/// Low, so that short inputs exceed it.
const ITEM_BYTES_MAX: u64 = 1024;
/// The bytes that a session may leave unread between two pieces: a command line or a login, and an item.
const UNREAD_BYTES_MAX: usize = 4096;
/// A session pauses at 256 KiB of output; the rest is the last reply.
const OUTPUT_BYTES_MAX: usize = 256 * 1024 + 8 * 1024;

fn settings() -> Settings {
    Settings {
        io: IoMode::Events,
        threads: 2,
        memory_bytes: 1 << 20,
        item_bytes_max: ITEM_BYTES_MAX,
        max_connections: 64,
        ..Settings::default()
    }
}

/// An empty server.
pub fn empty() -> State {
    State::new(settings(), "1.2.3")
}

/// A server with a number, a stale value, and a value that expires.
pub fn with_items() -> State {
    let state = empty();
    let store = |key: &[u8], flags, exptime, value: &[u8]| {
        state.store.store(Mode::Set, key, flags, exptime, value, NOW_S).expect("room");
    };
    store(b"n", 0, 0, b"18446744073709551615");
    store(b"t", 7, 30, b"soon gone");
    store(b"a", 9, 0, b"stale");
    let invalidated = b"md a I T60\r\nmg n\r\n";
    feed_all(&mut Session::default(), &mut invalidated.to_vec(), &state);
    state
}

/// A server whose only user is ann.
pub fn with_login() -> State {
    empty().with_accounts(Accounts::parse("ann:s3c").expect("accounts"))
}

/// Feed the unread bytes until the session needs more: its replies, and whether it closed the connection. The
/// consumed bytes are removed.
pub fn feed_all(session: &mut Session, unread: &mut Vec<u8>, state: &State) -> (Vec<u8>, bool) {
    let (mut said, mut out) = (Vec::new(), Vec::new());
    loop {
        let fed = session.feed(unread, state, NOW_S, &mut out);
        assert!(out.len() <= OUTPUT_BYTES_MAX, "{} bytes in one go", out.len());
        unread.drain(..fed.consumed);
        said.append(&mut out);
        if fed.close || !fed.paused {
            return (said, fed.close);
        }
    }
}

/// All replies of a new session to an input in pieces of these sizes.
pub fn replies(state: &State, input: &[u8], mut sizes: impl FnMut() -> usize) -> Vec<u8> {
    let (mut session, mut said, mut unread) = (Session::default(), Vec::new(), Vec::new());
    let mut rest = input;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(sizes().min(rest.len()));
        rest = later;
        unread.extend_from_slice(piece);
        let (more, closed) = feed_all(&mut session, &mut unread, state);
        said.extend(more);
        if closed {
            break;
        }
        let bounded = unread.len() <= UNREAD_BYTES_MAX || unread.starts_with(b"get");
        assert!(bounded || piece.len() == input.len(), "{} bytes are unread", unread.len());
    }
    said
}

/// If the end of a text line has not arrived after this number of bytes, the connection is closed. A longer line that
/// arrives at once is parsed, as memcached does.
const LINE_BYTES_MAX: usize = 2048;

fn has_long_line(input: &[u8]) -> bool {
    input.split(|byte| *byte == b'\n').any(|line| line.len() >= LINE_BYTES_MAX)
}

/// The replies do not depend on how the input is split, and they are complete.
pub fn answers_do_not_depend_on_splits(fresh: fn() -> State, input: &[u8], cuts: &[usize]) {
    let whole = replies(&fresh(), input, || usize::MAX);
    let binary = input.first() == Some(&REQUEST_MAGIC);
    let expected = comparable(&whole, binary);
    if !binary && has_long_line(input) {
        return;
    }
    let mut cuts = cuts.iter().cycle();
    let mut next = || cuts.next().map_or(1, |size| *size.max(&1));
    let cut = replies(&fresh(), input, &mut next);
    assert_eq!(
        expected.escape_ascii().to_string(),
        comparable(&cut, binary).escape_ascii().to_string()
    );
}

/// A client that has not logged in can neither store nor read anything.
pub fn clients_without_login_get_nothing(input: &[u8]) {
    let state = with_login();
    state.store.store(Mode::Set, b"k", 0, 0, b"secret", NOW_S).expect("room");
    let before = state.store.usage(NOW_S);
    let said = replies(&state, input, || usize::MAX);
    if state.logins.load(Ordering::Relaxed) == state.failed_logins.load(Ordering::Relaxed) {
        assert_eq!(state.store.usage(NOW_S), before, "the store was used");
        assert!(!said.windows(6).any(|six| six == b"secret"), "{}", said.escape_ascii());
    }
}

/// The replies without those to `stats`, which depend on the time and the process. Panics if they are not
/// complete replies of the protocol.
pub(crate) fn comparable(said: &[u8], binary: bool) -> Vec<u8> {
    let (mut kept, mut rest) = (Vec::new(), said);
    while !rest.is_empty() {
        let (length, telling) = if binary { packet(rest) } else { line(rest) };
        if !telling {
            kept.extend_from_slice(&rest[..length]);
        }
        rest = &rest[length..];
    }
    kept
}

const STAT: u8 = 0x10;

fn packet(said: &[u8]) -> (usize, bool) {
    let packet = binary::client::parse(said);
    let (reply, length) = packet.expect("a packet").expect("a whole packet");
    (length, reply.opcode == STAT)
}

/// How reply lines begin that our clients never request.
const OTHER_REPLIES: [&[u8]; 18] = [
    b"OK",
    b"RESET",
    b"STAT",
    b"ITEM",
    b"ME",
    b"END",
    b"MN",
    b"VERSION",
    b"ERROR",
    b"BADCLASS",
    b"MEMLIMIT_TOO_SMALL",
    b"MEMLIMIT_ADJUST_FAILED",
    b"SAME",
    b"NOSPARE",
    b"WATCHER_TOO_MANY",
    // The reply to `refresh_certs`.
    b"Error",
    // A line of a dump.
    b"mg",
    // The reply to a refused shutdown.
    b"SERVER_ERROR:",
];

fn line(said: &[u8]) -> (usize, bool) {
    let end = said.iter().position(|byte| *byte == b'\n').expect("a line that ends") + 1;
    let word = said[..end].split(|byte| b" \r\n".contains(byte)).next().unwrap_or_default();
    let whole = match word {
        b"STAT" => return (end, true),
        // Keys in a dump may contain line ends.
        b"ITEM" | b"PREFIX" => return (said.len(), false),
        _ if OTHER_REPLIES.contains(&word) || word.starts_with(b"key=") => Some(end),
        b"VA" | b"HD" | b"EN" | b"NF" | b"NS" | b"EX" => {
            meta::client::parse(said).expect("a meta reply").map(|(_, length)| length)
        }
        _ => text::reply::parse(said)
            .unwrap_or_else(|_| panic!("a reply: {}", said[..end].escape_ascii()))
            .map(|(_, length)| length),
    };
    (whole.expect("a whole reply"), false)
}
