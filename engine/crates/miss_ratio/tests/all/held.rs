//! The figures of a snapshot, beside the true items of a simulated traffic.

use cachemark_miss_ratio::{Held, HeldItems};
use cachemark_trace::file::Record;
use proptest::prelude::*;

/// An item as memcached notes it: a read marks it, but the first one leaves its time, and others at most some.
#[derive(Clone, Debug)]
struct Noted {
    stored_s: u64,
    /// Seconds after it was stored, and whether the server notes this read.
    reads: Vec<(u64, bool)>,
    value_bytes: u32,
}

const NOW_S: u64 = 10_000;

impl Noted {
    fn reads_so_far(&self) -> impl Iterator<Item = (usize, (u64, bool))> {
        let reads = self.reads.iter().map(|(after_s, noted)| (self.stored_s + after_s, *noted));
        reads.filter(|(at_s, _)| *at_s <= NOW_S).enumerate()
    }

    fn last_noted_s(&self) -> u64 {
        let noted = self.reads_so_far().filter(|(place, (_, noted))| *place > 0 && *noted);
        noted.map(|(_, (at_s, _))| at_s).last().unwrap_or(self.stored_s)
    }

    /// The truth: for how long no client read or stored it.
    fn idle_s(&self) -> u64 {
        let last = self.reads_so_far().map(|(_, (at_s, _))| at_s).last();
        NOW_S - last.unwrap_or(self.stored_s)
    }

    fn charged(&self) -> f64 {
        told(std::slice::from_ref(self), &[]).items.bytes
    }
}

fn told(items: &[Noted], sizes: &[u64]) -> Held {
    let mut held = HeldItems::default();
    for item in items {
        held.add(&Record {
            at_ns: Some(item.last_noted_s() * 1_000_000_000),
            operation: "item",
            key: b"key",
            key_bytes: None,
            length: Some(item.value_bytes),
            ttl_s: 0,
            count: 1,
            client: None,
            succeeded: Some(item.reads_so_far().next().is_some()),
            joined: false,
        });
    }
    held.told(NOW_S, 1, sizes)
}

fn noted() -> impl Strategy<Value = Noted> {
    let reads = proptest::collection::vec((1..3000u64, any::<bool>()), 0..5);
    (0..NOW_S, reads, 1..5000u32).prop_map(|(stored_s, mut reads, value_bytes)| {
        reads.sort_unstable();
        Noted { stored_s, reads, value_bytes }
    })
}

proptest! {
    #[test]
    fn idle_memory_is_between_its_bounds(items in proptest::collection::vec(noted(), 1..60)) {
        let held = told(&items, &[]);
        for row in &held.idle {
            let idle = items.iter().filter(|item| item.idle_s() >= row.idle_s);
            let bytes: f64 = idle.map(Noted::charged).sum();
            prop_assert!(row.at_least.bytes <= bytes && bytes <= row.at_most.bytes, "{row:?} {bytes}");
        }
    }

    #[test]
    fn what_is_kept_fits_and_one_item_more_does_not(
        items in proptest::collection::vec(noted(), 1..60),
        memory_bytes in 1..100_000u64,
    ) {
        let held = told(&items, &[memory_bytes]);
        let given_up = held.given_up[0];
        let kept = held.items.bytes - given_up.items.bytes;
        prop_assert!(kept <= memory_bytes as f64);
        prop_assert_eq!(given_up.items.items > 0.0, held.items.bytes > memory_bytes as f64);
        prop_assert!(given_up.never_read.bytes <= given_up.items.bytes);
        let largest = items.iter().map(Noted::charged).fold(0.0, f64::max);
        prop_assert!(given_up.items.items == 0.0 || kept + largest > memory_bytes as f64);
    }
}

#[test]
fn a_sampled_snapshot_speaks_of_all_keys() {
    let mut held = HeldItems::default();
    for number in 0..10 {
        held.add(&Record {
            at_ns: Some(number * 1_000_000_000),
            operation: "item",
            key: b"AAAAAAAAAAA",
            key_bytes: Some(3),
            // 56 + 4 + 36 bytes: a chunk of 96.
            length: Some(34),
            ttl_s: u32::from(number == 0),
            count: 1,
            client: None,
            succeeded: Some(number == 9),
            joined: false,
        });
    }
    let held = held.told(20, 100, &[48_000]);
    assert_eq!((held.items.items, held.items.bytes), (1000.0, 96_000.0));
    assert_eq!((held.never_read.items, held.without_expiry.items), (900.0, 900.0));
    assert_eq!(held.idle.iter().map(|row| row.at_most.items).collect::<Vec<_>>(), [1000.0, 1000.0]);
    assert_eq!((held.given_up[0].items.items, held.given_up[0].idle_s), (500.0, 16));
}
