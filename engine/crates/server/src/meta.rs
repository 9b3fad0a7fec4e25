//! What each request of the meta protocol does to the store, and its reply.

use std::sync::atomic::Ordering;

use cachemark_protocol::limits::KEY_BYTES_MAX;
use cachemark_protocol::meta::request::{
    MetaFault, MetaMode, MetaOptions, MetaRequest, MetaVerb, decode_key,
};
use cachemark_storage::{Arithmetic, Content, Entry, Lookup, Marks, expires_s};

use crate::execute::Turn;
use crate::last_flags::LastFlags;
use crate::meta_reply::{
    Reading, append_debug, append_echo, append_flag, append_head, append_hit, append_ttl,
};

/// A request whose flags are read and whose key is decoded.
pub struct Exchange<'a, 'b> {
    pub request: &'a MetaRequest<'a>,
    pub options: &'a MetaOptions<'a>,
    pub key: &'a [u8],
    lookup: Option<Lookup<'a>>,
    pub turn: &'a mut Turn<'b>,
}

/// Read the flags of a request and carry it out. One that has data is read by `accept`.
#[inline]
pub fn answer<'a>(
    request: &MetaRequest<'a>,
    last: &mut LastFlags<'a>,
    lookup: Option<Lookup<'_>>,
    turn: &mut Turn<'_>,
) {
    match last.of(request) {
        Ok(options) => carry_out(request, options, lookup, b"", turn),
        Err(fault) => turn.out.extend_from_slice(fault.reply(request.verb)),
    }
}

/// Carry out a request; `lookup` is its key where that was foreseen, `value` the data of a `ms`.
#[inline]
pub fn carry_out(
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
    lookup: Option<Lookup<'_>>,
    value: &[u8],
    turn: &mut Turn<'_>,
) {
    if options.base64 {
        return carry_out_base64(request, options, value, turn);
    }
    let key = request.key;
    Exchange { request, options, key, lookup, turn }.carry_out(value);
}

/// The same with a key that is to be decoded: its room is not made for every request.
fn carry_out_base64(
    request: &MetaRequest<'_>,
    options: &MetaOptions<'_>,
    value: &[u8],
    turn: &mut Turn<'_>,
) {
    let mut buffer = [0; KEY_BYTES_MAX];
    match decode_key(request.key, &mut buffer) {
        Ok(key) => Exchange { request, options, key, lookup: None, turn }.carry_out(value),
        Err(fault) => turn.out.extend_from_slice(fault.reply(request.verb)),
    }
}

/// Read the flags of a `ms`, or say why it is refused before its data is waited for.
pub fn accept<'a, 'b>(
    request: &MetaRequest<'a>,
    last: &'b mut LastFlags<'a>,
    turn: &Turn<'_>,
) -> Result<&'b MetaOptions<'a>, &'static [u8]> {
    let refused = |fault: MetaFault| fault.reply(request.verb);
    let options = last.of(request).map_err(refused)?;
    let too_large = if options.base64 {
        let mut buffer = [0; KEY_BYTES_MAX];
        let key = decode_key(request.key, &mut buffer).map_err(refused)?;
        too_large(key, request.length, turn)
    } else {
        too_large(request.key, request.length, turn)
    };
    too_large.map_or(Ok(options), Err)
}

fn too_large(key: &[u8], length: u64, turn: &Turn<'_>) -> Option<&'static [u8]> {
    if turn.fits(key.len() as u64 + length) {
        return None;
    }
    turn.state.too_large.fetch_add(1, Ordering::Relaxed);
    turn.drop_stale(key);
    Some(b"SERVER_ERROR object too large for cache\r\n")
}

impl<'a> Exchange<'a, '_> {
    fn carry_out(&mut self, value: &[u8]) {
        match self.request.verb {
            MetaVerb::Get => self.get(),
            MetaVerb::Set => self.set(value),
            MetaVerb::Delete => self.delete(),
            MetaVerb::Arithmetic => self.arithmetic(),
            MetaVerb::Debug => self.debug(),
        }
    }

    fn get(&mut self) {
        if !self.only_reads() || !self.read_shared() {
            self.get_entry();
        }
    }

    /// Whether the item is left as it is, if it is not stale.
    fn only_reads(&self) -> bool {
        let MetaOptions { vivify, recache, exptime, no_update, before, .. } = *self.options;
        !no_update && !before && vivify.is_none() && recache.is_none() && exptime.is_none()
    }

    /// The common `mg`; false when the item turns out to be one that this request changes.
    fn read_shared(&mut self) -> bool {
        let Exchange { options, key, lookup, turn, .. } = self;
        let now_s = turn.now_s;
        let out = &mut *turn.out;
        let store = &turn.state.store;
        let answered = store.get_by_lookup(&store.lookup(key, *lookup), now_s, |item| {
            if item.marks.stale && !item.marks.won {
                return false;
            }
            let reading = Reading { created: false, won: false };
            append_hit(out, options, item, key, reading, now_s);
            true
        });
        match answered {
            Some(answered) => answered,
            None => {
                self.miss(b"EN");
                true
            }
        }
    }

    fn get_entry(&mut self) {
        let now_s = self.turn.now_s;
        let MetaOptions { vivify, exptime, new_cas, base64, .. } = *self.options;
        let mut entry = self.turn.state.store.entry(self.key, now_s);
        let missed = entry.item().is_none();
        let mut created = false;
        if missed && vivify.is_some() {
            let marks = Marks { binary_key: base64, ..Marks::default() };
            let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
            created = entry.put(&Content { value: b"", flags: 0, expires_s: 0, cas, marks });
        }
        count_get(&mut entry, exptime.is_some(), !missed || created);
        if missed && !created {
            drop(entry);
            return self.miss(b"EN");
        }
        self.answer_entry(&mut entry, created);
    }

    fn answer_entry(&mut self, entry: &mut Entry<'a>, created: bool) {
        let Exchange { options, key, turn, .. } = self;
        let now_s = turn.now_s;
        let Some(item) = entry.item() else { return };
        let mut marks = item.marks;
        let reading = Reading { created, won: created || (marks.stale && !marks.won) };
        let (expires, wins) = append_hit(turn.out, options, &item, key, reading, now_s);
        entry.set_expiry(expires);
        if wins {
            marks.won = true;
            entry.set_marks(marks);
        }
        if !options.no_update {
            entry.record_read();
        }
    }

    fn delete(&mut self) {
        let now_s = self.turn.now_s;
        let mut entry = self.turn.state.store.entry(self.key, now_s);
        let Some(item) = entry.item() else {
            entry.counters().delete_misses += 1;
            return self.coded(b"NF");
        };
        let MetaOptions { expected_cas, new_cas, remove_value, invalidate, .. } = *self.options;
        let (cas, marks) = (item.cas, item.marks);
        if expected_cas.is_some_and(|expected| expected != cas) {
            entry.counters().delete_misses += 1;
            return self.coded(b"EX");
        }
        if remove_value {
            // A tombstone: no value, and flags and exptime only as this request gives them.
            let exptime = self.options.exptime.unwrap_or(0);
            let content = Content {
                value: b"",
                flags: self.options.client_flags,
                expires_s: expires_s(exptime, now_s),
                cas: new_cas.unwrap_or(cas),
                marks: Marks { binary_key: marks.binary_key, ..Marks::default() },
            };
            if !entry.put(&content) {
                return self.coded(b"NS");
            }
        }
        if invalidate {
            if let Some(exptime) = self.options.exptime {
                entry.set_expiry(expires_s(exptime, now_s));
            }
            entry.set_marks(Marks { stale: true, won: false, binary_key: marks.binary_key });
            let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
            entry.set_cas(cas);
        } else {
            entry.counters().delete_hits += 1;
            if !remove_value {
                entry.remove();
            }
        }
        if !self.options.quiet {
            self.coded(b"HD");
        }
    }

    fn arithmetic(&mut self) {
        let now_s = self.turn.now_s;
        let MetaOptions { mode, vivify, delta, expected_cas, new_cas, .. } = *self.options;
        let mut entry = self.turn.state.store.entry(self.key, now_s);
        if let (None, Some(exptime)) = (entry.item(), vivify) {
            return self.create_number(&mut entry, exptime);
        }
        let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
        let increment = mode != MetaMode::Decrement;
        let changed =
            entry.arithmetic(delta.unwrap_or(1), increment, expected_cas.unwrap_or(0), cas);
        match changed {
            Arithmetic::Number(_) if self.options.quiet => self.expire(&mut entry),
            Arithmetic::Number(number) => self.number(&mut entry, number, None),
            Arithmetic::NotFound => self.coded(b"NF"),
            Arithmetic::Exists => self.coded(b"EX"),
            Arithmetic::NonNumeric => self.turn.out.extend_from_slice(
                b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            ),
            Arithmetic::NoRoom => {
                self.turn.out.extend_from_slice(b"SERVER_ERROR out of memory\r\n");
            }
        }
    }

    fn create_number(&mut self, entry: &mut Entry<'_>, exptime: i64) {
        let MetaOptions { initial, new_cas, base64, .. } = *self.options;
        let mut buffer = itoa::Buffer::new();
        let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
        let content = Content {
            value: buffer.format(initial).as_bytes(),
            flags: 0,
            expires_s: 0,
            cas,
            marks: Marks { binary_key: base64, ..Marks::default() },
        };
        if entry.put(&content) {
            self.number(entry, initial, Some(exptime));
        } else {
            let reply = b"SERVER_ERROR Out of memory allocating new item\r\n";
            self.turn.out.extend_from_slice(reply);
        }
    }

    fn expire(&self, entry: &mut Entry<'_>) {
        if let Some(exptime) = self.options.exptime {
            entry.set_expiry(expires_s(exptime, self.turn.now_s));
        }
    }

    /// The reply to arithmetic that was done, with the exptime of a number that it made. A `T` and a
    /// `N` count for the flags behind them.
    fn number(&mut self, entry: &mut Entry<'_>, number: u64, made: Option<i64>) {
        let now_s = self.turn.now_s;
        let Some(item) = entry.item() else { return };
        let (mut expires, cas) = (item.expires_s, item.cas);
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number).as_bytes();
        let out = &mut *self.turn.out;
        append_head(out, self.options.value, digits.len());
        for letter in self.options.letters.iter() {
            match letter {
                b'c' => append_flag(out, b'c', cas),
                b't' => append_ttl(out, expires, now_s),
                b'T' => expires = expires_s(self.options.exptime.unwrap_or(0), now_s),
                b'N' => expires = made.map_or(expires, |exptime| expires_s(exptime, now_s)),
                _ => append_echo(out, letter, self.request, self.options),
            }
        }
        out.extend_from_slice(b"\r\n");
        if self.options.value {
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
        entry.set_expiry(expires);
    }

    fn debug(&mut self) {
        self.turn.state.meta_commands.fetch_add(1, Ordering::Relaxed);
        let now_s = self.turn.now_s;
        let entry = self.turn.state.store.entry(self.key, now_s);
        let Some(item) = entry.item() else {
            return self.turn.out.extend_from_slice(b"EN\r\n");
        };
        append_debug(self.turn.out, self.key, &item, now_s);
    }

    /// A miss, or nothing when misses are not to be told.
    fn miss(&mut self, code: &[u8]) {
        if !self.options.quiet {
            self.coded(code);
        }
    }

    /// A code and the flags that come back with any.
    fn coded(&mut self, code: &[u8]) {
        let Exchange { request, options, turn, .. } = self;
        let out = &mut *turn.out;
        out.extend_from_slice(code);
        for letter in options.letters.iter() {
            append_echo(out, letter, request, options);
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn count_get(entry: &mut Entry<'_>, touches: bool, hit: bool) {
    let counted = entry.counters();
    match (touches, hit) {
        (true, true) => counted.touch_hits += 1,
        (false, true) => counted.get_hits += 1,
        // With nothing to touch it is a get, as memcached counts.
        (_, false) => counted.get_misses += 1,
    }
}
