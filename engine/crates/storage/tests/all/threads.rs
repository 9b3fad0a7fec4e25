//! Threads that read and write the same few items while others are evicted: no reader sees bytes of another item.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cachemark_storage::{Mode, Store};

const NOW: u32 = 1_700_000_000;
const KEYS: u32 = 400;
// A writer may have to wait for a preempted reader: milliseconds on two cores.
const ROUNDS: u32 = 500;

/// A value that consists of its key and its length, repeated.
fn value(key: u32, length: usize) -> Vec<u8> {
    let mut value = vec![key as u8; length];
    value[..4].copy_from_slice(&key.to_le_bytes());
    value[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    value
}

fn is_whole(key: u32, bytes: &[u8]) -> bool {
    bytes == value(key, bytes.len())
}

fn write(store: &Store, seed: u32) {
    let mut state = seed;
    for round in 0..ROUNDS {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let key = (state >> 8) % KEYS;
        let name = key.to_be_bytes();
        match round % 16 {
            0 => {
                store.delete(&name, NOW);
            }
            1 => {
                store.touch(&name, 100, NOW);
            }
            _ => {
                let length = 8 + (state >> 16) as usize % 1500;
                let exptime = i64::from(round % 3);
                store.store(Mode::Set, &name, key, exptime, &value(key, length), NOW);
            }
        }
    }
}

#[test]
fn readers_see_whole_items_whatever_writers_do() {
    let store = Store::new(256 << 10);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let (mut key, mut looked) = (0, 0);
                while !done.load(Ordering::Relaxed) || looked < KEYS {
                    key = (key + 1) % KEYS;
                    looked += 1;
                    store.get(&key.to_be_bytes(), None, NOW, |item| {
                        assert!(is_whole(key, item.value), "key {key}");
                        assert_eq!(item.flags, key);
                    });
                }
            });
        }
        let writers: Vec<_> = (1..3)
            .map(|seed| {
                scope.spawn({
                    let store = &store;
                    move || write(store, seed)
                })
            })
            .collect();
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "a writer failed");
    });
    let usage = store.usage(NOW);
    assert!(usage.counters.evictions > 0);
    let there = |key: &u32| store.get(&key.to_be_bytes(), None, NOW, |_| ()).is_some();
    assert_eq!((0..KEYS).filter(there).count() as u64, usage.items);
}

#[test]
fn no_item_is_missed_while_the_table_grows() {
    let store = Store::new(16 << 20);
    let count: u32 = 100_000;
    let done = &AtomicBool::new(false);
    thread::scope(|scope| {
        let kept = || (0..200_u32).map(|n| n.to_le_bytes());
        kept().for_each(|name| {
            store.store(Mode::Set, &name, 0, 0, b"x", NOW);
        });
        let store = &store;
        let reader = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                assert!(kept().all(|name| store.get(&name, None, NOW, |_| ()).is_some()));
            }
        });
        for n in 0..count {
            store.store(Mode::Set, format!("other-{n}").as_bytes(), 0, 0, b"x", NOW);
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("nothing is missed");
    });
}
