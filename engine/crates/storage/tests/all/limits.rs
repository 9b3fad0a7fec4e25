//! The memory limit is changed while the store is in use.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cachemark_storage::{Mode, Outcome, Store};

const NOW: u32 = 1_700_000_000;
const MIB: u64 = 1 << 20;

/// Store items of a kilobyte with these numbers.
fn fill(store: &Store, numbers: std::ops::Range<u32>) {
    for n in numbers {
        store.store(Mode::Set, &n.to_be_bytes(), 0, 0, &[b'x'; 1000], NOW);
    }
}

fn set_limit(store: &Store, limit_bytes: u64) {
    assert!(store.set_limit_bytes(limit_bytes, NOW));
    while store.approach_limit(NOW) {}
}

/// The table and the items, in bytes.
fn taken(store: &Store) -> u64 {
    let usage = store.usage(NOW);
    usage.bytes + usage.table_bytes
}

#[test]
fn a_higher_limit_has_room_for_more_items() {
    let store = Store::adjustable(3 << 20, None).expect("a store");
    fill(&store, 0..6000);
    let before = store.usage(NOW);
    assert!(before.counters.evictions > 0);
    set_limit(&store, 12 * MIB);
    fill(&store, 6000..12_000);
    let after = store.usage(NOW);
    assert_eq!(after.limit_bytes, 12 * MIB);
    assert_eq!(after.counters.evictions, before.counters.evictions);
    assert_eq!(after.items, before.items + 6000);
    assert!(taken(&store) > 3 * MIB);
    fill(&store, 12_000..24_000);
    assert!(taken(&store) <= 12 * MIB);
}

#[test]
fn a_lower_limit_evicts_and_what_is_read_stays() {
    let store = Store::adjustable(64 << 20, None).expect("a store");
    fill(&store, 0..50_000);
    for n in 0..1000_u32 {
        assert!(store.get(&n.to_be_bytes(), None, NOW, |_| ()).is_some(), "it all fits");
    }
    set_limit(&store, 16 * MIB);
    assert!(taken(&store) <= 16 * MIB, "{:?}", store.usage(NOW));
    assert!(taken(&store) > 12 * MIB, "no more than necessary: {:?}", store.usage(NOW));
    fill(&store, 50_000..70_000);
    assert!(taken(&store) <= 16 * MIB);
    let found = (60_000..70_000_u32).filter(|n| {
        let same = |value: &[u8]| value == [b'x'; 1000];
        store.get(&n.to_be_bytes(), None, NOW, |item| same(item.value)).is_some_and(|same| same)
    });
    assert!(found.count() > 5000);
    set_limit(&store, 64 * MIB);
    fill(&store, 70_000..90_000);
    assert!(taken(&store) > 20 * MIB);
}

#[test]
fn without_eviction_a_lower_limit_refuses_new_items() {
    let store = Store::adjustable(16 << 20, None).expect("a store");
    store.set_evicts(false);
    fill(&store, 0..10_000);
    set_limit(&store, 8 * MIB);
    assert_eq!(store.usage(NOW).items, 10_000);
    assert_eq!(store.store(Mode::Set, b"new", 0, 0, &[0; 100_000], NOW), None);
    (0..10_000_u32).for_each(|n| assert!(store.delete(&n.to_be_bytes(), NOW)));
    let stored = store.store(Mode::Set, b"new", 0, 0, &[0; 100_000], NOW);
    assert_eq!(stored, Some(Outcome::Stored));
}

#[test]
fn impossible_limits_are_refused() {
    let store = Store::adjustable(64 << 20, None).expect("a store");
    assert!(!store.set_limit_bytes(1 << 50, NOW));
    assert!(!store.set_limit_bytes(1 << 10, NOW));
    let fixed = Store::new(64 << 20);
    assert!(!fixed.set_limit_bytes(65 * MIB, NOW), "it has no addresses for more");
    assert_eq!(fixed.usage(NOW).limit_bytes, 64 * MIB);
    set_limit(&fixed, 32 * MIB);
    set_limit(&fixed, 64 * MIB);
    // The table stays as large as it is: the smallest limit is above it.
    let many = Store::adjustable(4 << 20, None).expect("a store");
    assert!(many.set_limit_bytes(MIB / 2, NOW) && many.set_limit_bytes(4 * MIB, NOW));
    (0..50_000_u32).for_each(|n| {
        many.store(Mode::Set, &n.to_be_bytes(), 0, 0, b"", NOW);
    });
    assert!(!many.set_limit_bytes(MIB / 2, NOW));
}

#[test]
fn readers_and_writers_go_on_while_the_limit_moves() {
    let store = Store::adjustable(16 << 20, None).expect("a store");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !done.load(Ordering::SeqCst) {
                fill(&store, n..n + 1);
                let same = |value: &[u8]| value == [b'x'; 1000];
                let read = store.get(&(n / 2).to_be_bytes(), None, NOW, |item| same(item.value));
                assert_ne!(read, Some(false));
                n = (n + 1) % 20_000;
            }
        });
        for round in 0..20 {
            set_limit(&store, if round % 2 == 0 { 8 } else { 32 } * MIB);
        }
        done.store(true, Ordering::SeqCst);
    });
    set_limit(&store, 8 * MIB);
    assert!(taken(&store) <= 8 * MIB);
}
