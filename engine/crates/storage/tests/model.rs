//! The store against models that are too simple to be wrong, with a clock of their own.

use std::collections::HashMap;

use cachemark_storage::{Arithmetic, Mode, Outcome, Store};
use proptest::prelude::*;

const NOW: u32 = 1_700_000_000;

#[derive(Clone, Debug)]
struct Action {
    key: u8,
    verb: Verb,
}

#[derive(Clone, Debug)]
enum Verb {
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

fn exptime() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => Just(0_i64),
        1 => Just(-1),
        3 => 1..4_i64,
        // An instant: already past, or seconds ahead of the beginning.
        2 => (-3..6_i64).prop_map(|ahead| i64::from(NOW) + ahead),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        "[0-9]{1,4}".prop_map(String::into_bytes),
        Just(u64::MAX.to_string().into_bytes()),
        " {0,2}[0-9]{1,3} {0,2}".prop_map(String::into_bytes),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    let mode = proptest::sample::select(vec![
        Mode::Set,
        Mode::Add,
        Mode::Replace,
        Mode::Append,
        Mode::Prepend,
    ]);
    let verb = prop_oneof![
        6 => (mode, any::<u32>(), exptime(), bytes())
            .prop_map(|(mode, flags, exptime, value)| Verb::Store(mode, flags, exptime, value)),
        2 => (any::<bool>(), bytes()).prop_map(|(right, value)| Verb::Swap(right, value)),
        5 => Just(Verb::Get),
        1 => exptime().prop_map(Verb::GetAndTouch),
        2 => Just(Verb::Delete),
        3 => (0..2000_u64, any::<bool>()).prop_map(|(delta, up)| Verb::Arithmetic(delta, up)),
        1 => exptime().prop_map(Verb::Touch),
        1 => (-1..3_i64).prop_map(Verb::Flush),
        2 => (0..3_u32).prop_map(Verb::Wait),
    ];
    (0..6_u8, verb).prop_map(|(key, verb)| Action { key, verb })
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

fn number(value: &[u8]) -> Option<u64> {
    let mut words = value.trim_ascii_start().split(u8::is_ascii_whitespace);
    let word = words.next().filter(|word| word.iter().all(u8::is_ascii_digit))?;
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

struct Pair {
    store: Store,
    model: Model,
    now_s: u32,
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

    fn apply(&mut self, action: Action) -> Result<(), TestCaseError> {
        self.model.settle(self.now_s);
        let (key, now_s) = (action.key, self.now_s);
        match action.verb {
            Verb::Store(mode, flags, exptime, value) => {
                let outcome = self.store.store(mode, &[key], flags, exptime, &value, now_s);
                let fresh = Held { value, flags, ends: end(exptime, now_s) };
                prop_assert_eq!(outcome, Some(self.model.store(key, mode, fresh)));
            }
            Verb::Swap(right, value) => self.swap(key, right, value)?,
            Verb::Get => prop_assert_eq!(self.read(key, None), self.expected(key)),
            Verb::GetAndTouch(exptime) => {
                prop_assert_eq!(self.read(key, Some(exptime)), self.expected(key));
                self.touch(key, exptime);
            }
            Verb::Delete => {
                let deleted = self.model.held.remove(&key).is_some();
                prop_assert_eq!(self.store.delete(&[key], now_s), deleted);
            }
            Verb::Arithmetic(delta, up) => {
                let result = self.store.arithmetic(&[key], delta, up, now_s);
                prop_assert_eq!(result, self.model.arithmetic(key, delta, up));
            }
            Verb::Touch(exptime) => {
                let there = self.model.held.contains_key(&key);
                prop_assert_eq!(self.store.touch(&[key], exptime, now_s), there);
                self.touch(key, exptime);
            }
            Verb::Flush(delay) => {
                self.store.flush(delay, now_s);
                self.model.flush_at = Some(i64::from(now_s) + delay.max(0));
            }
            Verb::Wait(seconds) => self.now_s += seconds,
        }
        Ok(())
    }

    fn swap(&mut self, key: u8, right: bool, value: Vec<u8>) -> Result<(), TestCaseError> {
        let cas = self.store.get(&[key], None, self.now_s, |item| item.cas);
        let expected = match (cas, right) {
            (None, _) => Outcome::NotFound,
            (Some(_), true) => Outcome::Stored,
            (Some(_), false) => Outcome::Exists,
        };
        prop_assert_eq!(cas.is_some(), self.model.held.contains_key(&key));
        let offered = cas.unwrap_or(7) + u64::from(!right);
        let mode = Mode::Cas(offered);
        let outcome = self.store.store(mode, &[key], 3, 0, &value, self.now_s);
        prop_assert_eq!(outcome, Some(expected));
        if expected == Outcome::Stored {
            self.model.held.insert(key, Held { value, flags: 3, ends: None });
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_store_agrees_with_a_map(actions in proptest::collection::vec(action(), 0..200)) {
        let mut pair = Pair { store: Store::new(1 << 20), model: Model::default(), now_s: NOW };
        for action in actions {
            pair.apply(action)?;
        }
    }

    /// Whatever is stored and read: the counts are right, and no more is held than may be.
    #[test]
    fn what_is_held_is_what_was_stored_less_what_left(
        uses in proptest::collection::vec((0..400_u16, 0..3000_usize, 0..10_u8), 1..2000),
    ) {
        const LIMIT: u64 = 200_000;
        let store = Store::new(LIMIT as usize);
        let mut last: HashMap<u16, usize> = HashMap::new();
        let (mut stored, mut replaced, mut deleted) = (0, 0, 0);
        for (key, length, action) in uses {
            let name = key.to_be_bytes();
            let found = store.get(&name, None, NOW, |item| item.value.to_vec());
            if let Some(value) = &found {
                prop_assert!(*value == vec![key as u8; last[&key]], "key {key}");
            }
            if action < 7 {
                let value = vec![key as u8; length];
                let outcome = store.store(Mode::Set, &name, 0, 0, &value, NOW);
                prop_assert_eq!(outcome, Some(Outcome::Stored));
                prop_assert!(store.get(&name, None, NOW, |item| item.value == value).unwrap());
                last.insert(key, length);
                stored += 1;
                replaced += u64::from(found.is_some());
            } else if action == 7 {
                prop_assert_eq!(store.delete(&name, NOW), found.is_some());
                deleted += u64::from(found.is_some());
            }
            let usage = store.usage(NOW);
            let left = replaced + deleted + usage.counters.evictions;
            // What leaves to make room for its own successor is both replaced and evicted.
            prop_assert!(usage.items + left >= stored && usage.items + left <= stored + replaced);
            prop_assert_eq!(usage.counters.total_items, stored);
            prop_assert!(usage.bytes + usage.table_bytes <= LIMIT);
        }
    }
}
