//! One connection's protocol state: bytes in, bytes out. No I/O.

use std::sync::atomic::Ordering;

use cachemark_protocol::meta::request::{MetaRequest, MetaVerb};
use cachemark_protocol::text::command::{Command, Store, StoreVerb};
use cachemark_protocol::text::keys::Keys;
use cachemark_protocol::text::request::Parsed;
use cachemark_storage::Lookup;

use cachemark_protocol::binary::request::REQUEST_MAGIC;

use crate::ahead::{Ahead, Coming, Head, Request};
use crate::binary;
use crate::dump;
use crate::execute::{self, Turn, say};
use crate::last_flags::LastFlags;
use crate::login::{self, Login};
use crate::meta;
use crate::state::State;

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

/// Which protocol a connection speaks: its first byte tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Text,
    Binary,
}

/// The state between calls: data that is still to be dropped, and how far a long get has come.
#[derive(Debug, Default)]
pub struct Session {
    dialect: Option<Dialect>,
    /// The client has told who it is, where that is asked.
    known: bool,
    swallow: u64,
    /// Keys that are answered already of the get at the front of the input, or parts of a dump.
    answered: usize,
}

impl Session {
    /// Carry out the commands in `input` and append the replies to `out`.
    pub fn feed(&mut self, input: &[u8], state: &State, now_s: u32, out: &mut Vec<u8>) -> Fed {
        let mut turn = Turn { state, now_s, out };
        // A connection's first byte tells; nothing is to be dropped before it.
        let Some(first) = input.first() else {
            return Fed { consumed: 0, close: false, paused: false };
        };
        let dialect = *self.dialect.get_or_insert(match *first {
            REQUEST_MAGIC => Dialect::Binary,
            _ => Dialect::Text,
        });
        match dialect {
            Dialect::Text => {
                let ahead = Ahead::new(input, &state.store);
                let mut last = LastFlags::default();
                self.take_turns(
                    input,
                    ahead,
                    |session, coming, rest, turn, pause_at| {
                        session.text_step(coming, &mut last, rest, turn, pause_at)
                    },
                    &mut turn,
                )
            }
            Dialect::Binary => {
                let ahead = Ahead::new(input, &state.store);
                self.take_turns(input, ahead, Session::binary_step, &mut turn)
            }
        }
    }

    /// `step` carries out one request, or as much of it as the output has room for; `None` where it
    /// is not whole.
    #[inline]
    fn take_turns<'a, R: Request<'a>>(
        &mut self,
        input: &'a [u8],
        mut ahead: Ahead<'a, R>,
        mut step: impl FnMut(&mut Self, &Coming<'a, R>, &'a [u8], &mut Turn<'_>, usize) -> Option<Taken>,
        turn: &mut Turn<'_>,
    ) -> Fed {
        let mut fed = Fed { consumed: 0, close: false, paused: false };
        let pause_at = turn.out.len() + OUTPUT_PAUSE_BYTES;
        while !fed.close {
            if turn.out.len() >= pause_at {
                fed.paused = true;
                break;
            }
            let dropped = self.swallow.min((input.len() - fed.consumed) as u64);
            self.swallow -= dropped;
            fed.consumed += dropped as usize;
            let rest = &input[fed.consumed..];
            if rest.is_empty() {
                break;
            }
            let coming = ahead.turn_to(fed.consumed);
            match step(self, coming, rest, turn, pause_at) {
                Some(Taken { bytes, close }) => {
                    fed.consumed += bytes;
                    fed.close = close;
                }
                None => break,
            }
        }
        fed
    }

    #[inline]
    fn text_step<'a>(
        &mut self,
        coming: &Coming<'a, Parsed<'a>>,
        last: &mut LastFlags<'a>,
        rest: &[u8],
        turn: &mut Turn<'_>,
        pause_at: usize,
    ) -> Option<Taken> {
        if turn.state.asks_who() && !self.known {
            return self.log_in(rest, turn);
        }
        let (command, line) = match coming.request {
            Parsed::Incomplete => return None,
            Parsed::TooLong => return Some(Taken { bytes: rest.len(), close: true }),
            Parsed::Refused(refusal, line) => {
                turn.out.extend_from_slice(refusal.reply());
                self.swallow = refusal.swallow();
                return taken(line);
            }
            Parsed::Command(command, line) => (command, line),
        };
        let lookup = coming.lookup;
        let whole = match command {
            Command::Get { keys, cas } => match keys.only() {
                Some(key) if !cas => {
                    execute::get_one(&turn.state.store.lookup(key, lookup), turn);
                    true
                }
                _ => self.get(keys, lookup, None, cas, turn, pause_at),
            },
            Command::GetAndTouch { keys, exptime, cas } => {
                self.get(keys, lookup, Some(exptime), cas, turn, pause_at)
            }
            Command::Meta(request) if request.verb == MetaVerb::Set => {
                return self.meta_set(&request, last, line, rest, turn);
            }
            Command::Dump => self.dump(turn, pause_at),
            Command::Meta(request) => {
                meta::answer(&request, last, lookup, turn);
                true
            }
            Command::Store(store) => return self.store(&store, line, rest, turn),
            other => {
                return Some(Taken { bytes: line, close: execute::execute(&other, turn) });
            }
        };
        taken(if whole { line } else { 0 })
    }

    fn log_in(&mut self, rest: &[u8], turn: &mut Turn<'_>) -> Option<Taken> {
        match login::step(rest, turn) {
            Login::Incomplete => None,
            Login::Refused { bytes, close } => Some(Taken { bytes, close }),
            Login::Allowed { bytes } => {
                self.known = true;
                taken(bytes)
            }
        }
    }

    #[inline]
    fn binary_step(
        &mut self,
        coming: &Coming<'_, Head<'_>>,
        rest: &[u8],
        turn: &mut Turn<'_>,
        _pause_at: usize,
    ) -> Option<Taken> {
        match binary::step(rest, coming, &mut self.known, turn) {
            binary::Step::Incomplete => None,
            binary::Step::Taken { bytes, swallow, close } => {
                self.swallow = swallow;
                Some(Taken { bytes, close })
            }
        }
    }

    /// Answer the keys that are not answered yet; false when the output is long before the last.
    /// A line of many keys may ask for more than memory holds.
    fn get(
        &mut self,
        mut keys: Keys<'_>,
        lookup: Option<Lookup<'_>>,
        exptime: Option<i64>,
        cas: bool,
        turn: &mut Turn<'_>,
        pause_at: usize,
    ) -> bool {
        if self.answered > 0 {
            keys.nth(self.answered - 1);
        }
        for key in keys {
            if turn.out.len() >= pause_at {
                return false;
            }
            match exptime {
                Some(exptime) => execute::get_and_touch(key, exptime, cas, turn),
                None => execute::get(&turn.state.store.lookup(key, lookup), cas, turn),
            }
            self.answered += 1;
        }
        self.answered = 0;
        turn.out.extend_from_slice(b"END\r\n");
        true
    }

    /// Tell of the parts of the store that are not told of yet; false when the output is long before
    /// the last.
    fn dump(&mut self, turn: &mut Turn<'_>, pause_at: usize) -> bool {
        while let Some(next) = dump::write(self.answered, turn) {
            self.answered = next;
            if turn.out.len() >= pause_at {
                return false;
            }
        }
        self.answered = 0;
        true
    }

    fn store(
        &mut self,
        store: &Store<'_>,
        line: usize,
        rest: &[u8],
        turn: &mut Turn<'_>,
    ) -> Option<Taken> {
        if !turn.fits(store.key.len() as u64 + store.length) {
            turn.state.too_large.fetch_add(1, Ordering::Relaxed);
            if store.verb == StoreVerb::Set {
                turn.drop_stale(store.key);
            }
            say(turn.out, store.noreply, b"SERVER_ERROR object too large for cache\r\n");
            self.swallow = store.length + 2;
            return taken(line);
        }
        let length = store.length as usize;
        let data = rest.get(line..line + length + 2)?;
        let (value, end) = data.split_at(length);
        let reply = match end {
            b"\r\n" => execute::store(store, value, turn),
            _ => b"CLIENT_ERROR bad data chunk\r\n",
        };
        say(turn.out, store.noreply, reply);
        taken(line + data.len())
    }

    fn meta_set<'a>(
        &mut self,
        request: &MetaRequest<'a>,
        last: &mut LastFlags<'a>,
        line: usize,
        rest: &[u8],
        turn: &mut Turn<'_>,
    ) -> Option<Taken> {
        let options = match meta::accept(request, last, turn) {
            Ok(options) => options,
            Err(reply) => {
                turn.out.extend_from_slice(reply);
                self.swallow = request.length + 2;
                return taken(line);
            }
        };
        let length = request.length as usize;
        let data = rest.get(line..line + length + 2)?;
        let (value, end) = data.split_at(length);
        match end {
            b"\r\n" => meta::carry_out(request, options, None, value, turn),
            _ => turn.out.extend_from_slice(b"CLIENT_ERROR bad data chunk\r\n"),
        }
        taken(line + data.len())
    }
}

struct Taken {
    bytes: usize,
    close: bool,
}

fn taken(bytes: usize) -> Option<Taken> {
    Some(Taken { bytes, close: false })
}
