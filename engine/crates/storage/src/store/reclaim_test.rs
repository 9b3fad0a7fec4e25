//! The cost of a reader that does not leave, for writers.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::{Mode, Store};

const NOW: u32 = 1_700_000_000;

/// Store items, and read every second of the earlier ones, so that eviction keeps it.
fn store_items(store: &Store, from: u32, to: u32) {
    for n in from..to {
        store.store(Mode::Set, &n.to_be_bytes(), 0, 0, &[b'x'; 700], NOW);
        store.get(&(n / 2 * 2).to_be_bytes(), None, NOW, |_| ());
    }
}

/// The worst reader: it leaves a read section only when a writer sleeps because of it, and begins
/// another one at once.
fn block_writers(store: &Store, inside: &Barrier, done: &AtomicBool) {
    let mut sleeps = store.grace_periods.sleeps();
    let mut guard = store.grace_periods.begin_read();
    inside.wait();
    while !done.load(Ordering::SeqCst) {
        let now = store.grace_periods.sleeps();
        if now > sleeps {
            sleeps = now;
            guard = store.grace_periods.begin_read();
        }
        thread::yield_now();
    }
    drop(guard);
}

#[test]
fn one_wait_for_readers_frees_memory_for_many_items() {
    const ITEMS: u32 = 3000;
    let store = Store::new(256 << 10);
    store_items(&store, 0, ITEMS);
    let (inside, done) = (Barrier::new(2), AtomicBool::new(false));
    let before = store.grace_periods.reuse_epoch();
    thread::scope(|scope| {
        scope.spawn(|| block_writers(&store, &inside, &done));
        inside.wait();
        store_items(&store, ITEMS, 2 * ITEMS);
        done.store(true, Ordering::SeqCst);
    });
    let periods = (store.grace_periods.reuse_epoch() - before) as u32;
    // With one segment for each wait there would be more grace periods than items.
    assert!(periods * 8 < ITEMS, "{periods} grace periods for {ITEMS} items");
}
