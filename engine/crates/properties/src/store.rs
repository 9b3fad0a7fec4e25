//! The store against models that are too simple to be wrong, with a clock of their own.

use std::collections::HashMap;

use cachemark_storage::{Arithmetic, Mode, Outcome, Store};

use crate::session::NOW_S;

/// One call, on one of 256 keys.
#[derive(Clone, Debug)]
pub struct Action {
    pub key: u8,
    pub verb: Verb,
}

#[derive(Clone, Debug)]
pub enum Verb {
    Store(Mode, u32, i64, Vec<u8>),
    /// A compare-and-swap, with the number that the item has or with another.
    Swap(bool, Vec<u8>),
    Get,
    GetAndTouch(i64),
    Delete,
    Arithmetic(u64, bool),
    Touch(i64),
    Flush(i64),
    Wait(u32),
}

#[derive(Clone, Debug, PartialEq)]
struct Held {
    value: Vec<u8>,
    flags: u32,
    /// The instant of the end; `None` is never.
    ends: Option<i64>,
}

#[derive(Default)]
struct Model {
    held: HashMap<u8, Held>,
    flush_at: Option<i64>,
}

fn end(exptime: i64, now_s: u32) -> Option<i64> {
    match exptime {
        0 => None,
        ..0 => Some(i64::MIN),
        1..=2_592_000 => Some(i64::from(now_s) + exptime),
        instant => Some(instant),
    }
}

/// As C's strtoull reads it; Rust takes a plus too.
fn number(value: &[u8]) -> Option<u64> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let begin = value.iter().position(|byte| !blank(byte))?;
    let word = value[begin..].split(|byte| *byte == 0 || blank(byte)).next()?;
    std::str::from_utf8(word).ok()?.parse().ok()
}

impl Model {
    fn settle(&mut self, now_s: u32) {
        if self.flush_at.is_some_and(|at| at <= i64::from(now_s)) {
            self.held.clear();
            self.flush_at = None;
        }
        self.held.retain(|_, held| held.ends.is_none_or(|end| end > i64::from(now_s)));
    }

    fn store(&mut self, key: u8, mode: Mode, fresh: Held) -> Outcome {
        let there = self.held.get(&key).cloned();
        let stored = match (mode, there) {
            (Mode::Set, _) | (Mode::Add, None) | (Mode::Replace, Some(_)) => fresh,
            (Mode::Append, Some(old)) => {
                Held { value: [&old.value[..], &fresh.value].concat(), ..old }
            }
            (Mode::Prepend, Some(old)) => {
                Held { value: [&fresh.value[..], &old.value].concat(), ..old }
            }
            _ => return Outcome::NotStored,
        };
        self.held.insert(key, stored);
        Outcome::Stored
    }

    fn arithmetic(&mut self, key: u8, delta: u64, up: bool) -> Arithmetic {
        let Some(held) = self.held.get_mut(&key) else { return Arithmetic::NotFound };
        let Some(before) = number(&held.value) else { return Arithmetic::NonNumeric };
        let after = if up { before.wrapping_add(delta) } else { before.saturating_sub(delta) };
        held.value = format!("{after:<width$}", width = held.value.len()).into_bytes();
        Arithmetic::Number(after)
    }
}

/// A store and what it must hold.
struct Pair {
    store: Store,
    model: Model,
    now_s: u32,
    /// The store is small: what has room for it may leave.
    forgets: bool,
}

/// A store that has room for everything does what a map does.
pub fn agrees_with_a_map(actions: Vec<Action>) {
    play(1 << 20, false, actions);
}

/// A small store may forget, and then it has forgotten whole; what it finds is what a map has.
pub fn forgets_or_agrees_with_a_map(actions: Vec<Action>) {
    play(64 << 10, true, actions);
}

fn play(limit_bytes: usize, forgets: bool, actions: Vec<Action>) {
    let store = Store::new(limit_bytes);
    let mut pair = Pair { store, model: Model::default(), now_s: NOW_S, forgets };
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
        self.model.held.get(&key).map(|held| (held.value.clone(), held.flags))
    }

    fn touch(&mut self, key: u8, exptime: i64) {
        if let Some(held) = self.model.held.get_mut(&key) {
            held.ends = end(exptime, self.now_s);
        }
    }

    /// What the store has evicted is gone from the model too; without evictions nothing may be.
    fn forget(&mut self, key: u8) {
        if self.forgets
            && self.store.usage(self.now_s).counters.evictions > 0
            && self.read(key, None).is_none()
        {
            self.model.held.remove(&key);
        }
    }

    fn apply(&mut self, action: Action) {
        self.model.settle(self.now_s);
        let (key, now_s) = (action.key, self.now_s);
        self.forget(key);
        match action.verb {
            Verb::Store(mode, flags, exptime, value) => {
                let outcome = self.store.store(mode, &[key], flags, exptime, &value, now_s);
                let fresh = Held { value, flags, ends: end(exptime, now_s) };
                self.settle(key, outcome, |model| model.store(key, mode, fresh));
            }
            Verb::Swap(right, value) => self.swap(key, right, value),
            Verb::Get => assert_eq!(self.read(key, None), self.expected(key)),
            Verb::GetAndTouch(exptime) => {
                assert_eq!(self.read(key, Some(exptime)), self.expected(key));
                self.touch(key, exptime);
            }
            Verb::Delete => {
                let deleted = self.model.held.remove(&key).is_some();
                assert_eq!(self.store.delete(&[key], now_s), deleted);
            }
            Verb::Arithmetic(delta, up) => {
                let result = self.store.arithmetic(&[key], delta, up, now_s);
                let made = (result != Arithmetic::NoRoom).then_some(result);
                self.settle(key, made, |model| model.arithmetic(key, delta, up));
            }
            Verb::Touch(exptime) => {
                let there = self.model.held.contains_key(&key);
                assert_eq!(self.store.touch(&[key], exptime, now_s), there);
                self.touch(key, exptime);
            }
            Verb::Flush(delay) => {
                self.store.flush(delay, now_s);
                self.model.flush_at = Some(i64::from(now_s) + delay.max(0));
            }
            Verb::Wait(seconds) => self.now_s += seconds,
        }
    }

    /// What a write came to is what it comes to in the model. `None`: there was no room for it,
    /// which only a small store may say; the item is then as it was, or gone.
    fn settle<R: PartialEq + std::fmt::Debug>(
        &mut self,
        key: u8,
        made: Option<R>,
        expected: impl FnOnce(&mut Model) -> R,
    ) {
        match made {
            Some(made) => assert_eq!(made, expected(&mut self.model)),
            None => {
                assert!(self.forgets, "no room");
                if self.read(key, None).is_none() {
                    self.model.held.remove(&key);
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
        assert_eq!(cas.is_some(), self.model.held.contains_key(&key));
        let offered = cas.unwrap_or(7) + u64::from(!right);
        let mode = Mode::Cas(offered);
        let outcome = self.store.store(mode, &[key], 3, 0, &value, self.now_s);
        self.settle(key, outcome, |model| {
            if expected == Outcome::Stored {
                model.held.insert(key, Held { value, flags: 3, ends: None });
            }
            expected
        });
    }
}

/// What is done with one key: it is read, and then set to a value of such a length, deleted or left
/// alone, by a number from 0 to 9.
pub type Use = (u16, usize, u8);

/// Whatever is stored and read: the counts are right, and no more is held than may be.
pub fn accounts_for_everything(uses: Vec<Use>) {
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
        // What leaves to make room for its own successor is both replaced and evicted.
        assert!(usage.items + left >= stored && usage.items + left <= stored + replaced);
        assert_eq!(usage.counters.total_items, stored);
        assert!(usage.bytes + usage.table_bytes <= LIMIT);
    }
}
