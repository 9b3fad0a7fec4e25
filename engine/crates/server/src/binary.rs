//! What each request of the binary protocol does to the store, and its reply.

use std::sync::atomic::Ordering;

use cachemark_protocol::binary::request::{
    Body, HEADER_BYTES, Header, Malformed, Reply, Status, Verb, big_endian_u32, big_endian_u64,
};
use cachemark_storage::{Arithmetic, Deletion, Item, Lookup, Mode, Outcome};

use crate::ahead::{Coming, Head};
use crate::execute::Turn;
use crate::stats::{self, Told};

/// An exptime of `incr` and `decr` that forbids to create the item.
const CREATE_NOT: u32 = u32::MAX;

/// A login's mechanism and message together.
const LOGIN_BYTES_MAX: usize = 2048;

/// What one step through the input came to.
pub enum Step {
    Incomplete,
    Taken {
        bytes: usize,
        /// So many bytes behind them are to be dropped.
        swallow: u64,
        close: bool,
    },
}

const fn taken(bytes: usize, close: bool) -> Step {
    Step::Taken { bytes, swallow: 0, close }
}

/// Carry out the request at the front of `input`, whose head was read, and append its reply. `known`:
/// the client has told who it is.
pub fn step(
    input: &[u8],
    coming: &Coming<'_, Head<'_>>,
    known: &mut bool,
    turn: &mut Turn<'_>,
) -> Step {
    if input.len() < HEADER_BYTES {
        return Step::Incomplete;
    }
    let Some(header) = coming.request.header else {
        return taken(input.len(), true);
    };
    if let Err(malformed) = header.check() {
        let status = match malformed {
            Malformed::Lengths => Status::UnknownCommand,
            Malformed::Arguments => Status::InvalidArguments,
        };
        Reply::plain(status).append(&header, turn.out);
        return taken(input.len(), true);
    }
    let asks = turn.state.asks_who();
    let Some(verb) = header.verb().filter(|verb| asks || !verb.authenticates()) else {
        Reply::plain(Status::UnknownCommand).append(&header, turn.out);
        return Step::Taken {
            bytes: HEADER_BYTES,
            swallow: header.body_bytes() as u64,
            close: false,
        };
    };
    if asks && !*known && !verb.authenticates() && verb != Verb::Version {
        Reply::plain(Status::NotAuthenticated).append(&header, turn.out);
        return taken(input.len(), true);
    }
    if verb.authenticates() && header.body_bytes() > LOGIN_BYTES_MAX {
        Reply::plain(Status::InvalidArguments).append(&header, turn.out);
        return taken(input.len(), true);
    }
    if verb.stores() && !turn.fits(header.item_bytes()) {
        return refuse_too_large(&header, verb, input, turn);
    }
    let Some(body) = header.body(input) else {
        return Step::Incomplete;
    };
    let mut exchange = Exchange { header, body, lookup: coming.lookup, turn };
    if verb.authenticates() {
        // Who fails is nobody, whoever it was before.
        *known = exchange.log_in(verb).unwrap_or(*known);
    } else {
        exchange.carry_out(verb);
    }
    taken(HEADER_BYTES + header.body_bytes(), verb == Verb::Quit)
}

fn refuse_too_large(header: &Header, verb: Verb, input: &[u8], turn: &mut Turn<'_>) -> Step {
    let Some(key) = header.key(&input[HEADER_BYTES..]) else {
        return Step::Incomplete;
    };
    if verb == Verb::Set {
        turn.drop_stale(key);
    }
    turn.state.too_large.fetch_add(1, Ordering::Relaxed);
    Reply::plain(Status::TooLarge).append(header, turn.out);
    Step::Taken { bytes: HEADER_BYTES, swallow: header.body_bytes() as u64, close: false }
}

struct Exchange<'a, 'b> {
    header: Header,
    body: Body<'a>,
    lookup: Option<Lookup<'a>>,
    turn: &'a mut Turn<'b>,
}

impl Exchange<'_, '_> {
    fn carry_out(&mut self, verb: Verb) {
        match verb {
            Verb::Get => self.get(None),
            Verb::GetAndTouch => self.get(Some(self.exptime(0))),
            Verb::Touch => self.touch(),
            Verb::Set => self.store(Mode::Set),
            Verb::Add => self.store(Mode::Add),
            Verb::Replace => self.store(Mode::Replace),
            Verb::Append => self.store(Mode::Append),
            Verb::Prepend => self.store(Mode::Prepend),
            Verb::Delete => self.delete(),
            Verb::Increment => self.arithmetic(true),
            Verb::Decrement => self.arithmetic(false),
            Verb::Flush => self.flush(),
            Verb::Version => self.answer(b"", b"", self.turn.state.version.as_bytes(), 0),
            Verb::Noop | Verb::Quit => self.done(0),
            Verb::Stat => self.stat(),
            // The connection's, see `step`.
            Verb::SaslMechanisms | Verb::SaslAuthenticate | Verb::SaslStep => {}
        }
    }

    /// SASL PLAIN, which has one message; whether the client is known now, if it said who it is.
    fn log_in(&mut self, verb: Verb) -> Option<bool> {
        if verb == Verb::SaslMechanisms {
            self.answer(b"", b"", b"PLAIN", 0);
            return None;
        }
        let Body { key, value, .. } = self.body;
        let plain = verb == Verb::SaslAuthenticate && key == b"PLAIN";
        let allowed = self.turn.state.logs_in(|accounts| plain && accounts.allow_plain(value));
        if allowed {
            self.answer(b"", b"", b"Authenticated", 0);
        } else {
            self.refuse(Status::NotAuthenticated);
        }
        Some(allowed)
    }

    fn answer(&mut self, extras: &[u8], key: &[u8], value: &[u8], cas: u64) {
        let reply = Reply { status: Status::Ok, extras, key, value, cas };
        reply.append(&self.header, self.turn.out);
    }

    /// Success without more to say: silent where that was asked for.
    fn done(&mut self, cas: u64) {
        if !self.header.quiet() {
            self.answer(b"", b"", b"", cas);
        }
    }

    fn refuse(&mut self, status: Status) {
        Reply::plain(status).append(&self.header, self.turn.out);
    }

    /// The exptime at this place of the extras; memcached, too, reads it without a sign.
    fn exptime(&self, at: usize) -> i64 {
        i64::from(big_endian_u32(&self.body.extras[at..at + 4]))
    }

    fn get(&mut self, exptime: Option<i64>) {
        let Exchange { header, body, lookup, turn } = self;
        let key = if header.echoes_key() { body.key } else { b"" };
        let out = &mut *turn.out;
        let store = &turn.state.store;
        let answer = |item: &Item<'_>| {
            let extras = item.flags.to_be_bytes();
            let reply = Reply {
                status: Status::Ok,
                extras: &extras,
                key,
                value: item.value,
                cas: item.cas,
            };
            reply.append(header, out);
        };
        let hit = match exptime {
            Some(exptime) => store.get_and_touch(body.key, exptime, turn.now_s, answer),
            None => store.get_by_lookup(&store.lookup(body.key, *lookup), turn.now_s, answer),
        };
        if hit.is_none() && !header.quiet() {
            let mut miss = Reply::plain(Status::NotFound);
            if header.echoes_key() {
                (miss.key, miss.value) = (key, b"");
            }
            miss.append(header, turn.out);
        }
    }

    fn touch(&mut self) {
        let exptime = Some(self.exptime(0));
        let Exchange { body, turn, .. } = self;
        let found =
            turn.state.store.get(body.key, exptime, turn.now_s, |item| (item.flags, item.cas));
        match found {
            Some((flags, cas)) => self.answer(&flags.to_be_bytes(), b"", b"", cas),
            None => self.refuse(Status::NotFound),
        }
    }

    fn store(&mut self, mode: Mode) {
        let joins = matches!(mode, Mode::Append | Mode::Prepend);
        let (flags, exptime) = match joins {
            true => (0, 0),
            false => (big_endian_u32(&self.body.extras[..4]), self.exptime(4)),
        };
        let Exchange { header, body: Body { key, value, .. }, turn, .. } = self;
        let items = &turn.state.store;
        if joins {
            let there = items.value_length(key, turn.now_s).unwrap_or(0);
            if !turn.fits((key.len() + there + value.len()) as u64) {
                return self.refuse(Status::NotStored);
            }
        }
        match items.store_if(header.cas, mode, key, flags, exptime, value, turn.now_s) {
            Some((Outcome::Stored, cas)) => self.done(cas),
            Some((Outcome::Exists, _)) => self.refuse(Status::Exists),
            Some((Outcome::NotFound, _)) => self.refuse(Status::NotFound),
            Some((Outcome::NotStored, _)) => self.refuse(match mode {
                Mode::Add => Status::Exists,
                Mode::Replace => Status::NotFound,
                _ => Status::NotStored,
            }),
            None => {
                if mode == Mode::Set {
                    turn.drop_stale(key);
                }
                self.refuse(Status::OutOfMemory);
            }
        }
    }

    fn delete(&mut self) {
        let Exchange { header, body, turn, .. } = self;
        match turn.state.store.delete_if(body.key, header.cas, turn.now_s) {
            Deletion::Deleted => self.done(0),
            Deletion::NotFound => self.refuse(Status::NotFound),
            Deletion::Exists => self.refuse(Status::Exists),
        }
    }

    fn arithmetic(&mut self, increment: bool) {
        let delta = big_endian_u64(&self.body.extras[..8]);
        let Exchange { header, body, turn, .. } = self;
        let items = &turn.state.store;
        let changed = items.arithmetic_if(body.key, delta, increment, header.cas, turn.now_s);
        match changed {
            (Arithmetic::Number(number), cas) => self.number(number, cas),
            (Arithmetic::NotFound, _) => self.create_number(),
            (Arithmetic::Exists, _) => self.refuse(Status::Exists),
            (Arithmetic::NonNumeric, _) => self.refuse(Status::NonNumeric),
            (Arithmetic::NoRoom, _) => self.refuse(Status::OutOfMemory),
        }
    }

    fn number(&mut self, number: u64, cas: u64) {
        if !self.header.quiet() {
            self.answer(b"", b"", &number.to_be_bytes(), cas);
        }
    }

    /// There is no such item: the request says which number it then begins with, or none.
    fn create_number(&mut self) {
        let initial = big_endian_u64(&self.body.extras[8..16]);
        if big_endian_u32(&self.body.extras[16..20]) == CREATE_NOT {
            return self.refuse(Status::NotFound);
        }
        let exptime = self.exptime(16);
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(initial).as_bytes();
        let Exchange { body, turn, .. } = self;
        let items = &turn.state.store;
        match items.store_if(0, Mode::Add, body.key, 0, exptime, digits, turn.now_s) {
            Some((Outcome::Stored, cas)) => self.number(initial, cas),
            Some(_) => self.refuse(Status::NotStored),
            None => self.refuse(Status::OutOfMemory),
        }
    }

    fn flush(&mut self) {
        let delay = if self.body.extras.is_empty() { 0 } else { self.exptime(0) };
        let state = self.turn.state;
        state.store.flush(delay, self.turn.now_s);
        state.flushes.fetch_add(1, Ordering::Relaxed);
        self.done(0);
    }

    fn stat(&mut self) {
        match stats::tell(self.body.key, self.turn.state) {
            Some(told) => {
                // `reset` has nothing to tell, and a dump has no form of packets.
                if let Told::Rows(rows) = told {
                    for (name, value) in rows {
                        self.answer(b"", name.as_bytes(), value.as_bytes(), 0);
                    }
                }
                self.answer(b"", b"", b"", 0);
            }
            None => self.refuse(Status::NotFound),
        }
    }
}
