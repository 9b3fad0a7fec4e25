//! `ma`.

use cachemark_protocol::meta::request::{MetaMode, MetaOptions};
use cachemark_storage::{Arithmetic, Content, Entry, Marks, expires_s};

use crate::commands::meta::command::MetaCommand;
use crate::commands::meta::reply::{append_echo, append_flag, append_status, append_ttl};
use crate::commands::observe;

impl MetaCommand<'_, '_> {
    pub fn arithmetic(&mut self) {
        let now_s = self.context.now_s;
        let MetaOptions { mode, vivify, delta, expected_cas, new_cas, .. } = *self.options;
        let mut entry = self.context.state.store.entry(self.key, now_s);
        if let (None, Some(exptime)) = (entry.item(), vivify) {
            return self.create_number(&mut entry, exptime);
        }
        let cas = new_cas.unwrap_or_else(|| entry.fresh_cas());
        let increment = mode != MetaMode::Decrement;
        let changed =
            entry.arithmetic(delta.unwrap_or(1), increment, expected_cas.unwrap_or(0), cas);
        match changed {
            Arithmetic::Number(number) => self.reply_number(&mut entry, number, None),
            Arithmetic::NotFound => self.reply_code(b"NF"),
            Arithmetic::Exists => self.reply_code(b"EX"),
            Arithmetic::NonNumeric => self.context.out.extend_from_slice(
                b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            ),
            Arithmetic::NoRoom => {
                self.context.out.extend_from_slice(b"SERVER_ERROR out of memory\r\n");
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
            observe::stored(self.key, "add", b"HD", 0, content.value.len(), self.context);
            self.reply_number(entry, initial, Some(exptime));
        } else {
            let reply = b"SERVER_ERROR Out of memory allocating new item\r\n";
            self.context.out.extend_from_slice(reply);
        }
    }

    /// Reply with the new number, unless the command is quiet. `created` is the exptime of an item that the command
    /// created. A `T` or an `N` affects the flags behind it.
    fn reply_number(&mut self, entry: &mut Entry<'_>, number: u64, created: Option<i64>) {
        let now_s = self.context.now_s;
        let Some(item) = entry.item() else { return };
        let (mut expires, cas) = (item.expires_s, item.cas);
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number).as_bytes();
        let out = &mut *self.context.out;
        let begin = out.len();
        append_status(out, self.options.value, digits.len());
        for letter in self.options.letters.iter() {
            match letter {
                b'c' => append_flag(out, b'c', cas),
                b't' => append_ttl(out, expires, now_s),
                b'T' => expires = expires_s(self.options.exptime.unwrap_or(0), now_s),
                b'N' => expires = created.map_or(expires, |exptime| expires_s(exptime, now_s)),
                _ => append_echo(out, letter, self.request, self.options),
            }
        }
        out.extend_from_slice(b"\r\n");
        if self.options.value {
            out.extend_from_slice(digits);
            out.extend_from_slice(b"\r\n");
        }
        if self.options.quiet {
            out.truncate(begin);
        }
        entry.set_expiry(expires);
    }
}
