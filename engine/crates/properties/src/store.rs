//! The store, compared with simple models, with simulated time.

use std::collections::HashMap;

use cachemark_storage::{Arithmetic, Mode, Outcome, Store};

use crate::NOW_S;

/// A call on one of 256 keys.
#[derive(Clone, Debug)]
pub struct Action {
    pub key: u8,
    pub verb: Verb,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Store(Mode, u32, i64, Vec<u8>),
    /// A compare-and-swap, with the item's cas number or with another.
    CompareAndSwap(bool, Vec<u8>),
    Get,
    GetAndTouch(i64),
    Delete,
    Arithmetic(u64, bool),
    Touch(i64),
    Flush(i64),
    Wait(u32),
}

#[derive(Clone, Debug, PartialEq)]
struct ModelItem {
    value: Vec<u8>,
    flags: u32,
    /// When the item expires; `None` is never.
    expires: Option<i64>,
}

#[derive(Default)]
struct Model {
    items: HashMap<u8, ModelItem>,
    flush_at: Option<i64>,
}

fn expiry(exptime: i64, now_s: u32) -> Option<i64> {
    match exptime {
        0 => None,
        ..0 => Some(i64::MIN),
        1..=2_592_000 => Some(i64::from(now_s) + exptime),
        instant => Some(instant),
    }
}

/// As C's strtoull parses it; Rust accepts a plus too.
fn number(value: &[u8]) -> Option<u64> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let begin = value.iter().position(|byte| !blank(byte))?;
    let word = value[begin..].split(|byte| *byte == 0 || blank(byte)).next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

impl Model {
    fn expire(&mut self, now_s: u32) {
        if self.flush_at.is_some_and(|at| at <= i64::from(now_s)) {
            self.items.clear();
            self.flush_at = None;
        }
        self.items.retain(|_, item| item.expires.is_none_or(|at| at > i64::from(now_s)));
    }

    fn store(&mut self, key: u8, mode: Mode, new: ModelItem) -> Outcome {
        let present = self.items.get(&key).cloned();
        let stored = match (mode, present) {
            (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => new,
            (Mode::Append, Some(old)) => {
                ModelItem { value: [&old.value[..], &new.value].concat(), ..old }
            }
            (Mode::Prepend, Some(old)) => {
                ModelItem { value: [&new.value[..], &old.value].concat(), ..old }
            }
            _ => return Outcome::NotStored,
        };
        self.items.insert(key, stored);
        Outcome::Stored
    }

    fn arithmetic(&mut self, key: u8, delta: u64, up: bool) -> Arithmetic {
        let Some(item) = self.items.get_mut(&key) else { return Arithmetic::NotFound };
        let Some(before) = number(&item.value) else { return Arithmetic::NonNumeric };
        let after = if up { before.wrapping_add(delta) } else { before.saturating_sub(delta) };
        item.value = format!("{after:<width$}", width = item.value.len()).into_bytes();
        Arithmetic::Number(after)
    }
}

/// A store, and the model that it must match.
struct Pair {
    store: Store,
    model: Model,
    now_s: u32,
    /// The store is small and may evict.
    evicts: bool,
}

/// A store with enough room does what a map does.
pub fn matches_a_map(actions: Vec<Action>) {
    play(1 << 20, false, actions);
}

/// A small store may evict items; those that it finds are as in a map.
pub fn evicts_or_matches_a_map(actions: Vec<Action>) {
    play(64 << 10, true, actions);
}

fn play(limit_bytes: usize, evicts: bool, actions: Vec<Action>) {
    let store = Store::new(limit_bytes);
    let mut pair = Pair { store, model: Model::default(), now_s: NOW_S, evicts };
    for action in actions {
        pair.apply(action);
        let usage = pair.store.usage(pair.now_s);
        assert!(usage.bytes + usage.table_bytes <= limit_bytes as u64, "{usage:?}");
    }
}

impl Pair {
    fn read(&self, key: u8, exptime: Option<i64>) -> Option<(Vec<u8>, u32)> {
        self.store.get(&[key], exptime, self.now_s, |item| (item.value.to_vec(), item.flags))
    }

    fn expected(&self, key: u8) -> Option<(Vec<u8>, u32)> {
        self.model.items.get(&key).map(|item| (item.value.clone(), item.flags))
    }

    fn touch(&mut self, key: u8, exptime: i64) {
        if let Some(item) = self.model.items.get_mut(&key) {
            item.expires = expiry(exptime, self.now_s);
        }
    }

    /// Remove an evicted item from the model. Without evictions no item may be missing.
    fn forget_evicted(&mut self, key: u8) {
        if self.evicts
            && self.store.usage(self.now_s).counters.evictions > 0
            && self.read(key, None).is_none()
        {
            self.model.items.remove(&key);
        }
    }

    fn apply(&mut self, action: Action) {
        self.model.expire(self.now_s);
        let (key, now_s) = (action.key, self.now_s);
        self.forget_evicted(key);
        match action.verb {
            Verb::Store(mode, flags, exptime, value) => {
                let outcome = self.store.store(mode, &[key], flags, exptime, &value, now_s);
                let new = ModelItem { value, flags, expires: expiry(exptime, now_s) };
                self.compare(key, outcome, |model| model.store(key, mode, new));
            }
            Verb::CompareAndSwap(right, value) => self.swap(key, right, value),
            Verb::Get => assert_eq!(self.read(key, None), self.expected(key)),
            Verb::GetAndTouch(exptime) => {
                assert_eq!(self.read(key, Some(exptime)), self.expected(key));
                self.touch(key, exptime);
            }
            Verb::Delete => {
                let deleted = self.model.items.remove(&key).is_some();
                assert_eq!(self.store.delete(&[key], now_s), deleted);
            }
            Verb::Arithmetic(delta, up) => {
                let result = self.store.arithmetic(&[key], delta, up, now_s);
                let written = (result != Arithmetic::NoRoom).then_some(result);
                self.compare(key, written, |model| model.arithmetic(key, delta, up));
            }
            Verb::Touch(exptime) => {
                let present = self.model.items.contains_key(&key);
                assert_eq!(self.store.touch(&[key], exptime, now_s), present);
                self.touch(key, exptime);
            }
            Verb::Flush(delay) => {
                self.store.flush(delay, now_s);
                self.model.flush_at = Some(i64::from(now_s) + (delay - 1).max(0));
            }
            Verb::Wait(seconds) => self.now_s += seconds,
        }
    }

    /// A write has the same result as in the model. `None`: there was no room for it,
    /// which only a small store may say; the item is then as it was, or gone.
    fn compare<R: PartialEq + std::fmt::Debug>(
        &mut self,
        key: u8,
        result: Option<R>,
        expected: impl FnOnce(&mut Model) -> R,
    ) {
        match result {
            Some(result) => assert_eq!(result, expected(&mut self.model)),
            None => {
                assert!(self.evicts, "no room");
                if self.read(key, None).is_none() {
                    self.model.items.remove(&key);
                }
            }
        }
    }

    fn swap(&mut self, key: u8, right: bool, value: Vec<u8>) {
        let cas = self.store.get(&[key], None, self.now_s, |item| item.cas);
        let expected = match (cas, right) {
            (None, _) => Outcome::NotFound,
            (Some(_), true) => Outcome::Stored,
            (Some(_), false) => Outcome::Exists,
        };
        assert_eq!(cas.is_some(), self.model.items.contains_key(&key));
        let offered = cas.unwrap_or(7) + u64::from(!right);
        let mode = Mode::Cas(offered);
        let outcome = self.store.store(mode, &[key], 3, 0, &value, self.now_s);
        self.compare(key, outcome, |model| {
            if expected == Outcome::Stored {
                model.items.insert(key, ModelItem { value, flags: 3, expires: None });
            }
            expected
        });
    }
}

/// A key, a length and a number from 0 to 9: the key is read, and then, depending on the number, set to a value
/// of that length, deleted or left alone.
pub type Use = (u16, usize, u8);

/// The counters are correct, and the memory limit holds.
pub fn counters_add_up(uses: Vec<Use>) {
    const LIMIT: u64 = 200_000;
    let store = Store::new(LIMIT as usize);
    let mut last: HashMap<u16, usize> = HashMap::new();
    let (mut stored, mut replaced, mut deleted) = (0, 0, 0);
    for (key, length, action) in uses {
        let name = key.to_be_bytes();
        let found = store.get(&name, None, NOW_S, |item| item.value.to_vec());
        if let Some(value) = &found {
            assert!(*value == vec![key as u8; last[&key]], "key {key}");
        }
        if action < 7 {
            let value = vec![key as u8; length];
            let outcome = store.store(Mode::Set, &name, 0, 0, &value, NOW_S);
            assert_eq!(outcome, Some(Outcome::Stored));
            assert!(store.get(&name, None, NOW_S, |item| item.value == value).unwrap_or(false));
            last.insert(key, length);
            stored += 1;
            replaced += u64::from(found.is_some());
        } else if action == 7 {
            assert_eq!(store.delete(&name, NOW_S), found.is_some());
            deleted += u64::from(found.is_some());
        }
        let usage = store.usage(NOW_S);
        let left = replaced + deleted + usage.counters.evictions;
        // An item that is evicted to make room for its own successor counts as replaced and as evicted.
        assert!(usage.items + left >= stored && usage.items + left <= stored + replaced);
        assert_eq!(usage.counters.total_items, stored);
        assert!(usage.bytes + usage.table_bytes <= LIMIT);
    }
}
