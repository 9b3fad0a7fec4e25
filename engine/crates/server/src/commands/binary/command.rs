//! A complete request of the binary protocol, and what each verb does.

use std::sync::atomic::Ordering;

use cachemark_protocol::binary::request::{
    Body, Header, Reply, Status, Verb, big_endian_u32, big_endian_u64,
};
use cachemark_storage::{
    Arithmetic, Content, Deletion, Entry, Item, Lookup, Marks, Mode, Outcome, expires_s,
};

use crate::commands::context::{RequestContext, append_or_send};
use crate::commands::observe;
use crate::requests::connection_state::ConnectionState;
use crate::state::accounts::Accounts;
use crate::state::cram_md5;
use crate::state::event_log::kinds;
use crate::state::stats;

/// With this exptime, `incr` and `decr` do not create an item.
const DO_NOT_CREATE: u32 = u32::MAX;

pub struct BinaryCommand<'a, 'b> {
    pub header: Header,
    pub body: Body<'a>,
    pub lookup: Option<Lookup<'a>>,
    pub context: &'a mut RequestContext<'b>,
}

impl BinaryCommand<'_, '_> {
    /// A message of a login by SASL: PLAIN has one, CRAM-MD5 an empty one and the answer to a challenge.
    pub fn log_in(&mut self, verb: Verb, connection: &mut ConnectionState) {
        if verb == Verb::SaslMechanisms {
            return self.answer(b"", b"", b"PLAIN CRAM-MD5", 0);
        }
        // A failed login ends an earlier one.
        connection.authenticated = false;
        let Body { key: mechanism, value: message, .. } = self.body;
        let begins = verb == Verb::SaslAuthenticate;
        if begins && mechanism == b"CRAM-MD5" && message.is_empty() {
            let challenge = cram_md5::challenge();
            let asked =
                Reply { value: &challenge, ..Reply::plain(Status::AuthenticationContinues) };
            asked.append(&self.header, self.context.out);
            connection.challenge = Some(challenge.into());
            return;
        }
        let challenge = connection.challenge.take();
        let is_known = |accounts: &Accounts| match (begins, challenge) {
            (true, _) => mechanism == b"PLAIN" && accounts.allow_plain(message),
            (false, Some(challenge)) => accounts.allow_cram_md5(&challenge, message),
            (false, None) => false,
        };
        connection.authenticated = self.context.state.authenticate(is_known);
        if connection.authenticated {
            self.answer(b"", b"", b"Authenticated", 0);
        } else {
            self.refuse(Status::NotAuthenticated);
        }
    }

    pub fn version(&mut self) {
        self.answer(b"", b"", self.context.state.version.as_bytes(), 0);
    }

    /// Append a successful reply.
    fn answer(&mut self, extras: &[u8], key: &[u8], value: &[u8], cas: u64) {
        let reply = Reply { status: Status::Ok, extras, key, value, cas };
        reply.append(&self.header, self.context.out);
    }

    /// Success without data: no reply if the opcode is quiet.
    pub fn done(&mut self, cas: u64) {
        if !self.header.is_quiet() {
            self.answer(b"", b"", b"", cas);
        }
    }

    fn refuse(&mut self, status: Status) {
        Reply::plain(status).append(&self.header, self.context.out);
    }

    /// The exptime at this offset of the extras. It is unsigned, as in memcached.
    pub fn exptime(&self, at: usize) -> i64 {
        i64::from(big_endian_u32(&self.body.extras[at..at + 4]))
    }

    pub fn get(&mut self, exptime: Option<i64>) {
        let BinaryCommand { header, body, lookup, context } = self;
        let key = if header.echoes_key() { body.key } else { b"" };
        let (out, direct) = (&mut *context.out, &mut context.direct);
        let store = &context.state.store;
        // While an item gets a new exptime, its region is locked, which no socket may prolong.
        let mut locked = None;
        let direct = if exptime.is_some() { &mut locked } else { direct };
        let answer = |item: &Item<'_>| {
            let extras = item.flags.to_be_bytes();
            let reply = Reply {
                status: Status::Ok,
                extras: &extras,
                key,
                value: item.value,
                cas: item.cas,
            };
            reply.append_head(header, out);
            append_or_send(out, direct, item.value, b"");
        };
        let hit = match exptime {
            Some(exptime) => store.get_and_touch(body.key, exptime, context.now_s, answer),
            None => store.get_by_lookup(&store.lookup(body.key, *lookup), context.now_s, answer),
        };
        if hit.is_none() && !header.is_quiet() {
            let mut miss = Reply::plain(Status::NotFound);
            if header.echoes_key() {
                (miss.key, miss.value) = (key, b"");
            }
            miss.append(header, context.out);
        }
    }

    pub fn touch(&mut self) {
        let exptime = Some(self.exptime(0));
        let BinaryCommand { body, context, .. } = self;
        let found = context
            .state
            .store
            .get(body.key, exptime, context.now_s, |item| (item.flags, item.cas));
        match found {
            Some((flags, cas)) => self.answer(&flags.to_be_bytes(), b"", b"", cas),
            None => self.refuse(Status::NotFound),
        }
    }

    pub fn store(&mut self, mode: Mode) {
        let concatenates = matches!(mode, Mode::Append | Mode::Prepend);
        let (flags, exptime) = match concatenates {
            true => (0, 0),
            false => (big_endian_u32(&self.body.extras[..4]), self.exptime(4)),
        };
        let BinaryCommand { header, body: Body { key, value, .. }, context, .. } = self;
        let items = &context.state.store;
        if concatenates {
            let present = items.value_length(key, context.now_s).unwrap_or(0);
            if !context.fits((key.len() + present + value.len()) as u64) {
                return self.refuse(Status::NotStored);
            }
        }
        let (cas, now_s) = (header.cas, context.now_s);
        let result = match context.reserved.take() {
            Some(item) => Some(items.store_reserved(item, mode, cas, Marks::default(), now_s)),
            None => items.store_if(cas, mode, key, flags, exptime, value, now_s),
        };
        if context.wants(kinds::MUTATIONS) {
            let (outcome, length) = (result.map(|(outcome, _)| outcome), header.value_bytes());
            report_stored(key, mode, outcome, exptime, length, context);
        }
        match result {
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
                    context.drop_stale(key);
                }
                self.refuse(Status::OutOfMemory);
            }
        }
    }

    pub fn delete(&mut self) {
        let BinaryCommand { header, body, context, .. } = self;
        match context.state.store.delete_if(body.key, header.cas, context.now_s) {
            Deletion::Deleted => self.done(0),
            Deletion::NotFound => self.refuse(Status::NotFound),
            Deletion::Exists => self.refuse(Status::Exists),
        }
    }

    pub fn arithmetic(&mut self, increment: bool) {
        let delta = big_endian_u64(&self.body.extras[..8]);
        let creates = big_endian_u32(&self.body.extras[16..20]) != DO_NOT_CREATE;
        let state = self.context.state;
        let mut entry = state.store.entry(self.body.key, self.context.now_s);
        if creates && entry.item().is_none() {
            return self.create_number(entry);
        }
        let cas = entry.fresh_cas();
        match entry.arithmetic(delta, increment, self.header.cas, cas) {
            Arithmetic::Number(number) => self.reply_number(number, cas),
            Arithmetic::NotFound => self.refuse(Status::NotFound),
            Arithmetic::Exists => self.refuse(Status::Exists),
            Arithmetic::NonNumeric => self.refuse(Status::NonNumeric),
            Arithmetic::NoRoom => self.refuse(Status::OutOfMemory),
        }
    }

    fn reply_number(&mut self, number: u64, cas: u64) {
        if !self.header.is_quiet() {
            self.answer(b"", b"", &number.to_be_bytes(), cas);
        }
    }

    /// The item is missing: create it with the initial number. As in memcached, this counts neither as a miss nor as
    /// a set.
    fn create_number(&mut self, mut entry: Entry<'_>) {
        let initial = big_endian_u64(&self.body.extras[8..16]);
        let exptime = self.exptime(16);
        let mut buffer = itoa::Buffer::new();
        let (digits, cas) = (buffer.format(initial).as_bytes(), entry.fresh_cas());
        let expires_s = expires_s(exptime, self.context.now_s);
        let marks = Marks::default();
        let stored = entry.put(&Content { value: digits, flags: 0, expires_s, cas, marks });
        drop(entry);
        if self.context.wants(kinds::MUTATIONS) {
            let outcome = stored.then_some(Outcome::Stored);
            let (key, length) = (self.body.key, digits.len());
            report_stored(key, Mode::Add, outcome, exptime, length, self.context);
        }
        if stored { self.reply_number(initial, cas) } else { self.refuse(Status::OutOfMemory) }
    }

    pub fn flush(&mut self) {
        let delay = if self.body.extras.is_empty() { 0 } else { self.exptime(0) };
        let state = self.context.state;
        state.flushes.fetch_add(1, Ordering::Relaxed);
        if !state.settings.commands.flush {
            return self.refuse(Status::NotAuthenticated);
        }
        state.store.flush(delay, self.context.now_s);
        self.done(0);
    }

    pub fn stat(&mut self) {
        match stats::binary_answer(self.body.key, self.context.state, self.context.socket) {
            Some(rows) => {
                for (name, value) in rows {
                    self.answer(b"", name.as_bytes(), value.as_bytes(), 0);
                }
                self.answer(b"", b"", b"", 0);
            }
            None => self.refuse(Status::NotFound),
        }
        // `detail` may have changed it.
        self.context.watched = self.context.state.log.wanted();
    }
}

/// Report the result of a storage command to watching clients.
#[cold]
fn report_stored(
    key: &[u8],
    mode: Mode,
    outcome: Option<Outcome>,
    exptime: i64,
    length: usize,
    context: &RequestContext<'_>,
) {
    let command = match mode {
        Mode::Add => "add",
        Mode::Replace => "replace",
        Mode::Append => "append",
        Mode::Prepend => "prepend",
        Mode::Set | Mode::Cas(_) => "set",
    };
    let code: &[u8] = match outcome {
        Some(Outcome::Stored) => b"STORED",
        Some(Outcome::NotStored) => b"NOT_STORED",
        Some(Outcome::Exists) => b"EXISTS",
        Some(Outcome::NotFound) => b"NOT_FOUND",
        None => b"",
    };
    let joins = matches!(mode, Mode::Append | Mode::Prepend);
    let (length, exptime) = observe::of_stored(key, joins, (length, exptime), context);
    observe::stored(key, command, code, exptime, length, context);
}
