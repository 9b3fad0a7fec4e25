//! `ms`.

use std::sync::atomic::Ordering;

use cachemark_protocol::meta::request::{MetaMode, MetaOptions};
use cachemark_storage::{Content, Entry, Marks, Mode, Outcome, Reservation, expires_s};

use crate::commands::meta::command::MetaCommand;
use crate::commands::meta::reply::{append_echo, append_flag};
use crate::commands::observe;
use crate::state::event_log::kinds;

/// The facts of the item for the reply.
struct Stored {
    length: usize,
    cas: u64,
    expires_s: u32,
}

impl Stored {
    fn of(content: &Content<'_>) -> Stored {
        Stored { length: content.value.len(), cas: content.cas, expires_s: content.expires_s }
    }
}

impl MetaCommand<'_, '_> {
    pub fn set(&mut self, value: &[u8]) {
        let now_s = self.context.now_s;
        if let Some(item) = self.context.reserved.take() {
            return self.set_reserved(item);
        }
        let MetaOptions { mode, vivify, exptime, .. } = *self.options;
        let mut entry = self.context.state.store.entry(self.key, now_s);
        entry.count_set(value.len(), self.options.client_flags);
        let concatenates = matches!(mode, MetaMode::Append | MetaMode::Prepend);
        let exptime = if concatenates && vivify.is_some() { vivify } else { exptime };
        let mut content = Content {
            value,
            flags: self.options.client_flags,
            expires_s: exptime.map_or(0, |exptime| expires_s(exptime, now_s)),
            cas: 0,
            marks: Marks { binary_key: self.options.base64, ..Marks::default() },
        };
        let concatenated;
        let stale = match self.check(&mut entry) {
            Ok(stale) => stale,
            Err(code) => return self.reply_stored(code, &Stored::of(&content)),
        };
        if let (true, Some(item)) = (stale, entry.item()) {
            // Only the value changes.
            (content.marks.stale, content.marks.won) = (true, item.marks.won);
            content.expires_s = item.expires_s;
        }
        if let (true, Some(item)) = (concatenates, entry.item()) {
            concatenated = match mode {
                MetaMode::Append => [item.value, value].concat(),
                _ => [value, item.value].concat(),
            };
            if !self.context.fits((self.key.len() + concatenated.len()) as u64) {
                return self.reply_stored(b"NS", &Stored::of(&content));
            }
            content.value = &concatenated;
            (content.flags, content.expires_s) = (item.flags, item.expires_s);
        }
        content.cas = self.options.new_cas.unwrap_or_else(|| entry.fresh_cas());
        if entry.put(&content) {
            return self.reply_stored(b"HD", &Stored::of(&content));
        }
        // The present value is outdated and must not be served.
        entry.remove();
        self.context.state.no_memory.fetch_add(1, Ordering::Relaxed);
        self.context.out.extend_from_slice(b"SERVER_ERROR out of memory storing object\r\n");
    }

    /// The same for a value that is in the memory of its item.
    fn set_reserved(&mut self, mut item: Reservation) {
        let now_s = self.context.now_s;
        let mode = match self.options.mode {
            MetaMode::Add => Mode::Add,
            MetaMode::Replace => Mode::Replace,
            _ => Mode::Set,
        };
        let length = item.value().len();
        let exptime = self.options.exptime.unwrap_or(0);
        let store = &self.context.state.store;
        let (outcome, cas) = store.store_reserved(item, mode, 0, Marks::default(), now_s);
        let code = if outcome == Outcome::Stored { b"HD" } else { b"NS" };
        self.reply_stored(code, &Stored { length, cas, expires_s: expires_s(exptime, now_s) });
    }

    /// If the value may be stored, whether it is stale at once. Otherwise the code of the reply.
    fn check(&self, entry: &mut Entry<'_>) -> Result<bool, &'static [u8]> {
        let MetaOptions { mode, expected_cas, invalidate, vivify, .. } = *self.options;
        let present = entry.compared_cas();
        match (mode, present) {
            (MetaMode::Add, Some(_)) => Err(b"NS"),
            (MetaMode::Plain | MetaMode::Replace, None) if expected_cas.is_some() => {
                entry.count(|counters| counters.cas_misses += 1);
                Err(b"NF")
            }
            (MetaMode::Replace, None) => Err(b"NS"),
            (MetaMode::Append | MetaMode::Prepend, None) if vivify.is_none() => Err(b"NS"),
            (MetaMode::Append | MetaMode::Prepend, Some(cas)) => {
                let differs = expected_cas.is_some_and(|expected| expected != 0 && expected != cas);
                if differs { Err(b"EX") } else { Ok(false) }
            }
            (_, Some(cas)) => match expected_cas {
                Some(expected) if expected == cas => {
                    entry.count(|counters| counters.cas_hits += 1);
                    Ok(false)
                }
                // 0 is the number of no item, and not an older one.
                Some(expected) if invalidate && expected != 0 && expected < cas => {
                    entry.count(|counters| counters.cas_hits += 1);
                    Ok(true)
                }
                Some(_) => {
                    entry.count(|counters| counters.cas_badval += 1);
                    Err(b"EX")
                }
                None => Ok(false),
            },
            (_, None) => Ok(false),
        }
    }

    fn reply_stored(&mut self, code: &[u8], item: &Stored) {
        if self.context.wants(kinds::MUTATIONS) {
            self.report(code, item);
        }
        if self.options.quiet && code == b"HD" {
            return;
        }
        let MetaCommand { request, options, context, .. } = self;
        let out = &mut *context.out;
        out.extend_from_slice(code);
        for letter in options.letters.iter() {
            match letter {
                b'c' => append_flag(out, b'c', item.cas),
                b's' => append_flag(out, b's', item.length as u64),
                _ => append_echo(out, letter, request, options),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Report the result of the command to watching clients.
    #[cold]
    fn report(&self, code: &[u8], item: &Stored) {
        let compares = self.options.expected_cas.is_some();
        let command = match self.options.mode {
            MetaMode::Replace | MetaMode::Plain if compares => "cas",
            MetaMode::Add => "add",
            MetaMode::Append => "append",
            MetaMode::Prepend => "prepend",
            MetaMode::Replace => "replace",
            MetaMode::Plain | MetaMode::Decrement => "set",
        };
        let exptime = i64::from(item.expires_s);
        observe::stored(self.key, command, code, exptime, item.length, self.context);
    }
}
