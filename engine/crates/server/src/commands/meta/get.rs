//! `mg` and `me`.

use std::sync::atomic::Ordering;

use cachemark_protocol::meta::request::MetaOptions;
use cachemark_storage::{Content, Entry, Marks};

use crate::commands::meta::command::MetaCommand;
use crate::commands::meta::reply::{ReadEffect, append_debug, append_hit};

impl<'a> MetaCommand<'a, '_> {
    pub fn get(&mut self) {
        let only_reads = self.only_reads();
        if !only_reads || !self.read_unlocked() {
            self.get_locked(only_reads);
        }
    }

    /// Whether the command changes nothing on an item that is not stale, and compares nothing.
    fn only_reads(&self) -> bool {
        let MetaOptions { vivify, recache, exptime, no_update, access_info, .. } = *self.options;
        let changes = vivify.is_some() || recache.is_some() || exptime.is_some();
        !no_update && !access_info && !changes && self.options.expected_cas.is_none()
    }

    /// The common `mg`, which takes no lock. False if it turns out that the command changes the item.
    fn read_unlocked(&mut self) -> bool {
        let MetaCommand { options, key, lookup, context, .. } = self;
        let now_s = context.now_s;
        let (out, direct) = (&mut *context.out, &mut context.direct);
        let store = &context.state.store;
        let answered = store.get_by_lookup(&store.lookup(key, *lookup), now_s, |item| {
            if item.marks.stale && !item.marks.won {
                return false;
            }
            let effect = ReadEffect { created: false, won: false };
            append_hit(out, direct, options, item, key, effect, now_s);
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

    /// The `mg` that may change the item, with the item's region locked. A read without the lock has counted the hit.
    fn get_locked(&mut self, is_counted: bool) {
        let now_s = self.context.now_s;
        let MetaOptions { vivify, exptime, new_cas, base64, .. } = *self.options;
        let mut entry = self.context.state.store.entry(self.key, now_s);
        let missed = entry.item().is_none();
        let mut created = false;
        if missed && vivify.is_some() {
            let marks = Marks { binary_key: base64, ..Marks::default() };
            let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
            created = entry.put(&Content { value: b"", flags: 0, expires_s: 0, cas, marks });
        }
        if !is_counted {
            count_get(&mut entry, exptime.is_some(), !missed || created);
        }
        if missed && !created {
            drop(entry);
            return self.miss(b"EN");
        }
        self.answer_entry(&mut entry, created);
    }

    fn answer_entry(&mut self, entry: &mut Entry<'a>, created: bool) {
        let MetaCommand { options, key, context, .. } = self;
        let now_s = context.now_s;
        let Some(item) = entry.item() else { return };
        let mut marks = item.marks;
        let effect = ReadEffect { created, won: created || (marks.stale && !marks.won) };
        // A client that has this version of the value already does not need it again.
        let is_known = options.expected_cas == Some(item.cas);
        let options = &MetaOptions { value: options.value && !is_known, ..**options };
        // The item's region is locked meanwhile, which no socket may prolong.
        let (expires, wins) =
            append_hit(context.out, &mut None, options, &item, key, effect, now_s);
        entry.set_expiry(expires);
        if wins {
            marks.won = true;
            entry.set_marks(marks);
        }
        if !options.no_update {
            entry.record_read();
        }
    }

    pub fn debug(&mut self) {
        self.context.state.meta_commands.fetch_add(1, Ordering::Relaxed);
        let now_s = self.context.now_s;
        let entry = self.context.state.store.entry(self.key, now_s);
        let Some(item) = entry.item() else {
            return self.context.out.extend_from_slice(b"EN\r\n");
        };
        let classes = self.context.state.store.size_classes();
        append_debug(self.context.out, self.key, &item, now_s, classes);
    }
}

/// Count a get as memcached does.
fn count_get(entry: &mut Entry<'_>, touches: bool, hit: bool) {
    entry.count(|counters| match (touches, hit) {
        (true, true) => counters.touch_hits += 1,
        (false, true) => counters.get_hits += 1,
        // A miss counts as a get, even if it would have touched the item.
        (_, false) => counters.get_misses += 1,
    });
}
