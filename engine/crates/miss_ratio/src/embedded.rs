//! The embedded server's policy: its own item store, with fewer keys and so much less memory.

use cachemark_storage::{Mode, Store};

use crate::fills::{Fill, Step, Task};

/// The store's clock counts from 1970; the trace's begins at 0.
const BEGIN_S: u32 = 1_700_000_000;
/// The store takes longer expiry times for instants.
const LONGEST_TTL_S: u32 = 30 * 24 * 3600;
/// The digits of a hash, which take the place of a key.
const DIGITS: usize = 16;

/// A store with some memory.
pub struct Embedded {
    store: Store,
    value: Vec<u8>,
    key: Vec<u8>,
}

impl Embedded {
    /// A store with `memory_bytes`, of which only this part is there, for this part of the keys.
    pub fn new(memory_bytes: u64, part: f64) -> Embedded {
        let bytes = (memory_bytes as f64 * part) as usize;
        Embedded { store: Store::new(bytes), value: Vec::new(), key: Vec::new() }
    }

    /// Play a step. `Some(hit)` for a get.
    pub fn play(&mut self, step: &Step) -> Option<bool> {
        let now_s = BEGIN_S.saturating_add(step.at_s);
        self.set_key(step);
        match step.task {
            Task::Get(fill) => {
                let hit = self.store.get(&self.key, None, now_s, |_| ()).is_some();
                if let Some(fill) = fill.filter(|_| !hit) {
                    self.put(Mode::Set, step, fill, now_s);
                }
                return Some(hit);
            }
            Task::Set(fill) => self.put(Mode::Set, step, fill, now_s),
            Task::Add(fill) => self.put(Mode::Add, step, fill, now_s),
            Task::Replace(fill) => self.put(Mode::Replace, step, fill, now_s),
            Task::Delete => {
                self.store.delete(&self.key, now_s);
            }
            Task::Touch(ttl_s) => {
                self.store.get(&self.key, Some(exptime(ttl_s)), now_s, |_| ());
            }
            Task::Use => {
                self.store.get(&self.key, None, now_s, |_| ());
            }
        }
        None
    }

    /// A key of the same length, if it has room for a hash.
    fn set_key(&mut self, step: &Step) {
        self.key.clear();
        let digit = |place: usize| b"0123456789abcdef"[(step.hash >> (4 * place)) as usize & 15];
        self.key.extend((0..DIGITS).map(digit));
        self.key.resize(usize::from(step.key_bytes).max(DIGITS), b'-');
    }

    fn put(&mut self, mode: Mode, step: &Step, fill: Fill, now_s: u32) {
        // A key that is longer than the trace's makes the value shorter.
        let more = self.key.len() - usize::from(step.key_bytes);
        let length = (fill.value_bytes as usize).saturating_sub(more);
        if self.value.len() < length {
            self.value.resize(length, b'v');
        }
        let value = &self.value[..length];
        let stored = self.store.store(mode, &self.key, 0, exptime(fill.ttl_s), value, now_s);
        if stored.is_none() {
            self.store.delete(&self.key, now_s);
        }
    }
}

fn exptime(ttl_s: u32) -> i64 {
    i64::from(ttl_s.min(LONGEST_TTL_S))
}
