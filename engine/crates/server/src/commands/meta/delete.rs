//! `md`.

use cachemark_protocol::meta::request::MetaOptions;
use cachemark_storage::{Content, Marks, expires_s};

use crate::commands::meta::command::MetaCommand;
use crate::commands::observe;

impl MetaCommand<'_, '_> {
    pub fn delete(&mut self) {
        let now_s = self.context.now_s;
        let mut entry = self.context.state.store.entry(self.key, now_s);
        let Some(item) = entry.item() else {
            entry.count(|counters| counters.delete_misses += 1);
            return self.reply_code(b"NF");
        };
        let MetaOptions { expected_cas, new_cas, remove_value, invalidate, .. } = *self.options;
        let (cas, marks, length) = (item.cas, item.marks, item.value.len());
        if expected_cas.is_some_and(|expected| expected != cas) {
            entry.count(|counters| counters.delete_misses += 1);
            return self.reply_code(b"EX");
        }
        if remove_value {
            // The item stays without a value, and with only the flags and exptime of this command.
            let exptime = self.options.exptime.unwrap_or(0);
            let content = Content {
                value: b"",
                flags: self.options.client_flags,
                expires_s: expires_s(exptime, now_s),
                cas: new_cas.unwrap_or(cas),
                marks: Marks { binary_key: marks.binary_key, ..Marks::default() },
            };
            if !entry.put(&content) {
                return self.reply_code(b"NS");
            }
            observe::stored(self.key, "set", b"HD", exptime, 0, self.context);
        }
        if invalidate {
            if let Some(exptime) = self.options.exptime {
                entry.set_expiry(expires_s(exptime, now_s));
            }
            entry.set_marks(Marks { stale: true, won: false, binary_key: marks.binary_key });
            let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
            entry.set_cas(cas);
        } else {
            entry.count(|counters| counters.delete_hits += 1);
            if !remove_value {
                entry.remove();
            }
            let length = if remove_value { 0 } else { length };
            observe::deleted(self.key, "md", length, self.context);
        }
        if !self.options.quiet {
            self.reply_code(b"HD");
        }
    }
}
