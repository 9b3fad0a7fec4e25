//! `ms`.

use std::sync::atomic::Ordering;

use cachemark_protocol::meta::request::{MetaMode, MetaOptions};
use cachemark_storage::{Content, Entry, Marks, expires_s};

use crate::commands::meta::command::MetaCommand;
use crate::commands::meta::reply::{append_echo, append_flag};
use crate::commands::observe;
use crate::state::event_log::kinds;

impl MetaCommand<'_, '_> {
    pub fn set(&mut self, value: &[u8]) {
        let now_s = self.context.now_s;
        let MetaOptions { mode, vivify, exptime, .. } = *self.options;
        let mut entry = self.context.state.store.entry(self.key, now_s);
        entry.counters().sets += 1;
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
            Err(code) => return self.reply_stored(code, &content),
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
                return self.reply_stored(b"NS", &content);
            }
            content.value = &concatenated;
            (content.flags, content.expires_s) = (item.flags, item.expires_s);
        }
        content.cas = self.options.new_cas.unwrap_or_else(|| entry.fresh_cas());
        if entry.put(&content) {
            return self.reply_stored(b"HD", &content);
        }
        // The present value is outdated and must not be served.
        entry.remove();
        self.context.state.no_memory.fetch_add(1, Ordering::Relaxed);
        self.context.out.extend_from_slice(b"SERVER_ERROR out of memory storing object\r\n");
    }

    /// If the value may be stored, whether it is stale at once. Otherwise the code of the reply.
    fn check(&self, entry: &mut Entry<'_>) -> Result<bool, &'static [u8]> {
        let MetaOptions { mode, expected_cas, invalidate, vivify, .. } = *self.options;
        let present = entry.item().map(|item| item.cas);
        match (mode, present) {
            (MetaMode::Add, Some(_)) => Err(b"NS"),
            (MetaMode::Plain | MetaMode::Replace, None) if expected_cas.is_some() => {
                entry.counters().cas_misses += 1;
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
                    entry.counters().cas_hits += 1;
                    Ok(false)
                }
                // 0 is the number of no item, and not an older one.
                Some(expected) if invalidate && expected != 0 && expected < cas => Ok(true),
                Some(_) => {
                    entry.counters().cas_badval += 1;
                    Err(b"EX")
                }
                None => Ok(false),
            },
            (_, None) => Ok(false),
        }
    }

    fn reply_stored(&mut self, code: &[u8], content: &Content<'_>) {
        if self.context.wants(kinds::MUTATIONS) {
            self.report(code, content);
        }
        if self.options.quiet && code == b"HD" {
            return;
        }
        let MetaCommand { request, options, context, .. } = self;
        let out = &mut *context.out;
        out.extend_from_slice(code);
        for letter in options.letters.iter() {
            match letter {
                b'c' => append_flag(out, b'c', content.cas),
                b's' => append_flag(out, b's', content.value.len() as u64),
                _ => append_echo(out, letter, request, options),
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Report what became of the command to those who watch.
    #[cold]
    fn report(&self, code: &[u8], content: &Content<'_>) {
        let compares = self.options.expected_cas.is_some();
        let command = match self.options.mode {
            MetaMode::Replace | MetaMode::Plain if compares => "cas",
            MetaMode::Add => "add",
            MetaMode::Append => "append",
            MetaMode::Prepend => "prepend",
            MetaMode::Replace => "replace",
            MetaMode::Plain | MetaMode::Decrement => "set",
        };
        let exptime = i64::from(content.expires_s);
        observe::stored(self.key, command, code, exptime, content.value.len(), self.context);
    }
}
