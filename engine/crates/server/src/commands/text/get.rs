//! `get`, `gets`, `gat` and `gats`.

use cachemark_protocol::text::keys::Keys;
use cachemark_storage::{Item, Lookup};

use crate::commands::context::RequestContext;
use crate::commands::text::reply::append_value;

/// Answer a get of one key.
#[inline]
pub fn one(lookup: &Lookup<'_>, context: &mut RequestContext<'_>) {
    let (out, direct) = (&mut *context.out, &mut context.direct);
    let reply =
        |item: &Item<'_>| append_value(out, direct, lookup.key(), item, false, b"\r\nEND\r\n");
    if context.state.store.get_by_lookup(lookup, context.now_s, reply).is_none() {
        context.out.extend_from_slice(b"END\r\n");
    }
}

/// A get of several keys, or with cas numbers, or with a new exptime.
pub struct Get<'a> {
    pub keys: Keys<'a>,
    /// The lookup of the first key.
    pub lookup: Option<Lookup<'a>>,
    pub exptime: Option<i64>,
    pub cas: bool,
}

impl Get<'_> {
    /// Answer the keys from `resume_at` on. False if the output became too long before the last key: a line
    /// of many keys may ask for more than fits into memory.
    pub fn answer(
        mut self,
        resume_at: &mut usize,
        context: &mut RequestContext<'_>,
        pause_at: usize,
    ) -> bool {
        if *resume_at > 0 {
            self.keys.nth(*resume_at - 1);
        }
        if let Some(direct) = &mut context.direct {
            direct.more = true;
        }
        for key in self.keys {
            if context.reaches(pause_at) {
                return false;
            }
            match self.exptime {
                Some(exptime) => get_and_touch(key, exptime, self.cas, context),
                None => get(&context.state.store.lookup(key, self.lookup), self.cas, context),
            }
            *resume_at += 1;
        }
        *resume_at = 0;
        context.out.extend_from_slice(b"END\r\n");
        context.sent_at_once = context.out.len();
        true
    }
}

/// Append the value of one key, if the store has it.
fn get(lookup: &Lookup<'_>, cas: bool, context: &mut RequestContext<'_>) {
    let (out, direct) = (&mut *context.out, &mut context.direct);
    let reply = |item: &Item<'_>| append_value(out, direct, lookup.key(), item, cas, b"\r\n");
    context.state.store.get_by_lookup(lookup, context.now_s, reply);
}

/// The same, with a new exptime.
fn get_and_touch(key: &[u8], exptime: i64, cas: bool, context: &mut RequestContext<'_>) {
    let out = &mut *context.out;
    // The item's region is locked meanwhile, which no socket may prolong.
    let reply = |item: &Item<'_>| append_value(out, &mut None, key, item, cas, b"\r\n");
    context.state.store.get_and_touch(key, exptime, context.now_s, reply);
}
