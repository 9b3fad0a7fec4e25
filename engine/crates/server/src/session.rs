//! One connection's protocol state: bytes in, bytes out. No I/O.

use std::sync::atomic::Ordering;

use cachemark_protocol::request::{Command, Keys, Refusal, Step, Store, StoreVerb, parse};
use cachemark_storage::{Arithmetic, Item, Mode, Outcome};

use crate::state::State;
use crate::stats;

/// What memcached's own header adds to key and value when it judges an item's size.
const ITEM_HEADER_BYTES: u64 = 59;
/// A session pauses once it has this much to say; the caller writes and feeds it again.
const OUTPUT_PAUSE_BYTES: usize = 256 * 1024;

/// What feeding a session came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fed {
    /// So many bytes were taken; the rest must be offered again, with more behind it or with room
    /// made in the output.
    pub consumed: usize,
    /// The connection is to be closed once the output is written.
    pub close: bool,
    /// It stopped because the output is long, not because it needs more input.
    pub paused: bool,
}

/// The state between calls: data that is still to be dropped.
#[derive(Debug, Default)]
pub struct Session {
    swallow: u64,
}

impl Session {
    /// Carry out the commands in `input` and append the replies to `out`.
    pub fn feed(&mut self, input: &[u8], state: &State, now_s: u32, out: &mut Vec<u8>) -> Fed {
        let mut fed = Fed { consumed: 0, close: false, paused: false };
        let begin = out.len();
        while !fed.close {
            if out.len() - begin >= OUTPUT_PAUSE_BYTES {
                fed.paused = true;
                break;
            }
            let rest = &input[fed.consumed..];
            let dropped = self.swallow.min(rest.len() as u64);
            self.swallow -= dropped;
            fed.consumed += dropped as usize;
            let rest = &rest[dropped as usize..];
            if rest.is_empty() {
                break;
            }
            match self.step(rest, state, now_s, out) {
                Some(Taken { bytes, close }) => {
                    fed.consumed += bytes;
                    fed.close = close;
                }
                None => break,
            }
        }
        fed
    }

    /// Carry out one command; `None` when it is not whole.
    fn step(&mut self, rest: &[u8], state: &State, now_s: u32, out: &mut Vec<u8>) -> Option<Taken> {
        match parse(rest) {
            Step::Incomplete => None,
            Step::TooLong => Some(Taken { bytes: rest.len(), close: true }),
            Step::Refused(refusal, bytes) => {
                out.extend_from_slice(refusal.reply());
                if let Refusal::BadFormat { swallow } = refusal {
                    self.swallow = swallow;
                }
                Some(Taken { bytes, close: false })
            }
            Step::Command(Command::Store(store), line) => {
                self.store(&store, line, rest, state, now_s, out)
            }
            Step::Command(command, bytes) => {
                Some(Taken { bytes, close: execute(&command, state, now_s, out) })
            }
        }
    }

    fn store(
        &mut self,
        store: &Store<'_>,
        line: usize,
        rest: &[u8],
        state: &State,
        now_s: u32,
        out: &mut Vec<u8>,
    ) -> Option<Taken> {
        let done = |bytes| Some(Taken { bytes, close: false });
        let size = store.key.len() as u64 + store.length + ITEM_HEADER_BYTES;
        if size > state.settings.item_bytes_max {
            if store.verb == StoreVerb::Set {
                // The value that is there is stale now and must not be served.
                state.store.discard(store.key, now_s);
            }
            say(out, store.noreply, b"SERVER_ERROR object too large for cache\r\n");
            self.swallow = store.length + 2;
            return done(line);
        }
        let length = store.length as usize;
        let data = rest.get(line..line + length + 2)?;
        let whole = line + data.len();
        let (value, end) = data.split_at(length);
        if end != b"\r\n" {
            say(out, store.noreply, b"CLIENT_ERROR bad data chunk\r\n");
            return done(whole);
        }
        say(out, store.noreply, stored(store, value, state, now_s));
        done(whole)
    }
}

struct Taken {
    bytes: usize,
    close: bool,
}

fn say(out: &mut Vec<u8>, noreply: bool, reply: &[u8]) {
    if !noreply {
        out.extend_from_slice(reply);
    }
}

fn stored(store: &Store<'_>, value: &[u8], state: &State, now_s: u32) -> &'static [u8] {
    let mode = match store.verb {
        StoreVerb::Set => Mode::Set,
        StoreVerb::Add => Mode::Add,
        StoreVerb::Replace => Mode::Replace,
        StoreVerb::Append => Mode::Append,
        StoreVerb::Prepend => Mode::Prepend,
        StoreVerb::Cas => Mode::Cas(store.cas),
    };
    if matches!(mode, Mode::Append | Mode::Prepend) {
        let there = state.store.length(store.key, now_s).unwrap_or(0);
        let size = (store.key.len() + there + value.len()) as u64 + ITEM_HEADER_BYTES;
        if size > state.settings.item_bytes_max {
            return b"NOT_STORED\r\n";
        }
    }
    match state.store.store(mode, store.key, store.flags, store.exptime, value, now_s) {
        Some(Outcome::Stored) => b"STORED\r\n",
        Some(Outcome::NotStored) => b"NOT_STORED\r\n",
        Some(Outcome::Exists) => b"EXISTS\r\n",
        Some(Outcome::NotFound) => b"NOT_FOUND\r\n",
        None => b"SERVER_ERROR out of memory storing object\r\n",
    }
}

/// Carry out a command that has no data; true when the connection is to be closed.
fn execute(command: &Command<'_>, state: &State, now_s: u32, out: &mut Vec<u8>) -> bool {
    match *command {
        Command::Get { keys, cas } => get(keys, None, cas, state, now_s, out),
        Command::GetAndTouch { keys, exptime, cas } => {
            get(keys, Some(exptime), cas, state, now_s, out);
        }
        Command::Delete { key, noreply } => {
            let found = state.store.delete(key, now_s);
            say(out, noreply, if found { b"DELETED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        Command::Arithmetic { key, delta, increment, noreply } => {
            match state.store.arithmetic(key, delta, increment, now_s) {
                Arithmetic::Number(number) if !noreply => {
                    append_number(out, number);
                    out.extend_from_slice(b"\r\n");
                }
                Arithmetic::Number(_) => {}
                Arithmetic::NotFound => say(out, noreply, b"NOT_FOUND\r\n"),
                Arithmetic::NonNumeric => say(
                    out,
                    noreply,
                    b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
                ),
            }
        }
        Command::Touch { key, exptime, noreply } => {
            let found = state.store.touch(key, exptime, now_s);
            say(out, noreply, if found { b"TOUCHED\r\n" } else { b"NOT_FOUND\r\n" });
        }
        Command::FlushAll { delay, noreply } => {
            state.store.flush(delay, now_s);
            state.flushes.fetch_add(1, Ordering::Relaxed);
            say(out, noreply, b"OK\r\n");
        }
        Command::Version => {
            out.extend_from_slice(b"VERSION ");
            out.extend_from_slice(state.version.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        Command::Verbosity { noreply } => say(out, noreply, b"OK\r\n"),
        Command::Stats { topic } => stats::write(topic, state, out),
        Command::Quit => return true,
        // A storage command needs its data and is carried out by the session.
        Command::Store(_) => {}
    }
    false
}

fn get(
    keys: Keys<'_>,
    exptime: Option<i64>,
    cas: bool,
    state: &State,
    now_s: u32,
    out: &mut Vec<u8>,
) {
    for key in keys {
        state.store.get(key, exptime, now_s, |item| append_value(out, key, item, cas));
    }
    out.extend_from_slice(b"END\r\n");
}

fn append_value(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, cas: bool) {
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.push(b' ');
    append_number(out, u64::from(item.flags));
    out.push(b' ');
    append_number(out, item.value.len() as u64);
    if cas {
        out.push(b' ');
        append_number(out, item.cas);
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(item.value);
    out.extend_from_slice(b"\r\n");
}

fn append_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
