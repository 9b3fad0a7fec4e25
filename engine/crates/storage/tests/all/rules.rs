//! memcached's rules: expiry, flushes, eviction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cachemark_storage::{EvictionObserver, Mode, Outcome, Store};

const NOW: u32 = 1_700_000_000;

fn value(store: &Store, key: &[u8], now_s: u32) -> Option<Vec<u8>> {
    store.get(key, None, now_s, |item| item.value.to_vec())
}

fn set(store: &Store, key: &[u8], exptime: i64, bytes: &[u8], now_s: u32) {
    let stored = store.store(Mode::Set, key, 0, exptime, bytes, now_s);
    assert_eq!(stored, Some(Outcome::Stored));
}

fn name(n: u32) -> Vec<u8> {
    format!("key-{n}").into_bytes()
}

#[test]
fn items_expire_at_their_second() {
    let store = Store::new(1 << 20);
    set(&store, b"relative", 10, b"x", NOW);
    set(&store, b"instant", i64::from(NOW) + 10, b"x", NOW);
    set(&store, b"past", -1, b"x", NOW);
    for key in [&b"relative"[..], b"instant"] {
        assert!(value(&store, key, NOW + 9).is_some());
        assert!(value(&store, key, NOW + 10).is_none());
    }
    assert!(value(&store, b"past", NOW).is_none());
    assert_eq!(store.usage(NOW).items, 0, "expired items return their memory");
}

#[test]
fn expired_items_are_removed_before_live_items_are_evicted() {
    let store = Store::new(4 << 20);
    for n in 0..3400 {
        set(&store, &name(n), if n % 4 == 0 { 0 } else { 5 }, &[0; 1000], NOW);
    }
    assert_eq!(store.usage(NOW).counters.evictions, 0, "it is not full yet");
    for n in 10_000..12_000 {
        set(&store, &name(n), 0, &[0; 1000], NOW + 10);
    }
    assert_eq!(store.usage(NOW + 10).counters.evictions, 0);
    let living = |n: &u32| value(&store, &name(*n), NOW + 10).is_some();
    assert_eq!((0..3400).filter(living).count(), 850);
    assert_eq!((10_000..12_000).filter(living).count(), 2000);
}

#[test]
fn items_that_are_read_are_kept() {
    let store = Store::new(1 << 20);
    for n in 0..5000 {
        set(&store, &name(n), 0, &[0; 1000], NOW);
        assert!(value(&store, &name(0), NOW).is_some(), "key-0 is in use all the time");
    }
    assert!(value(&store, &name(1), NOW).is_none());
    assert!(value(&store, &name(4999), NOW).is_some());
    let usage = store.usage(NOW);
    assert!(usage.bytes + usage.table_bytes <= 1 << 20);
    assert_eq!(usage.counters.evictions + usage.items, 5000);
    assert!(usage.items > 900, "{} items", usage.items);
}

#[test]
fn a_scan_does_not_evict_items_in_use() {
    let store = Store::new(4 << 20);
    let used = || (0..2000).filter(|n| value(&store, &name(*n), NOW).is_some()).count();
    (0..2000).for_each(|n| set(&store, &name(n), 0, &[0; 1000], NOW));
    assert_eq!(used(), 2000);
    for n in 10_000..30_000 {
        set(&store, &name(n), 0, &[0; 1000], NOW);
    }
    assert!(used() > 1800, "{} are left", used());
}

#[test]
fn overwritten_items_do_not_evict_others() {
    let store = Store::new(4 << 20);
    (0..2500).for_each(|n| set(&store, &name(n), 0, &[0; 1000], NOW));
    for round in 0..20 {
        (0..2500).for_each(|n| set(&store, &name(n * 7919 % 2500), 0, &[round; 1000], NOW));
    }
    let usage = store.usage(NOW);
    assert_eq!((usage.items, usage.counters.evictions), (2500, 0));
    assert!((0..2500).all(|n| value(&store, &name(n), NOW) == Some(vec![19; 1000])));
}

#[test]
fn large_items_fit_among_small_ones() {
    let store = Store::new(8 << 20);
    (0..20_000).for_each(|n| set(&store, &name(n), 0, &[1; 600], NOW));
    for n in 0..30 {
        set(&store, &name(1_000_000 + n), 0, &vec![n as u8; 1_000_000], NOW);
        assert_eq!(value(&store, &name(1_000_000 + n), NOW), Some(vec![n as u8; 1_000_000]));
        set(&store, &name(n), 0, &[1; 600], NOW);
    }
    assert!(store.delete(&name(1_000_029), NOW));
    assert_eq!(store.store(Mode::Set, b"k", 0, 0, &vec![0; 9 << 20], NOW), None);
}

#[test]
fn a_delayed_flush_happens_when_it_is_due() {
    let store = Store::new(1 << 20);
    set(&store, b"old", 0, b"x", NOW);
    store.flush(3, NOW);
    assert!(value(&store, b"old", NOW + 1).is_some());
    set(&store, b"new", 0, b"x", NOW + 2);
    assert!(value(&store, b"old", NOW + 2).is_none());
    assert!(value(&store, b"new", NOW + 3).is_some());
    store.flush(0, NOW + 3);
    assert!(value(&store, b"new", NOW + 3).is_none());
}

#[test]
fn a_flush_after_one_second_happens_at_once() {
    let store = Store::new(1 << 20);
    set(&store, b"old", 0, b"x", NOW);
    store.flush(1, NOW);
    assert!(value(&store, b"old", NOW).is_none());
    set(&store, b"new", 0, b"x", NOW);
    assert!(value(&store, b"new", NOW + 1).is_some());
}

#[test]
fn memory_of_segments_is_in_use_while_they_have_items() {
    let store = Store::new(16 << 20);
    assert_eq!(store.usage(NOW).segment_bytes, 0);
    (0..100).for_each(|n| set(&store, &name(n), 0, &[1; 60_000], NOW));
    let full = store.usage(NOW);
    assert!(full.segment_bytes >= full.bytes, "{full:?}");
    assert!(full.segment_bytes <= full.limit_bytes, "{full:?}");
}

#[test]
fn a_fixed_table_holds_more_than_its_slots() {
    let store = Store::with_hash_power(16 << 20, Some(10)).expect("a store");
    (0..50_000).for_each(|n| set(&store, &name(n), 0, b"x", NOW));
    assert!((0..50_000).all(|n| value(&store, &name(n), NOW).is_some()));
    assert_eq!(store.usage(NOW).items, 50_000);
}

#[test]
fn a_table_that_grows_loses_nothing() {
    let store = Store::new(64 << 20);
    (0..400_000).for_each(|n| set(&store, &name(n), 0, b"x", NOW));
    assert!((0..400_000).all(|n| value(&store, &name(n), NOW).is_some()));
    let usage = store.usage(NOW);
    assert_eq!((usage.items, usage.counters.evictions), (400_000, 0));
    let slot_bytes = usage.table_bytes as f64 / 400_000.0;
    assert!(slot_bytes < 11.5, "{slot_bytes} bytes of table for each item");
}

#[test]
fn cas_numbers_survive_a_move_and_are_never_reused() {
    let store = Store::new(1 << 20);
    let cas = |key: &[u8]| store.get(key, None, NOW, |item| item.cas);
    set(&store, b"kept", 0, &[0; 500], NOW);
    let before = cas(b"kept").expect("an item");
    let mut seen = std::collections::HashSet::from([before]);
    for n in 0..10_000 {
        set(&store, &name(n), 0, &[0; 500], NOW);
        assert!(seen.insert(cas(&name(n)).expect("an item")));
        assert_eq!(cas(b"kept"), Some(before));
    }
}

#[test]
fn a_store_that_does_not_evict_refuses_new_items() {
    let store = Store::new(2 << 20);
    store.set_evicts(false);
    let bytes = [7; 8192];
    let store_next =
        |n: u32| store.store(Mode::Set, &name(n), 0, 0, &bytes, NOW) == Some(Outcome::Stored);
    let stored = (0..1000).take_while(|n| store_next(*n)).count() as u32;
    assert!((100..256).contains(&stored), "{stored} items of 8 KiB in 2 MiB");
    assert!((0..stored).all(|n| value(&store, &name(n), NOW).is_some()), "all are there");
    assert_eq!(store.usage(NOW).counters.evictions, 0);
    // What is deleted makes room.
    (0..stored).for_each(|n| assert!(store.delete(&name(n), NOW)));
    set(&store, b"next", 0, &bytes, NOW);
}

#[test]
fn each_eviction_is_observed() {
    let store = Store::new(1 << 20);
    let seen = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&seen);
    let observer: EvictionObserver = Arc::new(move |key, item, now_s| {
        assert!(key.starts_with(b"key-") && item.value.len() == 1000 && now_s == NOW);
        counted.fetch_add(1, Ordering::Relaxed);
    });
    store.observe_evictions(&observer);
    (0..5000).for_each(|n| set(&store, &name(n), 0, &[1; 1000], NOW));
    let evictions = store.usage(NOW).counters.evictions;
    assert!(evictions > 3000);
    assert_eq!(seen.load(Ordering::Relaxed), evictions);
}

#[test]
fn expired_items_are_removed_on_demand() {
    let store = Store::new(1 << 20);
    (0..300).for_each(|n| set(&store, &name(n), i64::from(n % 3) * 10, b"x", NOW));
    assert_eq!((store.remove_expired(NOW + 9), store.usage(NOW).items), (0, 300));
    assert_eq!((store.remove_expired(NOW + 10), store.usage(NOW).items), (100, 200));
    assert_eq!((store.remove_expired(NOW + 99), store.usage(NOW).items), (100, 100));
    assert_eq!(store.remove_expired(NOW + 99), 0);
    assert_eq!(store.usage(NOW).counters.evictions, 0);
}

#[test]
fn a_flushed_item_is_counted_once_when_asked_for() {
    let store = Store::new(1 << 20);
    let flushed = || store.usage(NOW).counters.get_flushed;
    (0..300).for_each(|n| set(&store, &name(n), 0, b"x", NOW));
    assert_eq!(value(&store, b"never stored", NOW), None);
    store.flush(0, NOW);
    assert_eq!((store.usage(NOW).items, flushed()), (0, 0));
    for n in 0..100 {
        assert_eq!([value(&store, &name(n), NOW), value(&store, &name(n), NOW)], [None, None]);
    }
    assert_eq!((value(&store, b"never stored", NOW), flushed()), (None, 100));
    assert!(!store.delete(&name(100), NOW) && !store.touch(&name(101), 0, NOW));
    assert_eq!(flushed(), 102, "whatever asks for it");
    // A second flush keeps the first in force.
    set(&store, b"new", 0, b"x", NOW);
    store.flush(0, NOW);
    assert_eq!((value(&store, b"new", NOW), value(&store, &name(102), NOW)), (None, None));
    assert_eq!(flushed(), 104);
    // Where the memory was used again, its earlier content is unknown.
    (1000..9000).for_each(|n| set(&store, &name(n), 0, &[1; 500], NOW));
    let before = flushed();
    (103..300).for_each(|n| assert_eq!(value(&store, &name(n), NOW), None));
    assert_eq!(flushed(), before);
    store.reset_counters();
    assert_eq!(flushed(), 0);
}
